"""A bot of discord.py without Denizen: the baseline of the figures about Discord.

python -m benchmarks.bare_bot API_URL GATEWAY_URL TOKEN                 answers each mention at once
python -m benchmarks.bare_bot API_URL GATEWAY_URL TOKEN CHANNEL...      reads the channels; posts and seconds as JSON
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import discord
import uvloop

from benchmarks.model import WORDS
from denizen.adapters.discord.client.http import use_endpoints
from denizen.adapters.discord.client.settings import DiscordEndpoints


class Bot(discord.Client):
    def __init__(self) -> None:
        intents = discord.Intents.none()
        intents.guilds = intents.guild_messages = intents.message_content = True
        super().__init__(intents=intents, max_messages=None, chunk_guilds_at_startup=False)

    async def on_message(self, message: discord.Message) -> None:
        if self.user is not None and self.user in message.mentions and message.author != self.user:
            await message.reply("".join(WORDS))


async def read(token: str, channels: list[int]) -> None:
    client = Bot()
    async with client:
        await client.login(token)
        started_s, posts = time.perf_counter(), 0
        for channel in channels:
            async for _ in client.get_partial_messageable(channel).history(limit=None):
                posts += 1
        print(json.dumps({"posts": posts, "seconds": time.perf_counter() - started_s}))


async def answer(token: str) -> None:
    async with Bot() as client:
        await client.start(token)


if __name__ == "__main__":
    api_url, gateway_url, own_token, *rooms = sys.argv[1:]
    with (
        use_endpoints(DiscordEndpoints(api_url, gateway_url)),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as run,
    ):
        run.run(read(own_token, [int(room) for room in rooms]) if rooms else answer(own_token))

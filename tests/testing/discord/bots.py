"""Real discord.py clients, pointed at a simulated Discord, for the tests beside this file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import anyio
import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from denizen.testing.discord import DiscordServer, SimApplication, SimChannel
from tests.timing import HANG_LIMIT_S

T = TypeVar("T", bound=discord.Client)


@contextmanager
def pointed_at(server: DiscordServer) -> Generator[None, None, None]:
    """discord.py takes its addresses from the process; they are put back afterwards."""
    before = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY, discord.Asset.BASE
    Route.BASE = server.api_url
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(server.gateway_url)
    setattr(discord.Asset, "BASE", server.cdn_url)  # noqa: B010 - typed as the one address
    try:
        yield
    finally:
        Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY, discord.Asset.BASE = before


class Bot(discord.Client):
    """Notes what it hears."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("intents", discord.Intents.all())
        super().__init__(guild_ready_timeout=0.05, **options)
        self.heard: list[discord.Message] = []
        self.edited: list[discord.Message] = []
        self.deleted: list[int] = []
        self.reacted: list[tuple[str, str]] = []
        self.readies = 0
        self.resumes = 0
        self.tree = discord.app_commands.CommandTree(self)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """discord.py waits for five seconds here, for the sake of the real server."""

    async def on_ready(self) -> None:
        self.readies += 1

    async def on_resumed(self) -> None:
        self.resumes += 1

    async def on_message(self, message: discord.Message) -> None:
        self.heard.append(message)

    async def on_raw_message_edit(self, event: discord.RawMessageUpdateEvent) -> None:
        self.edited.append(event.message)

    async def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        self.deleted.append(event.message_id)

    async def on_raw_reaction_add(self, event: discord.RawReactionActionEvent) -> None:
        self.reacted.append(("add", str(event.emoji)))

    @property
    def texts(self) -> list[str]:
        return [message.content for message in self.heard]


@asynccontextmanager
async def running(server: DiscordServer, application: SimApplication, make: Callable[[], T]) -> AsyncGenerator[T, None]:
    """A client that is logged in and ready."""
    with pointed_at(server):
        client = make()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.start, application.token)
            with anyio.fail_after(HANG_LIMIT_S):
                while client._ready is discord.utils.MISSING:
                    await anyio.lowlevel.checkpoint()
                await client.wait_until_ready()
            try:
                yield client
            finally:
                await client.close()


def text_channel(bot: discord.Client, channel: SimChannel) -> discord.TextChannel:
    """That channel as the client has it."""
    found = bot.get_channel(channel.id)
    assert isinstance(found, discord.TextChannel)
    return found

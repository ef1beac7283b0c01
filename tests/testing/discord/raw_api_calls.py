"""A tour through the API without a library: the routes that discord.py has no word for, or calls otherwise."""

from __future__ import annotations

from typing import Any

import aiohttp

from denizen.testing.discord import SimMessage, SimPollDraft
from denizen.testing.discord.fixtures import DiscordFixture


class RawApiCalls:
    """One pass. The bot has to be an administrator; in the end it leaves the guild."""

    def __init__(self, sim: DiscordFixture, session: aiohttp.ClientSession) -> None:
        self._sim = sim
        self._session = session
        self._guild = f"/guilds/{sim.guild.id}"
        self._channel = f"/channels/{sim.general.id}"

    async def take(self) -> None:
        await self._people()
        await self._commands()
        await self._messages()
        await self._channels()
        await self._webhooks()
        await self._limits()
        await self._ask("DELETE", f"/users/@me{self._guild}", 204)

    async def _ask(self, method: str, path: str, status: int = 200, body: object = None) -> Any:
        url = self._sim.discord.api_url + path
        async with self._session.request(method, url, json=body) as answer:
            assert answer.status == status, (method, path, await answer.text())
            return None if status == 204 else await answer.json()

    def _say(self, text: str) -> SimMessage:
        return self._sim.world.say(self._sim.ana, self._sim.general, text)

    async def _people(self) -> None:
        for path in ("/gateway", "/gateway/bot", "/users/@me", "/applications/@me", f"/users/{self._sim.ana.id}"):
            await self._ask("GET", path)
        await self._ask("PATCH", "/users/@me", body={"username": "Ada"})
        await self._ask("PATCH", "/applications/@me", body={"description": {"default": "Helps."}})
        assert self._sim.ada.description == "Helps."
        await self._ask("GET", f"{self._guild}/members/search?query=an")
        await self._ask("GET", f"/users/@me{self._guild}/member")
        await self._ask("PATCH", self._guild, body={"name": "Port"})
        await self._ask("GET", f"{self._guild}/roles/{self._sim.guild.id}")
        sticker = self._sim.guild.add_sticker("ahoy")
        await self._ask("GET", f"/stickers/{sticker.id}")
        for path in ("audit-logs", "auto-moderation/rules", "onboarding", "regions"):
            await self._ask("GET", f"{self._guild}/{path}")
        (integration,) = await self._ask("GET", f"{self._guild}/integrations")
        assert integration["application"]["bot"]["id"] == str(self._sim.ada.id)
        assert await self._ask("GET", f"/applications/{self._sim.ada.id}/emojis") == {"items": []}
        assert await self._ask("GET", "/voice/regions")
        guest = self._sim.world.add_person("Guest")
        self._sim.guild.join(guest)
        await self._ask("DELETE", f"{self._guild}/members/{guest.id}", 204)

    async def _commands(self) -> None:
        own = f"/applications/{self._sim.ada.id}"
        for base in (f"{own}/commands", f"{own}{self._guild}/commands"):
            made = await self._ask("POST", base, 201, {"name": "one", "description": "d", "type": 1})
            await self._ask("POST", base, 200, {"name": "one", "description": "e", "type": 1})
            await self._ask("GET", f"{base}/{made['id']}")
            await self._ask("PATCH", f"{base}/{made['id']}", 200, {"description": "f"})
            await self._ask("GET", base)
            await self._ask("DELETE", f"{base}/{made['id']}", 204)
            await self._ask("PUT", base, 200, [])

    async def _messages(self) -> None:
        world, ana = self._sim.world, self._sim.ana
        said = self._say("look")
        message = f"{self._channel}/messages/{said.id}"
        for emoji, path in (("👍", f"/reactions/%F0%9F%91%8D/{ana.id}"), ("👎", "/reactions/%F0%9F%91%8E")):
            world.react(ana, said, emoji)
            await self._ask("DELETE", message + path, 204)
        await self._ask("PUT", f"{self._channel}/pins/{said.id}", 204)
        await self._ask("GET", f"{self._channel}/pins")
        await self._ask("DELETE", f"{self._channel}/pins/{said.id}", 204)
        poll = world.say(ana, self._sim.general, poll=SimPollDraft("Tea?", ["yes"]))
        world.vote(ana, poll, 1)
        voters = await self._ask("GET", f"{self._channel}/polls/{poll.id}/answers/1")
        assert [each["username"] for each in voters["users"]] == ["ana"]
        news = self._sim.guild.add_channel("news", kind="announcement")
        sent = await self._ask("POST", f"/channels/{news.id}/messages", body={"content": "news"})
        await self._ask("POST", f"/channels/{news.id}/messages/{sent['id']}/crosspost")

    async def _channels(self) -> None:
        await self._ask("PATCH", f"{self._guild}/channels", 204, [{"id": str(self._sim.general.id), "position": 3}])
        assert self._sim.general.position == 3
        ana = self._sim.ana
        thread = self._sim.world.open_thread(ana, self._sim.general, "quiet", private=True)
        await self._ask("PUT", f"/channels/{thread.id}/thread-members/@me", 204)
        await self._ask("GET", f"/channels/{thread.id}/thread-members/{ana.id}")
        self._sim.world.archive(ana, thread)
        for path in ("threads/archived/private", "users/@me/threads/archived/private", "threads/archived/public"):
            found = await self._ask("GET", f"{self._channel}/{path}")
            assert any(each["id"] == str(thread.id) for each in found["threads"]) == ("private" in path)

    async def _webhooks(self) -> None:
        hook = await self._ask("POST", f"{self._channel}/webhooks", body={"name": "hook"})
        await self._ask("GET", f"{self._guild}/webhooks")
        await self._ask("GET", f"/webhooks/{hook['id']}")
        await self._ask("GET", f"/webhooks/{hook['id']}/{hook['token']}")
        await self._ask("DELETE", f"/webhooks/{hook['id']}/{hook['token']}", 204)

    async def _limits(self) -> None:
        self._sim.discord.limits.strike()
        await self._ask("GET", "/users/@me", 429)
        token = self._session.headers.pop("Authorization")
        await self._ask("GET", "/users/@me", 401)
        self._session.headers["Authorization"] = token

"""The skills that moderate and run a server, called as a model calls them, on a simulated Discord."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from denizen.builtin_skills import load_builtin
from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, CallId
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import ToolCall, ToolResult, ToolSpec
from denizen.engine.accounts.connected_accounts import ConnectedAccounts, PlatformActionRunner
from denizen.ports.fetch import DownloadedFile
from denizen.ports.toolset import CallScope
from denizen.skill import ScopedServices, SkillServices, SkillToolset
from denizen.testing.discord import DiscordPermission, SimUser, open_discord
from tests.adapters.discord.account_fixture import AccountFixture, running
from tests.memory_channel import enter_at_once
from tests.skill_fixture import ServicesFixture, run, scope
from tests.testing.discord.schema import Schema, find_schema

SKILLS = ("moderation", "server", "members", "discord", "components")


@dataclass
class ModerationFixture:
    """All tools of these skills, in #general; the account is an administrator. `files` is what the web has."""

    sim: AccountFixture
    folder: Path
    toolsets: dict[str, SkillToolset] = field(default_factory=dict[str, SkillToolset])
    specs: dict[str, ToolSpec] = field(default_factory=dict[str, ToolSpec])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _numbers: count[int] = field(default_factory=count)

    async def call(self, who: SimUser, tool: str, args: JsonObject, key: str = "") -> ToolResult:
        """With a key of its own unless one is given. What a reading tool does not quote must be its own text."""
        result = await run(self.toolsets[tool], tool, args, self._scope(who, key))
        if self.specs[tool].flow.reads and not result.is_error:
            assert result.is_own is ("<untrusted" not in result.text)
        return result

    async def find_refusal(self, who: SimUser, tool: str, /, **args: Json) -> str:
        """Before a call, and without making it."""
        return await self.toolsets[tool].find_refusal(ToolCall(CallId("1"), tool, args), self._scope(who))

    def _scope(self, who: SimUser, key: str = "") -> CallScope:
        return replace(
            scope(key=key or f"call-{next(self._numbers)}"),
            principal=Principal(PrincipalKind.PLATFORM_USER, f"discord:{who.id}", who.display_name),
            place=Place("discord", str(self.sim.general.id)),
            account=AgentName("ada"),
            guild=str(self.sim.guild.id),
        )

    async def do(self, who: SimUser, tool: str, /, *, key: str = "", **args: Json) -> str:
        result = await self.call(who, tool, args, key)
        assert not result.is_error, result.text
        return result.text

    async def refused(self, who: SimUser, tool: str, /, **args: Json) -> str:
        result = await self.call(who, tool, args)
        assert result.is_error, result.text
        return result.text

    async def download(self, url: str, *, timeout_s: float = 60.0, max_bytes: int = 25_000_000) -> DownloadedFile:
        del timeout_s
        data = self.files.get(url)
        if data is None:
            return DownloadedFile(url, 404, "text/plain", b"", truncated=False)
        return DownloadedFile(url, 200, "image/png", data[:max_bytes], truncated=len(data) > max_bytes)


@asynccontextmanager
async def open_moderation(
    folder: Path, *, rights: DiscordPermission = DiscordPermission.ADMINISTRATOR
) -> AsyncGenerator[ModerationFixture]:
    """`rights` are those of the account, beyond everybody's. There is a role "crew" below its own. What was asked of
    Discord meanwhile fits its published schema, where that is here.
    """
    async with open_discord() as discord:
        sim = AccountFixture(discord)
        sim.guild.set_roles(sim.ada.user, [sim.guild.add_role("all", permissions=rights)])
        sim.guild.add_role("crew", permissions=DiscordPermission(0))
        async with running(sim) as (account, _):
            channels = ConnectedAccounts()
            channels.add(account)
            built = ModerationFixture(sim, folder)
            services = _services(built, channels)
            for name in SKILLS:
                toolset = SkillToolset(load_builtin(name), services)
                built.specs |= {spec.name: spec for spec in await toolset.list_tools()}
                built.toolsets |= {spec.name: toolset for spec in await toolset.list_tools()}
            yield built
        path = find_schema()
        schema = Schema(path) if path else None
        faults = [fault for request in discord.requests for fault in schema.faults(request)] if schema else []
        assert not faults, "\n".join(faults[:10])


def _services(built: ModerationFixture, channels: ConnectedAccounts) -> SkillServices:
    plain = ServicesFixture(built.folder).services()
    return replace(
        plain,
        clock=SystemClock(),
        scoped=ScopedServices(open_platform=PlatformActionRunner(channels, enter_at_once).open),
        folders=replace(plain.folders, shared={"moderation": built.folder / "shared"}.get),
        download=built.download,
    )


def tomorrow() -> str:
    return f"{datetime.now(UTC).year + 1}-06-01 20:00"

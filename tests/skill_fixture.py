"""The services that skills need, in memory, for tests: a clock that stands, a history, folders, no web."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import ToolCall, ToolResult
from denizen.ports.fetch import NO_HEADERS, FetchedPage, Fetcher
from denizen.ports.toolset import CallOptions, CallScope
from denizen.skill import HistoryMessage, SkillFolders, SkillServices, SkillToolset
from tests.clock import ManualClock

PLACE = Place("discord", "42")


class OfflineFetcher:
    """A fetcher on a machine without a network."""

    async def fetch(
        self, url: str, *, timeout_s: float = 15.0, max_bytes: int = 2_000_000, headers: Mapping[str, str] = NO_HEADERS
    ) -> FetchedPage:
        raise NotAllowed(f"{url} may not be fetched: there is no web here")

    async def aclose(self) -> None:
        pass


@dataclass
class ServicesFixture:
    """Makes services and remembers what was asked of them."""

    root: Path
    clock: ManualClock = field(default_factory=ManualClock)
    fetcher: Fetcher = field(default_factory=OfflineFetcher)
    messages: list[HistoryMessage] = field(default_factory=list[HistoryMessage])
    searched: list[CallScope] = field(default_factory=list[CallScope])
    inner_calls: list[tuple[CallScope, str, JsonObject]] = field(
        default_factory=list[tuple[CallScope, str, JsonObject]]
    )

    def services(self) -> SkillServices:
        return SkillServices(
            clock=self.clock,
            fetcher=self.fetcher,
            folders=SkillFolders(own=lambda agent, skill: self.root / agent / skill),
            search_history=self._search,
            read_history=self._read,
            call_tool=self._call,
        )

    async def _search(self, scope: CallScope, words: str, limit: int) -> Sequence[HistoryMessage]:
        self.searched.append(scope)
        wanted = words.casefold().split()
        hits = [message for message in self.messages if all(word in message.text.casefold() for word in wanted)]
        return sorted(hits, key=lambda message: message.at, reverse=True)[:limit]

    async def _read(self, scope: CallScope, first: int, last: int) -> Sequence[HistoryMessage]:
        self.searched.append(scope)
        return [message for message in self.messages if first <= message.number <= last]

    async def _call(self, scope: CallScope, tool: str, args: JsonObject) -> ToolResult:
        self.inner_calls.append((scope, tool, args))
        return ToolResult(f"{tool} ran")


def scope(*, agent: str = "ada", key: str = "") -> CallScope:
    return CallScope(
        agent=AgentName(agent),
        principal=Principal(PrincipalKind.PLATFORM_USER, "7", "Kim"),
        place=PLACE,
        session_id=SessionId("sess_1"),
        turn_id=TurnId("turn_1"),
        options=CallOptions(idempotency_key=key),
    )


async def run(toolset: SkillToolset, tool: str, args: JsonObject, where: CallScope | None = None) -> ToolResult:
    return await toolset.call(ToolCall(CallId("call_1"), tool, args), where or scope())

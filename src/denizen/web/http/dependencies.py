"""What the web needs, in one record. `app` makes it; every route gets it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.types import ASGIApp

from denizen.domain.clock import Clock
from denizen.domain.snapshot import Remote
from denizen.engine.assistant import Assistant
from denizen.engine.direct import DirectCalls
from denizen.engine.knowledge.following import FindProgress
from denizen.engine.knowledge.gaps import GapReport
from denizen.engine.knowledge.learning import Learning
from denizen.engine.knowledge.snapshots import Snapshots
from denizen.engine.knowledge.sources import Catalog
from denizen.engine.knowledge.sync import Sync
from denizen.engine.queries import Queries
from denizen.engine.runtime import Runtime
from denizen.engine.statistics import UsageStatistics
from denizen.engine.turn import Turns
from denizen.ports.hosting import Hosting, NoHosting
from denizen.web.http.auth import ApiKey, LoginSessions


@dataclass(frozen=True, slots=True)
class Exposure:
    """Who can reach the server. `allowed_hosts` are names under which a loopback server may be addressed besides the
    loopback names; `allowed_origins` are origins (`https://host`) of other pages whose scripts may use the API.
    """

    listens_beyond_loopback: bool = False
    allowed_hosts: frozenset[str] = frozenset()
    allowed_origins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WebTiming:
    """`keep_alive_s`: how long a stream may be silent. `chat_start_s`: when a chat's stream begins at the latest, so
    that its reader learns the turn's id.
    """

    keep_alive_s: float = 15.0
    chat_start_s: float = 0.5
    tools_deadline_s: float = 1.0


@dataclass(frozen=True, slots=True)
class EnabledChannels:
    """Which channels the configuration has switched on: the pages with their chat, the OpenAI-compatible API."""

    web: bool = True
    api: bool = True


@dataclass(frozen=True, slots=True)
class KnowledgeServices:
    """Sources, reading them, and the snapshots made of them. `remote` is where those are pushed to now, which
    `change_remote` changes; `webhooks` are the secrets, by source, of those who may have one read; `indexing` tells
    how far the search index is.
    """

    catalog: Catalog
    sync: Sync
    snapshots: Snapshots
    remote: Callable[[], Remote]
    change_remote: Callable[[Remote], Awaitable[None]]
    webhooks: Callable[[], Mapping[str, str]]
    indexing: FindProgress


@dataclass(frozen=True, slots=True)
class GapServices:
    """What no document answers, and the review of what people proposed as an answer."""

    report: GapReport
    learning: Learning


@dataclass(frozen=True, slots=True)
class WebDependencies:
    """`keys` is asked at every request, so that a key that was taken out of the configuration ends at once.
    `simulator` is the address of the page of a simulated platform, for a link to it; empty without one. Without
    `knowledge`, `gaps` or `assistant` there are no routes for them, without `calls` none that call a tool;
    `mcp` is the MCP server, which is called behind the guard.
    """

    turns: Turns
    queries: Queries
    statistics: UsageStatistics
    runtime: Runtime
    keys: Callable[[], Sequence[ApiKey]]
    clock: Clock
    version: str
    exposure: Exposure = field(default_factory=Exposure)
    timing: WebTiming = field(default_factory=WebTiming)
    channels: EnabledChannels = field(default_factory=EnabledChannels)
    logins: LoginSessions = field(default_factory=LoginSessions)
    simulator: str = ""
    knowledge: KnowledgeServices | None = None
    gaps: GapServices | None = None
    calls: DirectCalls | None = None
    mcp: ASGIApp | None = None
    assistant: Assistant | None = None
    hosting: Hosting = field(default_factory=NoHosting)

"""What the web needs, in one record. `app` makes it; every route gets it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.types import ASGIApp

from denizen.domain.clock import Clock
from denizen.domain.snapshot import RemoteRepository
from denizen.engine.external.requests import DirectCalls
from denizen.engine.inspection.queries import Queries
from denizen.engine.inspection.statistics import UsageStatistics
from denizen.engine.knowledge.coverage import GapReport, ProposalReviews
from denizen.engine.knowledge.snapshots import SnapshotPublisher
from denizen.engine.knowledge.sources import SourceCatalog
from denizen.engine.knowledge.sync import FindProgress, KnowledgeSync
from denizen.engine.runtime.agent_settings import AgentSettingsOverlay
from denizen.engine.runtime.generation import Runtime
from denizen.engine.turn import TurnRunner
from denizen.ports.hosting import Hosting, NoHosting
from denizen.web.auth import ApiKey, Logins


@dataclass(frozen=True, slots=True)
class Exposure:
    """Who can reach the server. `allowed_hosts` are names under which a loopback server may be addressed besides the
    loopback names; `allowed_origins` are origins (`https://host`) of other pages whose scripts may use the API.
    """

    listens_beyond_loopback: bool = False
    allowed_hosts: frozenset[str] = frozenset()
    allowed_origins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Timing:
    """`keep_alive_s`: how long a stream may be silent. `chat_start_s`: when a chat's stream begins at the latest, so
    that its reader learns the turn's id.
    """

    keep_alive_s: float = 15.0
    chat_start_s: float = 0.5
    tools_deadline_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Channels:
    """Which channels the configuration has switched on: the pages with their chat, the OpenAI-compatible API."""

    web: bool = True
    api: bool = True


@dataclass(frozen=True, slots=True)
class KnowledgeParts:
    """Sources, reading them, and the snapshots made of them. `remote` is where those are pushed to now, which
    `change_remote` changes; `webhooks` are the secrets, by source, of those who may have one read; `indexing` tells
    how far the search index is.
    """

    catalog: SourceCatalog
    sync: KnowledgeSync
    snapshots: SnapshotPublisher
    remote: Callable[[], RemoteRepository]
    change_remote: Callable[[RemoteRepository], Awaitable[None]]
    webhooks: Callable[[], Mapping[str, str]]
    indexing: FindProgress


@dataclass(frozen=True, slots=True)
class GapParts:
    """What no document answers, and the review of what people proposed as an answer."""

    report: GapReport
    learning: ProposalReviews


@dataclass(frozen=True, slots=True)
class WebDependencies:
    """`keys` is asked at every request, so that a key that was taken out of the configuration ends at once.
    `simulator` is the address of the page of a simulated platform, for a link to it; empty without one. Without
    `knowledge`, `gaps` or `assistant` there are no routes for them, without `calls` none that call a tool;
    `mcp` is the MCP server, which is called behind the guard.
    """

    turns: TurnRunner
    queries: Queries
    statistics: UsageStatistics
    runtime: Runtime
    keys: Callable[[], Sequence[ApiKey]]
    clock: Clock
    version: str
    exposure: Exposure = field(default_factory=Exposure)
    timing: Timing = field(default_factory=Timing)
    channels: Channels = field(default_factory=Channels)
    logins: Logins = field(default_factory=Logins)
    simulator: str = ""
    knowledge: KnowledgeParts | None = None
    gaps: GapParts | None = None
    calls: DirectCalls | None = None
    mcp: ASGIApp | None = None
    assistant: AgentSettingsOverlay | None = None
    hosting: Hosting = field(default_factory=NoHosting)

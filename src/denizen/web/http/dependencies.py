"""The dependencies of the web, in one record. `app` builds it; every route group takes what it needs from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field

from starlette.types import ASGIApp

from denizen.domain.clock import Clock
from denizen.domain.embedding_progress import EmbeddingProgress
from denizen.domain.record import record
from denizen.domain.snapshot import RemoteRepository
from denizen.engine.budget.side_completion import TaskCompletion
from denizen.engine.chats.chats import Chats
from denizen.engine.commands.chat_commands import ChatCommands
from denizen.engine.configuration.agent_settings import AgentSettingsOverlay
from denizen.engine.configuration.generation import Runtime
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.external.requests import DirectCalls
from denizen.engine.inspection.queries import Queries
from denizen.engine.inspection.statistics import UsageStatistics
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.engine.knowledge.coverage import GapReport, ProposalReviews
from denizen.engine.knowledge.snapshots import SnapshotPublisher
from denizen.engine.knowledge.sources import SourceCatalog
from denizen.engine.knowledge.sync import FindProgress, KnowledgeSync
from denizen.engine.turn import TurnRunner
from denizen.engine.users.accounts import UserAccounts
from denizen.engine.users.credentials import UserCredentials
from denizen.engine.users.registration import Registration
from denizen.ports.hosting import NoRepositoryHosts, RepositoryHosts
from denizen.ports.users import IdentityProvider
from denizen.web.http.auth import AccessRules

FindProblems = Callable[[], Awaitable[Mapping[str, str]]]


async def find_no_problems() -> Mapping[str, str]:
    """Used where nothing is checked."""
    return {}


@record
class WebTiming:
    """`keep_alive_s` is how long a stream may be silent. `chat_start_s` is when the stream of a chat begins at the
    latest, so that its reader learns the turn's id. `tools_deadline_s` bounds counting the tools for `/health`.
    """

    keep_alive_s: float = 15.0
    chat_start_s: float = 0.5
    tools_deadline_s: float = 1.0


@record
class EnabledChannels:
    """The channels that the configuration enables: the pages with their chat, the OpenAI-compatible API."""

    web: bool = True
    api: bool = True


@record(kw_only=True)
class EngineEntryPoints:
    """The parts of the engine that routes call. Without `calls` there are no routes that call a tool, without
    `assistant` none that change how an agent answers. `tasks` answers what programs want beside conversations.
    """

    turns: TurnRunner
    chats: Chats
    commands: ChatCommands
    queries: Queries
    statistics: UsageStatistics
    runtime: Runtime
    limiter: RateLimiter
    calls: DirectCalls | None = None
    assistant: AgentSettingsOverlay | None = None
    tasks: TaskCompletion | None = None
    embedder: BudgetedEmbedder = field(default_factory=BudgetedEmbedder)


@record(kw_only=True)
class KnowledgeServices:
    """Sources, syncs and snapshots. `remote` returns the repository that snapshots are pushed to, which `change_remote`
    changes; `webhooks` returns the secrets of the sync webhooks by source; `indexing` tells the progress of the index,
    `embedding` how many of its passages have an embedding.
    """

    catalog: SourceCatalog
    sync: KnowledgeSync
    snapshots: SnapshotPublisher
    remote: Callable[[], RemoteRepository]
    change_remote: Callable[[RemoteRepository], Awaitable[None]]
    webhooks: Callable[[], Mapping[str, str]]
    indexing: FindProgress
    embedding: Callable[[], Awaitable[EmbeddingProgress | None]]


@record(kw_only=True)
class UserServices:
    """People with accounts. `providers` returns the other sites that people may sign in with, as they are configured
    now; `is_registration_open` tells whether everybody may sign up. `public_url` is the address under which people know
    the server, or empty.
    """

    accounts: UserAccounts
    registration: Registration
    credentials: UserCredentials
    providers: Callable[[], Mapping[str, IdentityProvider]]
    is_registration_open: Callable[[], bool]
    public_url: str


@record
class GapServices:
    """The report of unanswered questions, and the review of answers that people proposed."""

    report: GapReport
    learning: ProposalReviews


@record(kw_only=True)
class WebDependencies:
    """Everything that routes use. `users` are the people with accounts. Without `knowledge` or `gaps` there are no
    routes for them. `mcp` is the MCP server, which is called behind the guard. `simulator` is the address of a
    simulated platform's page, or empty. `find_problems` returns the parts that are not ready for work, each with the
    reason.
    """

    engine: EngineEntryPoints
    access: AccessRules
    users: UserServices
    clock: Clock
    version: str
    timing: WebTiming = field(default_factory=WebTiming)
    channels: EnabledChannels = field(default_factory=EnabledChannels)
    simulator: str = ""
    knowledge: KnowledgeServices | None = None
    gaps: GapServices | None = None
    mcp: ASGIApp | None = None
    hosting: RepositoryHosts = field(default_factory=NoRepositoryHosts)
    find_problems: FindProblems = find_no_problems

"""The dependencies of the web, in one record. `app` builds it; every route group takes what it needs from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from starlette.types import ASGIApp

from denizen.domain.archiving import ArchivePolicy
from denizen.domain.clock import Clock
from denizen.domain.diagnosis import Diagnosis
from denizen.domain.embedding_progress import EmbeddingProgress
from denizen.domain.ids import ConversationId, TurnId
from denizen.domain.record import record
from denizen.domain.snapshot import RemoteRepository
from denizen.domain.tool import IdleTools
from denizen.engine.accounts.connected_accounts import AccountState
from denizen.engine.archive.browser import ArchiveBrowser
from denizen.engine.audit.audit_log import AuditLog
from denizen.engine.budget.side_completion import TaskCompletion
from denizen.engine.chats.chats import Chats
from denizen.engine.commands.chat_commands import ChatCommands
from denizen.engine.configuration.agent_settings import AgentSettingsOverlay
from denizen.engine.configuration.generation import Runtime
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.event_bus.log import EventLog
from denizen.engine.event_bus.webhooks import WebhookIntake
from denizen.engine.external.requests import DirectCalls
from denizen.engine.inspection.queries import Queries
from denizen.engine.inspection.statistics import UsageStatistics
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.engine.knowledge.coverage import GapReport, ProposalReviews
from denizen.engine.knowledge.guild_sources import GuildSources
from denizen.engine.knowledge.index import DocumentSearch
from denizen.engine.knowledge.snapshots import SnapshotPublisher
from denizen.engine.knowledge.source_import import SourceImporter
from denizen.engine.knowledge.sources import SourceCatalog
from denizen.engine.knowledge.sync import FindProgress, KnowledgeSync
from denizen.engine.memory.browser import MemoryBrowser
from denizen.engine.projects.board import ProjectBoards
from denizen.engine.schedules.catalog import ScheduleCatalog
from denizen.engine.turn import TurnRunner
from denizen.engine.users.accounts import UserAccounts
from denizen.engine.users.credentials import UserCredentials
from denizen.engine.users.managed_guilds import ManagedGuilds
from denizen.engine.users.registration import Registration
from denizen.engine.workflows.catalog import Workflows
from denizen.ports.configuration import ConfigurationEdit, ConfigurationFiles
from denizen.ports.hosting import NoRepositoryHosts, RepositoryHosts
from denizen.ports.log import LogArchive
from denizen.ports.mcp_configuration import McpConfiguration
from denizen.ports.model_configuration import ModelConfiguration
from denizen.ports.schedule_configuration import ScheduleConfiguration
from denizen.ports.setup import ServerSetup
from denizen.ports.skill_configuration import SkillConfiguration
from denizen.ports.store_move import StoreMove
from denizen.ports.users import IdentityProvider
from denizen.ports.workflow_configuration import WorkflowConfiguration
from denizen.web.http.auth import AccessRules

if TYPE_CHECKING:
    from denizen.domain.turn import TurnRequest
    from denizen.engine.delegation.delegations import Delegations
    from denizen.engine.inspection.replay import PlannedRequest, ReplayResult

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
    `replay` none that replay a turn, without `plan_requests`, which returns what a message would send to models, none
    that show it, without `assistant` none that change how an agent answers. `tasks` answers what programs want beside
    conversations; `open_delegations` returns the tasks that agents gave to others.
    """

    turns: TurnRunner
    chats: Chats
    commands: ChatCommands
    queries: Queries
    statistics: UsageStatistics
    runtime: Runtime
    limiter: RateLimiter
    open_delegations: Callable[[], Delegations]
    calls: DirectCalls | None = None
    replay: ReplayTurn | None = None
    assistant: AgentSettingsOverlay | None = None
    plan_requests: PlanRequests | None = None
    tasks: TaskCompletion | None = None
    embedder: BudgetedEmbedder = field(default_factory=BudgetedEmbedder)


@record(kw_only=True)
class KnowledgeServices:
    """Sources, the search in what was read of them, syncs and snapshots. `remote` returns the repository that snapshots
    are pushed to, which `change_remote` changes; `webhooks` returns the secrets of the sync webhooks by source;
    `indexing` tells the progress of the index, `embedding` how many of its passages have an embedding.
    """

    catalog: SourceCatalog
    search: DocumentSearch
    sync: KnowledgeSync
    snapshots: SnapshotPublisher
    remote: Callable[[], RemoteRepository]
    change_remote: Callable[[RemoteRepository], Awaitable[None]]
    webhooks: Callable[[], Mapping[str, str]]
    indexing: FindProgress
    embedding: Callable[[], Awaitable[EmbeddingProgress | None]]


@record(kw_only=True)
class CommunityServices:
    """Everything that is stored of people and communities, for those who look after it: memories, the archive, whose
    `policy` tells how long posts are kept, and the guilds that people manage, with the sources that they add there.
    """

    memories: MemoryBrowser
    archive: ArchiveBrowser
    policy: Callable[[], ArchivePolicy]
    guilds: ManagedGuilds
    guild_sources: GuildSources | None = None


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


@record
class EventServices:
    """The log of events, and the intake of webhooks."""

    log: EventLog
    webhooks: WebhookIntake


@record(kw_only=True)
class ComponentServices:
    """The models, skills and MCP servers of this server, for those who look after them."""

    models: ModelConfiguration
    skills: SkillConfiguration
    mcp: McpConfiguration


@record
class ScheduleServices:
    """Prompts that agents get at set times, and the configuration that holds them."""

    catalog: ScheduleCatalog
    configuration: ScheduleConfiguration


@record
class WorkflowServices:
    """The workflows in force with their runs, and the files that hold them."""

    workflows: Workflows
    configuration: WorkflowConfiguration


class ReplayTurn(Protocol):
    """Runs a turn again without side effects, on another agent or model (`engine/inspection/replay.py`)."""

    async def __call__(self, turn_id: TurnId, *, agent: str = "", model: str = "") -> ReplayResult: ...


class PlanRequests(Protocol):
    """Returns the requests that a message would make, none of which is sent (`engine/inspection/replay.py`). With a
    `conversation` it is asked there.
    """

    async def __call__(
        self, turn_request: TurnRequest, conversation: ConversationId | None = None, /
    ) -> Sequence[PlannedRequest]: ...


class PlanPolicy(Protocol):
    """Returns the policy of the gate as it would be after an edit of the configuration. Raises InvalidInput."""

    async def __call__(self, edit: ConfigurationEdit, /) -> GatePolicy: ...


class Diagnose(Protocol):
    """Examines everything that has to work. A thorough look asks models and platforms, which takes a while."""

    async def __call__(self, *, is_thorough: bool) -> Sequence[Diagnosis]: ...


async def diagnose_nothing(*, is_thorough: bool) -> Sequence[Diagnosis]:
    """Used where nothing is examined."""
    del is_thorough
    return []


def list_no_accounts() -> Sequence[AccountState]:
    """Used where there are no platforms."""
    return []


def list_no_tools() -> Sequence[IdleTools]:
    """Used where nothing is off."""
    return []


@record
class StoreServices:
    """The move of the store, and the log that notes who began or stopped it."""

    move: StoreMove
    audit: AuditLog


@record(kw_only=True)
class InstanceServices:
    """Services with which the running process tells of itself. `find_problems` returns the parts that are not
    ready for work, each with the reason. Without `logs` there are no routes for the log, without `store` none about it.
    """

    find_problems: FindProblems = find_no_problems
    diagnose: Diagnose = diagnose_nothing
    list_accounts: Callable[[], Sequence[AccountState]] = list_no_accounts
    list_idle_tools: Callable[[], Sequence[IdleTools]] = list_no_tools
    logs: LogArchive | None = None
    store: StoreServices | None = None


@record(kw_only=True)
class WebDependencies:
    """Everything that routes use. `users` are the people with accounts. Without `knowledge`, `gaps`, `projects`,
    `community`, `importer`, `configuration`, `components`, `schedules` or `workflows` there are no routes for them,
    without `setup` no pages for first steps, without `events` none for events and webhooks, and without `plan_policy`
    none that try rules of the gate. `mcp` is the MCP server, which is called behind the guard. `simulator` is the
    address of a simulated platform's page, or empty.
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
    projects: ProjectBoards | None = None
    community: CommunityServices | None = None
    importer: SourceImporter | None = None
    configuration: ConfigurationFiles | None = None
    setup: ServerSetup | None = None
    components: ComponentServices | None = None
    schedules: ScheduleServices | None = None
    workflows: WorkflowServices | None = None
    plan_policy: PlanPolicy | None = None
    mcp: ASGIApp | None = None
    hosting: RepositoryHosts = field(default_factory=NoRepositoryHosts)
    events: EventServices | None = None
    instance: InstanceServices = field(default_factory=InstanceServices)

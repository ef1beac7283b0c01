"""A whole server for tests: the engine on its in-memory adapters, a scripted model, and the web on top.

`WebFixture.client` speaks to the application in process; `WebFixture.serve` puts it on a loopback port, for clients
that need a connection, such as the official OpenAI one and everything that streams.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import httpx2
import uvicorn
from starlette.applications import Starlette

from denizen.adapters.documents.pdf import read_pdf
from denizen.adapters.mcp_server import McpEndpoint
from denizen.adapters.uploads.folder import UploadFolder
from denizen.adapters.uploads.images import encode_image
from denizen.app.build import open_delegations
from denizen.app.settings.yaml_document import parse_values
from denizen.app.users import assemble_users
from denizen.domain.agent import Agent, AgentInstructions, WritingStyle
from denizen.domain.budget import BudgetPolicy
from denizen.domain.clock import Clock
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import Turn, TurnStatus
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.accounts.members import MemberDirectory
from denizen.engine.agents.catalog import AgentCatalog
from denizen.engine.archive.browser import ArchiveBrowser
from denizen.engine.archive.lookup import ArchiveLookups, ArchiveSearch
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.removal import ArchiveRemoval
from denizen.engine.budget.side_completion import BilledCompletion, TaskCompletion
from denizen.engine.chats.chats import Chats
from denizen.engine.chats.uploads import ChatUploads
from denizen.engine.commands.chat_commands import ChatCommands
from denizen.engine.commands.command import CommandCatalogs
from denizen.engine.configuration.agent_settings import AgentSettingsOverlay
from denizen.engine.configuration.generation import CustomCommandSet, Generation, Runtime
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.engine.delegation.tools import DelegationTools
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.event_bus.bus import EventBus
from denizen.engine.event_bus.log import EventLog
from denizen.engine.event_bus.webhooks import WebhookIntake
from denizen.engine.external.requests import DirectCalls, ProgramRequests
from denizen.engine.gate.observer import Observer
from denizen.engine.inspection.queries import Queries
from denizen.engine.inspection.replay import plan_requests, replay_turn
from denizen.engine.inspection.statistics import UsageStatistics
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.engine.knowledge.guild_sources import GuildSources
from denizen.engine.knowledge.source_import import SourceImporter
from denizen.engine.loop.services import build_services
from denizen.engine.memory.browser import MemoryBrowser
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.engine.projects.board import ProjectBoards
from denizen.engine.projects.reader import ReaderDirectory
from denizen.engine.turn import TurnRunner
from denizen.engine.users.accounts import PersonalChats
from denizen.engine.users.credentials import UserPolicy
from denizen.engine.users.managed_guilds import ManagedGuilds
from denizen.engine.users.passwords import HashCost, PasswordHasher
from denizen.ports.configuration import ConfigurationFiles
from denizen.ports.embed import Embedder
from denizen.ports.events import EventSettings
from denizen.ports.hosting import NoRepositoryHosts, RepositoryHosts
from denizen.ports.setup import ServerSetup
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope, Toolset
from denizen.ports.users import IdentityProvider
from denizen.testing.memory_durable import MemoryDurable
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels, ScriptedReply
from denizen.testing.temporary_store import TemporaryStore
from denizen.web.app import create_app
from denizen.web.http.auth import AccessRules, ApiKey, Exposure
from denizen.web.http.dependencies import (
    CommunityServices,
    ComponentServices,
    EngineEntryPoints,
    EventServices,
    FindProblems,
    GapServices,
    InstanceServices,
    KnowledgeServices,
    PlanPolicy,
    ScheduleServices,
    UserServices,
    WebDependencies,
    WebTiming,
    WorkflowServices,
    find_no_problems,
)
from tests.clock import ManualClock
from tests.timing import HANG_LIMIT_S

MakeKnowledge = Callable[[TemporaryStore, MemoryDurable, "ManualClock"], KnowledgeServices]
MakeGaps = Callable[[TemporaryStore, MemoryDurable, "ManualClock"], GapServices]

LOCAL = "http://127.0.0.1:8650"
ANN = ApiKey.from_text("ann", "key-of-ann", ("member",))
BEN = ApiKey.from_text("ben", "key-of-ben", ("member",))
ADA = ApiKey.from_text("ada", "key-of-ada", ("admin",))


CHEAP = HashCost(passes=1, memory_kib=8)
"""A hash for tests, which takes a thousandth of the usual time."""


@dataclass
class UserRegistration:
    """Who may make an account on the server of a test, and with which sites people sign in; may be changed."""

    policy: UserPolicy = field(default_factory=UserPolicy)
    providers: dict[str, IdentityProvider] = field(default_factory=dict[str, IdentityProvider])


class NoChats:
    """The chats of people who have none."""

    async def list_uploads(self, owner: str) -> Sequence[str]:
        return ()

    async def forget_owner(self, owner: str, turn_ids: Sequence[TurnId]) -> None:
        pass


def build_users(
    store: Store, clock: Clock, registration: UserRegistration, chats: PersonalChats | None = None
) -> UserServices:
    """The services for people with accounts, whose passwords cost little."""
    return assemble_users(
        store,
        clock,
        lambda: registration.policy,
        chats=chats or NoChats(),
        passwords=PasswordHasher(CHEAP),
        providers=lambda: registration.providers,
    )


class Weather:
    """A toolset with one harmless tool. `long` makes its answer longer than clients are sent."""

    name = "weather"

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []

    async def list_tools(self) -> Sequence[ToolSpec]:
        parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        return [ToolSpec("weather", "Tells the weather of a city.", parameters, tier=Tier.HARMLESS, read_only=True)]

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        self.calls.append(call)
        if call.args["city"] == "Atlantis":
            return ToolResult("There is no such city.", is_error=True)
        return ToolResult("Sunny. " * (300 if call.args["city"] == "Longtown" else 1))

    async def aclose(self) -> None:
        pass


@dataclass
class WebFixture:
    """A running engine and its web. `keys` may be changed while it runs."""

    app: Starlette
    model: ScriptedModel
    store: TemporaryStore
    clock: ManualClock
    keys: list[ApiKey]
    weather: Weather
    mcp: McpEndpoint
    users: UserServices
    uploads: Path
    durable: MemoryDurable
    runtime: Runtime
    chats: Chats
    channels: ConnectedAccounts
    mirror: ArchiveMirror
    bus: EventBus

    def client(self, **headers: str) -> httpx2.AsyncClient:
        """A client in process. Answers arrive whole; faults are answered, as on a real server."""
        transport = httpx2.ASGITransport(self.app, raise_app_exceptions=False)
        return httpx2.AsyncClient(transport=transport, base_url=LOCAL, headers=headers)

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator[str]:
        """The server's address while it listens on a free loopback port."""
        # Without the protocol asyncio does not turn Nagle's algorithm off, and every answer takes 40 ms longer.
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            config = uvicorn.Config(self.app, lifespan="off", log_config=None, timeout_graceful_shutdown=5)
            server = uvicorn.Server(config)
            async with anyio.create_task_group() as tasks:

                async def run() -> None:
                    await server.serve([listener])
                    tasks.cancel_scope.cancel()

                tasks.start_soon(run)
                tasks.start_soon(self.mcp.run)
                try:
                    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
                finally:
                    server.should_exit = True

    async def turns(self) -> list[Turn]:
        """All turns, oldest first."""
        async with self.store.work(write=False) as work:
            return list(reversed(await work.turns.list_turns()))

    async def ended(self, status: TurnStatus) -> Turn:
        """The only turn, once it has that status; a test that waits in vain runs into its deadline."""
        with anyio.fail_after(HANG_LIMIT_S):
            while True:
                turns = await self.turns()
                if turns and turns[0].status is status:
                    return turns[0]
                await anyio.lowlevel.checkpoint()


def make_hello_model() -> ScriptedModel:
    """A model that answers everything with "Hello."."""
    return ScriptedModel(otherwise=ScriptedReply("Hello."))


@asynccontextmanager
async def open_web(
    *models: ScriptedModel,
    keys: Sequence[ApiKey] = (),
    exposure: Exposure | None = None,
    timing: WebTiming | None = None,
    agents: Sequence[Agent] = (),
    policy: GatePolicy | None = None,
    budgets: BudgetPolicy | None = None,
    make_knowledge: MakeKnowledge | None = None,
    make_gaps: MakeGaps | None = None,
    more: Sequence[Toolset] = (),
    hosting: RepositoryHosts | None = None,
    find_problems: FindProblems = find_no_problems,
    configuration: ConfigurationFiles | None = None,
    setup: ServerSetup | None = None,
    components: ComponentServices | None = None,
    schedules: ScheduleServices | None = None,
    workflows: WorkflowServices | None = None,
    plan_policy: PlanPolicy | None = None,
    instance: InstanceServices | None = None,
    embedder: Embedder | None = None,
    registration: UserRegistration | None = None,
    titles: bool = False,
    commands: CustomCommandSet | None = None,
    archive_tools: Sequence[Callable[[ArchiveLookups], Toolset]] = (),
    aliases: Sequence[str] = (),
    events: EventSettings | None = None,
) -> AsyncGenerator[WebFixture]:
    """A server whose agents all use the (first) model; the default agent is the first, named `denizen` by default.
    `more` are toolsets besides the weather, `archive_tools` make those that look into the archive, and `aliases` are
    the only names of the model. With `titles` the model makes the titles of chats, which takes a reply.
    """
    model = models[0] if models else ScriptedModel()
    known = list(agents) or [Agent(AgentName("denizen"), "Lives here."), Agent(AgentName("scribe"), "Takes notes.")]
    weather = Weather()
    clock, store, durable = ManualClock(), TemporaryStore(), MemoryDurable()
    channels = ConnectedAccounts()
    mirror = ArchiveMirror(store, lambda: runtime.current.archive, clock)
    members = MemberDirectory(store, channels, clock, "discord")
    search = ArchiveSearch(store, mirror, BudgetedEmbedder())
    archive = ArchiveLookups(store, channels, mirror, search, clock=clock, members=members, zone_of=lambda _: UTC)
    toolsets: tuple[Toolset, ...] = (weather, *more, *(make(archive) for make in archive_tools))
    runtime = Runtime()
    await runtime.swap(
        Generation(
            number=7,
            agents={agent.name: agent for agent in known},
            default_agent=known[0].name,
            models=ScriptedModels(dict.fromkeys(aliases, model) if aliases else model),
            toolsets=toolsets,
            policy=policy or GatePolicy(),
            commands=commands or CustomCommandSet(),
            budgets=budgets or BudgetPolicy(),
            events=events or EventSettings(),
        )
    )
    assistant = AgentSettingsOverlay(store, clock)
    folder = store.path.with_suffix(".uploads")
    uploads = ChatUploads(store, UploadFolder(folder), encode_image, read_pdf)
    observer = Observer(store, clock, BilledCompletion(runtime, store, clock))
    services = build_services(
        runtime, store, durable, clock, channels=channels, observer=observer, member_platform="discord"
    )
    keeper = MemoryKeeper(store, channels, clock)
    projects = ProjectBoards(runtime, store, clock, ReaderDirectory(store, channels, services.members, keeper))
    services = replace(
        services,
        assistant=assistant,
        load_upload=uploads.load_picture,
        keep_pictures=uploads.keep_pictures,
        projects=projects,
    )
    services = replace(services, store_move=instance.store.move if instance and instance.store else None)
    turns = TurnRunner(runtime, services)
    if any(agent.tool_access.delegates_to for agent in known):
        tools = DelegationTools(open_delegations(runtime, services, turns), {agent.name: agent for agent in known})
        await runtime.swap(replace(runtime.current, toolsets=(*toolsets, tools)))
    bus = EventBus(runtime, services, turns, channels)
    allowed = list(keys)
    calls = DirectCalls(runtime, services)
    limiter = RateLimiter(store, clock)
    chats = Chats(runtime, services, turns, uploads, titles_by_model=lambda: titles)
    users = build_users(store, clock, registration or UserRegistration(), chats)
    mcp = McpEndpoint(ProgramRequests(runtime, turns, calls), "1.2.3")
    knowledge = make_knowledge(store, durable, clock) if make_knowledge is not None else None
    catalogs = CommandCatalogs(agents=AgentCatalog(runtime, configuration))
    deps = WebDependencies(
        engine=EngineEntryPoints(
            turns=turns,
            chats=chats,
            commands=ChatCommands(runtime, services, turns, chats, catalogs),
            queries=Queries(runtime, services, channels),
            statistics=UsageStatistics(store, clock, runtime),
            runtime=runtime,
            limiter=limiter,
            open_delegations=partial(open_delegations, runtime, services, turns),
            calls=calls,
            replay=partial(replay_turn, runtime, services),
            assistant=assistant,
            plan_requests=partial(plan_requests, runtime, services),
            tasks=TaskCompletion(runtime, BilledCompletion(runtime, store, clock), limiter),
            embedder=BudgetedEmbedder(lambda: embedder),
        ),
        access=AccessRules(lambda: allowed, users.credentials, exposure or Exposure()),
        users=users,
        clock=clock,
        version="1.2.3",
        timing=timing or WebTiming(),
        knowledge=knowledge,
        importer=SourceImporter(
            runtime,
            knowledge.catalog,
            BilledCompletion(runtime, store, clock),
            partial(parse_values, file=Path("list")),
        )
        if knowledge is not None
        else None,
        gaps=make_gaps(store, durable, clock) if make_gaps is not None else None,
        projects=projects,
        community=CommunityServices(
            memories=MemoryBrowser(store, clock, keeper),
            archive=ArchiveBrowser(store, clock, archive, members, ArchiveRemoval(mirror, clock)),
            policy=lambda: runtime.current.archive,
            guilds=ManagedGuilds(store, clock, runtime, members, services.guilds),
            guild_sources=GuildSources(
                store,
                clock,
                knowledge.catalog,
                knowledge.sync,
                lambda: runtime.current.knowledge.guild_sources,
                platform="discord",
            )
            if knowledge is not None
            else None,
        ),
        mcp=mcp,
        configuration=configuration,
        setup=setup,
        components=components,
        schedules=schedules,
        workflows=workflows,
        plan_policy=plan_policy,
        events=EventServices(EventLog(runtime, store, clock, bus), WebhookIntake(runtime, clock, bus)),
        hosting=hosting or NoRepositoryHosts(),
        instance=instance or InstanceServices(find_problems=find_problems),
    )
    await durable.start()
    try:
        yield WebFixture(
            create_app(deps),
            model,
            store,
            clock,
            allowed,
            weather,
            mcp,
            users,
            folder,
            durable,
            runtime,
            deps.engine.chats,
            channels,
            mirror,
            bus,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        await durable.aclose()
        await runtime.aclose()


AGENTS_WITH_SETTINGS = (
    Agent(AgentName("denizen"), instructions=AgentInstructions(style=WritingStyle(extra_instructions="Mention cats."))),
    Agent(AgentName("scribe"), is_routed=True),
)

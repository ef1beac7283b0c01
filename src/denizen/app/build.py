"""The composition root: opens everything in one order and closes it in reverse.

The order: home folder, configuration, store, models and tools, durable runs, turns that were left open. `serve` adds
the web server and the watcher of the configuration; commands that need only an agent stop here.
"""

from __future__ import annotations

import gc
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from denizen.adapters.browser import ChromiumBrowser
from denizen.adapters.caldav import HttpCalDavCalendars
from denizen.adapters.cron import CroniterTimes
from denizen.adapters.discord.client.settings import PLATFORM as DISCORD
from denizen.adapters.documents.pdf import read_pdf
from denizen.adapters.durable.durable import DbosExecution
from denizen.adapters.durable.settings import DurableSettings
from denizen.adapters.fetch import WebFetcher
from denizen.adapters.log_files import LogFiles
from denizen.adapters.mail import ImapMailbox
from denizen.adapters.mcp import McpPool, McpToolset
from denizen.adapters.models.embedded.progress import ReportLoadProgress, ignore_progress
from denizen.adapters.store import open_sql_reader, open_store
from denizen.adapters.uploads.folder import UploadFolder
from denizen.adapters.uploads.images import encode_image
from denizen.app.administration import ServerAdministration, ServerRecords
from denizen.app.embeddings import EmbedderPool, build_memories
from denizen.app.events import EventSystem, build_event_system
from denizen.app.generation import GenerationDeps, build_generation
from denizen.app.home.environment import read_environment
from denizen.app.knowledge import KnowledgeDeps, KnowledgeSystem, build_knowledge, build_sandbox, open_library
from denizen.app.model_choice import ModelChoice
from denizen.app.models import EmbeddedRuntimePool
from denizen.app.platform_services import PlatformServices, build_platform_services
from denizen.app.settings import Settings, Simulation, load_settings
from denizen.app.settings.persona import AGENTS_FOLDER
from denizen.app.skill_loading.registry import SkillRegistry
from denizen.app.store_move import HomeStoreMove, choose_durable_database
from denizen.app.telemetry import OpenTelemetry, measure_store, open_telemetry
from denizen.app.toolsets import SkillDeps, build_feed_fetcher
from denizen.builtin_skills import BUILTIN
from denizen.domain.budget import SERVER
from denizen.domain.clock import Clock, SystemClock
from denizen.domain.cloud_event import CloudEvent
from denizen.domain.errors import NeedsAttention, NotAllowed
from denizen.domain.fleet import FleetRole
from denizen.domain.ids import AgentName
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.record import record
from denizen.engine.accounts.connected_accounts import ConnectedAccounts, PlatformActionRunner
from denizen.engine.agents.catalog import AgentCatalog
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.budget.side_completion import BilledCompletion, SideCompletion
from denizen.engine.chats.chats import Chats
from denizen.engine.chats.uploads import ChatUploads
from denizen.engine.commands.command import CommandCatalogs
from denizen.engine.configuration.agent_settings import AgentSettingsOverlay
from denizen.engine.configuration.generation import Runtime
from denizen.engine.event_bus.access import EventTools
from denizen.engine.events.signal import Signal
from denizen.engine.feeds.access import ScopedFeeds
from denizen.engine.gate.observer import Observer
from denizen.engine.inspection.queries import Queries
from denizen.engine.inspection.statistics import UsageStatistics
from denizen.engine.knowledge.proof import AnswerProver
from denizen.engine.loop.services import EngineServices, build_services
from denizen.engine.memory.browser import MemoryBrowser
from denizen.engine.memory.history_search import SessionHistorySearch
from denizen.engine.outbox.answer_target import AnswerTargets
from denizen.engine.projects.board import ProjectBoards
from denizen.engine.projects.reader import ReaderDirectory
from denizen.engine.schedules.catalog import ScheduleCatalog
from denizen.engine.schedules.delivery import RunDeliveries
from denizen.engine.schedules.own_schedules import OwnSchedules
from denizen.engine.schedules.runner import ScheduleResources, ScheduleRunner
from denizen.engine.tools.toolbox import NestedCalls
from denizen.engine.turn import TurnRunner
from denizen.engine.workflows.catalog import Workflows
from denizen.engine.workflows.runner import WorkflowRunner
from denizen.engine.workflows.tool_access import OwnerWorkflows
from denizen.engine.workflows.tools import WorkflowTools
from denizen.ports.sandbox import Sandbox
from denizen.ports.store import Store
from denizen.skill.instance_services import CacheUsage, SpendingSummary

if TYPE_CHECKING:
    from denizen.app.fleet import Fleet, LonePresence
    from denizen.engine.delegation.delegations import Delegations

LOCAL = Principal(PrincipalKind.LOCAL, "operator", "operator", frozenset({RoleName.OWNER}))
"""Whoever has a shell on this machine."""
CHECKED_AT_START_BYTES = 100_000_000
"""The largest database that is looked through at each start of the server, which takes some tenths of a second."""
COLLECTOR_PACE = (700, 10, 10)
"""Python's own pace of looking for garbage."""
UPLOADS = "uploads"
"""The folder of uploads in the home folder."""
NEXT_TASK_FILE = "next_task.md"
CACHE_DAYS = 7
"""The days that the skill `system` reports cache use for."""


@record
class FleetMember:
    """The role of this process among several on one Postgres, and its name; empty for one of its own."""

    role: FleetRole
    name: str = ""


@record
class OpenOptions:
    """Options for opening a home folder.

    `durable` is off for commands that only look, and so is `needs_models`: then a provider whose key is not set keeps
    nothing from opening. `rescue` is on for the long-running server, which continues the turns
    that other processes left behind. `report` is told of weights being fetched and loaded. `simulation` replaces the
    configured Discord accounts. `fleet` is the role of this process among several; without one it is alone.
    With `asks` a command runs turns of its own, which it may not beside a fleet.
    """

    choice: ModelChoice = field(default_factory=ModelChoice)
    durable: bool = True
    needs_models: bool = True
    rescue: bool = False
    report: ReportLoadProgress = ignore_progress
    simulation: Simulation | None = None
    fleet: FleetMember | None = None
    asks: bool = False


class RestartSignal:
    """A request of a tool to restart the server. `is_possible` is set once a server runs.

    A restart is graceful and needs no supervisor: the server ends as it does on SIGTERM, which leaves turns that need
    longer to the next process, everything is closed, and then the process replaces itself by the same command line
    (`cli/run.py`). Under systemd or Docker it keeps its process id.
    """

    def __init__(self) -> None:
        self.is_possible = False
        self.has_store_moved = False
        self.wanted = anyio.Event()

    def follow_store(self) -> None:
        """Asks for a restart because the store has moved: nothing here can write any more."""
        self.has_store_moved = True
        self.wanted.set()


@record
class ProcessControl:
    """The process itself: the wish to restart it, a move of its store, its work, and the fleet that it is in; where it
    is alone on Postgres, what tells fleets so.
    """

    restart: RestartSignal
    store_move: HomeStoreMove
    count_working: Callable[[], int]
    """Returns how many durable runs are under way here and do not only wait for people or other turns."""
    fleet: Fleet | None = None
    presence: LonePresence | None = None


@dataclass(slots=True, kw_only=True)
class Denizen:
    """Everything that is open. A reload replaces `settings`."""

    home: Path
    settings: Settings
    runtime: Runtime
    services: EngineServices
    turns: TurnRunner
    chats: Chats
    generation_deps: GenerationDeps
    platforms: PlatformServices
    knowledge: KnowledgeSystem
    schedules: ScheduleRunner
    events: EventSystem
    process: ProcessControl

    @property
    def restart(self) -> RestartSignal:
        return self.process.restart

    @property
    def fleet(self) -> Fleet | None:
        """The fleet of this process; None where it is alone."""
        return self.process.fleet

    @property
    def role(self) -> FleetRole:
        return self.process.fleet.role if self.process.fleet else FleetRole.ALL

    @property
    def assistant(self) -> AgentSettingsOverlay:
        """The settings of agents that their owners have made besides the configuration."""
        assert self.services.assistant is not None  # as `open_denizen` builds it
        return self.services.assistant

    @property
    def delegations(self) -> Delegations:
        """The tasks that agents gave to others."""
        return self.generation_deps.open_delegations()

    @property
    def agents(self) -> AgentCatalog:
        """The agents of the configuration."""
        return self.generation_deps.agents

    @property
    def own_schedules(self) -> OwnSchedules:
        """The schedules that people have agents make, and those that commands change."""
        return self.generation_deps.skills.schedules

    @property
    def catalogs(self) -> CommandCatalogs:
        """The parts of the configuration that commands show and change."""
        return CommandCatalogs(agents=self.agents, schedules=self.own_schedules)

    @property
    def statistics(self) -> UsageStatistics:
        return UsageStatistics(self.services.store, self.services.clock, self.runtime)

    @property
    def projects(self) -> ProjectBoards:
        """Projects and tasks."""
        assert self.services.projects is not None  # as `open_denizen` builds it
        return self.services.projects

    @property
    def queries(self) -> Queries:
        return Queries(self.runtime, self.services, self.platforms.channels)

    @property
    def memories(self) -> MemoryBrowser:
        """The memories of all agents, for people."""
        return MemoryBrowser(self.services.store, self.services.clock, self.generation_deps.skills.memories)

    @property
    def workflows(self) -> Workflows:
        """The workflows in force, and their runs."""
        return Workflows(self.runtime, self.services, self.turns.submit)

    @property
    def schedule_catalog(self) -> ScheduleCatalog:
        return ScheduleCatalog(self.schedules.resources)

    @property
    def simulation(self) -> Simulation | None:
        return self.settings.simulation

    @property
    def operator(self) -> Principal:
        """The principal of the command line."""
        return LOCAL

    def require_terminal(self) -> None:
        """Raises NotAllowed when the terminal is switched off."""
        if not self.settings.channels.terminal.enabled:
            raise NotAllowed(
                "The terminal channel is switched off.",
                code="channel_off",
                fix="Write channels.terminal.enabled: true.",
            )

    def shared_folders(self) -> Sequence[Path]:
        """The folders of context and knowledge in the current configuration."""
        return self.settings.folders.context, self.settings.folders.knowledge

    @property
    def mcp_toolsets(self) -> tuple[McpToolset, ...]:
        """The MCP servers of the current configuration."""
        return tuple(each for each in self.runtime.current.toolsets if isinstance(each, McpToolset))

    def mask(self, text: str) -> str:
        """Returns the text without the values of any secret known now."""
        return self.settings.secrets.mask(text)


@record(kw_only=True)
class _Adapters:
    """The adapters that are shared by all generations: opened first, closed last."""

    store: Store
    telemetry: OpenTelemetry
    durable: DbosExecution
    embedded_runtimes: EmbeddedRuntimePool
    embedders: EmbedderPool
    mcp: McpPool
    sandbox: Sandbox
    browser: ChromiumBrowser
    fleet: Fleet | None
    presence: LonePresence | None


@asynccontextmanager
async def open_denizen(home: Path, options: OpenOptions | None = None) -> AsyncGenerator[Denizen]:
    """Opens the home folder. Raises InvalidInput for a configuration that cannot be used, Unavailable or
    NeedsAttention when the store or the durable log cannot be opened; nothing stays open then.
    """
    options = options or OpenOptions()
    environment = read_environment()
    make_home(home)
    settings = load_settings(
        home, environment, known_tools=BUILTIN, needs_models=options.needs_models, simulation=options.simulation
    )
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        adapters = await _open_adapters(stack, settings, environment, clock, options)
        runtime = Runtime(adapters.telemetry.telemetry)
        denizen = _build_denizen(home, settings, adapters, runtime, clock, options)
        async with adapters.store.work() as work:
            row = await work.generations.add(digest=settings.digest, source="start", now=clock.now())
        await runtime.swap(await build_generation(settings, row.number, denizen.generation_deps))
        stack.push_async_callback(runtime.aclose)
        if options.rescue:
            await denizen.turns.expect_open()
        if options.durable:
            adapters.mcp.start()
            await adapters.durable.start()
            stack.push_async_callback(adapters.durable.aclose)
        if options.rescue and denizen.role.runs_turns:
            await denizen.turns.resume()
        # What is loaded now stays. Freezing it keeps the garbage collector, slow since the program began, from walking
        # through it again and again.
        gc.freeze()
        gc.set_threshold(*COLLECTOR_PACE)
        yield denizen


async def _open_adapters(
    stack: AsyncExitStack, settings: Settings, environment: Mapping[str, str], clock: Clock, options: OpenOptions
) -> _Adapters:
    if options.rescue:
        await check_databases(settings, most_bytes=CHECKED_AT_START_BYTES)
    presence = await _open_presence(stack, settings, options)
    fleet = await _join_fleet(stack, settings, options)
    runs_turns = fleet is None or fleet.role.runs_turns
    # A command is over before anybody asks for its figures.
    telemetry = stack.enter_context(open_telemetry(settings, clock)) if options.rescue else OpenTelemetry()
    store = await open_store(settings.store_url, clock=clock, max_connections=settings.config.store.max_connections)
    stack.push_async_callback(store.aclose)
    store = measure_store(store, telemetry.telemetry)
    embedded_runtimes = EmbeddedRuntimePool(settings.home, environment, options.report)
    stack.push_async_callback(embedded_runtimes.aclose)
    embedders = EmbedderPool(settings.home)
    stack.push_async_callback(embedders.aclose)
    browser = ChromiumBrowser(clock, lambda named: WebFetcher(allow_private=named))
    stack.push_async_callback(browser.aclose)
    return _Adapters(
        store=store,
        telemetry=telemetry,
        durable=DbosExecution(
            DurableSettings(
                database=choose_durable_database(settings),
                rescue=options.rescue and runs_turns,
                execute=runs_turns,
                claims=fleet is not None and runs_turns,
            )
        ),
        embedded_runtimes=embedded_runtimes,
        embedders=embedders,
        mcp=await stack.enter_async_context(McpPool(clock)),
        sandbox=await stack.enter_async_context(build_sandbox(settings.sandbox, clock)),
        browser=browser,
        fleet=fleet,
        presence=presence,
    )


async def _join_fleet(stack: AsyncExitStack, settings: Settings, options: OpenOptions) -> Fleet | None:
    if options.fleet is None or options.fleet.role is FleetRole.ALL:
        return None
    from denizen.app.fleet import check_name, open_fleet, require_postgres

    require_postgres(settings.store_url, f"The role {options.fleet.role}")
    name = check_name(options.fleet.name)
    return await stack.enter_async_context(open_fleet(settings.store_url, options.fleet.role, name))


async def _open_presence(stack: AsyncExitStack, settings: Settings, options: OpenOptions) -> LonePresence | None:
    """Keeps fleets away from a server that does everything, and turns of a command away from fleets."""
    if settings.store_url.startswith("sqlite"):
        return None
    from denizen.app.fleet import open_presence, refuse_turns_beside_fleet

    if options.asks:
        await refuse_turns_beside_fleet(settings.store_url)
    if options.fleet is None or options.fleet.role is not FleetRole.ALL:
        return None
    return await stack.enter_async_context(open_presence(settings.store_url))


def _build_denizen(
    home: Path, settings: Settings, adapters: _Adapters, runtime: Runtime, clock: Clock, options: OpenOptions
) -> Denizen:
    """Wires the engine to its adapters. Nothing runs yet, and the runtime has no generation."""
    store, channels = adapters.store, ConnectedAccounts()
    consult = BilledCompletion(runtime, store, clock)
    memories = build_memories(home, runtime, store, channels, clock)
    assistant = AgentSettingsOverlay(store, clock)
    observer = Observer(store, clock, consult)
    uploads = ChatUploads(store, UploadFolder(home / UPLOADS), encode_image, read_pdf)
    services = build_services(
        runtime, store, adapters.durable, clock, channels=channels, observer=observer, member_platform="discord"
    )
    if adapters.fleet is not None:
        adapters.fleet.bind(adapters.durable)
        services = replace(services, relay=adapters.fleet.relay)
        services.live.relay = services.outbox.relay = adapters.fleet.relay
    store_move = HomeStoreMove(settings, read_environment())
    projects = ProjectBoards(runtime, store, clock, ReaderDirectory(store, channels, services.members, memories))
    services = replace(
        services,
        memories=memories,
        projects=projects,
        prover=AnswerProver(open_library(home, clock)),
        assistant=assistant,
        load_upload=uploads.load_picture,
        keep_pictures=uploads.keep_pictures,
        store_move=store_move,
        free_turn=adapters.browser.close,
    )
    mirror = ArchiveMirror(store, lambda: runtime.current.archive, clock, services.guilds)
    knowledge = build_knowledge(
        KnowledgeDeps(
            home=home,
            store=store,
            durable=adapters.durable,
            clock=clock,
            runtime=runtime,
            channels=channels,
            mirror=mirror,
            sandbox=adapters.sandbox,
        )
    )
    resources = ScheduleResources(
        runtime=runtime,
        store=store,
        clock=clock,
        times=CroniterTimes(),
        changed=Signal(channels.added, runtime.swapped),
    )
    agents, schedules = AgentCatalog(runtime), OwnSchedules(resources)
    catalogs = CommandCatalogs(agents=agents, schedules=schedules)
    fetcher = build_feed_fetcher(settings)
    platforms = build_platform_services(runtime, services, channels, mirror, knowledge, fetcher, catalogs)
    restart = RestartSignal()
    adapters.durable.on_moved = restart.follow_store
    statistics = UsageStatistics(store, clock, runtime)
    records = ServerRecords(statistics, open_sql_reader(settings.store_url), LogFiles(settings.logs_folder))
    administration = ServerAdministration(runtime, assistant, records)
    skills = SkillDeps(
        clock=clock,
        recall=SessionHistorySearch(store),
        call_tool=NestedCalls(runtime, services.gate),
        open_archive=platforms.lookup.open,
        open_platform=PlatformActionRunner(channels, services.outbox.rooms.enter).open,
        open_reminders=platforms.reminders.open,
        open_feeds=partial(ScopedFeeds, platforms.feeds, channels),
        open_projects=projects.open,
        schedules=schedules,
        events=EventTools(),
        workflows=OwnerWorkflows(),
        open_questions=services.questions.open,
        memories=memories,
        instance=HomeInstanceControl(store, clock, restart),
        administration=administration,
        ask_model=SideCompletion(runtime, consult),
        library=knowledge.library,
        search=knowledge.search,
        sandbox=adapters.sandbox,
        browser=adapters.browser,
        mailbox=ImapMailbox(clock),
        open_calendars=partial(HttpCalDavCalendars, clock=clock),
    )
    targets = AnswerTargets(runtime, store, channels)

    async def publish(event: CloudEvent) -> bool:
        return await events.bus.publish(event)

    tools = WorkflowTools(targets, services.outbox, clock, publish, platform=DISCORD)
    turns = TurnRunner(runtime, services, workflows=WorkflowRunner(services, tools))
    adapters.durable.count_idle = turns.here.count_idle
    events = build_event_system(runtime, services, turns, channels, mirror)
    skills.events.open_log(events.log)
    generation_deps = GenerationDeps(
        home=home,
        clock=clock,
        choice=options.choice,
        embedded_runtimes=adapters.embedded_runtimes,
        embedders=adapters.embedders,
        mcp=adapters.mcp,
        own_skills=SkillRegistry(home),
        skills=skills,
        open_delegations=partial(open_delegations, runtime, services, turns),
        telemetry=adapters.telemetry,
        agents=agents,
    )
    chats = Chats(runtime, services, turns, uploads, titles_by_model=lambda: runtime.current.makes_titles)
    platforms.privacy.on_runs_forgotten = chats.forget_turns
    return Denizen(
        home=home,
        settings=settings,
        runtime=runtime,
        services=services,
        turns=turns,
        chats=chats,
        generation_deps=generation_deps,
        platforms=platforms,
        knowledge=knowledge,
        schedules=ScheduleRunner(
            resources,
            turns,
            channels,
            RunDeliveries(runtime, store, services.durable, services.clock),
            partial(read_next_task, home / AGENTS_FOLDER),
        ),
        events=events,
        process=ProcessControl(restart, store_move, adapters.durable.count_working, adapters.fleet, adapters.presence),
    )


def read_next_task(agents: Path, agent: AgentName) -> str:
    """Returns what the agent's `next_task.md` says; nothing without one."""
    try:
        return (agents / agent / NEXT_TASK_FILE).read_text(encoding="utf-8-sig", errors="replace").strip()
    except OSError:
        return ""


def open_delegations(runtime: Runtime, services: EngineServices, turns: TurnRunner) -> Delegations:
    """Returns what hands tasks from agent to agent. It is imported only when it is needed."""
    from denizen.engine.delegation.delegations import Delegations

    return Delegations(runtime, services, turns)


def make_home(home: Path) -> None:
    """Makes the home folder, for its owner only. Raises NeedsAttention when it cannot."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NeedsAttention(
            f"The home folder {home} cannot be made.",
            code="home_unusable",
            why=error.strerror or type(error).__name__,
            fix="Choose another with --home or DENIZEN_HOME.",
        ) from error


async def check_databases(settings: Settings, *, most_bytes: int | None = None) -> None:
    """Looks for damage in the SQLite files. Raises NeedsAttention; larger ones than `most_bytes` are passed over."""
    if settings.store_url.startswith("sqlite"):
        from denizen.adapters.store.sqlite import check_file

        for file in (Path(settings.store_url.partition("///")[2]), settings.home / "durable.db"):
            await to_thread.run_sync(partial(check_file, file, most_bytes=most_bytes))


class HomeInstanceControl:
    """Reports use and restarts this instance, for the skill `system` (`denizen.skill.InstanceControl`)."""

    def __init__(self, store: Store, clock: Clock, restart: RestartSignal) -> None:
        self._store = store
        self._clock = clock
        self._restart = restart

    async def spent(self) -> SpendingSummary:
        async with self._store.work(write=False) as work:
            at = (await work.spending.read([SERVER], now=self._clock.now()))[SERVER]
        return SpendingSummary(at.day_usd, at.month_usd, at.day_requests, at.month_requests)

    async def cache_usage(self) -> CacheUsage:
        since = self._clock.now() - timedelta(days=CACHE_DAYS)
        async with self._store.work(write=False) as work:
            used = await work.ledger.list_usage(since=since)
        rows = [row for row in used if row.agent]  # embeddings belong to no agent, and have no cache
        return CacheUsage(
            CACHE_DAYS,
            sum(row.usage.input_tokens for row in rows),
            sum(row.usage.cache_read_tokens for row in rows),
            sum(row.usage.cache_write_tokens for row in rows),
        )

    def restart(self) -> None:
        """Asks the server to restart. Raises NotAllowed in a command, which ends by itself."""
        if not self._restart.is_possible:
            raise NotAllowed(
                "There is nothing to restart here.",
                code="restart_nothing",
                why="Only `denizen run` runs for long; a command in a terminal ends with its answer.",
                fix="Ask where Denizen runs as a server.",
            )
        self._restart.wanted.set()

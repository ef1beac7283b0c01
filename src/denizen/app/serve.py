"""Runs everything at once: agents, web page, API, and the watcher of the configuration, under one supervisor."""

from __future__ import annotations

import errno
import logging
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
from anyio.abc import TaskGroup

from denizen import __version__
from denizen.adapters.cron import CroniterTimes
from denizen.adapters.log_files import LogFiles
from denizen.adapters.mcp_server import McpEndpoint
from denizen.app.accounts import AccountSupervisor, ConnectedRepositoryHosts
from denizen.app.backup_schedule import BackupSchedule
from denizen.app.build import Denizen
from denizen.app.components import build_components
from denizen.app.configuration import HomeConfiguration
from denizen.app.embeddings import build_embedder
from denizen.app.event_configuration import HomeEvents
from denizen.app.health import diagnose
from denizen.app.issue_trackers import IssueTrackers
from denizen.app.metrics import METRICS_PATH, serve_metrics
from denizen.app.owner_notice import tell_owners
from denizen.app.readiness import ReadinessMonitor, check_disk, check_store
from denizen.app.reload import Reloader, RemoteSwitch, watch
from denizen.app.schedule_configuration import HomeSchedules
from denizen.app.settings.schema import ServerSection
from denizen.app.settings.yaml_document import parse_values
from denizen.app.setup_wizard import SetupWizard
from denizen.app.terminal import TerminalService
from denizen.app.terminal_messages import SOCKET, find_fleet_socket
from denizen.app.toolsets import list_idle_tools
from denizen.app.users import build_users
from denizen.app.workflow_configuration import HomeWorkflows
from denizen.domain.errors import NeedsAttention
from denizen.domain.record import record
from denizen.engine.audit.audit_log import AuditLog
from denizen.engine.budget.side_completion import BilledCompletion, TaskCompletion
from denizen.engine.commands.chat_commands import ChatCommands
from denizen.engine.external.requests import DirectCalls, ProgramRequests
from denizen.engine.inspection.replay import plan_requests, replay_turn
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.engine.knowledge.guild_sources import GuildSources
from denizen.engine.knowledge.schedule import SyncSchedule
from denizen.engine.knowledge.source_import import SourceImporter
from denizen.engine.listener.background import run_forever, run_once
from denizen.engine.projects.issue_mirrors import IssueMirrors
from denizen.engine.users.managed_guilds import ManagedGuilds
from denizen.ports.hosting import RepositoryHosts
from denizen.web.app import create_app
from denizen.web.http.auth import AccessRules, ApiKey, Exposure, check_exposure, is_loopback
from denizen.web.http.dependencies import (
    CommunityServices,
    EnabledChannels,
    EngineEntryPoints,
    EventServices,
    GapServices,
    InstanceServices,
    KnowledgeServices,
    ScheduleServices,
    StoreServices,
    UserServices,
    WebDependencies,
    WorkflowServices,
)

if TYPE_CHECKING:
    import uvicorn

    from denizen.app.fleet import Fleet


WATCHER_PAUSE_S = 5.0
"""How often one looks whether a task watcher is configured by now."""
GRACE_S = 2.0
"""How long turns may run on when the server is told to stop: enough for most answers that are being written."""
LOOK_EVERY_S = 0.05
"""How often a stop looks whether hooks, titles and summaries have ended."""


_log = logging.getLogger("denizen.server")


async def serve(
    denizen: Denizen,
    *,
    host: str,
    port: int,
    on_ready: Callable[[str], None],
    on_link: Callable[[str], None],
    may_move: bool = False,
) -> None:
    """Serves until the process is told to stop, or to restart (`denizen.restart`). `on_ready` gets the address at the
    end of the start: requests are answered, and each account is connected or has failed to. `on_link` gets the address
    where the first account can be made, if nobody could come in otherwise. With `may_move` it takes a
    free port when this one is taken.

    Raises NeedsAttention when the port is taken, or when the server would listen beyond loopback with neither API keys
    nor pages.
    """
    # It loads uvicorn, which only a process that serves needs; and before anything is served, since later there may be
    # no file descriptors to load it with.
    from denizen.app.terminal_socket import TerminalServer, open_terminal_socket

    check_exposure(host, api_keys(denizen), has_pages=denizen.settings.channels.web.enabled)
    listener = listen(host, port, may_move=may_move)
    url = f"http://{_show_host(host)}:{listener.getsockname()[1]}"
    calls = DirectCalls(denizen.runtime, denizen.services)
    mcp = McpEndpoint(ProgramRequests(denizen.runtime, denizen.turns, calls), __version__)
    accounts = AccountSupervisor(denizen)
    reloader = Reloader(denizen, accounts.follow)
    readiness = _watch_readiness(denizen, accounts)
    mirrors, keep_mirrors = _prepare_mirrors(denizen)
    external = ExternalServices(
        calls=calls,
        mcp=mcp,
        remote=RemoteSwitch(denizen, reloader.reload),
        hosting=ConnectedRepositoryHosts(accounts.find_github, mirrors.tell),
        configuration=HomeConfiguration(denizen, reloader),
        instance=InstanceServices(
            find_problems=readiness.find_problems,
            diagnose=partial(diagnose, denizen),
            list_accounts=accounts.list_states,
            list_idle_tools=lambda: list_idle_tools(denizen.settings),
            logs=LogFiles(denizen.settings.logs_folder),
            store=StoreServices(denizen.process.store_move, AuditLog(denizen.services.store, denizen.services.clock)),
        ),
    )
    presence = denizen.process.presence
    if presence is not None:
        await presence.check()  # the start may have been so slow that a fleet saw nobody here
    answering, grace = anyio.Event(), _TurnGrace()
    users = build_users(denizen)
    server = _server(denizen, host, external, users, answering.set)

    async def tell_ready() -> None:
        await answering.wait()
        if denizen.role.has_accounts:
            await accounts.wait_until_tried()
        silent = sum(not each.is_listening for each in accounts.list_states())
        _log.info("Denizen is ready", extra={"url": url, "version": __version__, "silent_accounts": silent})
        on_ready(url)
        is_open = denizen.settings.channels.web.enabled and is_reachable(denizen.settings.server, host)
        if is_open and not api_keys(denizen) and (invitation := await users.registration.make_founder_link()):
            on_link(f"{users.public_url or url}/sign-up?invite={invitation}")

    with (
        serve_metrics(denizen, accounts, readiness) as metrics,
        open_terminal_socket(
            denizen.home / SOCKET if denizen.fleet is None else find_fleet_socket(denizen.home)
        ) as terminal_listener,
        anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
    ):
        listeners = {server: listener}
        if terminal_listener is not None:
            listeners[TerminalServer(TerminalService(denizen))] = terminal_listener
        if metrics is not None:
            listeners[metrics.server] = _listen_for_metrics(denizen)
        async with anyio.create_task_group() as group:
            group.start_soon(_stop_on_signal, denizen, list(listeners), signals, grace)
            _start_watch(group, denizen, external.configuration)
            if denizen.fleet is not None:
                _start_membership(group, denizen, denizen.fleet, keep_mirrors)
            else:
                _start_upkeep(group, denizen, keep_mirrors)
            loops = {
                "serving MCP": mcp.run,
                "checking readiness": readiness.run,
                "moving the store": denizen.process.store_move.serve,
                **({"telling fleets of this process": presence.run} if presence is not None else {}),
                **({"keeping accounts connected": accounts.run} if denizen.role.has_accounts else {}),
                **({"counting what waits for the metrics": metrics.run} if metrics is not None else {}),
            }
            for what, run in loops.items():
                group.start_soon(run_forever, what, run)
            group.start_soon(_stop_to_restart, denizen, list(listeners), grace)
            group.start_soon(tell_ready)
            async with anyio.create_task_group() as serving:
                for each, own in listeners.items():
                    serving.start_soon(each.serve, [own])
            if grace.is_given:
                await grace.over.wait()  # accounts and the fleet serve the turns that still end
            group.cancel_scope.cancel()


def _listen_for_metrics(denizen: Denizen) -> socket.socket:
    """Returns the socket of the metrics. Processes of a fleet that share a machine take a free port each."""
    section = denizen.settings.config.telemetry.metrics
    may_move = denizen.fleet is not None
    listener = listen(section.host, section.port, may_move=may_move, setting="telemetry.metrics.port")
    address = f"http://{_show_host(section.host)}:{listener.getsockname()[1]}{METRICS_PATH}"
    _log.info("metrics are served", extra={"url": address})
    return listener


def _watch_readiness(denizen: Denizen, accounts: AccountSupervisor) -> ReadinessMonitor:
    checks = {
        "store": partial(check_store, denizen.services.store),
        "durable_log": denizen.services.durable.check_write,
        "disk": partial(check_disk, denizen.home),
    }
    return ReadinessMonitor(checks | ({"accounts": accounts.check} if denizen.role.has_accounts else {}))


def _start_watch(group: TaskGroup, denizen: Denizen, configuration: HomeConfiguration) -> None:
    watched = [denizen.home, denizen.settings.folders.current_snapshot, denizen.shared_folders]
    watching = partial(watch, watched, configuration.reload_and_tell, catch_up=True)
    group.start_soon(run_forever, "watching the configuration", watching)


def _start_membership(
    group: TaskGroup, denizen: Denizen, fleet: Fleet, keep_mirrors: Callable[[], Awaitable[None]]
) -> None:
    """Starts what a process does for its fleet. One of those that run turns does the upkeep of all."""
    from denizen.app.fleet import FleetParts

    async def keep_up() -> None:
        async with anyio.create_task_group() as upkeep:
            _start_upkeep(upkeep, denizen, keep_mirrors)

    parts = FleetParts(
        channels=denizen.platforms.channels,
        live=denizen.services.live,
        outbox=denizen.services.outbox,
        cancel=denizen.turns.here.cancel,
        signals={
            "events": denizen.events.bus.changed,
            "questions": denizen.services.questions.changed,
            "reminders": denizen.platforms.reminders.changed,
        },
    )
    group.start_soon(run_forever, "talking to the fleet", partial(fleet.run, parts))
    group.start_soon(run_forever, "passing on stops", denizen.turns.stops.run)
    if denizen.role.runs_turns:
        group.start_soon(fleet.hold_upkeep, keep_up)


def _start_upkeep(group: TaskGroup, denizen: Denizen, keep_mirrors: Callable[[], Awaitable[None]]) -> None:
    """Starts what goes on for as long as the server runs, whether somebody asks for anything or not."""
    knowledge = denizen.knowledge
    schedule = SyncSchedule(
        knowledge.sync,
        knowledge.catalog,
        denizen.services.clock,
        lambda: denizen.settings.config.knowledge.sync_every,
        knowledge.refresh,
    )
    backups = BackupSchedule(
        lambda: denizen.settings,
        denizen.services.store,
        denizen.services.clock,
        CroniterTimes(),
        changed=denizen.runtime.swapped,
        tell_owners=partial(tell_owners, denizen.runtime, denizen.platforms.channels, denizen.services.outbox),
    )
    group.start_soon(run_forever, "making backups", backups.run)
    group.start_soon(run_forever, "running schedules", denizen.schedules.run)
    group.start_soon(run_forever, "delivering events", denizen.events.bus.run)
    group.start_soon(run_forever, "listening to websockets", denizen.events.sockets.run)
    group.start_soon(run_forever, "asking REST resources", denizen.events.poller.run)
    group.start_soon(run_forever, "reminding", denizen.platforms.reminders.run)
    group.start_soon(run_forever, "ending hand-overs", denizen.services.handovers.run)
    group.start_soon(run_forever, "reading feeds", denizen.platforms.feed_poller.run)
    group.start_soon(run_forever, "watching tasks", partial(watch_tasks, denizen))
    group.start_soon(run_forever, "mirroring issues", keep_mirrors)
    asking = partial(denizen.services.questions.run, denizen.turns.submit)
    group.start_soon(run_forever, "passing on questions to the owner", asking)
    group.start_soon(run_forever, "embedding memories", denizen.generation_deps.skills.memories.keep_embedded)
    group.start_soon(run_forever, "embedding posts", denizen.platforms.post_embedder.keep_up)
    group.start_soon(run_forever, "indexing documents", knowledge.indexing.keep_indexed)
    group.start_soon(run_forever, "embedding documents", knowledge.indexing.keep_embedded)
    group.start_soon(run_forever, "summing up usage", denizen.statistics.run)
    group.start_soon(run_forever, "reading sources regularly", schedule.run)
    group.start_soon(run_once, "taking up learned answers", knowledge.learning.catch_up)


def _prepare_mirrors(denizen: Denizen) -> tuple[IssueMirrors, Callable[[], Awaitable[None]]]:
    """Returns the mirrors of issues, and what keeps them up, which closes its connections at its end."""
    trackers = IssueTrackers(lambda: denizen.settings, denizen.services.clock)
    mirrors = IssueMirrors(denizen.projects, trackers.find)

    async def keep_up() -> None:
        try:
            await mirrors.run()
        finally:
            with anyio.CancelScope(shield=True):
                await trackers.aclose()

    return mirrors, keep_up


async def watch_tasks(denizen: Denizen) -> None:
    """Has the configured agent look at changed tasks. Until one is configured, nothing for that is loaded."""
    while denizen.runtime.current.task_watcher is None:
        changed = denizen.projects.changed.next
        with anyio.move_on_after(WATCHER_PAUSE_S):
            await changed.wait()
    from denizen.engine.outbox.answer_target import AnswerTargets
    from denizen.engine.projects.watcher import TaskWatcher

    targets = AnswerTargets(denizen.runtime, denizen.services.store, denizen.platforms.channels)
    watcher = TaskWatcher(denizen.projects, targets, denizen.turns.ask)
    await watcher.run()


class _TurnGrace:
    """The time that turns have when the server is told to stop: whether it has begun, and its end."""

    def __init__(self) -> None:
        self.is_given = False
        self.over = anyio.Event()


async def _stop_on_signal(
    denizen: Denizen, servers: Sequence[uvicorn.Server], signals: AsyncIterator[signal.Signals], grace: _TurnGrace
) -> None:
    """Stops the servers on a signal. The first one gives turns `GRACE_S`; those that need longer are left to the next
    process, and whoever waits for them is told. The second one ends everything at once.
    """
    async with anyio.create_task_group() as group:
        async for _ in signals:
            is_stopping = servers[0].should_exit
            for server in servers:
                server.should_exit, server.force_exit = True, is_stopping
            if is_stopping:
                grace.over.set()
            else:
                _log.info("Denizen is stopping", extra={"grace_s": GRACE_S})
                grace.is_given = True
                group.start_soon(_leave_turns, denizen, grace)


async def _stop_to_restart(denizen: Denizen, servers: Sequence[uvicorn.Server], grace: _TurnGrace) -> None:
    """Stops the servers for a restart, as the first signal does. The caller of `serve` then replaces the process."""
    denizen.restart.is_possible = True
    await denizen.restart.wanted.wait()
    for server in servers:
        server.should_exit = True
    grace.is_given = True
    await _leave_turns(denizen, grace)


async def _leave_turns(denizen: Denizen, grace: _TurnGrace) -> None:
    """Waits for the turns that end in `GRACE_S`, and for what runs beside and after them, and leaves the others: all of
    them when the store has moved, since none can end here then.
    """
    if denizen.fleet is not None:
        denizen.fleet.stop_claiming()
    with anyio.move_on_after(0 if denizen.restart.has_store_moved else GRACE_S):
        await denizen.turns.here.wait_for_working()
        while denizen.process.count_working() > 0:  # noqa: ASYNC110 - the end of a run sets no event
            await anyio.sleep(LOOK_EVERY_S)
    await denizen.services.durable.aclose()
    grace.over.set()


def is_reachable(server: ServerSection, host: str) -> bool:
    """Tells whether others than this machine reach the server: it listens for them, or a proxy is configured."""
    public = urlsplit(server.public_url).hostname or ""
    return not is_loopback(host) or bool(server.trusted_proxies) or bool(public and not is_loopback(public))


def api_keys(denizen: Denizen) -> Sequence[ApiKey]:
    """Returns the API keys of the current configuration."""
    settings = denizen.settings
    return [
        ApiKey.from_text(section.name, settings.secrets.resolve(section.key), section.roles)
        for section in settings.server.api_keys
    ]


@record(kw_only=True)
class ExternalServices:
    """The services for programs besides turns: single tool calls, the MCP server, the remote of snapshots, webhooks,
    the files of the configuration, and what the process tells of itself.
    """

    calls: DirectCalls
    mcp: McpEndpoint
    remote: RemoteSwitch
    hosting: RepositoryHosts
    configuration: HomeConfiguration
    instance: InstanceServices


def _server(
    denizen: Denizen, host: str, external: ExternalServices, users: UserServices, on_ready: Callable[[], None]
) -> uvicorn.Server:
    from denizen.app.http_server import HttpServer, choose_limits, raise_descriptor_limit

    exposure = Exposure(
        listens_beyond_loopback=is_reachable(denizen.settings.server, host),
        allowed_origins=frozenset(denizen.settings.server.cors_origins),
    )
    denizen.generation_deps.skills.administration.open_configuration(external.configuration)
    denizen.agents.open_configuration(external.configuration)
    schedules = HomeSchedules(denizen.schedule_catalog, external.configuration)
    denizen.own_schedules.open_configuration(schedules)
    denizen.generation_deps.skills.events.open_configuration(HomeEvents(external.configuration))
    workflow_files = HomeWorkflows(denizen.home, denizen.runtime, external.configuration)
    denizen.generation_deps.skills.workflows.connect(denizen.workflows, workflow_files)
    store, clock = denizen.services.store, denizen.services.clock
    limiter = RateLimiter(store, clock)
    app = create_app(
        WebDependencies(
            engine=EngineEntryPoints(
                turns=denizen.turns,
                chats=denizen.chats,
                commands=ChatCommands(
                    denizen.runtime, denizen.services, denizen.turns, denizen.chats, denizen.catalogs
                ),
                queries=denizen.queries,
                statistics=denizen.statistics,
                runtime=denizen.runtime,
                limiter=limiter,
                open_delegations=denizen.generation_deps.open_delegations,
                calls=external.calls,
                replay=partial(replay_turn, denizen.runtime, denizen.services),
                assistant=denizen.assistant,
                plan_requests=partial(plan_requests, denizen.runtime, denizen.services),
                tasks=TaskCompletion(denizen.runtime, BilledCompletion(denizen.runtime, store, clock), limiter),
                embedder=build_embedder(denizen.runtime, store, clock),
            ),
            access=AccessRules(lambda: api_keys(denizen), users.credentials, exposure),
            users=users,
            clock=denizen.services.clock,
            version=__version__,
            channels=EnabledChannels(
                web=denizen.settings.channels.web.enabled and denizen.role.serves_pages,
                api=denizen.settings.channels.api.enabled and denizen.role.serves_pages,
            ),
            simulator=denizen.simulation.page if denizen.simulation else "",
            knowledge=KnowledgeServices(
                catalog=denizen.knowledge.catalog,
                search=denizen.knowledge.search,
                sync=denizen.knowledge.sync,
                snapshots=denizen.knowledge.snapshots,
                remote=lambda: denizen.runtime.current.knowledge.snapshot_remote,
                change_remote=external.remote.change,
                webhooks=lambda: denizen.runtime.current.knowledge.webhooks,
                indexing=lambda: denizen.knowledge.indexing.progress,
                embedding=denizen.knowledge.indexing.find_embedding_progress,
            ),
            gaps=GapServices(denizen.knowledge.gaps, denizen.knowledge.learning),
            projects=denizen.projects,
            community=CommunityServices(
                memories=denizen.memories,
                archive=denizen.platforms.browser,
                policy=lambda: denizen.runtime.current.archive,
                guilds=ManagedGuilds(store, clock, denizen.runtime, denizen.services.members, denizen.services.guilds),
                guild_sources=GuildSources(
                    store,
                    clock,
                    denizen.knowledge.catalog,
                    denizen.knowledge.sync,
                    lambda: denizen.runtime.current.knowledge.guild_sources,
                    platform=denizen.services.members.platform,
                ),
            ),
            importer=SourceImporter(
                denizen.runtime,
                denizen.knowledge.catalog,
                BilledCompletion(denizen.runtime, denizen.services.store, denizen.services.clock),
                partial(parse_values, file=Path("list")),
            ),
            configuration=external.configuration,
            setup=SetupWizard(denizen, external.configuration),
            components=build_components(denizen, external.configuration),
            schedules=ScheduleServices(denizen.schedule_catalog, schedules),
            workflows=WorkflowServices(denizen.workflows, workflow_files),
            plan_policy=external.configuration.plan_policy,
            mcp=external.mcp if denizen.settings.channels.mcp.enabled else None,
            hosting=external.hosting,
            events=EventServices(denizen.events.log, denizen.events.webhooks),
            instance=external.instance,
        )
    )
    proxies = [ip_network(each, strict=False) for each in denizen.settings.server.trusted_proxies]
    return HttpServer(app, choose_limits(raise_descriptor_limit(), proxies), on_ready)


def listen(host: str, port: int, *, may_move: bool = False, setting: str = "--port or server.port") -> socket.socket:
    """Returns a socket that listens there; with `may_move` on a free port when this one is taken. Raises NeedsAttention
    when it cannot.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # at once: two processes may bind to a port while neither listens
    except OSError as error:
        listener.close()
        if may_move and error.errno == errno.EADDRINUSE:
            return listen(host, 0)
        raise NeedsAttention(
            f"Denizen cannot listen on {host} port {port}.",
            code="port_unusable",
            why=error.strerror or type(error).__name__,
            fix=f"Stop what uses the port, or choose another with {setting}.",
        ) from error
    return listener


def _show_host(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - shown, not bound
        return "localhost"
    return f"[{host}]" if ":" in host else host

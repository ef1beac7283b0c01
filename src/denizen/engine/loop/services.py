"""The services of the engine: one set for a process, which every turn uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import TypeAlias

from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.accounts.members import MemberDirectory
from denizen.engine.audit.audit_log import AuditLog
from denizen.engine.configuration.agent_settings import AgentSettingsOverlay
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.configuration.guild_settings import GuildSettingsOverlay
from denizen.engine.events.live_events import LiveEvents
from denizen.engine.gate.approvals import ApprovalQueue
from denizen.engine.gate.decision import PolicyEngine
from denizen.engine.gate.executor import ToolExecutor
from denizen.engine.gate.observer import Observer
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.engine.knowledge.proof import AnswerProver
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.engine.outbox.handovers import RoomHandovers
from denizen.engine.outbox.outbox import DeliveryOutbox
from denizen.engine.outbox.questions import QuestionInbox
from denizen.engine.projects.board import ProjectBoards
from denizen.engine.prompt.pictures import LoadPicture
from denizen.engine.tools.toolbox import SessionSelections
from denizen.ports.durable import DurableExecution
from denizen.ports.fleet import TurnRelay
from denizen.ports.store import Store
from denizen.ports.store_move import StoreMove

KeepPictures: TypeAlias = Callable[[Place, Mapping[str, Json]], Awaitable[Mapping[str, Json]]]


async def _free_nothing(turn: TurnId) -> None:
    del turn


async def _keep_no_pictures(place: Place, data: Mapping[str, Json]) -> Mapping[str, Json]:
    del place
    return data


@record(kw_only=True)
class EngineServices:
    """The services that every turn uses. `build_services` builds them."""

    store: Store
    durable: DurableExecution
    live: LiveEvents
    gate: ToolExecutor
    approvals: ApprovalQueue
    outbox: DeliveryOutbox
    questions: QuestionInbox
    clock: Clock
    members: MemberDirectory
    guilds: GuildSettingsOverlay
    handovers: RoomHandovers
    selections: SessionSelections = field(default_factory=SessionSelections)
    memories: MemoryKeeper | None = None
    observer: Observer | None = None
    prover: AnswerProver | None = None
    """Proves citations; None where there are no documents."""
    assistant: AgentSettingsOverlay | None = None
    projects: ProjectBoards | None = None
    """Projects and tasks; None where there are none."""
    load_upload: LoadPicture | None = None
    """Loads pictures that were uploaded; None where there are none."""
    keep_pictures: KeepPictures = _keep_no_pictures
    """Stores the pictures that a tool shows in a place, and returns its data with their addresses."""
    store_move: StoreMove | None = None
    """Moves the store to another database; None where that cannot be."""
    relay: TurnRelay | None = None
    """Reaches the other processes of a fleet; None where there is one process."""
    free_turn: Callable[[TurnId], Awaitable[None]] = _free_nothing
    """Closes what the tools of a turn have opened, once it runs no more in this process."""

    async def configured(self, generation: Generation, agent: AgentName) -> Generation:
        """The generation in which the agent is as its owner has set it besides the configuration."""
        return generation if self.assistant is None else await self.assistant.apply(generation, agent)


def build_services(
    runtime: Runtime,
    store: Store,
    durable: DurableExecution,
    clock: Clock,
    *,
    channels: ConnectedAccounts | None = None,
    observer: Observer | None = None,
    member_platform: str = "",
) -> EngineServices:
    """Builds the services that every process has; others are added with `replace`. Tool calls wait for people in the
    same queue that pauses their turns. `member_platform` is the one whose members have their rights in the web, too.
    """
    live, channels = LiveEvents(), channels or ConnectedAccounts()
    outbox = DeliveryOutbox(runtime, store, clock, channels)
    approvals = ApprovalQueue(runtime, store, clock, live, outbox.wake, channels=channels)
    members, audit_log = MemberDirectory(store, channels, clock, member_platform), AuditLog(store, clock)
    guilds = GuildSettingsOverlay(store, clock, runtime)
    policy_engine = PolicyEngine(RateLimiter(store, clock), observer, members, guilds)
    return EngineServices(
        store=store,
        durable=durable,
        live=live,
        gate=ToolExecutor(clock, policy_engine, approvals=approvals, audit_log=audit_log, telemetry=runtime.telemetry),
        approvals=approvals,
        outbox=outbox,
        questions=QuestionInbox(runtime, store, clock, outbox.wake, channels=channels),
        clock=clock,
        members=members,
        guilds=guilds,
        handovers=RoomHandovers(runtime, store, clock, channels, outbox),
        observer=observer,
    )

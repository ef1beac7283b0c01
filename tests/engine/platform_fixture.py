"""A server in memory with agents in it: the whole engine behind accounts, for tests of listeners."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import anyio

from denizen.adapters.discord.client.settings import POST_LINK
from denizen.domain.agent import Agent, HistorySettings
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.attention import AccountPolicy, ReplyStyle
from denizen.domain.cloud_event import CloudEvent
from denizen.domain.delivery import DeliveryState
from denizen.domain.event_listener import EventListener
from denizen.domain.event_source import PollSource, WebSocketSource
from denizen.domain.ids import AgentName
from denizen.domain.message import TextPart
from denizen.domain.proposal import LearningPolicy
from denizen.domain.rate_limit import HOUR_S, RateLimit
from denizen.domain.room import Room, RoomKind
from denizen.domain.turn import TurnStatus
from denizen.domain.workflow import Workflow
from denizen.domain.workflow_triggers import list_listeners
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.agents.catalog import AgentCatalog
from denizen.engine.archive.backfill import Backfiller
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.removal import ArchiveRemoval
from denizen.engine.commands.command import CommandCatalogs
from denizen.engine.commands.personal_data import StoredUserData
from denizen.engine.configuration.generation import Generation, KnowledgeSettings, Runtime
from denizen.engine.configuration.tool_policy import GatePolicy, RateLimits
from denizen.engine.delegation.delegations import Delegations
from denizen.engine.delegation.tools import DelegationTools
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.event_bus.bus import EventBus
from denizen.engine.listener.community_events import CommunityEvents
from denizen.engine.listener.context import AccountContext, BotReplyCounter
from denizen.engine.listener.listener import AccountListener, SharedServices
from denizen.engine.listener.proposals import ProposalReactions
from denizen.engine.loop.services import build_services
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.engine.outbox.answer_target import AnswerTargets
from denizen.engine.outbox.outbox import DeliveryOutbox
from denizen.engine.turn import TurnRunner
from denizen.engine.workflows.runner import WorkflowRunner
from denizen.engine.workflows.tools import WorkflowTools
from denizen.ports.embed import Embedder
from denizen.ports.events import EventSettings
from denizen.ports.model import ModelRequest
from denizen.ports.toolset import Toolset
from denizen.testing.memory_durable import MemoryDurable, MemoryLog
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels, ScriptedReply
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import ManualClock
from tests.engine.engine_fixture import ToolsetFixture, strip_date
from tests.memory_channel import MemoryChannel, SentMessage
from tests.memory_platform import START, MemoryPlatform
from tests.timing import HANG_LIMIT_S

ADA = AgentName("ada")


@dataclass
class World:
    """What outlives a process: the platform, the store, the durable log."""

    platform: MemoryPlatform = field(default_factory=MemoryPlatform)
    store: TemporaryStore = field(default_factory=TemporaryStore)
    log: MemoryLog = field(default_factory=MemoryLog)
    clock: ManualClock = field(default_factory=lambda: ManualClock(START))
    general: Room = field(init=False)

    def __post_init__(self) -> None:
        self.general = self.platform.add_room("general")
        self.platform.add_person("ana", "Ana")
        self.platform.add_person("bob", "Bob")

    def direct(self, person: str, account: str = "bot-ada") -> Room:
        return self.platform.add_room(person, RoomKind.DIRECT, readers=[person, account])


@dataclass
class PlatformFixture:
    """One process in that world."""

    world: World
    model: ScriptedModel
    tools: ToolsetFixture
    turns: TurnRunner
    runtime: Runtime
    store: TemporaryStore
    outbox: DeliveryOutbox
    channels: ConnectedAccounts
    accounts: Mapping[AgentName, MemoryChannel]
    listeners: Mapping[AgentName, AccountListener]
    shared_services: SharedServices
    privacy: ArchiveRemoval
    bus: EventBus

    @property
    def ada(self) -> MemoryChannel:
        return self.accounts[ADA]

    @property
    def listener(self) -> AccountListener:
        return self.listeners[ADA]

    async def settled(self) -> None:
        """Until everything was heard, every turn has ended, everything owed was sent and no preview is left."""
        with anyio.fail_after(HANG_LIMIT_S):
            quiet = 0
            # While the store is read work moves on, from a message to a turn to a delivery, and a look at one after the
            # other may miss it. A second look finds it, since it is further on by then.
            while quiet < 2:
                quiet = quiet + 1 if await self._is_quiet() else 0
                await anyio.sleep(0.001)
            for account in self.accounts.values():
                await self.outbox.sweep_previews(account)

    async def _is_quiet(self) -> bool:
        await self.world.platform.settled()
        if self._is_behind:
            return False
        async with self.store.work(write=False) as work:
            is_open = await work.turns.list_turns(status=TurnStatus.OPEN)
            due = [
                each
                for account in self.accounts.values()
                for each in await work.outbox.list_due(account.agent, account.platform)
            ]
        return not (is_open or due or self._is_behind or any(account.is_busy for account in self.accounts.values()))

    @property
    def _is_behind(self) -> bool:
        return any(listener.is_behind for listener in self.listeners.values())

    async def until(self, holds: Callable[[], bool]) -> None:
        """What follows the end of a turn, such as a reaction, takes a few steps more."""
        with anyio.fail_after(HANG_LIMIT_S):
            while not holds():
                await anyio.lowlevel.checkpoint()

    async def said(self, agent: AgentName = ADA) -> list[str]:
        """The texts that the account has posted, once all is done."""
        await self.settled()
        return [sent.content.text for sent in self.accounts[agent].sent if sent.id in self.world.platform.posts]

    async def sent(self) -> list[SentMessage]:
        await self.settled()
        return self.ada.sent

    async def deliveries(self, state: DeliveryState) -> int:
        """How many replies are in that state."""
        count = 0
        async with self.store.work(write=False) as work:
            for turn in await work.turns.list_turns():
                count += sum(d.state is state for d in await work.outbox.list_for_turn(turn.id))
        return count


@asynccontextmanager
async def open_platform(
    world: World | None = None,
    model: ScriptedModel | None = None,
    *,
    account_policy: AccountPolicy | Mapping[AgentName, AccountPolicy] | None = None,
    agents: Mapping[AgentName, Agent] | None = None,
    per_hour: int = 0,
    tools: ToolsetFixture | None = None,
    archive: ArchivePolicy | None = None,
    gate: GatePolicy | None = None,
    written: Callable[[AgentName, str], Awaitable[str]] | None = None,
    embedder: Embedder | None = None,
    learning: LearningPolicy | None = None,
    withdraw_learned: Callable[[], Awaitable[object]] | None = None,
    connect: bool = True,
    accounts: Mapping[AgentName, MemoryChannel] | None = None,
    prepare: Callable[[Mapping[AgentName, MemoryChannel]], Awaitable[None]] | None = None,
    events: Sequence[EventListener] = (),
    sources: Sequence[WebSocketSource | PollSource] = (),
    workflows: Mapping[str, Workflow] | None = None,
) -> AsyncGenerator[PlatformFixture]:
    """Give the world of an earlier process to see a restart; it is left as a killed process leaves it."""
    world = world or World()
    model = model or ScriptedModel(otherwise=ScriptedReply("Hello."))
    tools = tools or ToolsetFixture()
    agents = agents or {ADA: Agent(ADA, history=HistorySettings(recent_messages=0))}
    rules = (
        account_policy
        if isinstance(account_policy, Mapping)
        else dict.fromkeys(agents, account_policy or AccountPolicy(style=ReplyStyle(preview=False)))
    )
    clock, runtime, channels = world.clock, Runtime(), ConnectedAccounts()
    durable = MemoryDurable(world.log)
    memories = MemoryKeeper(
        world.store,
        channels,
        clock,
        embedder=BudgetedEmbedder(lambda: embedder),
        policy=lambda: runtime.current.knowledge.recall,
        written=written,
    )
    services = build_services(runtime, world.store, durable, clock, channels=channels)
    services = replace(services, memories=memories)

    async def publish(event: CloudEvent) -> bool:
        return await bus.publish(event)

    acts = WorkflowTools(
        AnswerTargets(runtime, world.store, channels), services.outbox, clock, publish, platform="discord"
    )
    runner = WorkflowRunner(services, acts, sleep=clock.sleep)
    outbox, turns = services.outbox, TurnRunner(runtime, services, workflows=runner)
    workflows = workflows or {}
    events = (*events, *list_listeners(workflows, next(iter(agents)), lambda route: f"/webhooks/{route}"))
    delegating: tuple[Toolset, ...] = ()
    if any(agent.tool_access.delegates_to for agent in agents.values()):
        delegating = (DelegationTools(Delegations(runtime, services, turns), agents),)
    per_user = (RateLimit(per_hour, HOUR_S),) if per_hour else ()
    await runtime.swap(
        Generation(
            number=1,
            agents=agents,
            default_agent=next(iter(agents)),
            models=ScriptedModels(model),
            toolsets=(tools, *delegating),
            policy=gate or GatePolicy(rate_limits=RateLimits(per_user=per_user)),
            account_policies={("discord", agent): rule for agent, rule in rules.items()},
            knowledge=KnowledgeSettings(learning=learning or LearningPolicy()),
            events=EventSettings(
                listeners={each.key: each for each in events},
                websockets={each.name: each for each in sources if isinstance(each, WebSocketSource)},
                polls={each.name: each for each in sources if isinstance(each, PollSource)},
            ),
            workflows=workflows,
        )
    )
    policy = archive or ArchivePolicy(post_links={"discord": POST_LINK})
    mirror = ArchiveMirror(world.store, lambda: policy, clock)

    async def withdraw(_platform: str = "") -> None:
        if withdraw_learned is not None:
            await withdraw_learned()

    privacy = ArchiveRemoval(mirror, clock, on_forgotten=withdraw)
    shared_services = SharedServices(
        services=services,
        channels=channels,
        mirror=mirror,
        backfiller=Backfiller(world.store, mirror, clock),
        user_data=StoredUserData(world.store, mirror, privacy),
        catalogs=CommandCatalogs(agents=AgentCatalog(runtime)),
        proposals=ProposalReactions(mirror, on_withdrawn=withdraw),
    )
    bot_replies = BotReplyCounter(world.store)
    bus = EventBus(runtime, services, turns, channels)
    community_events = CommunityEvents(bus, clock, mirror, channels)
    accounts = accounts or {name: MemoryChannel(world.platform, name) for name in agents}
    world.platform.accounts[:] = list(accounts.values())
    if prepare is not None:
        await prepare(accounts)
    listeners = {
        name: AccountListener(
            AccountContext(
                channel=channel,
                runtime=runtime,
                store=world.store,
                clock=clock,
                turns=turns,
                outbox=outbox,
                bot_replies=bot_replies,
                handovers=services.handovers,
                guilds=services.guilds,
                events=community_events,
            ),
            shared_services,
        )
        for name, channel in accounts.items()
    }
    await turns.expect_open()
    await durable.start()
    try:
        await turns.resume()
        async with anyio.create_task_group() as group:
            for name, channel in accounts.items():
                group.start_soon(listeners[name].run)
                await anyio.lowlevel.checkpoint()
                if connect:
                    await group.start(channel.run, listeners[name])
            if connect:
                await world.platform.settled()
            yield PlatformFixture(
                world,
                model,
                tools,
                turns,
                runtime,
                world.store,
                outbox,
                channels,
                accounts,
                listeners,
                shared_services,
                privacy,
                bus,
            )
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await durable.crash()


def list_texts(request: ModelRequest) -> list[str]:
    """What the model reads, message by message."""
    return [
        strip_date("".join(p.text for p in message.parts if isinstance(p, TextPart))) for message in request.messages
    ]

"""Commands on an in-memory store, scripted models and a chat with three agents, for tests of commands."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from denizen.domain.agent import Agent
from denizen.domain.attention import AccountPolicy, AccountStaff, assign_roles
from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, MessageId, fresh, turn_id
from denizen.domain.json import JsonObject
from denizen.domain.message import Author, Message, Role, TextPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import Room, RoomKind
from denizen.domain.routing import Route
from denizen.domain.turn import Turn, TurnResult, TurnStatus
from denizen.domain.workflow import Workflow
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.agents.catalog import AgentCatalog
from denizen.engine.budget.side_completion import BilledCompletion
from denizen.engine.commands.command import CallerContext, CommandCatalogs, CommandDeps, UserDataSummary
from denizen.engine.commands.dispatch import CommandDispatcher
from denizen.engine.configuration.generation import CustomCommandSet, Generation, Runtime
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.engine.gate.observer import Observer
from denizen.engine.intake.turn_queue import TurnQueues
from denizen.engine.loop.services import EngineServices, build_services
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.engine.projects.board import ProjectBoards
from denizen.engine.projects.reader import ReaderDirectory
from denizen.ports.channel import CommandCall, CommandReply, MentionNames
from denizen.ports.toolset import Toolset
from denizen.testing.memory_durable import MemoryDurable, MemoryLog
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels
from denizen.testing.temporary_store import TemporaryStore

ADA, BOB, CLEO = AgentName("ada"), AgentName("bob"), AgentName("cleo")
ROOM = Room("chat", "10", "general", guild="1")
OTHER_ROOM = Room("chat", "11", "random", guild="1")
DIRECT = Room("chat", "12", "Ana", kind=RoomKind.DIRECT)
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
NAMES = MentionNames({"Ana": "1", "Ben Berg": "2", "Zoe": "9"}, {"Helpers": "70", "Mods": "71"})


@dataclass(frozen=True)
class Person:
    id: str
    name: str
    roles: frozenset[str] = frozenset()


ANA, BEN = Person("1", "Ana"), Person("2", "Ben Berg")
ZOE = Person("9", "Zoe")
"""The owner."""


@dataclass
class OpenedTurn:
    """A turn that a command asked for."""

    call: CommandCall
    text: str
    agent: str
    new_session: bool
    workflow: JsonObject | None = None


@dataclass
class RecordingUserData:
    """What is kept about whom: `ArchiveRemoval` without an archive."""

    posts: dict[tuple[str, str], int] = field(default_factory=dict)
    out: set[tuple[str, str]] = field(default_factory=set)

    async def describe(self, platform: str, user_id: str) -> UserDataSummary:
        posts = self.posts.get((platform, user_id), 0)
        return UserDataSummary(posts, posts // 2, (platform, user_id) in self.out)

    async def forget(self, platform: str, user_id: str) -> int:
        return self.posts.pop((platform, user_id), 0)

    async def opt_out(self, platform: str, user_id: str) -> None:
        self.posts.pop((platform, user_id), None)
        self.out.add((platform, user_id))

    async def opt_in(self, platform: str, user_id: str) -> None:
        self.out.discard((platform, user_id))


@dataclass
class CommandFixture:
    commands: CommandDispatcher
    runtime: Runtime
    services: EngineServices
    store: TemporaryStore
    queues: TurnQueues
    account_policy: AccountPolicy
    user_data: RecordingUserData
    opened: list[OpenedTurn]
    session_places: dict[AgentName, Place] = field(default_factory=dict)

    async def give(self, text: str, who: Person = ANA, *, room: Room = ROOM, target: str = "") -> CommandReply:
        """As a message that begins with a slash."""
        typed = self.commands.parse_text(text)
        assert typed is not None, f"{text} is no command"
        name, group, options = typed
        return await self.slash(name, group, options, who=who, room=room, target=target)

    async def slash(
        self,
        name: str,
        group: str = "",
        options: Mapping[str, str] | None = None,
        *,
        who: Person = ANA,
        room: Room = ROOM,
        target: str = "",
    ) -> CommandReply:
        call = command_call(name, group, options or {}, who=who, room=room, target=target)
        return await self.commands.run(call, self.caller(who, room))

    async def suggest(self, name: str, group: str, option: str, typed: str, who: Person = ANA) -> Sequence[str]:
        call = command_call(name, group, {}, who=who, room=ROOM)
        return await self.commands.suggest(call, option, typed, self.caller(who, ROOM))

    def caller(self, who: Person, room: Room) -> CallerContext:
        return CallerContext(
            account=ADA,
            account_policy=self.account_policy,
            principal=self.principal(who),
            find_session_place=lambda agent: self.place(agent.name, room),
            find_names=find_names,
        )

    def place(self, agent: AgentName, room: Room = ROOM) -> Place:
        return self.session_places.get(agent, room.place)

    def principal(self, who: Person) -> Principal:
        return Principal(
            PrincipalKind.PLATFORM_USER,
            f"chat:{who.id}",
            who.name,
            assign_roles(who.id, who.roles, self.account_policy.staff),
        )

    async def talk(self, *texts: str, agent: AgentName = ADA, room: Room = ROOM) -> None:
        """Messages of the open session, by Ana and the agent in turns."""
        async with self.store.work() as work:
            conversation = await work.conversations.put(self.place(agent, room), now=NOW)
            session = await work.sessions.current(conversation.id, agent, now=NOW)
            for at, text in enumerate(texts):
                role, author = (
                    (Role.ASSISTANT, Author("", agent, is_bot=True)) if at % 2 else (Role.USER, Author("1", "Ana"))
                )
                await work.messages.add(
                    Message(
                        id=MessageId(fresh("msg")),
                        conversation_id=conversation.id,
                        role=role,
                        author=author,
                        parts=(TextPart(text),),
                        created_at=NOW,
                        session_id=session.id,
                    )
                )

    async def session(self, agent: AgentName = ADA, room: Room = ROOM) -> Sequence[Message]:
        """The open session's messages."""
        async with self.store.work(write=False) as work:
            sessions = await work.sessions.list_sessions(self.place(agent, room).conversation_id, agent)
            found = next((each for each in sessions if each.closed_at is None), None)
            return await work.messages.list_tail(found.id, limit=1000) if found else []

    async def settings(self, who: Person) -> Mapping[str, object]:
        async with self.store.work(write=False) as work:
            return await work.user_settings.get(self.principal(who).key)

    async def put_turn(
        self,
        name: str,
        who: Person = ANA,
        *,
        room: Room = ROOM,
        status: TurnStatus = TurnStatus.DONE,
        route: Route | None = None,
        result: TurnResult | None = None,
    ) -> Turn:
        """A turn that is done, as it is recorded."""
        async with self.store.work() as work:
            conversation = await work.conversations.put(room.place, now=NOW)
            session = await work.sessions.current(conversation.id, ADA, now=NOW)
            key = turn_id(ADA, "chat", name)
            turn = Turn(
                id=key,
                conversation_id=conversation.id,
                session_id=session.id,
                agent=ADA,
                principal=self.principal(who),
                trigger_id=MessageId(f"m-{name}"),
                status=TurnStatus.OPEN,
                opened_at=NOW,
                route=route,
                result=result or TurnResult(),
            )
            await work.turns.open(turn)
            if status is not TurnStatus.OPEN:
                turn = replace(turn, status=status, closed_at=NOW + timedelta(seconds=2))
                await work.turns.close(turn)
        return turn


async def find_names(place: Place, text: str) -> MentionNames:
    return NAMES


_count = iter(range(100, 1_000_000))


def command_call(
    name: str, group: str, options: Mapping[str, str], *, who: Person, room: Room, target: str = ""
) -> CommandCall:
    return CommandCall(str(next(_count)), name, group, options, room, who.id, who.name, who.roles, NOW, target=target)


def models(**aliases: str) -> dict[str, ScriptedModel]:
    """By alias; one model for each name."""
    made = {name: ScriptedModel(name=name) for name in aliases.values()}
    return {alias: made[name] for alias, name in aliases.items()}


STANDARD = {"balanced": "acme/middle", "cheap": "acme/small", "fast": "acme/small", "house": "acme/large"}


@asynccontextmanager
async def open_commands(
    *,
    account_policy: AccountPolicy | None = None,
    scripted: ScriptedModels | None = None,
    agents: Sequence[Agent] = (Agent(ADA), Agent(BOB, description="Knows the docs."), Agent(CLEO)),
    customs: CustomCommandSet | None = None,
    policy: GatePolicy | None = None,
    toolsets: tuple[Toolset, ...] = (),
    store: TemporaryStore | None = None,
    workflows: Mapping[str, Workflow] | None = None,
) -> AsyncGenerator[CommandFixture]:
    store, clock, runtime, queues = store or TemporaryStore(), SystemClock(), Runtime(), TurnQueues()
    observer = Observer(store, clock, BilledCompletion(runtime, store, clock))
    channels = ConnectedAccounts()
    services = build_services(runtime, store, MemoryDurable(MemoryLog()), clock, channels=channels, observer=observer)
    keeper = MemoryKeeper(store, channels, clock)
    readers = ReaderDirectory(store, channels, services.members, keeper)
    services = replace(services, projects=ProjectBoards(runtime, store, clock, readers))
    opened: list[OpenedTurn] = []
    user_data = RecordingUserData()

    async def open_turn(
        call: CommandCall, text: str, *, agent: str = "", new_session: bool = False, workflow: JsonObject | None = None
    ) -> None:
        opened.append(OpenedTurn(call, text, agent, new_session, workflow))

    await runtime.swap(
        Generation(
            number=1,
            agents={agent.name: agent for agent in agents},
            default_agent=agents[0].name,
            models=scripted or ScriptedModels(models(**STANDARD)),
            toolsets=toolsets,
            policy=policy or GatePolicy(),
            commands=customs or CustomCommandSet(),
            workflows=workflows or {},
        )
    )
    commands = CommandDispatcher(
        CommandDeps(
            runtime=runtime,
            services=services,
            open_turn=open_turn,
            lock_session=lambda agent, conversation_id: queues.turn(f"{agent}-{conversation_id}"),
            user_data=user_data,
            catalogs=CommandCatalogs(agents=AgentCatalog(runtime)),
        )
    )
    account_policy = account_policy or AccountPolicy(staff=AccountStaff(owners=frozenset({ZOE.id})))
    yield CommandFixture(commands, runtime, services, store, queues, account_policy, user_data, opened)
    await runtime.aclose()

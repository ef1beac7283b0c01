"""Boards on a real store and a community in memory: #general and #dev for all, #staff for Ana and the agent alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count

from denizen.builtin_skills import load_builtin
from denizen.domain.agent import Agent
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId
from denizen.domain.json import Json
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.project import TaskWatcherPolicy
from denizen.domain.room import Room
from denizen.domain.tool import Taint, ToolCall, ToolResult
from denizen.domain.user import User
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.accounts.members import MemberDirectory
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.engine.outbox.answer_target import AnswerTargets
from denizen.engine.projects.board import ProjectBoards
from denizen.engine.projects.reader import ReaderDirectory
from denizen.ports.toolset import CallOptions, CallScope
from denizen.skill import ScopedServices, SkillToolset
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import ManualClock
from tests.memory_channel import MemoryChannel
from tests.memory_platform import MemoryPlatform
from tests.skill_fixture import ServicesFixture

ADA = AgentName("ada")
ANA = Principal(PrincipalKind.PLATFORM_USER, "discord:ana", "Ana")
BEN = Principal(PrincipalKind.PLATFORM_USER, "discord:ben", "Ben")
OLGA = Principal(PrincipalKind.WEB_USER, "user_olga", "Olga", frozenset({RoleName.OWNER}))
MIA = Principal(PrincipalKind.WEB_USER, "user_mia", "Mia", frozenset({RoleName.MEMBER}))
OPERATOR = Principal(PrincipalKind.LOCAL, "operator", "operator", frozenset({RoleName.OWNER}))
WEB = Place("web", "web_user:user_mia", "s")

_calls = count(1)


@dataclass
class ProjectFixture:
    store: TemporaryStore
    clock: ManualClock
    runtime: Runtime
    platform: MemoryPlatform
    account: MemoryChannel
    channels: ConnectedAccounts
    boards: ProjectBoards
    skill: SkillToolset
    rooms: dict[str, Room] = field(default_factory=dict[str, Room])

    def scope(self, who: Principal, where: str | Place, *, tainted: bool = False, key: str = "") -> CallScope:
        """The call of a turn of that person in a room, by its name, or at a place."""
        place = self.rooms[where].place if isinstance(where, str) else where
        return CallScope(
            agent=ADA,
            principal=who,
            place=place,
            session_id=SessionId("sess_1"),
            turn_id=TurnId("turn_1"),
            account=ADA if place.platform == "discord" else None,
            taint=frozenset({Taint.WEB}) if tainted else frozenset(),
            options=CallOptions(idempotency_key=key or f"call {next(_calls)}"),
        )

    async def call(
        self, who: Principal, where: str | Place, tool: str, *, tainted: bool = False, key: str = "", **args: Json
    ) -> ToolResult:
        """What a tool answers in a turn of that person there."""
        return await self.skill.call(
            ToolCall(CallId("call_1"), tool, args), self.scope(who, where, tainted=tainted, key=key)
        )

    @property
    def targets(self) -> AnswerTargets:
        return AnswerTargets(self.runtime, self.store, self.channels)

    async def watch(self, policy: TaskWatcherPolicy | None) -> None:
        await self.runtime.swap(replace(self.runtime.current, task_watcher=policy))


@asynccontextmanager
async def open_projects() -> AsyncGenerator[ProjectFixture]:
    store, clock, runtime, channels = TemporaryStore(), ManualClock(), Runtime(), ConnectedAccounts()
    platform = MemoryPlatform()
    account = MemoryChannel(platform, ADA)
    for name in ("ana", "ben"):
        platform.add_person(name, name.title())
    rooms = {name: platform.add_room(name) for name in ("general", "dev")}
    rooms["staff"] = platform.add_room("staff", readers=["ana", account.user_id])
    rooms["direct"] = platform.open_direct("ana", account.user_id)
    channels.add(account)
    async with store.work() as work:
        for room in platform.rooms.values():
            await work.archive.put_room(room)
        await work.users.add(
            User(id=MIA.id, email="mia@example.org", name="Mia", role=RoleName.MEMBER, created_at=clock.now())
        )
    await runtime.swap(
        Generation(
            number=1, agents={ADA: Agent(ADA)}, default_agent=ADA, models=ScriptedModels(ScriptedModel()), toolsets=()
        )
    )
    keeper = MemoryKeeper(store, channels, clock)
    readers = ReaderDirectory(store, channels, MemberDirectory(store, channels, clock, "discord"), keeper)
    boards = ProjectBoards(runtime, store, clock, readers)
    services = ServicesFixture(store.path.parent, clock).services()
    services = replace(services, scoped=ScopedServices(open_projects=boards.open))
    skill = SkillToolset(load_builtin("projects"), services)
    yield ProjectFixture(store, clock, runtime, platform, account, channels, boards, skill, rooms)

"""An archive over the store and a platform in memory, for tests: accounts, people, rooms, a clock that a test moves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, timedelta, tzinfo

from denizen.adapters.discord.client.settings import POST_LINK
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.budget import BudgetPolicy
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, SessionId, TurnId
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import Post, Room, RoomKind
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.accounts.members import MemberDirectory
from denizen.engine.archive.backfill import Backfiller, BackfillProgress
from denizen.engine.archive.lookup import ArchiveLookups, ArchiveSearch
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.post_embedding import PostEmbedder
from denizen.engine.archive.removal import ArchiveRemoval, ArchiveRetention
from denizen.engine.embedding.embedder import BudgetedEmbedder, EmbeddingBudget
from denizen.ports.embed import Embedder
from denizen.ports.store import Store, UnitOfWork
from denizen.ports.toolset import CallScope
from denizen.skill import ArchiveLookup
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import ManualClock
from tests.memory_channel import MemoryChannel
from tests.memory_platform import START, MemoryPlatform

ADA, BOB = AgentName("ada"), AgentName("bob")
DISCORD = "discord"


class CrashError(BaseException):
    """The process dies."""


class CrashingArchiveStore:
    """A store whose process dies when it is about to commit its `dies_at`th writing, counted from 1."""

    def __init__(self, store: TemporaryStore, dies_at: int) -> None:
        self._store = store
        self._left = dies_at

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[UnitOfWork]:
        return self._work(write=write)

    async def aclose(self) -> None:
        await self._store.aclose()

    @asynccontextmanager
    async def _work(self, *, write: bool) -> AsyncGenerator[UnitOfWork]:
        async with self._store.work(write=write) as work:
            yield work
            self._left -= write
            if write and not self._left:
                raise CrashError


@dataclass
class ArchiveFixture:
    """Ana, Bea and Kim talk in #general; Bea and Kim in #staff, where Bea moderates; Ana has a direct talk with Ada."""

    policy: ArchivePolicy = field(default_factory=lambda: ArchivePolicy(post_links={"discord": POST_LINK}))
    store: TemporaryStore = field(default_factory=TemporaryStore)
    platform: MemoryPlatform = field(default_factory=MemoryPlatform)
    clock: ManualClock = field(default_factory=lambda: ManualClock(START + timedelta(hours=1)))
    embedder: Embedder | None = None
    budgets: BudgetPolicy = field(default_factory=BudgetPolicy)
    zone: tzinfo = UTC

    def __post_init__(self) -> None:
        self.ada = MemoryChannel(self.platform, ADA)
        for key, name in (("ana", "Ana"), ("bea", "Bea"), ("kim", "Kim")):
            self.platform.add_person(key, name)
        self.general = self.platform.add_room("general")
        self.staff = self.platform.add_room("staff", readers=["bea", "kim", self.ada.user_id])
        self.plans = self.platform.add_room("plans", RoomKind.THREAD, parent=self.staff)
        self.direct = self.platform.add_room("", RoomKind.DIRECT, readers=["ana", self.ada.user_id])
        self.platform.set_moderators(self.staff, ["bea"])
        self.channels = ConnectedAccounts()
        self.channels.add(self.ada)
        self.restart()

    def restart(self, store: Store | None = None) -> None:
        """As a new process on the same store."""
        using = store or self.store
        self.mirror = ArchiveMirror(using, lambda: self.policy, self.clock)
        self.privacy = ArchiveRemoval(self.mirror, self.clock)
        self.retention = ArchiveRetention(using, lambda: self.policy, self.clock, sleep=self.clock.sleep)
        self.backfiller = Backfiller(using, self.mirror, self.clock, sleep=self.clock.sleep)
        budgeted = BudgetedEmbedder(lambda: self.embedder, EmbeddingBudget(using, self.clock, lambda: self.budgets))
        self.post_embedder = PostEmbedder(using, budgeted, lambda: self.policy, self.clock, sleep=self.clock.sleep)
        search = ArchiveSearch(using, self.mirror, budgeted)
        self.lookup = ArchiveLookups(
            using,
            self.channels,
            self.mirror,
            search,
            clock=self.clock,
            members=MemberDirectory(using, self.channels, self.clock, DISCORD),
            zone_of=lambda _: self.zone,
        )

    def rooms(self, account: MemoryChannel | None = None) -> list[Room]:
        """Those that the account reads."""
        user = (account or self.ada).user_id
        return [self.platform.get_room(key) for key in self.platform.rooms if self.platform.may_read(key, user)]

    async def mirror_all(self) -> None:
        """Everything that was written so far."""
        await self.mirror.rooms(self.rooms())
        for key in self.platform.rooms:
            posts = self.platform.list_posts(key)
            await self.mirror.keep(posts, await self.ada.find_roles(key, {post.author.id for post in posts}))

    async def backfill(self, account: MemoryChannel | None = None) -> list[BackfillProgress]:
        reports: list[BackfillProgress] = []
        account = account or self.ada
        await self.backfiller.run(account, self.rooms(account), reports.append, roles_of=account.find_roles)
        return reports

    async def listed(self, room: Room) -> list[str]:
        """The texts that the archive lists of a room, oldest first."""
        async with self.store.work(write=False) as work:
            posts = await work.archive.list_posts(DISCORD, room.id, limit=100_000)
        return [post.text for post in posts]

    async def find(self, post: Post) -> Post | None:
        async with self.store.work(write=False) as work:
            return await work.archive.find(DISCORD, post.id)

    async def versions(self, post: Post) -> Sequence[str]:
        async with self.store.work(write=False) as work:
            return [version.text for version in await work.archive.list_versions(DISCORD, post.id)]

    def ask(self, who: str, room: Room, *, agent: AgentName = ADA) -> ArchiveLookup:
        """The archive as it answers somebody in a room."""
        return self.lookup.open(scope_for(who, room.place, agent=agent))


def scope_for(
    who: str, place: Place, *, agent: AgentName = ADA, kind: PrincipalKind = PrincipalKind.PLATFORM_USER
) -> CallScope:
    return CallScope(
        agent=agent,
        principal=Principal(kind, f"discord:{who}", who.title()),
        place=place,
        session_id=SessionId("sess_1"),
        turn_id=TurnId("turn_1"),
    )

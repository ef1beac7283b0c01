"""A keeper of memories with rooms and people around it, and an embedder that knows some words, for tests of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

from denizen.builtin_skills import load_builtin
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId, derive
from denizen.domain.json import JsonObject
from denizen.domain.memory import RecallPolicy
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import Room, RoomKind
from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.usage import Usage
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.ports.embed import EmbeddingResult, EmbedKind
from denizen.ports.toolset import CallOptions, CallScope
from denizen.skill import ScopedServices, SkillToolset
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import ManualClock
from tests.memory_channel import MemoryChannel
from tests.memory_platform import MemoryPlatform
from tests.skill_fixture import ServicesFixture

ADA = AgentName("ada")
ANA = Principal(PrincipalKind.PLATFORM_USER, "discord:ana", "Ana")
BOB = Principal(PrincipalKind.PLATFORM_USER, "discord:bob", "Bob")
OWNER = Principal(PrincipalKind.PLATFORM_USER, "discord:zoe", "Zoe", frozenset({"owner"}))
LOCAL = Principal(PrincipalKind.LOCAL, "operator", "operator", frozenset({"owner"}))

MEANINGS = {"animal": ("dog", "cat", "pet", "bella"), "drink": ("tea", "coffee", "thirsty"), "sum": ("tax", "invoice")}


@dataclass
class WordEmbedder:
    """Knows what a few words are about: one dimension for each meaning, and one for everything else."""

    name: str = "words/1"
    error: DenizenError | None = None
    usd_per_token: Decimal | None = Decimal(0)
    asked: list[tuple[str, EmbedKind]] = field(default_factory=list)

    async def estimate_cost_usd(self, tokens: int) -> Decimal | None:
        return None if self.usd_per_token is None else tokens * self.usd_per_token

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
        if self.error is not None:
            raise self.error
        self.asked += [(text, kind) for text in texts]
        tokens = sum(len(text.split()) for text in texts)
        usage = Usage(tokens, cost_usd=await self.estimate_cost_usd(tokens), requests=1)
        return EmbeddingResult([self._vector(text.casefold()) for text in texts], usage)

    async def aclose(self) -> None:
        pass

    @staticmethod
    def _vector(text: str) -> list[float]:
        found = [float(sum(word in text for word in words)) for words in MEANINGS.values()]
        return [*found, 0.0 if any(found) else 1.0]


def build_memory_skill(keeper: MemoryKeeper, root: Path) -> SkillToolset:
    """The skill over that keeper."""
    services = replace(
        ServicesFixture(root).services(),
        scoped=ScopedServices(open_memory=keeper.open, open_call_log=keeper.open_call_log),
    )
    return SkillToolset(load_builtin("memory"), services)


@dataclass
class MemoryFixture:
    """Rooms: `general` for everybody, `staff` for Ana, Zoe and the account, `dm` of Ana."""

    root: Path
    store: TemporaryStore = field(default_factory=TemporaryStore)
    platform: MemoryPlatform = field(default_factory=MemoryPlatform)
    clock: ManualClock = field(default_factory=ManualClock)
    channels: ConnectedAccounts = field(default_factory=ConnectedAccounts)
    embedder: WordEmbedder | None = None
    policy: RecallPolicy = field(default_factory=RecallPolicy)
    keeper: MemoryKeeper = field(init=False)
    tools: SkillToolset = field(init=False)
    turns: int = 0

    def __post_init__(self) -> None:
        for person in ("ana", "bob", "zoe"):
            self.platform.add_person(person, person.title())
        self.general = self.platform.add_room("general")
        self.staff = self.platform.add_room("staff", readers=["ana", "zoe", "bot-ada"])
        self.dm = self.platform.add_room("ana", RoomKind.DIRECT, readers=["ana", "bot-ada"])
        self.channel = MemoryChannel(self.platform, ADA)
        self.channels.add(self.channel)
        self.keeper = MemoryKeeper(
            self.store,
            self.channels,
            self.clock,
            embedder=BudgetedEmbedder(lambda: self.embedder),
            policy=lambda: self.policy,
        )
        self.tools = build_memory_skill(self.keeper, self.root)

    async def open_rooms(self) -> None:
        """As listeners do when their account is ready."""
        async with self.store.work() as work:
            for room in self.platform.rooms.values():
                await work.archive.put_room(room)

    def scope(self, who: Principal = ANA, where: Room | Place | None = None, *, key: str = "") -> CallScope:
        """Of a turn of its own."""
        self.turns += 1
        place = where if isinstance(where, Place) else (where or self.general).place
        turn = TurnId(derive("turn", str(self.turns)))
        return CallScope(
            agent=ADA,
            principal=who,
            place=place,
            session_id=SessionId("sess"),
            turn_id=turn,
            account=ADA,
            options=CallOptions(idempotency_key=key or f"k{self.turns}"),
        )

    async def call(
        self, tool: str, args: JsonObject, who: Principal = ANA, where: Room | Place | None = None
    ) -> ToolResult:
        return await self.tools.call(ToolCall(CallId("c"), tool, args), self.scope(who, where))

    async def tell(
        self, text: str, who: Principal = ANA, where: Room | Place | None = None, *, about: str = "user"
    ) -> str:
        """The id of what is remembered then."""
        result = await self.call("remember", {"text": text, "about": about}, who, where)
        assert not result.is_error, result.text
        return result.text.removeprefix("Remembered as ").rstrip(".")

    async def found(self, words: str, who: Principal = ANA, where: Room | Place | None = None) -> list[str]:
        """The texts that come up."""
        return [memory.text for memory in await self.keeper.recall(self.scope(who, where), words, limit=9)]

"""The memory keeper: writes memories down, finds them again, and limits them to those who may hear of them.

The rule is in `domain/memory`; here it is found out who reads. A place is private when nobody but the one who asks
reads there: the terminal, the web page, a direct talk. Behind the API may be any number of people, whoever has the key,
so what is told there comes up in that conversation only.

What is told anew is another memory, told where that was said: nobody else hears what is new, and the older one comes up
nowhere any more. It is superseded, by whoever says which one (`update`), or since it told of the same thing
(`domain/fact`). Skills get here through `denizen.skill.MemoryAccess`, turns through `MemoryKeeper.recall`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import field, replace
from datetime import datetime

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded, NotAllowed, NotFound
from denizen.domain.fact import find_superseded
from denizen.domain.ids import AgentName, derive
from denizen.domain.memory import (
    CORE,
    ID_CHARS,
    MAX_CHARS,
    MAX_MEMORIES,
    Audience,
    Memory,
    RecallPolicy,
    may_come_up,
    needs_rooms,
    rank_memories,
)
from denizen.domain.principal import PrincipalKind, RoleName
from denizen.domain.record import record
from denizen.domain.room import RoomKind
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.ports.memory import MEMORY_VECTORS, StoredVector
from denizen.ports.store import Store, UnitOfWork
from denizen.ports.toolset import CallScope
from denizen.skill import MemoryAccess, MemoryItem, PastToolCall, ToolCallLog

SEARCHED_CALLS = 500

EMBEDDED_AT_ONCE = 16
EMBED_PAUSE_S = 30.0
"""Between two looks at what has no vector yet."""

_log = logging.getLogger("denizen.memory")


@record
class MemoryKeeper:
    """One for a process."""

    store: Store
    channels: ConnectedAccounts
    clock: Clock
    embedder: BudgetedEmbedder = field(default_factory=BudgetedEmbedder)
    policy: Callable[[], RecallPolicy] = field(default=RecallPolicy)
    written: Callable[[AgentName, str], Awaitable[str]] | None = None
    """Loads what people wrote about a principal, by its key, for an agent."""

    def open(self, scope: CallScope) -> MemoryAccess:
        """The memory as this call may see and change it. Nothing is asked yet."""
        return _ScopedMemory(self, scope)

    def open_call_log(self, scope: CallScope) -> ToolCallLog:
        """Opens the agent's own actions, as this call may see them: in rooms that all readers see, and in private all
        that was done for the same person.
        """
        return _ScopedMemory(self, scope)

    async def load_written(self, agent: AgentName, principal: str) -> str:
        """Empty when nothing is."""
        return await self.written(agent, principal) if self.written else ""

    async def recall(
        self, scope: CallScope, question: str, *, limit: int, before: datetime | None = None
    ) -> list[Memory]:
        """Returns the memories that fit the question and may come up where it was asked, the best first. With `before`
        those that counted then, so that a turn that runs again finds what it found.
        """
        known = await self.list_known(scope, at=before)
        if not known or not question.strip():
            return []
        return rank_memories(question, known, await self._find_similar(scope, question))[: max(limit, 0)]

    async def list_known(self, scope: CallScope, *, at: datetime | None = None) -> list[Memory]:
        """The user's and the core memories that may come up, newest first: those that count, or counted `at` a time."""
        async with self.store.work(write=False) as work:
            found = [
                memory
                for owner in (scope.principal.key, CORE)
                for memory in await work.memories.list_memories(
                    agent=scope.agent, owner=owner, since=at, limit=2 * MAX_MEMORIES
                )
                if at is None or memory.counts_at(at)
            ]
            hearing = await _find_hearing(work, scope) if found else None
        if hearing is None:
            return []
        known = sorted(found, key=lambda memory: memory.created_at, reverse=True)
        if needs_rooms(known, hearing):
            hearing = replace(hearing, rooms=await self.find_rooms(scope))
        return [memory for memory in known if may_come_up(memory, hearing)]

    async def find_rooms(self, scope: CallScope) -> frozenset[str]:
        """Those that everybody who reads the place may see now, its own among them. A public thread that is not seen
        by itself (it may be archived) is seen with its channel. Its own alone, when nothing else is sure.
        """
        platform, own = scope.place.platform, scope.place.thread or scope.place.channel
        channel = self.channels.find(platform, scope.account or scope.agent)
        if channel is None:
            return frozenset({own})
        try:
            seen = await channel.visible_rooms(scope.place, scope.principal)
        except DenizenError as error:
            about = {"place": str(scope.place), **error.fields}
            _log.warning("who reads is not known: %s", error.message, extra=about)
            return frozenset({own})
        async with self.store.work(write=False) as work:
            rooms = await work.archive.list_rooms(platform)
        threads = {room.id for room in rooms if room.kind is RoomKind.THREAD and room.parent in seen}
        return seen | threads | {own}

    async def add(self, memory: Memory, *, replaces: Collection[str] = (), name: str = "") -> Memory:
        """Adds the memory and supersedes those that it replaces: the ids in `replaces`, and what its owner, who is
        called `name`, told of the same thing before. Of the same text told in the same place the older one stays, and
        is returned. Raises InvalidInput and LimitExceeded.
        """
        memory = replace(memory, text=_checked(memory.text))
        async with self.store.work() as work:
            known = await work.memories.list_memories(agent=memory.agent, owner=memory.owner, limit=MAX_MEMORIES)
            same = next((each for each in known if (each.text, each.told_at) == (memory.text, memory.told_at)), None)
            told = find_superseded(memory.text, [(each.id, each.text) for each in known], name)
            superseded = {*told, *replaces} & {each.id for each in known}
            if same is not None:
                await work.memories.supersede(superseded, by=same.id, at=memory.created_at)
                return same
            if len(known) - len(superseded) >= MAX_MEMORIES:
                raise LimitExceeded(
                    f"There is no room for more than {MAX_MEMORIES} memories.",
                    code="memory_full",
                    fix="Forget some that are of no use any more.",
                )
            await work.memories.add(memory)
            if superseded:
                await work.memories.supersede(superseded, by=memory.id, at=memory.created_at)
                await _cut_history(work, memory)
        await self.embed([memory])
        return memory

    async def embed(self, memories: Sequence[Memory]) -> bool:
        """Makes their vectors, when there is an embedder; False when it did not answer, and it is done later."""
        embedded = await self.embedder.embed_texts([memory.text for memory in memories])
        if embedded is None:
            return False
        rows = [
            StoredVector(MEMORY_VECTORS, memory_namespace(memory.agent, memory.owner), memory.id, embedded.model, data)
            for memory, data in zip(memories, embedded.vectors, strict=True)
        ]
        async with self.store.work() as work:
            there = [row for row, memory in zip(rows, memories, strict=True) if await _is_still(work, memory)]
            await work.vectors.put(there)
        return True

    async def keep_embedded(self) -> None:
        """Until it is cancelled: makes the vectors that are missing, after a change of the model all of them."""
        tidy = ""
        while True:
            model = self.embedder.model
            if model:
                async with self.store.work(write=False) as work:
                    missing = await work.memories.list_without_vector(model, limit=EMBEDDED_AT_ONCE)
                if missing and await self.embed(missing):
                    continue
                if not missing and tidy != model:
                    async with self.store.work() as work:
                        await work.vectors.remove_other_models(MEMORY_VECTORS, model)
                    tidy = model
            await anyio.sleep(EMBED_PAUSE_S)

    async def _find_similar(self, scope: CallScope, question: str) -> dict[str, float]:
        """The similarity of those that are near enough in meaning, by id."""
        asked = await self.embedder.embed_question(question)
        if asked is None:
            return {}
        namespaces = [memory_namespace(scope.agent, scope.principal.key), memory_namespace(scope.agent, CORE)]
        async with self.store.work(write=False) as work:
            near = await work.vectors.find_nearest(
                MEMORY_VECTORS, namespaces, asked.model, asked.vector, limit=2 * MAX_MEMORIES
            )
        return {each.key: each.similarity for each in near if each.similarity >= self.policy().similarity}


def memory_namespace(agent: AgentName, owner: str) -> str:
    """Returns the name of the vector collection that is searched at once: one agent's memories of one owner."""
    return derive("namespace", agent, owner)


@record
class _ScopedMemory:
    """`denizen.skill.MemoryAccess`, and the deeds of the same scope."""

    keeper: MemoryKeeper
    scope: CallScope

    async def remember(self, text: str, *, core: bool = False) -> MemoryItem:
        return await self._write(text, CORE if core else self.scope.principal.key)

    async def recall(self, words: str, *, limit: int = 8) -> Sequence[MemoryItem]:
        return [_shown(memory) for memory in await self.keeper.recall(self.scope, words, limit=limit)]

    async def list(self, *, limit: int = 50) -> Sequence[MemoryItem]:
        return [_shown(memory) for memory in (await self.keeper.list_known(self.scope))[: max(limit, 0)]]

    async def update(self, memory_id: str, text: str) -> MemoryItem:
        """When an interrupted call runs again, the memory is superseded already, by the one that it made."""
        async with self.keeper.store.work(write=False) as work:
            old = await work.memories.find(memory_id.strip())
            mine = old is not None and old.superseded_by == self._find_key(text, old.owner)
        if old is None or not mine:
            old = await self._get(memory_id)
        return await self._write(text, old.owner, replaces=old)

    async def forget(self, memory_id: str) -> MemoryItem:
        memory = await self._get(memory_id)
        if memory.is_core and not _is_admin(self.scope):
            raise _core_is_for_admins()
        async with self.keeper.store.work() as work:
            await work.memories.remove([memory.id])
        return _shown(memory)

    async def search(self, words: str = "", *, limit: int = 20) -> Sequence[PastToolCall]:
        """`denizen.skill.ToolCallLog`."""
        scope = self.scope
        rooms = await self.keeper.find_rooms(scope)
        async with self.keeper.store.work(write=False) as work:
            asker = scope.principal if await is_private(work, scope) else None
            calls = await work.turns.list_calls_in(
                scope.agent, scope.place.platform, rooms, asker=asker, limit=SEARCHED_CALLS
            )
        deeds = [
            PastToolCall(
                each.tool_call.tool, each.created_at, each.outcome.state, each.outcome.duration_ms, each.turn_id
            )
            for each in calls
            if each.turn_id != scope.turn_id
        ]
        wanted = words.casefold().split()
        found = [deed for deed in deeds if all(word in f"{deed.tool} {deed.outcome}".casefold() for word in wanted)]
        return found[: max(limit, 0)]

    async def _write(self, text: str, owner: str, *, replaces: Memory | None = None) -> MemoryItem:
        keeper, scope = self.keeper, self.scope
        key = self._find_key(text, owner)
        async with keeper.store.work(write=False) as work:
            hearing = await _find_hearing(work, scope)
            done = await work.memories.find(key)
        if owner == CORE:
            _check_core(scope, hearing)
        if done is not None:
            return _shown(done)
        memory = Memory(
            id=key,
            agent=scope.agent,
            owner=owner,
            text=text,
            told_at=hearing.told_at,
            told_by=scope.principal.key,
            created_at=keeper.clock.now(),
            turn_id=scope.turn_id,
        )
        name = scope.principal.name if owner else ""
        return _shown(await keeper.add(memory, replaces=(replaces.id,) if replaces else (), name=name))

    def _find_key(self, text: str, owner: str) -> str:
        """The id of what this call writes: the same when it runs again."""
        scope = self.scope
        return derive("mem", scope.agent, owner, scope.options.idempotency_key or scope.turn_id, text)[:ID_CHARS]

    async def _get(self, memory_id: str) -> Memory:
        """The memory, or the one that is told instead of it."""
        known = await self.keeper.list_known(self.scope)
        async with self.keeper.store.work(write=False) as work:
            named = await work.memories.find(memory_id.strip())
        chosen = (named.superseded_by or named.id) if named else ""
        found = next((memory for memory in known if memory.id == chosen), None)
        if found is None:
            raise NotFound("There is no such memory here.", code="memory_not_found", fix="List or recall them first.")
        return found


async def _find_hearing(work: UnitOfWork, scope: CallScope) -> Audience:
    """Without the rooms, which are not free to ask for."""
    place = scope.place
    room = place.thread or place.channel
    return Audience(place.platform, room, await is_private(work, scope))


async def is_private(work: UnitOfWork, scope: CallScope) -> bool:
    """Whether nobody but the one who asks reads what is said there."""
    match scope.principal.kind:
        case PrincipalKind.LOCAL | PrincipalKind.WEB_USER:
            return scope.place.platform != "api"
        case PrincipalKind.API_KEY:
            return scope.place.platform == "web"
        case PrincipalKind.PLATFORM_USER:
            return await _is_direct(work, scope)
        case _:
            return False


async def _is_direct(work: UnitOfWork, scope: CallScope) -> bool:
    """As the rooms have it, or the turn, which then came from outside of any community."""
    if scope.place.thread:
        return False
    room = await work.archive.find_room(scope.place.platform, scope.place.channel)
    if room is not None:
        return room.kind is RoomKind.DIRECT
    turn = await work.turns.find(scope.turn_id)
    owed = turn.options.get("owed") if turn else None
    return isinstance(owed, dict) and not owed.get("guild")


async def _is_still(work: UnitOfWork, memory: Memory) -> bool:
    """Not forgotten or superseded while its vector was made."""
    now = await work.memories.find(memory.id)
    return now is not None and now.superseded_at is None


async def _cut_history(work: UnitOfWork, memory: Memory) -> None:
    """Keeps MAX_MEMORIES of what its owner told before."""
    told = await work.memories.list_memories(
        agent=memory.agent, owner=memory.owner, history=True, limit=3 * MAX_MEMORIES
    )
    superseded = [each for each in told if each.superseded_at is not None]
    await work.memories.remove([each.id for each in superseded[MAX_MEMORIES:]])


def _check_core(scope: CallScope, hearing: Audience) -> None:
    if not _is_admin(scope):
        raise _core_is_for_admins()
    if hearing.private or scope.principal.kind is not PrincipalKind.PLATFORM_USER:
        raise NotAllowed(
            "What everybody may hear of is not taken from a talk that others do not read.",
            code="memory_private",
            fix="Say it in a room where they are, or write `denizen memory add` or CORE_MEMORY.md.",
        )


def _is_admin(scope: CallScope) -> bool:
    return bool(scope.principal.roles & {RoleName.OWNER, RoleName.ADMIN})


def _core_is_for_admins() -> NotAllowed:
    return NotAllowed("Only owners and admins change what everybody may hear of.", code="memory_core")


def _checked(text: str) -> str:
    flat = " ".join(text.split())
    if not flat:
        raise InvalidInput("There is nothing to remember.", code="memory_empty", fix="Say it in a sentence.")
    if len(flat) > MAX_CHARS:
        raise InvalidInput(
            f"A memory has at most {MAX_CHARS} characters.", code="memory_long", fix="Say it in a sentence or two."
        )
    return flat


def _shown(memory: Memory) -> MemoryItem:
    return MemoryItem(memory.id, memory.text, memory.created_at, memory.is_core)

"""The store's promises about memories and vectors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.memory import CORE, Memory, ToldAt
from denizen.domain.vector import pack
from denizen.ports.memory import MEMORY_VECTORS, StoredVector
from denizen.ports.store import Store
from denizen.testing.store_records import AGENT, PLACE, PLATFORM, at, call_of, open_talk, turn_of

ANA, BOB = "platform_user:discord:1", "platform_user:discord:2"
OTHER = AgentName("other")
ROOM = ToldAt(PLATFORM, "general")


def memory_of(key: str, text: str = "", *, owner: str = ANA, agent: AgentName = AGENT, hours: float = 0) -> Memory:
    """Told by its owner; a core memory by Ana."""
    teller = owner or ANA
    return Memory(key, agent, owner, text or f"about {key}", ROOM, teller, at(hours), at(hours), TurnId("t1"))


async def fill(store: Store, *memories: Memory) -> None:
    async with store.work() as work:
        for memory in memories:
            assert await work.memories.add(memory)


async def ids(store: Store) -> list[str]:
    async with store.work(write=False) as work:
        return [memory.id for memory in await work.memories.list_memories()]


def vector_of(
    key: str, *values: float, shelf: str = "s", model: str = "m", collection: str = MEMORY_VECTORS
) -> StoredVector:
    return StoredVector(collection, shelf, key, model, pack(values))


@pytest.mark.anyio
class MemoriesContract:
    @pytest.mark.proves("V27")
    async def test_memories_come_back_as_they_were_told_newest_first(self, store: Store) -> None:
        first = replace(memory_of("a", "likes tea \x00 \ud800"), told_at=ToldAt(PLATFORM, "dm", private=True))
        second = memory_of("b", owner=CORE, hours=-1)
        third = replace(memory_of("c", owner=BOB, agent=OTHER), told_at=ToldAt(), turn_id=TurnId(""))
        await fill(store, first, second, third)
        async with store.work(write=False) as work:
            assert await work.memories.list_memories() == [third, second, first]
            assert await work.memories.list_memories(agent=AGENT) == [second, first]
            assert await work.memories.list_memories(agent=AGENT, owner=ANA) == [first]
            assert await work.memories.list_memories(owner=CORE) == [second]
            assert await work.memories.list_memories(limit=1) == [third]
            assert await work.memories.list_memories(limit=0) == []
            assert await work.memories.find("a") == first
            assert await work.memories.find("none") is None

    async def test_a_memory_told_again_is_the_first_one(self, store: Store) -> None:
        await fill(store, memory_of("a"))
        async with store.work() as work:
            assert not await work.memories.add(memory_of("a", "another text"))
            assert await work.memories.find("a") == memory_of("a")

    async def test_a_changed_memory_keeps_everything_but_its_text_and_loses_its_vectors(self, store: Store) -> None:
        await fill(store, memory_of("a"), memory_of("b"))
        async with store.work() as work:
            await work.vectors.put([vector_of("a", 1, 0), vector_of("b", 0, 1)])
            new = replace(memory_of("a", "new"), told_at=ToldAt(PLATFORM, "r", private=True), updated_at=at(5))
            new = replace(new, told_by=BOB, turn_id=TurnId("t2"))
            assert await work.memories.change(replace(new, owner=BOB, agent=OTHER, created_at=at(9)))
            assert not await work.memories.change(replace(new, id="none"))
            assert await work.memories.find("a") == new
            near = await work.vectors.find_nearest(MEMORY_VECTORS, ["s"], "m", pack([1, 0]), limit=9)
            assert [each.key for each in near] == ["b"]

    async def test_removed_memories_are_gone_with_their_vectors(self, store: Store) -> None:
        await fill(store, memory_of("a"), memory_of("b"), memory_of("c"))
        async with store.work() as work:
            await work.vectors.put([vector_of(key, 1, 0) for key in "abc"])
            assert await work.memories.remove(["a", "c", "none"]) == 2
            assert await work.memories.remove([]) == 0
            near = await work.vectors.find_nearest(MEMORY_VECTORS, ["s"], "m", pack([1, 0]), limit=9)
            assert [each.key for each in near] == ["b"]
        assert await ids(store) == ["b"]

    async def test_who_is_forgotten_leaves_no_memory_behind(self, store: Store) -> None:
        """With every agent; what they told to all, too."""
        await fill(
            store, memory_of("a"), memory_of("b", agent=OTHER), memory_of("c", owner=CORE), memory_of("d", owner=BOB),
            replace(memory_of("e"), told_by="local:operator"),
        )  # fmt: skip
        async with store.work() as work:
            await work.vectors.put([vector_of(key, 1, 0) for key in "ad"])
            assert await work.memories.forget_teller(ANA) == 4
            assert await work.memories.forget_teller(ANA) == 0
            near = await work.vectors.find_nearest(MEMORY_VECTORS, ["s"], "m", pack([1, 0]), limit=9)
        assert (await ids(store), [each.key for each in near]) == (["d"], ["d"])

    async def test_memories_without_a_vector_of_a_model_are_found_oldest_first(self, store: Store) -> None:
        await fill(store, *(memory_of(key) for key in "abcd"))
        async with store.work() as work:
            await work.vectors.put([vector_of("b", 1, 0), vector_of("c", 1, 0, model="old")])
            await work.vectors.put([vector_of("d", 1, 0, collection="documents")])
        async with store.work(write=False) as work:
            assert [m.id for m in await work.memories.list_without_vector("m", limit=9)] == ["a", "c", "d"]
            assert [m.id for m in await work.memories.list_without_vector("m", limit=1)] == ["a"]

    async def test_the_nearest_vectors_of_the_shelves_come_first(self, store: Store) -> None:
        rows = [
            vector_of("same", 3, 0), vector_of("close", 1, 1), vector_of("across", 0, 1), vector_of("against", -1, 0),
            vector_of("two", 1, 0.1, shelf="s2"), vector_of("hidden", 1, 0, shelf="s3"),
            vector_of("old", 1, 0, model="old"), vector_of("foreign", 1, 0, collection="documents"),
        ]  # fmt: skip
        async with store.work() as work:
            await work.vectors.put(rows)
            await work.vectors.put([vector_of("close", 1, 1.1)])
            await work.vectors.put([])
        async with store.work(write=False) as work:
            near = await work.vectors.find_nearest(MEMORY_VECTORS, ["s", "s2"], "m", pack([1, 0]), limit=4)
            none = await work.vectors.find_nearest(MEMORY_VECTORS, [], "m", pack([1, 0]), limit=4)
        assert [each.key for each in near] == ["same", "two", "close", "across"]
        assert [round(each.similarity, 2) for each in near] == [1.0, 0.99, 0.67, 0.0]
        assert none == []

    async def test_vectors_of_other_models_are_removed_from_one_collection(self, store: Store) -> None:
        async with store.work() as work:
            await work.vectors.put([vector_of("a", 1, 0), vector_of("a", 1, 0, model="old")])
            await work.vectors.put([vector_of("a", 1, 0, model="old", collection="documents")])
            assert await work.vectors.remove_other_models(MEMORY_VECTORS, "m") == 1
            assert await work.vectors.remove_other_models(MEMORY_VECTORS, "m") == 0
            kept = await work.vectors.find_nearest("documents", ["s"], "old", pack([1, 0]), limit=9)
        assert [each.key for each in kept] == ["a"]

    async def test_an_agents_calls_are_listed_by_room_newest_first(self, store: Store) -> None:
        _, here = await open_talk(store)
        _, thread = await open_talk(store, Place(PLATFORM, PLACE.channel, "t1"))
        _, elsewhere = await open_talk(store, Place("web", PLACE.channel))
        turns = [turn_of(session, f"t-{session.id}") for session in (here, thread, elsewhere)]
        foreign = replace(turn_of(here, "t-other"), agent=OTHER)
        async with store.work() as work:
            for turn in (*turns, foreign):
                await work.turns.open(turn)
                for step in (1, 2):
                    await work.turns.add_call(call_of(turn, step, 0))
        async with store.work(write=False) as work:
            found = await work.turns.list_calls_in(AGENT, PLATFORM, [PLACE.channel], limit=9)
            both = await work.turns.list_calls_in(AGENT, PLATFORM, ["t1", PLACE.channel], limit=3)
            assert await work.turns.list_calls_in(AGENT, PLATFORM, [], limit=9) == []
            mine = await work.turns.list_calls_in(AGENT, "web", [], asker=turns[0].principal, limit=9)
            bobs = replace(turns[0].principal, id="2")
            assert await work.turns.list_calls_in(AGENT, PLATFORM, [], asker=bobs, limit=9) == []
        assert found == [call_of(turns[0], 2, 0), call_of(turns[0], 1, 0)]
        assert {call.turn_id for call in both} == {turns[0].id, turns[1].id}
        assert len(both) == 3
        assert {call.turn_id for call in mine} == {turns[2].id}

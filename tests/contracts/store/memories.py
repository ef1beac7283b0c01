"""The contract of the store for memories, their vectors, and the vectors of posts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.memory import CORE, Memory, MemoryOrigin
from denizen.domain.room import Post, PostChanges
from denizen.domain.vector import pack_vector
from denizen.ports.archive import POST_VECTORS, PendingEmbeddings, post_vector_key, room_namespace
from denizen.ports.memory import MEMORY_VECTORS, MemorySearch, StoredVector
from denizen.ports.store import Store, UnitOfWork
from tests.contracts.store.records import AGENT, PLACE, PLATFORM, at, make_call, make_post, make_turn, open_conversation

ANA, BOB = "platform_user:discord:1", "platform_user:discord:2"
OTHER_AGENT = AgentName("other")
ROOM = MemoryOrigin(PLATFORM, "general")


def make_memory(key: str, text: str = "", *, owner: str = ANA, agent: AgentName = AGENT, hours: float = 0) -> Memory:
    """Told by its owner; a core memory by Ana."""
    teller = owner or ANA
    return Memory(key, agent, owner, text or f"about {key}", ROOM, teller, at(hours), TurnId("t1"))


async def add_memories(store: Store, *memories: Memory) -> None:
    async with store.work() as work:
        for memory in memories:
            assert await work.memories.add(memory)


async def list_memory_ids(store: Store) -> list[str]:
    async with store.work(write=False) as work:
        return [memory.id for memory in await work.memories.list_memories()]


def make_vector(
    key: str, *values: float, namespace: str = "s", model: str = "m", collection: str = MEMORY_VECTORS
) -> StoredVector:
    return StoredVector(collection, namespace, key, model, pack_vector(values))


@pytest.mark.anyio
class MemoriesContract:
    async def test_people_search_memories_by_words_owner_and_agent_a_part_at_a_time(self, store: Store) -> None:
        tea = replace(make_memory("a", "Likes 100% Tea"), told_at=MemoryOrigin(PLATFORM, "dm", private=True))
        core, other = make_memory("b", "tea is at five", owner=CORE), make_memory("c", "boats", agent=OTHER_AGENT)
        await add_memories(store, tea, core, other)
        async with store.work() as work:
            await work.memories.supersede(["b"], by="c", at=at(9))
        async with store.work(write=False) as work:

            async def ids(wanted: MemorySearch) -> list[str]:
                found = await work.memories.search(wanted)
                assert len(found) <= await work.memories.count(wanted)
                return [each.id for each in found]

            assert await ids(MemorySearch()) == ["c", "a"]
            assert await ids(MemorySearch(history=True, words="TEA")) == ["b", "a"]
            assert await ids(MemorySearch(words="tea discord:1")) == ["a"]
            assert await ids(MemorySearch(words="100%")) == ["a"]
            assert await ids(MemorySearch(words="%")) == ["a"]
            assert await ids(MemorySearch(words="likes boats")) == []
            assert await ids(MemorySearch(private=False)) == ["c"]
            assert await ids(MemorySearch(agent=AGENT)) == ["a"]
            assert await ids(MemorySearch(owner=CORE, history=True)) == ["b"]
            assert await ids(MemorySearch(history=True, first=1, limit=1)) == ["b"]
            assert await work.memories.count(MemorySearch(history=True, first=1, limit=1)) == 3

    @pytest.mark.proves("V27")
    async def test_memories_come_back_as_they_were_told_newest_first(self, store: Store) -> None:
        first = replace(make_memory("a", "likes tea \x00 \ud800"), told_at=MemoryOrigin(PLATFORM, "dm", private=True))
        second = make_memory("b", owner=CORE, hours=-1)
        third = replace(make_memory("c", owner=BOB, agent=OTHER_AGENT), told_at=MemoryOrigin(), turn_id=TurnId(""))
        await add_memories(store, first, second, third)
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
        await add_memories(store, make_memory("a"))
        async with store.work() as work:
            assert not await work.memories.add(make_memory("a", "another text"))
            assert await work.memories.find("a") == make_memory("a")

    @pytest.mark.proves("V27")
    async def test_a_superseded_memory_is_history_and_leads_to_the_one_that_is_told_instead(self, store: Store) -> None:
        await add_memories(store, *(make_memory(key, hours=hours) for hours, key in enumerate("abc")))
        await add_memories(store, make_memory("other"))
        async with store.work() as work:
            await work.vectors.put([make_vector("a", 1, 0), make_vector("other", 1, 0)])
            assert await work.memories.supersede(["a", "none"], by="b", at=at(1)) == 1
            assert await work.memories.supersede(["a", "b"], by="c", at=at(2)) == 1
            assert await work.memories.supersede([], by="c", at=at(2)) == 0
            assert await work.memories.supersede(["c"], by="c", at=at(3)) == 0
        first = replace(make_memory("a", hours=0), superseded_by="c", superseded_at=at(1))
        second = replace(make_memory("b", hours=1), superseded_by="c", superseded_at=at(2))
        async with store.work(write=False) as work:
            assert await work.memories.find("a") == first
            assert [m.id for m in await work.memories.list_memories()] == ["other", "c"]
            assert [m.id for m in await work.memories.list_memories(agent=AGENT, owner=ANA)] == ["other", "c"]
            assert [m.id for m in await work.memories.list_memories(since=at(1))] == ["other", "c", "b"]
            assert [m.id for m in await work.memories.list_memories(since=at(0.5))] == ["other", "c", "b", "a"]
            everything = await work.memories.list_memories(history=True, owner=ANA)
            assert everything[1:] == [make_memory("c", hours=2), second, first]
            near = await work.vectors.find_nearest(MEMORY_VECTORS, ["s"], "m", pack_vector([1, 0]), limit=9)
            assert [each.key for each in near] == ["other"]
            assert [m.id for m in await work.memories.list_without_vector("m", limit=9)] == ["c"]

    async def test_a_removed_memory_takes_its_history_along_and_nothing_else(self, store: Store) -> None:
        await add_memories(store, *(make_memory(key) for key in "abcde"))
        async with store.work() as work:
            await work.memories.supersede(["a"], by="b", at=at(1))
            await work.memories.supersede(["b"], by="c", at=at(2))
            await work.memories.supersede(["d"], by="e", at=at(2))
            assert await work.memories.remove(["d"]) == 1
            assert await work.memories.remove(["c"]) == 3
        assert await list_memory_ids(store) == ["e"]

    async def test_removed_memories_are_gone_with_their_vectors(self, store: Store) -> None:
        await add_memories(store, make_memory("a"), make_memory("b"), make_memory("c"))
        async with store.work() as work:
            await work.vectors.put([make_vector(key, 1, 0) for key in "abc"])
            assert await work.memories.remove(["a", "c", "none"]) == 2
            assert await work.memories.remove([]) == 0
            near = await work.vectors.find_nearest(MEMORY_VECTORS, ["s"], "m", pack_vector([1, 0]), limit=9)
            assert [each.key for each in near] == ["b"]
        assert await list_memory_ids(store) == ["b"]

    async def test_who_is_forgotten_leaves_no_memory_behind(self, store: Store) -> None:
        """With every agent; what they told to all, too."""
        await add_memories(
            store,
            make_memory("a"),
            make_memory("b", agent=OTHER_AGENT),
            make_memory("c", owner=CORE),
            make_memory("d", owner=BOB),
            replace(make_memory("e"), told_by="local:operator"),
        )
        async with store.work() as work:
            await work.vectors.put([make_vector(key, 1, 0) for key in "ad"])
            assert await work.memories.forget_teller(ANA) == 4
            assert await work.memories.forget_teller(ANA) == 0
            near = await work.vectors.find_nearest(MEMORY_VECTORS, ["s"], "m", pack_vector([1, 0]), limit=9)
        assert (await list_memory_ids(store), [each.key for each in near]) == (["d"], ["d"])

    async def test_memories_without_a_vector_of_a_model_are_found_oldest_first(self, store: Store) -> None:
        await add_memories(store, *(make_memory(key) for key in "abcd"))
        async with store.work() as work:
            await work.vectors.put([make_vector("b", 1, 0), make_vector("c", 1, 0, model="old")])
            await work.vectors.put([make_vector("d", 1, 0, collection="documents")])
        async with store.work(write=False) as work:
            assert [m.id for m in await work.memories.list_without_vector("m", limit=9)] == ["a", "c", "d"]
            assert [m.id for m in await work.memories.list_without_vector("m", limit=1)] == ["a"]

    async def test_the_nearest_vectors_of_the_given_namespaces_come_first(self, store: Store) -> None:
        rows = [
            make_vector("same", 3, 0),
            make_vector("close", 1, 1),
            make_vector("across", 0, 1),
            make_vector("against", -1, 0),
            make_vector("two", 1, 0.1, namespace="s2"),
            make_vector("hidden", 1, 0, namespace="s3"),
            make_vector("old", 1, 0, model="old"),
            make_vector("foreign", 1, 0, collection="documents"),
        ]
        async with store.work() as work:
            await work.vectors.put(rows)
            await work.vectors.put([make_vector("close", 1, 1.1)])
            await work.vectors.put([])
        async with store.work(write=False) as work:
            near = await work.vectors.find_nearest(MEMORY_VECTORS, ["s", "s2"], "m", pack_vector([1, 0]), limit=4)
            none = await work.vectors.find_nearest(MEMORY_VECTORS, [], "m", pack_vector([1, 0]), limit=4)
        assert [each.key for each in near] == ["same", "two", "close", "across"]
        assert [round(each.similarity, 2) for each in near] == [1.0, 0.99, 0.67, 0.0]
        assert none == []

    async def test_vectors_of_other_models_are_removed_from_one_collection(self, store: Store) -> None:
        async with store.work() as work:
            await work.vectors.put([make_vector("a", 1, 0), make_vector("a", 1, 0, model="old")])
            await work.vectors.put([make_vector("a", 1, 0, model="old", collection="documents")])
            assert await work.vectors.remove_other_models(MEMORY_VECTORS, "m") == 1
            assert await work.vectors.remove_other_models(MEMORY_VECTORS, "m") == 0
            kept = await work.vectors.find_nearest("documents", ["s"], "old", pack_vector([1, 0]), limit=9)
        assert [each.key for each in kept] == ["a"]

    async def test_an_agents_calls_are_listed_by_room_newest_first(self, store: Store) -> None:
        _, here = await open_conversation(store)
        _, thread = await open_conversation(store, Place(PLATFORM, PLACE.channel, "t1"))
        _, elsewhere = await open_conversation(store, Place("web", PLACE.channel))
        turns = [make_turn(session, f"t-{session.id}") for session in (here, thread, elsewhere)]
        foreign = replace(make_turn(here, "t-other"), agent=OTHER_AGENT)
        async with store.work() as work:
            for turn in (*turns, foreign):
                await work.turns.open(turn)
                for step in (1, 2):
                    await work.turns.add_call(make_call(turn, step, 0))
        async with store.work(write=False) as work:
            found = await work.turns.list_calls_in(AGENT, PLATFORM, [PLACE.channel], limit=9)
            both = await work.turns.list_calls_in(AGENT, PLATFORM, ["t1", PLACE.channel], limit=3)
            assert await work.turns.list_calls_in(AGENT, PLATFORM, [], limit=9) == []
            mine = await work.turns.list_calls_in(AGENT, "web", [], asker=turns[0].principal, limit=9)
            bobs = replace(turns[0].principal, id="2")
            assert await work.turns.list_calls_in(AGENT, PLATFORM, [], asker=bobs, limit=9) == []
        assert found == [make_call(turns[0], 2, 0), make_call(turns[0], 1, 0)]
        assert {call.turn_id for call in both} == {turns[0].id, turns[1].id}
        assert len(both) == 3
        assert {call.turn_id for call in mine} == {turns[2].id}

    async def test_the_newest_calls_of_all_turns_are_listed_and_by_who_decided_about_them(self, store: Store) -> None:
        _, session = await open_conversation(store)
        old, new = (replace(make_turn(session, f"t{n}"), opened_at=at(n)) for n in (0, 1))
        judged = replace(make_call(new, 1, 0).outcome.verdict, decided_by="observer")
        by_observer = replace(make_call(new, 1, 0), outcome=replace(make_call(new, 1, 0).outcome, verdict=judged))
        async with store.work() as work:
            for turn in (old, new):
                await work.turns.open(turn)
            for each in (make_call(old, 1, 0), by_observer, make_call(new, 1, 1), make_call(new, 2, 0)):
                await work.turns.add_call(each)
        async with store.work(write=False) as work:
            everything = await work.turns.list_recent_calls(since=at(0), limit=9)
            newest = await work.turns.list_recent_calls(since=at(0), limit=2)
            late = await work.turns.list_recent_calls(since=at(0.5), limit=9)
            by_judges = await work.turns.list_recent_calls(since=at(0), judges=["observer", "x"], limit=9)
        calls = [make_call(new, 2, 0), make_call(new, 1, 1), by_observer, make_call(old, 1, 0)]
        assert (everything, newest, late, by_judges) == (calls, calls[:2], calls[:3], [by_observer])


ODD_MODEL = "m \ud800\x00"
"""The name of a model."""
DATA = pack_vector([1, 0])


def make_talk(key: str, text: str = "we open at nine", *, room: str = "10", author: str = "1") -> Post:
    return make_post(key, text, room=room, author=author)


async def archive_posts(store: Store, *posts: Post) -> None:
    async with store.work() as work:
        await work.archive.put(posts)


async def find_missing(store: Store, model: str = "m", *, limit: int = 9) -> PendingEmbeddings:
    async with store.work(write=False) as work:
        return await work.post_embeddings.find_missing(model, limit=limit)


async def put_vectors(store: Store, missing: PendingEmbeddings) -> int:
    async with store.work() as work:
        return await work.post_embeddings.put(missing, [DATA for _ in missing.posts])


async def embed_missing(store: Store, model: str = "m") -> list[str]:
    """Vectors to all that need one; their ids in the order in which they came."""
    given: list[str] = []
    while not (missing := await find_missing(store, model, limit=3)).is_end:
        await put_vectors(store, missing)
        given += [post.id for post in missing.posts]
    return given


async def find_near(store: Store, *rooms: str, model: str = "m") -> list[str]:
    """Keys of the vectors in the namespaces of these rooms."""
    namespaces = [room_namespace(PLATFORM, room) for room in rooms or ("10",)]
    async with store.work(write=False) as work:
        near = await work.vectors.find_nearest(POST_VECTORS, namespaces, model, DATA, limit=5000)
    return sorted(each.key.partition(":")[2] for each in near)


Act = Callable[[UnitOfWork], Awaitable[object]]

GOING: dict[str, Act] = {
    "deleted": lambda work: work.archive.mark_deleted(PLATFORM, ["1", "none"], at=at(3)),
    "of a deleted room": lambda work: work.archive.mark_room_deleted(PLATFORM, "10", at=at(3), limit=9),
    "told of as deleted": lambda work: work.archive.put(
        [replace(make_talk("1"), changes=PostChanges(deleted_at=at(3)))]
    ),
    "edited": lambda work: work.archive.put([replace(make_talk("1", "ok"), changes=PostChanges(edited_at=at(3)))]),
    "moved": lambda work: work.archive.put([replace(make_talk("1", room="20"), changes=PostChanges(edited_at=at(3)))]),
    "forgotten": lambda work: work.archive.forget_posts(PLATFORM, ["1"]),
    "of a forgotten author": lambda work: work.archive.forget_author(PLATFORM, "7"),
    "of a forgotten room": lambda work: work.archive.forget_room(PLATFORM, "10"),
    "too old": lambda work: work.archive.forget_before(PLATFORM, at(9), limit=1),
}
"""The changes that remove the vectors of post 1."""


@pytest.mark.anyio
class PostEmbeddingContract:
    async def test_posts_that_say_something_get_a_vector_in_the_order_of_arrival(self, store: Store) -> None:
        posts = [
            make_talk("9"),
            make_talk("3", "ok then"),
            make_talk("5", "明日は九時に開きます"),
            make_talk("4", "one two three"),
        ]
        gone = replace(make_talk("6"), changes=PostChanges(deleted_at=at(1)))
        await archive_posts(store, *posts[:2], gone)
        assert await embed_missing(store) == ["9"]
        await archive_posts(store, *posts[2:], make_talk("7", ""), make_talk("8", "\ud800 \x00 !? :-)"))
        assert sorted(await embed_missing(store)) == ["4", "5"]
        assert await embed_missing(store) == []
        assert await find_near(store) == ["4", "5", "9"]

    async def test_many_posts_get_one_a_few_at_a_time(self, store: Store) -> None:
        posts = [make_talk(str(1000 + n), "one two three four" if n % 3 else "ok") for n in range(700)]
        await archive_posts(store, *posts)
        rounds = 0
        while not (missing := await find_missing(store, limit=90)).is_end:
            assert len(missing.posts) <= 90
            await put_vectors(store, missing)
            rounds += 1
        assert rounds < 20
        async with store.work(write=False) as work:
            assert await work.post_embeddings.count("m") == 466
            assert await work.post_embeddings.count("other") == 0

    async def test_posts_of_two_platforms_with_one_id_do_not_meet(self, store: Store) -> None:
        await archive_posts(store, make_talk("1"))
        await archive_posts(store, replace(make_talk("1", "they close at ten"), platform="other"))
        assert len(await embed_missing(store)) == 2
        async with store.work() as work:
            await work.archive.forget_posts("other", ["1"])
            await work.archive.mark_deleted("other", ["1"], at=at(2))
            assert await work.post_embeddings.count("m") == 1
        assert await find_near(store) == ["1"]

    @pytest.mark.parametrize("how", GOING)
    async def test_a_vector_goes_with_what_it_was_made_of(self, store: Store, how: str) -> None:
        others = [
            make_talk("2", author="8", room="30"),
            replace(make_talk("3", author="8", room="30"), created_at=at(20)),
        ]
        await archive_posts(store, make_talk("1", author="7"), *others)
        await embed_missing(store)
        await embed_missing(store, "other")
        async with store.work() as work:
            await GOING[how](work)
        for model in ("m", "other"):
            assert await find_near(store, model=model) == []
            assert await find_near(store, "30", model=model) == ["2", "3"]

    @pytest.mark.parametrize("how", GOING)
    async def test_a_unit_that_fails_takes_no_vector(self, store: Store, how: str) -> None:
        await archive_posts(store, make_talk("1", author="7"))
        await embed_missing(store)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - all of it is to be undone
            async with store.work() as work:
                await GOING[how](work)
                raise ZeroDivisionError
        assert await find_near(store) == ["1"]

    @pytest.mark.parametrize("how", GOING)
    async def test_what_goes_while_its_vector_is_made_gets_none(self, store: Store, how: str) -> None:
        await archive_posts(store, make_talk("1", author="7"))
        missing = await find_missing(store)
        assert [post.id for post in missing.posts] == ["1"]
        async with store.work() as work:
            await GOING[how](work)
        assert await put_vectors(store, missing) == 0
        assert await find_near(store, "10", "20") == []

    async def test_an_edited_post_gets_a_new_one_if_it_still_says_something(self, store: Store) -> None:
        await archive_posts(store, make_talk("1"), make_talk("2"), make_talk("3"))
        await embed_missing(store)
        await archive_posts(store, replace(make_talk("1", "we close at ten"), changes=PostChanges(edited_at=at(3))))
        missing = await find_missing(store)
        assert [(post.id, post.text) for post in missing.posts] == [("1", "we close at ten")]
        await archive_posts(store, replace(make_talk("1", "we close at noon"), changes=PostChanges(edited_at=at(4))))
        assert await put_vectors(store, missing) == 0
        assert await find_near(store) == ["2", "3"]
        assert await embed_missing(store) == ["1"]
        await archive_posts(
            store,
            replace(make_talk("1", "hm"), changes=PostChanges(edited_at=at(5))),
            replace(make_talk("2", room="20"), changes=PostChanges(edited_at=at(5))),
        )
        assert await embed_missing(store) == ["2"]
        assert await find_near(store) == ["3"]
        assert await find_near(store, "20") == ["2"]

    async def test_what_leaves_the_text_as_it_is_leaves_the_vector(self, store: Store) -> None:
        await archive_posts(store, make_talk("1"))
        await embed_missing(store)
        await archive_posts(
            store, make_talk("1"), replace(make_talk("1"), author=replace(make_talk("1").author, name="Bea"))
        )
        assert await find_near(store) == ["1"]
        assert await embed_missing(store) == []

    async def test_posts_after_a_forgotten_one_get_theirs(self, store: Store) -> None:
        """A database may use its position again."""
        await archive_posts(store, *[make_talk(str(n)) for n in range(1, 6)])
        await embed_missing(store)
        async with store.work() as work:
            await work.archive.forget_posts(PLATFORM, ["3", "4", "5"])
        await archive_posts(store, make_talk("6"), make_talk("7"), make_talk("8"), make_talk("9"))
        missing = await find_missing(store)
        async with store.work() as work:
            await work.archive.forget_posts(PLATFORM, ["8", "9"])
        await archive_posts(store, make_talk("10"))
        assert await put_vectors(store, missing) == 2
        assert await embed_missing(store) == ["10"]

    async def test_another_model_begins_anew_and_takes_the_place_of_the_first(self, store: Store) -> None:
        await archive_posts(store, make_talk("1"), make_talk("2"))
        for model, old in (("m", "none"), (ODD_MODEL, "m"), ("a", ODD_MODEL), ("m", "a")):
            assert sorted(await embed_missing(store, model)) == ["1", "2"]
            async with store.work() as work:
                await work.vectors.put([StoredVector("kept", "s", post_vector_key(PLATFORM, "1"), old, DATA)])
                while await work.post_embeddings.remove_others(model, limit=1):
                    pass
                assert await work.post_embeddings.count(old) == 0
                assert await work.post_embeddings.count(model) == 2
                assert len(await work.vectors.find_nearest("kept", ["s"], old, DATA, limit=9)) == 1
        async with store.work() as work:
            while await work.post_embeddings.remove_others("", limit=9):
                pass
        assert await find_near(store) == []
        assert sorted(await embed_missing(store)) == ["1", "2"]

    async def test_several_posts_are_read_by_their_ids(self, store: Store) -> None:
        await archive_posts(
            store,
            *[make_talk(key) for key in ("1", "2", "30")],
            replace(make_talk("4"), changes=PostChanges(deleted_at=at(1))),
        )

        async def read(platform: str, ids: Sequence[str]) -> list[str]:
            async with store.work(write=False) as work:
                return [post.id for post in await work.archive.find_many(platform, ids)]

        assert await read(PLATFORM, ["30", "none", "4", "1", "30", ODD_MODEL]) == ["30", "1"]
        assert await read("other", ["1"]) == await read(PLATFORM, []) == []

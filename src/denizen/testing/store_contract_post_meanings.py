"""The store's promises about vectors of posts: who needs one, and that they go with what they were made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from denizen.domain.room import Post
from denizen.domain.vector import pack
from denizen.ports.archive import POST_VECTORS, PendingEmbeddings, post_vector_key, room_namespace
from denizen.ports.memory import StoredVector
from denizen.ports.store import Store, UnitOfWork
from denizen.testing.store_records import PLATFORM, at, post_of

ODD = "m \ud800\x00"
"""The name of a model."""
DATA = pack([1, 0])


def talk(key: str, text: str = "we open at nine", *, room: str = "10", author: str = "1") -> Post:
    return post_of(key, text, room=room, author=author)


async def archive(store: Store, *posts: Post) -> None:
    async with store.work() as work:
        await work.archive.put(posts)


async def find(store: Store, model: str = "m", *, limit: int = 9) -> PendingEmbeddings:
    async with store.work(write=False) as work:
        return await work.post_embeddings.find_missing(model, limit=limit)


async def put(store: Store, missing: PendingEmbeddings) -> int:
    async with store.work() as work:
        return await work.post_embeddings.put(missing, [DATA for _ in missing.posts])


async def give(store: Store, model: str = "m") -> list[str]:
    """Vectors to all that need one; their ids in the order in which they came."""
    given: list[str] = []
    while not (missing := await find(store, model, limit=3)).is_end:
        await put(store, missing)
        given += [post.id for post in missing.posts]
    return given


async def found(store: Store, *rooms: str, model: str = "m") -> list[str]:
    """Keys of the vectors on the shelves of these rooms."""
    shelves = [room_namespace(PLATFORM, room) for room in rooms or ("10",)]
    async with store.work(write=False) as work:
        near = await work.vectors.find_nearest(POST_VECTORS, shelves, model, DATA, limit=5000)
    return sorted(each.key.partition(":")[2] for each in near)


Act = Callable[[UnitOfWork], Awaitable[object]]

GOING: dict[str, Act] = {
    "deleted": lambda work: work.archive.mark_deleted(PLATFORM, ["1", "none"], at=at(3)),
    "of a deleted room": lambda work: work.archive.mark_room_deleted(PLATFORM, "10", at=at(3), limit=9),
    "told of as deleted": lambda work: work.archive.put([replace(talk("1"), deleted_at=at(3))]),
    "edited": lambda work: work.archive.put([replace(talk("1", "ok"), edited_at=at(3))]),
    "moved": lambda work: work.archive.put([replace(talk("1", room="20"), edited_at=at(3))]),
    "forgotten": lambda work: work.archive.forget_posts(PLATFORM, ["1"]),
    "of a forgotten author": lambda work: work.archive.forget_author(PLATFORM, "7"),
    "of a forgotten room": lambda work: work.archive.forget_room(PLATFORM, "10"),
    "too old": lambda work: work.archive.forget_before(PLATFORM, at(9), limit=1),
}
"""What takes the vectors of post 1 away."""


@pytest.mark.anyio
class PostMeaningContract:
    async def test_posts_that_say_something_get_a_vector_in_the_order_of_arrival(self, store: Store) -> None:
        posts = [talk("9"), talk("3", "ok then"), talk("5", "明日は九時に開きます"), talk("4", "one two three")]
        gone = replace(talk("6"), deleted_at=at(1))
        await archive(store, *posts[:2], gone)
        assert await give(store) == ["9"]
        await archive(store, *posts[2:], talk("7", ""), talk("8", "\ud800 \x00 !? :-)"))
        assert sorted(await give(store)) == ["4", "5"]
        assert await give(store) == []
        assert await found(store) == ["4", "5", "9"]

    async def test_many_posts_get_one_a_few_at_a_time(self, store: Store) -> None:
        posts = [talk(str(1000 + n), "one two three four" if n % 3 else "ok") for n in range(700)]
        await archive(store, *posts)
        rounds = 0
        while not (missing := await find(store, limit=90)).is_end:
            assert len(missing.posts) <= 90
            await put(store, missing)
            rounds += 1
        assert rounds < 20
        async with store.work(write=False) as work:
            assert await work.post_embeddings.count("m") == 466
            assert await work.post_embeddings.count("other") == 0

    async def test_posts_of_two_platforms_with_one_id_do_not_meet(self, store: Store) -> None:
        await archive(store, talk("1"))
        await archive(store, replace(talk("1", "they close at ten"), platform="other"))
        assert len(await give(store)) == 2
        async with store.work() as work:
            await work.archive.forget_posts("other", ["1"])
            await work.archive.mark_deleted("other", ["1"], at=at(2))
            assert await work.post_embeddings.count("m") == 1
        assert await found(store) == ["1"]

    @pytest.mark.parametrize("how", GOING)
    async def test_a_vector_goes_with_what_it_was_made_of(self, store: Store, how: str) -> None:
        others = [talk("2", author="8", room="30"), replace(talk("3", author="8", room="30"), created_at=at(20))]
        await archive(store, talk("1", author="7"), *others)
        await give(store)
        await give(store, "other")
        async with store.work() as work:
            await GOING[how](work)
        for model in ("m", "other"):
            assert await found(store, model=model) == []
            assert await found(store, "30", model=model) == ["2", "3"]

    @pytest.mark.parametrize("how", GOING)
    async def test_a_unit_that_fails_takes_no_vector(self, store: Store, how: str) -> None:
        await archive(store, talk("1", author="7"))
        await give(store)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - all of it is to be undone
            async with store.work() as work:
                await GOING[how](work)
                raise ZeroDivisionError
        assert await found(store) == ["1"]

    @pytest.mark.parametrize("how", GOING)
    async def test_what_goes_while_its_vector_is_made_gets_none(self, store: Store, how: str) -> None:
        await archive(store, talk("1", author="7"))
        missing = await find(store)
        assert [post.id for post in missing.posts] == ["1"]
        async with store.work() as work:
            await GOING[how](work)
        assert await put(store, missing) == 0
        assert await found(store, "10", "20") == []

    async def test_an_edited_post_gets_a_new_one_if_it_still_says_something(self, store: Store) -> None:
        await archive(store, talk("1"), talk("2"), talk("3"))
        await give(store)
        await archive(store, replace(talk("1", "we close at ten"), edited_at=at(3)))
        missing = await find(store)
        assert [(post.id, post.text) for post in missing.posts] == [("1", "we close at ten")]
        await archive(store, replace(talk("1", "we close at noon"), edited_at=at(4)))
        assert await put(store, missing) == 0
        assert await found(store) == ["2", "3"]
        assert await give(store) == ["1"]
        await archive(store, replace(talk("1", "hm"), edited_at=at(5)), replace(talk("2", room="20"), edited_at=at(5)))
        assert await give(store) == ["2"]
        assert await found(store) == ["3"]
        assert await found(store, "20") == ["2"]

    async def test_what_leaves_the_text_as_it_is_leaves_the_vector(self, store: Store) -> None:
        await archive(store, talk("1"))
        await give(store)
        await archive(store, talk("1"), replace(talk("1"), author=replace(talk("1").author, name="Bea")))
        assert await found(store) == ["1"]
        assert await give(store) == []

    async def test_posts_after_a_forgotten_one_get_theirs(self, store: Store) -> None:
        """A database may use its position again."""
        await archive(store, *[talk(str(n)) for n in range(1, 6)])
        await give(store)
        async with store.work() as work:
            await work.archive.forget_posts(PLATFORM, ["3", "4", "5"])
        await archive(store, talk("6"), talk("7"), talk("8"), talk("9"))
        missing = await find(store)
        async with store.work() as work:
            await work.archive.forget_posts(PLATFORM, ["8", "9"])
        await archive(store, talk("10"))
        assert await put(store, missing) == 2
        assert await give(store) == ["10"]

    async def test_another_model_begins_anew_and_takes_the_place_of_the_first(self, store: Store) -> None:
        await archive(store, talk("1"), talk("2"))
        for model, old in (("m", "none"), (ODD, "m"), ("a", ODD), ("m", "a")):
            assert sorted(await give(store, model)) == ["1", "2"]
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
        assert await found(store) == []
        assert sorted(await give(store)) == ["1", "2"]

    async def test_several_posts_are_read_by_their_ids(self, store: Store) -> None:
        await archive(store, *[talk(key) for key in ("1", "2", "30")], replace(talk("4"), deleted_at=at(1)))

        async def read(platform: str, ids: Sequence[str]) -> list[str]:
            async with store.work(write=False) as work:
                return [post.id for post in await work.archive.find_many(platform, ids)]

        assert await read(PLATFORM, ["30", "none", "4", "1", "30", ODD]) == ["30", "1"]
        assert await read("other", ["1"]) == await read(PLATFORM, []) == []

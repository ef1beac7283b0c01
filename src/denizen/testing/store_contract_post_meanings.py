"""The store's promises about vectors of posts: who needs one, and that they go with what they were made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from denizen.domain.room import Post
from denizen.domain.vector import pack
from denizen.ports.archive import POSTS, MissingMeanings, key_of, shelf_of
from denizen.ports.memory import Vector
from denizen.ports.store import Store, Work
from denizen.testing.store_records import PLATFORM, at, make_post

ODD_MODEL = "m \ud800\x00"
"""The name of a model."""
DATA = pack([1, 0])


def make_talk_post(key: str, text: str = "we open at nine", *, room: str = "10", author: str = "1") -> Post:
    return make_post(key, text, room=room, author=author)


async def archive_posts(store: Store, *posts: Post) -> None:
    async with store.work() as work:
        await work.archive.put(posts)


async def find_missing(store: Store, model: str = "m", *, limit: int = 9) -> MissingMeanings:
    async with store.work(write=False) as work:
        return await work.post_meanings.find_missing(model, limit=limit)


async def put_vectors(store: Store, missing: MissingMeanings) -> int:
    async with store.work() as work:
        return await work.post_meanings.put(missing, [DATA for _ in missing.posts])


async def embed_missing(store: Store, model: str = "m") -> list[str]:
    """Vectors to all that need one; their ids in the order in which they came."""
    given: list[str] = []
    while not (missing := await find_missing(store, model, limit=3)).is_end:
        await put_vectors(store, missing)
        given += [post.id for post in missing.posts]
    return given


async def find_near(store: Store, *rooms: str, model: str = "m") -> list[str]:
    """Keys of the vectors on the shelves of these rooms."""
    shelves = [shelf_of(PLATFORM, room) for room in rooms or ("10",)]
    async with store.work(write=False) as work:
        near = await work.vectors.find_nearest(POSTS, shelves, model, DATA, limit=5000)
    return sorted(each.key.partition(":")[2] for each in near)


Act = Callable[[Work], Awaitable[object]]

GOING: dict[str, Act] = {
    "deleted": lambda work: work.archive.mark_deleted(PLATFORM, ["1", "none"], at=at(3)),
    "of a deleted room": lambda work: work.archive.mark_room_deleted(PLATFORM, "10", at=at(3), limit=9),
    "told of as deleted": lambda work: work.archive.put([replace(make_talk_post("1"), deleted_at=at(3))]),
    "edited": lambda work: work.archive.put([replace(make_talk_post("1", "ok"), edited_at=at(3))]),
    "moved": lambda work: work.archive.put([replace(make_talk_post("1", room="20"), edited_at=at(3))]),
    "forgotten": lambda work: work.archive.forget_posts(PLATFORM, ["1"]),
    "of a forgotten author": lambda work: work.archive.forget_author(PLATFORM, "7"),
    "of a forgotten room": lambda work: work.archive.forget_room(PLATFORM, "10"),
    "too old": lambda work: work.archive.forget_before(PLATFORM, at(9), limit=1),
}
"""What takes the vectors of post 1 away."""


@pytest.mark.anyio
class PostEmbeddingContract:
    async def test_posts_that_say_something_get_a_vector_in_the_order_of_arrival(self, store: Store) -> None:
        posts = [
            make_talk_post("9"),
            make_talk_post("3", "ok then"),
            make_talk_post("5", "明日は九時に開きます"),
            make_talk_post("4", "one two three"),
        ]
        gone = replace(make_talk_post("6"), deleted_at=at(1))
        await archive_posts(store, *posts[:2], gone)
        assert await embed_missing(store) == ["9"]
        await archive_posts(store, *posts[2:], make_talk_post("7", ""), make_talk_post("8", "\ud800 \x00 !? :-)"))
        assert sorted(await embed_missing(store)) == ["4", "5"]
        assert await embed_missing(store) == []
        assert await find_near(store) == ["4", "5", "9"]

    async def test_many_posts_get_one_a_few_at_a_time(self, store: Store) -> None:
        posts = [make_talk_post(str(1000 + n), "one two three four" if n % 3 else "ok") for n in range(700)]
        await archive_posts(store, *posts)
        rounds = 0
        while not (missing := await find_missing(store, limit=90)).is_end:
            assert len(missing.posts) <= 90
            await put_vectors(store, missing)
            rounds += 1
        assert rounds < 20
        async with store.work(write=False) as work:
            assert await work.post_meanings.count("m") == 466
            assert await work.post_meanings.count("other") == 0

    async def test_posts_of_two_platforms_with_one_id_do_not_meet(self, store: Store) -> None:
        await archive_posts(store, make_talk_post("1"))
        await archive_posts(store, replace(make_talk_post("1", "they close at ten"), platform="other"))
        assert len(await embed_missing(store)) == 2
        async with store.work() as work:
            await work.archive.forget_posts("other", ["1"])
            await work.archive.mark_deleted("other", ["1"], at=at(2))
            assert await work.post_meanings.count("m") == 1
        assert await find_near(store) == ["1"]

    @pytest.mark.parametrize("how", GOING)
    async def test_a_vector_goes_with_what_it_was_made_of(self, store: Store, how: str) -> None:
        others = [
            make_talk_post("2", author="8", room="30"),
            replace(make_talk_post("3", author="8", room="30"), created_at=at(20)),
        ]
        await archive_posts(store, make_talk_post("1", author="7"), *others)
        await embed_missing(store)
        await embed_missing(store, "other")
        async with store.work() as work:
            await GOING[how](work)
        for model in ("m", "other"):
            assert await find_near(store, model=model) == []
            assert await find_near(store, "30", model=model) == ["2", "3"]

    @pytest.mark.parametrize("how", GOING)
    async def test_a_unit_that_fails_takes_no_vector(self, store: Store, how: str) -> None:
        await archive_posts(store, make_talk_post("1", author="7"))
        await embed_missing(store)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - all of it is to be undone
            async with store.work() as work:
                await GOING[how](work)
                raise ZeroDivisionError
        assert await find_near(store) == ["1"]

    @pytest.mark.parametrize("how", GOING)
    async def test_what_goes_while_its_vector_is_made_gets_none(self, store: Store, how: str) -> None:
        await archive_posts(store, make_talk_post("1", author="7"))
        missing = await find_missing(store)
        assert [post.id for post in missing.posts] == ["1"]
        async with store.work() as work:
            await GOING[how](work)
        assert await put_vectors(store, missing) == 0
        assert await find_near(store, "10", "20") == []

    async def test_an_edited_post_gets_a_new_one_if_it_still_says_something(self, store: Store) -> None:
        await archive_posts(store, make_talk_post("1"), make_talk_post("2"), make_talk_post("3"))
        await embed_missing(store)
        await archive_posts(store, replace(make_talk_post("1", "we close at ten"), edited_at=at(3)))
        missing = await find_missing(store)
        assert [(post.id, post.text) for post in missing.posts] == [("1", "we close at ten")]
        await archive_posts(store, replace(make_talk_post("1", "we close at noon"), edited_at=at(4)))
        assert await put_vectors(store, missing) == 0
        assert await find_near(store) == ["2", "3"]
        assert await embed_missing(store) == ["1"]
        await archive_posts(
            store,
            replace(make_talk_post("1", "hm"), edited_at=at(5)),
            replace(make_talk_post("2", room="20"), edited_at=at(5)),
        )
        assert await embed_missing(store) == ["2"]
        assert await find_near(store) == ["3"]
        assert await find_near(store, "20") == ["2"]

    async def test_what_leaves_the_text_as_it_is_leaves_the_vector(self, store: Store) -> None:
        await archive_posts(store, make_talk_post("1"))
        await embed_missing(store)
        await archive_posts(
            store,
            make_talk_post("1"),
            replace(make_talk_post("1"), author=replace(make_talk_post("1").author, name="Bea")),
        )
        assert await find_near(store) == ["1"]
        assert await embed_missing(store) == []

    async def test_posts_after_a_forgotten_one_get_theirs(self, store: Store) -> None:
        """A database may use its position again."""
        await archive_posts(store, *[make_talk_post(str(n)) for n in range(1, 6)])
        await embed_missing(store)
        async with store.work() as work:
            await work.archive.forget_posts(PLATFORM, ["3", "4", "5"])
        await archive_posts(store, make_talk_post("6"), make_talk_post("7"), make_talk_post("8"), make_talk_post("9"))
        missing = await find_missing(store)
        async with store.work() as work:
            await work.archive.forget_posts(PLATFORM, ["8", "9"])
        await archive_posts(store, make_talk_post("10"))
        assert await put_vectors(store, missing) == 2
        assert await embed_missing(store) == ["10"]

    async def test_another_model_begins_anew_and_takes_the_place_of_the_first(self, store: Store) -> None:
        await archive_posts(store, make_talk_post("1"), make_talk_post("2"))
        for model, old in (("m", "none"), (ODD_MODEL, "m"), ("a", ODD_MODEL), ("m", "a")):
            assert sorted(await embed_missing(store, model)) == ["1", "2"]
            async with store.work() as work:
                await work.vectors.put([Vector("kept", "s", key_of(PLATFORM, "1"), old, DATA)])
                while await work.post_meanings.remove_others(model, limit=1):
                    pass
                assert await work.post_meanings.count(old) == 0
                assert await work.post_meanings.count(model) == 2
                assert len(await work.vectors.find_nearest("kept", ["s"], old, DATA, limit=9)) == 1
        async with store.work() as work:
            while await work.post_meanings.remove_others("", limit=9):
                pass
        assert await find_near(store) == []
        assert sorted(await embed_missing(store)) == ["1", "2"]

    async def test_several_posts_are_read_by_their_ids(self, store: Store) -> None:
        await archive_posts(
            store, *[make_talk_post(key) for key in ("1", "2", "30")], replace(make_talk_post("4"), deleted_at=at(1))
        )

        async def read(platform: str, ids: Sequence[str]) -> list[str]:
            async with store.work(write=False) as work:
                return [post.id for post in await work.archive.find_many(platform, ids)]

        assert await read(PLATFORM, ["30", "none", "4", "1", "30", ODD_MODEL]) == ["30", "1"]
        assert await read("other", ["1"]) == await read(PLATFORM, []) == []

"""The store's promises about finding posts by their words, and counting them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from denizen.domain.message import Author
from denizen.domain.room import Post
from denizen.ports.archive import CountBy, PostCount, PostQuery
from denizen.ports.store import Store
from denizen.testing.store_contract_texts import ODD, SYNTAX
from denizen.testing.store_records import PLATFORM, at, make_post


async def archive_posts(store: Store, *posts: Post) -> None:
    async with store.work() as work:
        await work.archive.put(posts)


async def find_posts(store: Store, words: str, rooms: Sequence[str] = ("10",), **bounds: Any) -> list[str]:  # noqa: ANN401 - as `search` has them
    """Ids, as the search has them."""
    async with store.work(write=False) as work:
        hits = await work.archive.search(PostQuery(words, platform=PLATFORM, rooms=rooms, **bounds))
    return [hit.post.id for hit in hits]


@pytest.mark.anyio
class PostSearchContract:
    async def test_a_search_finds_posts_with_all_the_words_in_any_case_newest_first(self, store: Store) -> None:
        await archive_posts(
            store,
            make_post("99", "The Gateway fell over."),
            make_post("100", "GATEWAY? It fell, café says!"),
            make_post("101", "the gateway stands"),
            make_post("9", "fell\ngateway"),
        )
        assert await find_posts(store, "gateway FELL") == ["100", "99", "9"]
        assert await find_posts(store, "fell, the gateway!") == ["99"]
        assert await find_posts(store, "gateway", limit=2) == ["101", "100"]
        assert await find_posts(store, "CAFE") == await find_posts(store, "Café") == ["100"]
        assert await find_posts(store, "gateway zebra") == []
        assert await find_posts(store, "gateway", limit=0) == []
        assert await find_posts(store, "") == []

    async def test_a_search_looks_only_at_the_given_rooms_of_the_platform(self, store: Store) -> None:
        await archive_posts(
            store, make_post("1", "needle"), make_post("2", "needle", room="20"), make_post("3", "needle", room=ODD)
        )
        await archive_posts(store, replace(make_post("4", "needle"), platform="other"))
        assert await find_posts(store, "needle") == ["1"]
        assert await find_posts(store, "needle", ["20", "10"]) == ["2", "1"]
        assert await find_posts(store, "needle", [ODD]) == ["3"]
        assert await find_posts(store, "needle", []) == []
        assert await find_posts(store, "needle", [*(f"no {number}" for number in range(40_000)), "10"]) == ["1"]

    async def test_a_search_can_be_limited_to_an_author_and_a_time(self, store: Store) -> None:
        await archive_posts(
            store, *(make_post(str(key), "needle", author=str(key % 2), hours=key) for key in range(1, 7))
        )
        assert await find_posts(store, "needle", author="1") == ["5", "3", "1"]
        assert await find_posts(store, "needle", author="none") == []
        assert await find_posts(store, "needle", since=at(4)) == ["6", "5", "4"]
        assert await find_posts(store, "needle", until=at(4)) == ["3", "2", "1"]
        assert await find_posts(store, "needle", since=at(2), until=at(5), author="0") == ["4", "2"]
        berlin = at(4).astimezone(timezone(timedelta(hours=1)))
        assert await find_posts(store, "needle", since=berlin) == ["6", "5", "4"]

    async def test_a_hit_has_the_whole_post_and_shows_the_match(self, store: Store) -> None:
        post = make_post("1", "hay " * 500 + "\n\nthe NEEDLE is here " + "straw " * 500)
        await archive_posts(store, post)
        async with store.work(write=False) as work:
            (hit,) = await work.archive.search(PostQuery("needle", platform=PLATFORM, rooms=["10"]))
        assert hit.post == post
        assert "the NEEDLE is here" in hit.excerpt
        assert len(hit.excerpt) < 300

    async def test_what_looks_like_the_language_of_a_search_engine_finds_no_wrong_post(self, store: Store) -> None:
        await archive_posts(store, make_post("1", "gamma"), make_post("2", "alpha and beta, or not near 2 words; 1"))
        for typed in SYNTAX:
            assert "1" not in await find_posts(store, typed), typed

    async def test_posts_are_counted_by_room_by_author_and_by_day(self, store: Store) -> None:
        await archive_posts(
            store,
            *(make_post(str(key), room="10", author="1", hours=key) for key in (1, 2, 3)),
            *(make_post(str(key), room="20", author="2", hours=key) for key in (14, 15)),
            make_post("30", room="20", author="1", hours=30),
            make_post("40", room="secret", author="3", hours=40),
        )
        rooms = ["10", "20"]
        async with store.work(write=False) as work:
            count = work.archive.count
            assert await count(CountBy.ROOM, platform=PLATFORM, rooms=rooms, since=at(2)) == [
                PostCount("20", "", 3),
                PostCount("10", "", 2),
            ]
            assert await count(CountBy.AUTHOR, platform=PLATFORM, rooms=rooms) == [
                PostCount("1", "user 1", 4),
                PostCount("2", "user 2", 2),
            ]
            assert await count(CountBy.DAY, platform=PLATFORM, rooms=rooms) == [
                PostCount("2026-11-22", "", 3),
                PostCount("2026-11-21", "", 3),
            ]
            assert [row.key for row in await count(CountBy.AUTHOR, platform=PLATFORM, rooms=rooms, limit=1)] == ["1"]
            assert [row.key for row in await count(CountBy.DAY, platform=PLATFORM, rooms=rooms, limit=1)] == [
                "2026-11-22"
            ]
            for by in CountBy:
                assert await count(by, platform=PLATFORM, rooms=[]) == []
                assert await count(by, platform="other", rooms=rooms) == []
                assert await count(by, platform=PLATFORM, rooms=rooms, limit=0) == []

    async def test_an_author_is_counted_under_their_latest_name(self, store: Store) -> None:
        renamed = replace(make_post("100"), author=Author("1", "Ana Maria"))
        await archive_posts(store, renamed, make_post("99"), make_post("9"))
        async with store.work(write=False) as work:
            rows = await work.archive.count(CountBy.AUTHOR, platform=PLATFORM, rooms=["10"])
        assert rows == [PostCount("1", "Ana Maria", 3)]

    async def test_a_day_is_one_of_utc(self, store: Store) -> None:
        late = datetime(2026, 11, 21, 23, 59, 59, tzinfo=UTC)
        tokyo = timezone(timedelta(hours=9))
        posts = [replace(make_post("1"), created_at=late.astimezone(tokyo)), make_post("2", hours=12)]
        await archive_posts(store, *posts)
        async with store.work(write=False) as work:
            rows = await work.archive.count(CountBy.DAY, platform=PLATFORM, rooms=["10"])
        assert [(row.key, row.posts) for row in rows] == [("2026-11-22", 1), ("2026-11-21", 1)]

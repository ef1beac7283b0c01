"""The archive contract of the store: the rooms of a platform and how far they are mirrored, opt-outs, posts with their
edits and deletions, finding posts by their words and counting them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import anyio
import pytest

from denizen.domain.message import Author
from denizen.domain.room import Attachment, Post, PostChanges, PostVersion, Room, RoomKind
from denizen.ports.archive import Backfill, CountBy, OptOutKind, PostCount, PostQuery
from denizen.ports.store import Store
from tests.contracts.store.languages import SCRIPTS
from tests.contracts.store.records import NOON, PLATFORM, at, make_post, make_room
from tests.contracts.store.settings import ODD, SYNTAX
from tests.timing import HANG_LIMIT_S


@pytest.mark.anyio
class RoomContract:
    async def test_a_room_is_added_and_renewed(self, store: Store) -> None:
        thread = Room(PLATFORM, "77", ODD, RoomKind.PRIVATE_THREAD, "g1", "Guild", "10", "general", "500")
        async with store.work() as work:
            assert await work.archive.find_room(PLATFORM, "77") is None
            await work.archive.put_room(thread)
            await work.archive.put_room(replace(thread, platform="other", name="elsewhere"))
        async with store.work() as work:
            assert await work.archive.find_room(PLATFORM, "77") == thread
            await work.archive.put_room(replace(thread, name="new", parent_name="lounge", latest_post="1000"))
        async with store.work(write=False) as work:
            found = await work.archive.find_room(PLATFORM, "77")
        assert found == replace(thread, name="new", parent_name="lounge", latest_post="1000")

    async def test_the_newest_post_of_a_room_is_not_lost_when_a_room_is_told_of_without_it_or_late(
        self, store: Store
    ) -> None:
        async with store.work() as work:
            for latest in ("99", "100", "", "98"):
                await work.archive.put_room(replace(make_room("10"), name=f"at {latest}", latest_post=latest))
        async with store.work(write=False) as work:
            found = await work.archive.find_room(PLATFORM, "10")
        assert found == replace(make_room("10"), name="at 98", latest_post="100")

    async def test_rooms_are_listed_of_one_platform_and_guild(self, store: Store) -> None:
        rooms = [
            make_room("100"),
            make_room("20", guild="g2"),
            make_room("9"),
            replace(make_room("5"), platform="other"),
        ]
        async with store.work() as work:
            for room in rooms:
                await work.archive.put_room(room)
        async with store.work(write=False) as work:
            assert [room.id for room in await work.archive.list_rooms(PLATFORM)] == ["9", "20", "100"]
            assert [room.id for room in await work.archive.list_rooms(PLATFORM, guild="g1")] == ["9", "100"]
            assert await work.archive.list_rooms(PLATFORM, guild="none") == []

    async def test_how_far_a_room_is_mirrored_is_kept(self, store: Store) -> None:
        async with store.work() as work:
            assert await work.archive.find_backfill(PLATFORM, "10") is None
            await work.archive.put_backfill(Backfill(PLATFORM, "10"))
            await work.archive.put_backfill(Backfill(PLATFORM, "9", "77", 100, is_complete=True))
            await work.archive.put_backfill(Backfill("other", "8"))
            await work.archive.put_backfill(Backfill(PLATFORM, "10", "55", 200))
        async with store.work(write=False) as work:
            assert await work.archive.find_backfill(PLATFORM, "10") == Backfill(PLATFORM, "10", "55", 200)
            assert await work.archive.list_backfills(PLATFORM) == [
                Backfill(PLATFORM, "9", "77", 100, is_complete=True),
                Backfill(PLATFORM, "10", "55", 200),
            ]

    async def test_who_opted_out_is_listed_until_they_opt_in_again(self, store: Store) -> None:
        async with store.work() as work:
            for kind, key in ((OptOutKind.USER, "1"), (OptOutKind.USER, "2"), (OptOutKind.CHANNEL, "1")):
                await work.archive.opt_out(PLATFORM, kind, key, now=NOON)
            await work.archive.opt_out(PLATFORM, OptOutKind.USER, "1", now=at(1))
            await work.archive.opt_out("other", OptOutKind.USER, "3", now=NOON)
            await work.archive.opt_in(PLATFORM, OptOutKind.USER, "2")
            await work.archive.opt_in(PLATFORM, OptOutKind.USER, "never")
        async with store.work(write=False) as work:
            assert await work.archive.list_opt_outs(PLATFORM, OptOutKind.USER) == {"1"}
            assert await work.archive.list_opt_outs(PLATFORM, OptOutKind.CHANNEL) == {"1"}
            assert await work.archive.list_opt_outs(PLATFORM, OptOutKind.ROLE) == frozenset()


async def put_posts(store: Store, *posts: Post) -> int:
    async with store.work() as work:
        return await work.archive.put(posts)


async def list_texts(store: Store, post_id: str) -> list[str]:
    """The earlier texts, then the one that stands."""
    async with store.work(write=False) as work:
        found = await work.archive.find(PLATFORM, post_id)
        assert found is not None
        return [each.text for each in await work.archive.list_versions(PLATFORM, post_id)] + [found.text]


def edit_post(post: Post, text: str, *, hours: float) -> Post:
    return replace(post, text=text, changes=PostChanges(edited_at=at(hours)))


@pytest.mark.anyio
class PostContract:
    async def test_a_post_comes_back_as_it_was(self, store: Store) -> None:
        post = Post(
            PLATFORM,
            "1234567890123456789",
            ODD,
            Author(ODD, ODD, is_bot=True),
            ODD,
            at(0.123456789),
            guild=ODD,
            parent=ODD,
            reply_to=ODD,
            changes=PostChanges(at(1), at(2)),
            attachments=(Attachment(ODD, "image/png", 2**40, "https://example.org/a.png"), Attachment("", "", 0, "")),
        )
        assert await put_posts(store, post) == 1
        async with store.work(write=False) as work:
            assert await work.archive.find(PLATFORM, post.id) == post
            assert await work.archive.find(PLATFORM, "1") is None
            assert await work.archive.find("other", post.id) is None
            assert await work.archive.list_versions(PLATFORM, post.id) == []

    async def test_times_come_back_in_utc(self, store: Store) -> None:
        local = datetime(2026, 11, 21, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
        await put_posts(store, replace(make_post("1"), created_at=local))
        async with store.work(write=False) as work:
            found = await work.archive.find(PLATFORM, "1")
        assert found is not None
        assert found.created_at.isoformat() == "2026-11-22T04:30:00+00:00"

    async def test_of_many_posts_only_those_count_that_were_new(self, store: Store) -> None:
        assert await put_posts(store) == 0
        assert await put_posts(store, make_post("1"), make_post("2")) == 2
        assert await put_posts(store, make_post("2"), make_post("3"), make_post("3"), make_post("1")) == 1
        assert await put_posts(store, replace(make_post("1"), platform="other"), make_post("4")) == 2
        async with store.work(write=False) as work:
            assert await work.archive.total(PLATFORM) == 4
            assert await work.archive.total("other") == 1

    async def test_an_edited_post_keeps_its_earlier_texts(self, store: Store) -> None:
        first = make_post("1", "first", hours=0)
        await put_posts(store, first)
        await put_posts(store, edit_post(first, "second", hours=1))
        await put_posts(store, edit_post(first, "third", hours=2))
        async with store.work(write=False) as work:
            assert await work.archive.find(PLATFORM, "1") == edit_post(first, "third", hours=2)
            assert await work.archive.list_versions(PLATFORM, "1") == [
                PostVersion(1, "first", at(0)),
                PostVersion(2, "second", at(1)),
            ]

    async def test_an_edit_that_comes_before_an_earlier_one_stays(self, store: Store) -> None:
        first = make_post("1", "first", hours=0)
        await put_posts(store, first)
        await put_posts(store, edit_post(first, "third", hours=2))
        await put_posts(store, edit_post(first, "second", hours=1))
        await put_posts(store, first)
        assert await list_texts(store, "1") == ["first", "third"]

    async def test_a_post_that_comes_after_its_edit_changes_nothing(self, store: Store) -> None:
        first = make_post("1", "first", hours=0)
        await put_posts(store, edit_post(first, "second", hours=1))
        assert await put_posts(store, first) == 0
        assert await list_texts(store, "1") == ["second"]

    async def test_the_same_edit_twice_is_one_edit(self, store: Store) -> None:
        first = make_post("1", "first", hours=0)
        second = edit_post(first, "second", hours=1)
        await put_posts(store, first, second, second)
        await put_posts(store, second)
        assert await list_texts(store, "1") == ["first", "second"]

    async def test_posts_and_their_edits_may_come_in_one_page(self, store: Store) -> None:
        first = make_post("1", "first", hours=0)
        page = [
            first,
            make_post("2"),
            edit_post(first, "third", hours=3),
            edit_post(first, "second", hours=2),
            make_post("2"),
        ]
        assert await put_posts(store, *page, edit_post(first, "fourth", hours=4)) == 2
        assert await list_texts(store, "1") == ["first", "third", "fourth"]
        assert await list_texts(store, "2") == ["post 2"]

    async def test_what_is_told_of_a_post_without_another_text_is_renewed_without_a_version(self, store: Store) -> None:
        first = make_post("1", "same", hours=0)
        renamed = replace(first, author=Author("1", "Ana Maria"), attachments=(Attachment("a", "b", 3, "c"),))
        await put_posts(store, first)
        assert await put_posts(store, renamed) == 0
        async with store.work(write=False) as work:
            assert await work.archive.find(PLATFORM, "1") == renamed
            assert await work.archive.list_versions(PLATFORM, "1") == []

    async def test_a_new_text_is_found_and_the_earlier_one_is_not(self, store: Store) -> None:
        first = make_post("1", "needle", hours=0)
        await put_posts(store, first)
        await put_posts(store, edit_post(first, "thread", hours=1))
        async with store.work(write=False) as work:
            assert await work.archive.search(PostQuery("needle", platform=PLATFORM, rooms=["10"])) == []
            assert len(await work.archive.search(PostQuery("thread", platform=PLATFORM, rooms=["10"]))) == 1

    async def test_a_deleted_post_stays_for_the_record_and_is_neither_listed_found_nor_counted(
        self, store: Store
    ) -> None:
        await put_posts(store, make_post("1"), make_post("2"), make_post("3"))
        async with store.work() as work:
            assert await work.archive.mark_deleted(PLATFORM, ["1", "2", "2", "9"], at=at(5)) == 2
            assert await work.archive.mark_deleted(PLATFORM, ["2", "3"], at=at(6)) == 1
            assert await work.archive.mark_deleted("other", ["1"], at=at(6)) == 0
            assert await work.archive.mark_deleted(PLATFORM, [], at=at(6)) == 0
        await put_posts(store, make_post("4"))
        async with store.work(write=False) as work:
            for key, deleted_at in (("1", at(5)), ("2", at(5)), ("3", at(6)), ("4", None)):
                assert await work.archive.find(PLATFORM, key) == replace(
                    make_post(key), changes=PostChanges(deleted_at=deleted_at)
                )
            assert [post.id for post in await work.archive.list_posts(PLATFORM, "10")] == ["4"]
            assert await work.archive.total(PLATFORM) == 1
            for by, key in ((CountBy.ROOM, "10"), (CountBy.AUTHOR, "1"), (CountBy.DAY, "2026-11-21")):
                (row,) = await work.archive.count(by, platform=PLATFORM, rooms=["10"])
                assert (row.key, row.posts) == (key, 1)
            (hit,) = await work.archive.search(PostQuery("post", platform=PLATFORM, rooms=["10"]))
            assert hit.post == make_post("4")

    async def test_a_deleted_post_stays_deleted_whatever_is_told_of_it(self, store: Store) -> None:
        first = make_post("1", "first", hours=0)
        await put_posts(store, first)
        async with store.work() as work:
            await work.archive.mark_deleted(PLATFORM, ["1"], at=at(5))
        await put_posts(store, first)
        await put_posts(store, edit_post(first, "second", hours=1))
        await put_posts(store, replace(first, changes=PostChanges(deleted_at=at(7))))
        async with store.work(write=False) as work:
            assert await work.archive.find(PLATFORM, "1") == replace(
                first, text="second", changes=PostChanges(at(1), at(5))
            )
        assert await list_texts(store, "1") == ["first", "second"]

    async def test_a_post_may_be_told_of_as_deleted(self, store: Store) -> None:
        await put_posts(
            store,
            edit_post(make_post("1"), "new", hours=9),
            replace(make_post("2"), changes=PostChanges(deleted_at=at(1))),
        )
        await put_posts(store, replace(make_post("1"), changes=PostChanges(deleted_at=at(1))))
        async with store.work(write=False) as work:
            found = await work.archive.find(PLATFORM, "1")
            assert found == replace(make_post("1"), text="new", changes=PostChanges(at(9), at(1)))
            assert await work.archive.total(PLATFORM) == 0

    async def test_accounts_that_mirror_the_same_posts_at_once_add_each_one_once_and_keep_its_latest_edit(
        self, store: Store
    ) -> None:
        page = [make_post(str(number)) for number in range(1, 60)]
        accounts = 8
        new = 0

        async def mirror(account: int) -> None:
            nonlocal new
            # For each post another account comes with the latest edit.
            edits = [edit_post(post, f"edit {(account + int(post.id)) % accounts}", hours=9) for post in page]
            edits = [edit_post(post, post.text, hours=9 + int(post.text[-1])) for post in edits]
            added = await put_posts(store, *(edits if account % 2 else edits[::-1]))
            new += added

        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as tasks:
                for account in range(accounts):
                    tasks.start_soon(mirror, account)
        assert new == len(page)
        for post in page:
            told = await list_texts(store, post.id)
            assert told[-1] == f"edit {accounts - 1}"
            assert told == sorted(set(told))

    async def test_a_room_is_read_page_by_page_in_both_directions_across_ids_of_different_length(
        self, store: Store
    ) -> None:
        keys = ["8", "9", "10", "11", "98", "99", "100", "101", "1000"]
        await put_posts(store, *(make_post(key) for key in reversed(keys)), make_post("12", room="11"))

        async def page(before: str = "", after: str = "", limit: int = 50) -> list[str]:
            async with store.work(write=False) as work:
                rows = await work.archive.list_posts(PLATFORM, "10", before=before, after=after, limit=limit)
            return [post.id for post in rows]

        assert await page() == keys
        assert await page(limit=3) == ["100", "101", "1000"]
        assert await page(before="100", limit=3) == ["11", "98", "99"]
        assert await page(before="11", limit=5) == ["8", "9", "10"]
        assert await page(before="8") == []
        assert await page(after="9", limit=3) == ["10", "11", "98"]
        assert await page(after="99") == ["100", "101", "1000"]
        assert await page(after="1000") == []
        assert await page(after="5", limit=2) == ["8", "9"]
        assert await page(after="9", before="99", limit=2) == ["10", "11"]
        assert await page(limit=0) == []
        async with store.work(write=False) as work:
            assert await work.archive.list_posts("other", "10") == []


async def find_posts(store: Store, words: str, rooms: Sequence[str] = ("10",), **bounds: Any) -> list[str]:
    """Ids, as the search has them."""
    async with store.work(write=False) as work:
        hits = await work.archive.search(PostQuery(words, platform=PLATFORM, rooms=rooms, **bounds))
    return [hit.post.id for hit in hits]


@pytest.mark.anyio
class PostSearchContract:
    async def test_posts_with_more_of_the_words_come_first_then_newer_ones(self, store: Store) -> None:
        await put_posts(
            store,
            make_post("99", "The Gateway fell over now."),
            make_post("100", "GATEWAY? It fell, café says!"),
            make_post("101", "the gateway stands"),
            make_post("9", "fell\ngateway, so it is"),
        )
        assert await find_posts(store, "gateway FELL") == ["100", "99", "9", "101"]
        assert (await find_posts(store, "fell, the gateway!"))[0] == "99"
        assert await find_posts(store, "gateway", limit=2) == ["101", "100"]
        assert await find_posts(store, "CAFE") == await find_posts(store, "Café") == ["100"]
        assert await find_posts(store, "stands zebra") == ["101"]
        assert await find_posts(store, "zebra") == []
        assert await find_posts(store, "gateway", limit=0) == []
        assert await find_posts(store, "") == []

    async def test_the_newest_posts_are_listed_within_the_same_bounds_as_a_search(self, store: Store) -> None:
        await put_posts(
            store,
            make_post("9", "one"),
            make_post("10", "two", author="2"),
            make_post("11", "three"),
            make_post("12", "elsewhere", room="11"),
            make_post("13", "deleted"),
        )
        async with store.work() as work:
            await work.archive.mark_deleted(PLATFORM, ["13"], at=at(9))

        async def newest(rooms: Sequence[str] = ("10",), **bounds: Any) -> list[str]:
            async with store.work(write=False) as work:
                found = await work.archive.list_newest(PostQuery("two", platform=PLATFORM, rooms=rooms, **bounds))
            return [post.id for post in found]

        assert await newest() == ["11", "10", "9"]
        assert await newest(["10", "11"], limit=2) == ["12", "11"]
        assert await newest(author="1") == ["11", "9"]
        assert await newest(since=at(10 / 60), until=at(11 / 60)) == ["10"]
        assert await newest([]) == await newest(limit=0) == []
        async with store.work(write=False) as work:
            assert await work.archive.list_newest(PostQuery("two", platform="other", rooms=["10"])) == []

    async def test_authors_of_rooms_are_listed_with_their_latest_name_there(self, store: Store) -> None:
        await put_posts(
            store,
            replace(make_post("9", author="7"), author=Author("7", "Old", is_bot=True)),
            replace(make_post("10", author="7"), author=Author("7", "New", is_bot=True)),
            make_post("11", author="8"),
            make_post("12", room="11", author="7"),
            make_post("13", room="11", author="9"),
            make_post("14", author="6"),
            make_post("15", author=""),
        )
        async with store.work() as work:
            await work.archive.mark_deleted(PLATFORM, ["14"], at=at(9))

        async def authors(*rooms: str, platform: str = PLATFORM) -> list[Author]:
            async with store.work(write=False) as work:
                return list(await work.archive.list_authors(platform, rooms=rooms))

        assert await authors("10") == [Author("", "user "), Author("7", "New", is_bot=True), Author("8", "user 8")]
        assert await authors("11", "99") == [Author("7", "user 7"), Author("9", "user 9")]
        assert await authors() == await authors("10", platform="other") == []

    async def test_of_a_question_the_post_with_its_rare_words_comes_first(self, store: Store) -> None:
        chat = [
            make_post(str(number), f"who is up for a game of chess tonight, round {number}") for number in range(2, 40)
        ]
        await put_posts(store, make_post("1", "Ana adopted a ferret"), *chat)
        assert (await find_posts(store, "ferret", also="who is up for a ferret")) == ["1"]
        assert (await find_posts(store, "who adopted the ferret of a game"))[0] == "1"

    @pytest.mark.parametrize("script", SCRIPTS)
    @pytest.mark.proves("V5-search", "V28")
    async def test_posts_are_found_by_words_of_any_script_parts_of_compounds_and_other_forms(
        self, store: Store, script: str
    ) -> None:
        text, asked, other = SCRIPTS[script]
        post = make_post("2", text, hours=0)
        await put_posts(store, make_post("1", other), post)
        assert await find_posts(store, asked) == ["2"]
        await put_posts(store, edit_post(post, other, hours=1))
        assert await find_posts(store, asked) == []

    async def test_a_search_looks_only_at_the_given_rooms_of_the_platform(self, store: Store) -> None:
        await put_posts(
            store, make_post("1", "needle"), make_post("2", "needle", room="20"), make_post("3", "needle", room=ODD)
        )
        await put_posts(store, replace(make_post("4", "needle"), platform="other"))
        assert await find_posts(store, "needle") == ["1"]
        assert await find_posts(store, "needle", ["20", "10"]) == ["2", "1"]
        assert await find_posts(store, "needle", [ODD]) == ["3"]
        assert await find_posts(store, "needle", []) == []
        assert await find_posts(store, "needle", [*(f"no {number}" for number in range(40_000)), "10"]) == ["1"]

    async def test_a_search_can_be_limited_to_an_author_and_a_time(self, store: Store) -> None:
        await put_posts(store, *(make_post(str(key), "needle", author=str(key % 2), hours=key) for key in range(1, 7)))
        assert await find_posts(store, "needle", author="1") == ["5", "3", "1"]
        assert await find_posts(store, "needle", author="none") == []
        assert await find_posts(store, "needle", since=at(4)) == ["6", "5", "4"]
        assert await find_posts(store, "needle", until=at(4)) == ["3", "2", "1"]
        assert await find_posts(store, "needle", since=at(2), until=at(5), author="0") == ["4", "2"]
        berlin = at(4).astimezone(timezone(timedelta(hours=1)))
        assert await find_posts(store, "needle", since=berlin) == ["6", "5", "4"]

    async def test_a_hit_has_the_whole_post_and_shows_the_match(self, store: Store) -> None:
        post = make_post("1", "hay " * 500 + "\n\nthe NEEDLE is here " + "straw " * 500)
        await put_posts(store, post)
        async with store.work(write=False) as work:
            (hit,) = await work.archive.search(PostQuery("needle", platform=PLATFORM, rooms=["10"]))
        assert hit.post == post
        assert "the NEEDLE is here" in hit.excerpt
        assert len(hit.excerpt) < 300

    async def test_what_looks_like_the_language_of_a_search_engine_finds_no_wrong_post(self, store: Store) -> None:
        await put_posts(store, make_post("1", "gamma"), make_post("2", "alpha and beta, or not near 2 words; 1"))
        for typed in SYNTAX:
            assert "1" not in await find_posts(store, typed), typed

    async def test_posts_are_counted_by_room_by_author_and_by_day(self, store: Store) -> None:
        await put_posts(
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
        await put_posts(store, renamed, make_post("99"), make_post("9"))
        async with store.work(write=False) as work:
            rows = await work.archive.count(CountBy.AUTHOR, platform=PLATFORM, rooms=["10"])
        assert rows == [PostCount("1", "Ana Maria", 3)]

    async def test_a_day_is_one_of_utc(self, store: Store) -> None:
        late = datetime(2026, 11, 21, 23, 59, 59, tzinfo=UTC)
        tokyo = timezone(timedelta(hours=9))
        posts = [replace(make_post("1"), created_at=late.astimezone(tokyo)), make_post("2", hours=12)]
        await put_posts(store, *posts)
        async with store.work(write=False) as work:
            rows = await work.archive.count(CountBy.DAY, platform=PLATFORM, rooms=["10"])
        assert [(row.key, row.posts) for row in rows] == [("2026-11-22", 1), ("2026-11-21", 1)]

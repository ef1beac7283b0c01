"""The store's promises about the mirror of a platform's posts: their edits and deletions, and reading a room.

Search and counts are in `store_contract_post_search`, what is forgotten in `store_contract_forgetting`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import anyio
import pytest

from denizen.domain.message import Author
from denizen.domain.room import Attachment, Post, PostVersion
from denizen.ports.archive import CountBy, PostQuery
from denizen.ports.store import Store
from denizen.testing.store_contract_texts import ODD
from denizen.testing.store_records import PLATFORM, at, make_post


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
    return replace(post, text=text, edited_at=at(hours))


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
            edited_at=at(1),
            deleted_at=at(2),
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
                assert await work.archive.find(PLATFORM, key) == replace(make_post(key), deleted_at=deleted_at)
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
        await put_posts(store, replace(first, deleted_at=at(7)))
        async with store.work(write=False) as work:
            assert await work.archive.find(PLATFORM, "1") == replace(
                edit_post(first, "second", hours=1), deleted_at=at(5)
            )
        assert await list_texts(store, "1") == ["first", "second"]

    async def test_a_post_may_be_told_of_as_deleted(self, store: Store) -> None:
        await put_posts(store, edit_post(make_post("1"), "new", hours=9), replace(make_post("2"), deleted_at=at(1)))
        await put_posts(store, replace(make_post("1"), deleted_at=at(1)))
        async with store.work(write=False) as work:
            found = await work.archive.find(PLATFORM, "1")
            assert found == replace(edit_post(make_post("1"), "new", hours=9), deleted_at=at(1))
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

        with anyio.fail_after(60):
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

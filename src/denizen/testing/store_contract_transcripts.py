"""The store's promises about the closed blocks of transcripts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.conversation import Place
from denizen.domain.transcript import DELETED, Block, Event
from denizen.ports.store import Store
from denizen.ports.transcripts import PostRange
from denizen.testing.store_records import PLACE, PLATFORM, at, post_of

THREAD = Place(PLACE.platform, PLACE.channel, "t1")


def block_of(number: int, first: str, last: str) -> Block:
    return Block(
        number, "10", first, last, 100 * number, f"digest {number}", 3, {"7": 2}, ("8",),
        (Event("5", DELETED, first), Event("6", 1)),
    )  # fmt: skip


@pytest.mark.anyio
class TranscriptContract:
    async def test_closed_blocks_come_back_in_order_each_place_with_its_own(self, store: Store) -> None:
        first, second = block_of(1, "99", "100"), block_of(2, "101", "1000")
        async with store.work() as work:
            assert await work.transcripts.add_blocks(PLACE, [first, second]) == 2
            assert await work.transcripts.add_blocks(THREAD, [first]) == 1
        async with store.work(write=False) as work:
            assert await work.transcripts.list_blocks(PLACE) == [first, second]
            assert await work.transcripts.list_blocks(THREAD) == [first]
            assert await work.transcripts.list_blocks(Place("discord", "other")) == []

    async def test_a_block_is_closed_once_also_where_there_is_no_thread(self, store: Store) -> None:
        first = block_of(1, "99", "100")
        async with store.work() as work:
            await work.transcripts.add_blocks(PLACE, [first])
        async with store.work() as work:
            assert await work.transcripts.add_blocks(PLACE, [block_of(1, "99", "105"), block_of(2, "106", "110")]) == 0
            assert await work.transcripts.add_blocks(PLACE, [block_of(2, "99", "105")]) == 0
            assert await work.transcripts.add_blocks(PLACE, [block_of(2, "101", "105"), block_of(2, "106", "110")]) == 1
        async with store.work(write=False) as work:
            assert await work.transcripts.list_blocks(PLACE) == [first, block_of(2, "101", "105")]

    async def test_a_block_is_renewed_only_as_it_was_read(self, store: Store) -> None:
        block = block_of(1, "99", "100")
        new = replace(block, digest="other", tokens=7, posts=2, events=(), versions={})
        async with store.work() as work:
            await work.transcripts.add_blocks(PLACE, [block])
            assert await work.transcripts.renew_block(PLACE, new, digest=block.digest)
            assert not await work.transcripts.renew_block(PLACE, block, digest=block.digest)
            assert not await work.transcripts.renew_block(THREAD, block, digest="other")
            assert await work.transcripts.list_blocks(PLACE) == [new]

    async def test_blocks_are_removed_by_number(self, store: Store) -> None:
        blocks = [block_of(1, "1", "2"), block_of(2, "3", "4"), block_of(3, "5", "6")]
        async with store.work() as work:
            await work.transcripts.add_blocks(PLACE, blocks)
            await work.transcripts.remove_blocks(PLACE, [1, 2, 9])
            await work.transcripts.remove_blocks(PLACE, [])
            assert await work.transcripts.list_blocks(PLACE) == blocks[2:]

    async def test_a_stretch_has_every_post_with_its_earlier_texts_deleted_ones_too(self, store: Store) -> None:
        async with store.work() as work:
            await work.archive.put([post_of(str(key)) for key in (98, 99, 100, 101, 102)])
            await work.archive.put([post_of("100", room="11")])
            edited = replace(post_of("99", "new"), edited_at=at(5))
            await work.archive.put([edited])
            await work.archive.put([replace(edited, text="newest", edited_at=at(6))])
            await work.archive.mark_deleted(PLATFORM, ["101"], at=at(7))
        stretch = PostRange(PLATFORM, "10", "99", "101")
        async with store.work(write=False) as work:
            found = await work.transcripts.list_range(stretch)
            changed = await work.transcripts.list_range(stretch, changed=True)
            count = await work.transcripts.count_range(stretch)
            chosen = await work.transcripts.find_archived(PLATFORM, ["101", "99", "gone"])
            none = await work.transcripts.find_archived(PLATFORM, [])
        told = [(each.post.id, each.earlier, each.post.text, each.post.deleted_at) for each in found]
        edits = ("99", ("post 99", "new"), "newest", None)
        gone = ("101", (), "post 101", at(7))
        assert [each for each in told if each[0] != "100"] == [edits, gone]
        assert [(each.post.id, each.post.text) for each in changed] == [("99", "newest"), ("101", "post 101")]
        assert chosen == changed
        assert [each.text_at(number) for each in changed[:1] for number in range(4)] == [
            "post 99", "new", "newest", "newest",
        ]  # fmt: skip
        assert count == len(found)
        assert none == []

    async def test_what_is_forgotten_is_missing_in_a_stretch(self, store: Store) -> None:
        async with store.work() as work:
            await work.archive.put([post_of("1"), post_of("2", author="2"), post_of("3")])
            await work.archive.forget_author(PLATFORM, "2")
            stretch = PostRange(PLATFORM, "10", "1", "3")
            assert [each.post.id for each in await work.transcripts.list_range(stretch)] == ["1", "3"]
            assert await work.transcripts.count_range(stretch) == 2

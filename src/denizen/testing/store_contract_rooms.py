"""The store's promises about the rooms of a platform, how far they are mirrored, and who opted out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.room import Room, RoomKind
from denizen.ports.archive import Backfill, OptOutKind
from denizen.ports.store import Store
from denizen.testing.store_contract_texts import ODD
from denizen.testing.store_records import NOON, PLATFORM, at, make_room


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

"""Rooms that were deleted while the account was away are closed when it is back, and no others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from denizen.domain.errors import Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.room import RoomKind
from denizen.ports.archive import CountBy
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform
from tests.memory_channel import MemoryChannel

pytestmark = pytest.mark.anyio


async def list_undeleted(fixture: PlatformFixture) -> list[str]:
    """What the archive has that is not deleted."""
    async with fixture.store.work(write=False) as work:
        rooms = [room.id for room in await work.archive.list_rooms("discord")]
        return sorted([post.text for room in rooms for post in await work.archive.list_posts("discord", room)])


async def test_what_was_said_in_rooms_that_were_deleted_meanwhile_is_deleted_in_the_archive() -> None:
    world = World()
    old, forum = world.platform.add_room("old"), world.platform.add_room("forum", RoomKind.FORUM)
    within = world.platform.add_room("within", RoomKind.THREAD, parent=forum)
    thread = world.platform.add_room("thread", RoomKind.THREAD, parent=world.general)
    async with open_platform(world) as fixture:
        for room in (world.general, old, within, thread):
            world.platform.say(room, "ana", f"said in {room.name}")
        await fixture.settled()
        assert len(await list_undeleted(fixture)) == 4
    for room in (old, within, forum, thread):
        world.platform.remove_room(room, tell=False)

    async def busy(accounts: Mapping[AgentName, MemoryChannel]) -> None:
        accounts[ADA].fail("find_deleted", Unavailable("busy", retry_after_s=0.01), times=2)

    async with open_platform(world, prepare=busy) as fixture:
        while await list_undeleted(fixture) != ["said in general"]:
            await fixture.settled()
        assert fixture.ada.asked.count("find_deleted") == 3
    async with open_platform(world) as fixture:
        await fixture.settled()
        async with fixture.store.work(write=False) as work:
            rooms = [room.id for room in await work.archive.list_rooms("discord")]
            counts = await work.archive.count(CountBy.ROOM, platform="discord", rooms=rooms)
        assert [each.key for each in counts] == [world.general.id]
        assert fixture.ada.asked.count("find_deleted") == 0  # nothing is left to be asked for


async def test_a_room_that_is_hidden_from_the_account_keeps_what_was_said_in_it() -> None:
    world = World()
    quiet = world.platform.add_room("quiet")
    async with open_platform(world) as fixture:
        world.platform.say(quiet, "ana", "said in quiet")
        await fixture.settled()
    world.platform.set_readers(quiet, ["ana"])
    async with open_platform(world) as fixture:
        await fixture.until(lambda: "find_deleted" in fixture.ada.asked)
        await fixture.settled()
        assert await list_undeleted(fixture) == ["said in quiet"]

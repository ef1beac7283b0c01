"""The look into rooms of platforms: who may see which, and that looking changes nothing."""

from __future__ import annotations

import pytest

from denizen.domain.errors import NotFound
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.room import RoomKind
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.inspection.rooms import RoomInspection
from tests.engine.platform_fixture import World, open_platform

pytestmark = pytest.mark.anyio

OWNER = Principal(PrincipalKind.API_KEY, "owen", "owen", frozenset({RoleName.OWNER}))
ADMIN = Principal(PrincipalKind.API_KEY, "ada", "ada", frozenset({RoleName.ADMIN}))


async def test_owners_see_every_room_and_admins_those_that_everybody_may_read_now() -> None:
    world = World()
    platform, both = world.platform, ["ana", "bot-ada"]
    thread = platform.add_room("thread", RoomKind.THREAD, parent=world.general)
    staff = platform.add_room("staff", readers=both)
    secret = platform.add_room("secret", RoomKind.PRIVATE_THREAD, parent=world.general, readers=both)
    rooms = (world.general, thread, staff, secret, world.direct("ana"))
    async with open_platform(world) as fixture:
        async with fixture.store.work() as work:
            for room in rooms:
                await work.archive.put_room(room)
        inspection = RoomInspection(fixture.runtime, fixture.store, fixture.channels)
        away = RoomInspection(fixture.runtime, fixture.store, ConnectedAccounts())

        async def look(reader: Principal, through: RoomInspection) -> set[str]:
            return {listing.room.id for listing in await through.list_rooms(reader, world.general.platform)}

        assert await look(OWNER, away) >= {room.id for room in rooms}
        assert await look(ADMIN, inspection) == {world.general.id, thread.id}
        assert await look(ADMIN, away) == set()
        with pytest.raises(NotFound):
            await inspection.list_posts(ADMIN, staff.platform, staff.id)
        assert (await inspection.get_room(ADMIN, thread.platform, thread.id)).room == thread

"""Which turns are hidden from admins of the HTTP API: what was asked where not everybody may read it."""

from __future__ import annotations

import pytest

from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import Room, RoomKind
from denizen.domain.turn import Turn
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.inspection.queries import Queries
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.engine_fixture import open_engine
from tests.engine.platform_fixture import PlatformFixture, World, open_platform

pytestmark = pytest.mark.anyio


async def ask(fixture: PlatformFixture, room: Room) -> Turn:
    fixture.world.platform.say(room, "ana", "@ada hello")
    await fixture.settled()
    async with fixture.store.work(write=False) as work:
        return (await work.turns.list_turns(limit=1))[0]


async def test_a_turn_is_private_unless_everybody_of_its_server_may_read_it_now() -> None:
    world = World()
    platform, both = world.platform, ["ana", "bot-ada"]
    rooms = {
        "general": world.general,
        "thread": platform.add_room("thread", RoomKind.THREAD, parent=world.general),
        "staff": platform.add_room("staff", readers=both),
        "private thread": platform.add_room("secret", RoomKind.PRIVATE_THREAD, parent=world.general, readers=both),
        "direct": world.direct("ana"),
    }
    async with open_platform(world) as fixture:
        turns = {name: await ask(fixture, room) for name, room in rooms.items()}
        queries = Queries(fixture.runtime, fixture.turns._services, fixture.channels)
        found = {name: await queries.is_private(turn) for name, turn in turns.items()}
        assert [name for name, is_private in found.items() if not is_private] == ["general", "thread"]
        platform.set_readers(world.general, both)
        assert await queries.is_private(turns["general"])
        away = Queries(fixture.runtime, fixture.turns._services, ConnectedAccounts())
        platform.set_readers(world.general, None)
        assert await away.is_private(turns["general"])


@pytest.mark.parametrize(
    ("kind", "is_private"),
    [(PrincipalKind.LOCAL, True), (PrincipalKind.WEB_USER, True), (PrincipalKind.API_KEY, False)],
)
async def test_off_platforms_what_a_person_asked_is_private(kind: PrincipalKind, is_private: bool) -> None:
    async with open_engine(ScriptedModel(ScriptedReply("Hello."))) as engine:
        done = await engine.say("hello", principal=Principal(kind, "ann", "Ann"))
        queries = Queries(engine.runtime, engine.services)
        assert await queries.is_private((await queries.get_turn(done.turn_id)).turn) is is_private

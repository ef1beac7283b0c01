"""Searching by meaning leaks nothing: what not all readers of the answer may see is as if it did not exist."""

from __future__ import annotations

import pytest

from denizen.domain.errors import DenizenError, Unavailable
from denizen.domain.room import RoomKind
from denizen.domain.vector import pack
from denizen.ports.archive import POST_VECTORS, OptOutKind, post_vector_key, room_namespace
from denizen.ports.memory import StoredVector
from denizen.skill import ArchiveLookup
from tests.engine.archive_house import DISCORD
from tests.engine.pets import Pets

pytestmark = pytest.mark.anyio

PETS = "Who brings a pet?"
"""There is no post with these words."""


async def said_everywhere() -> Pets:
    pets = Pets()
    house = pets.house
    for room, author in ((house.general, "kim"), (house.staff, "bea"), (house.plans, "bea"), (house.direct, "ana")):
        await pets.say(f"Bella is a dog in {room.name or 'private'}.", who=author, room=room)
    return pets


async def answer(ask: ArchiveLookup, *, room: str = "", author: str = "") -> object:
    """All that the asker learns."""
    try:
        return [post.text for post in await ask.search(PETS, room=room, author=author)]
    except DenizenError as error:
        return (type(error), error.explain(), error.code)


async def rooms_of(ask: ArchiveLookup) -> set[str]:
    return {post.room for post in await ask.search(PETS)}


async def test_rooms_that_not_all_readers_see_are_not_found_by_meaning() -> None:
    house = (await said_everywhere()).house
    for who in ("kim", "bea", "ana"):
        assert await rooms_of(house.ask(who, house.general)) == {"general"}
    assert await rooms_of(house.ask("bea", house.staff)) == {"general", "staff", "staff > plans"}
    assert await rooms_of(house.ask("ana", house.staff)) == {"general"}
    assert "direct messages" in await rooms_of(house.ask("ana", house.direct))


@pytest.mark.parametrize("hidden", ["staff", "plans", "direct"])
async def test_an_invisible_room_is_answered_like_one_that_does_not_exist(hidden: str) -> None:
    house = (await said_everywhere()).house
    ask, room = house.ask("kim", house.general), getattr(house, hidden)
    assert await answer(ask, room=room.id) == await answer(ask, room="99")
    assert await answer(ask, author="bea") == await answer(ask, author="nobody")


async def test_private_threads_are_found_by_meaning_from_within_only() -> None:
    pets = Pets()
    house = pets.house
    members = ["bea", house.ada.user_id]
    thread = house.platform.add_room("inner", RoomKind.PRIVATE_THREAD, parent=house.general, readers=members)
    await pets.say("Bella is a dog.", who="bea", room=thread)
    assert await rooms_of(house.ask("bea", house.general)) == set()
    assert await rooms_of(house.ask("bea", thread)) == {"general > inner"}


async def test_permissions_are_those_of_the_moment() -> None:
    house = (await said_everywhere()).house
    ask = house.ask("bea", house.staff)
    assert "staff" in await rooms_of(ask)
    house.platform.set_readers(house.staff, ["kim", house.ada.user_id])
    assert await rooms_of(ask) == {"general"}
    house.ada.fail("visible_rooms", Unavailable("down"))
    with pytest.raises(Unavailable):
        await ask.search(PETS)


async def test_people_and_rooms_that_opted_out_are_hidden_before_their_vectors_are_gone() -> None:
    house = (await said_everywhere()).house
    async with house.store.work() as work:
        await work.archive.opt_out(DISCORD, OptOutKind.USER, "kim", now=house.clock.now())
        await work.archive.opt_out(DISCORD, OptOutKind.CHANNEL, house.staff.id, now=house.clock.now())
    house.restart()
    assert await rooms_of(house.ask("ana", house.general)) == set()
    assert await rooms_of(house.ask("bea", house.staff)) == set()


@pytest.mark.parametrize("why", ["moved", "deleted", "forgotten", "never there"])
async def test_a_stale_vector_finds_nothing_that_may_not_be_seen(why: str) -> None:
    """As if a store had left one behind, on the shelf of a room that everybody sees."""
    pets = Pets()
    house = pets.house
    (post,) = await pets.say("Bella is a dog.", who="bea", room=house.staff if why == "moved" else house.general)
    if why == "never there":
        await house.privacy.forget_user(DISCORD, "bea")
    elif why == "deleted":
        await house.mirror.delete(DISCORD, [post.id])
    elif why == "forgotten":
        await house.privacy.forget_user(DISCORD, "bea")
    shelf = room_namespace(DISCORD, house.general.id)
    key = post_vector_key(DISCORD, "999" if why == "never there" else post.id)
    async with house.store.work() as work:
        await work.vectors.put([StoredVector(POST_VECTORS, shelf, key, "words/1", pack([1, 0, 0, 0]))])
    assert await rooms_of(house.ask("ana", house.general)) == set()
    asked = house.ask("bea", house.staff)
    assert await answer(asked, room="general") == []
    assert await rooms_of(asked) == ({"staff"} if why == "moved" else set())

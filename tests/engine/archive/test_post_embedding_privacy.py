"""Searching by meaning leaks nothing: what not all readers of the answer may see is as if it did not exist."""

from __future__ import annotations

import pytest

from denizen.domain.errors import DenizenError, Unavailable
from denizen.domain.room import RoomKind
from denizen.domain.vector import pack_vector
from denizen.ports.archive import POST_VECTORS, OptOutKind, post_vector_key, room_namespace
from denizen.ports.memory import StoredVector
from denizen.skill import ArchiveLookup
from tests.engine.archive.archive_fixture import DISCORD
from tests.engine.archive.archive_samples import PetArchiveFixture

pytestmark = pytest.mark.anyio

PETS = "Who brings a pet?"
"""There is no post with these words."""


async def post_everywhere() -> PetArchiveFixture:
    pets = PetArchiveFixture()
    engine = pets.engine
    for room, author in ((engine.general, "kim"), (engine.staff, "bea"), (engine.plans, "bea"), (engine.direct, "ana")):
        await pets.say(f"Bella is a dog in {room.name or 'private'}.", who=author, room=room)
    return pets


async def answer(ask: ArchiveLookup, *, room: str = "", author: str = "") -> object:
    """All that the asker learns."""
    try:
        return [post.text for post in await ask.search(PETS, room=room, author=author)]
    except DenizenError as error:
        return (type(error), error.explain(), error.code)


async def list_rooms(ask: ArchiveLookup) -> set[str]:
    return {post.room for post in await ask.search(PETS)}


async def test_rooms_that_not_all_readers_see_are_not_found_by_meaning() -> None:
    engine = (await post_everywhere()).engine
    for who in ("kim", "bea", "ana"):
        assert await list_rooms(engine.ask(who, engine.general)) == {"general"}
    assert await list_rooms(engine.ask("bea", engine.staff)) == {"general", "staff", "staff > plans"}
    assert await list_rooms(engine.ask("ana", engine.staff)) == {"general"}
    assert "direct messages" in await list_rooms(engine.ask("ana", engine.direct))


@pytest.mark.parametrize("hidden", ["staff", "plans", "direct"])
async def test_an_invisible_room_is_answered_like_one_that_does_not_exist(hidden: str) -> None:
    engine = (await post_everywhere()).engine
    ask, room = engine.ask("kim", engine.general), getattr(engine, hidden)
    assert await answer(ask, room=room.id) == await answer(ask, room="99")
    assert await answer(ask, author="bea") == await answer(ask, author="nobody")


async def test_private_threads_are_found_by_meaning_from_within_only() -> None:
    pets = PetArchiveFixture()
    engine = pets.engine
    members = ["bea", engine.ada.user_id]
    thread = engine.platform.add_room("inner", RoomKind.PRIVATE_THREAD, parent=engine.general, readers=members)
    await pets.say("Bella is a dog.", who="bea", room=thread)
    assert await list_rooms(engine.ask("bea", engine.general)) == set()
    assert await list_rooms(engine.ask("bea", thread)) == {"general > inner"}


async def test_permissions_are_those_of_the_moment() -> None:
    engine = (await post_everywhere()).engine
    ask = engine.ask("bea", engine.staff)
    assert "staff" in await list_rooms(ask)
    engine.platform.set_readers(engine.staff, ["kim", engine.ada.user_id])
    assert await list_rooms(ask) == {"general"}
    engine.ada.fail("visible_rooms", Unavailable("down"))
    with pytest.raises(Unavailable):
        await ask.search(PETS)


async def test_people_and_rooms_that_opted_out_are_hidden_before_their_vectors_are_gone() -> None:
    engine = (await post_everywhere()).engine
    async with engine.store.work() as work:
        await work.archive.opt_out(DISCORD, OptOutKind.USER, "kim", now=engine.clock.now())
        await work.archive.opt_out(DISCORD, OptOutKind.CHANNEL, engine.staff.id, now=engine.clock.now())
    engine.restart()
    assert await list_rooms(engine.ask("ana", engine.general)) == set()
    assert await list_rooms(engine.ask("bea", engine.staff)) == set()


@pytest.mark.parametrize("why", ["moved", "deleted", "forgotten", "never there"])
async def test_a_stale_vector_finds_nothing_that_may_not_be_seen(why: str) -> None:
    """As if a store had left one behind, on the shelf of a room that everybody sees."""
    pets = PetArchiveFixture()
    engine = pets.engine
    (post,) = await pets.say("Bella is a dog.", who="bea", room=engine.staff if why == "moved" else engine.general)
    if why == "never there":
        await engine.privacy.forget_user(DISCORD, "bea")
    elif why == "deleted":
        await engine.mirror.delete(DISCORD, [post.id])
    elif why == "forgotten":
        await engine.privacy.forget_user(DISCORD, "bea")
    namespace = room_namespace(DISCORD, engine.general.id)
    key = post_vector_key(DISCORD, "999" if why == "never there" else post.id)
    async with engine.store.work() as work:
        await work.vectors.put([StoredVector(POST_VECTORS, namespace, key, "words/1", pack_vector([1, 0, 0, 0]))])
    assert await list_rooms(engine.ask("ana", engine.general)) == set()
    asked = engine.ask("bea", engine.staff)
    assert await answer(asked, room="general") == []
    assert await list_rooms(asked) == ({"staff"} if why == "moved" else set())

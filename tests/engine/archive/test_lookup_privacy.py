"""The archive leaks nothing: what not everybody who reads the answer may see is answered as if it did not exist."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from denizen.domain.errors import DenizenError, Unavailable
from denizen.domain.principal import PrincipalKind
from denizen.domain.room import Post, Room, RoomKind
from denizen.engine.configuration.choices import put_reset
from denizen.ports.archive import OptOutKind
from denizen.skill import ArchiveLookup
from tests.engine.archive.archive_fixture import ADA, BOB, DISCORD, ArchiveFixture, scope_for
from tests.memory_channel import MemoryChannel

pytestmark = pytest.mark.anyio

Question = Callable[[ArchiveLookup, str], Awaitable[object]]

BY_ROOM: dict[str, Question] = {
    "search": lambda ask, room: ask.search("door", room=room),
    "search by author": lambda ask, room: ask.search("door", room=room, author="bea"),
    "history": lambda ask, room: ask.history(room),
    "stats": lambda ask, room: ask.stats("author", room=room),
}
BY_POST: dict[str, Question] = {
    "context": lambda ask, post: ask.around(post),
    "edits": lambda ask, post: ask.edits(post),
}


async def answer(question: Question, ask: ArchiveLookup, what: str) -> object:
    """All that the asker learns."""
    try:
        return await question(ask, what)
    except DenizenError as error:
        return (type(error), error.explain(), error.code)


@pytest.fixture
async def engine() -> ArchiveFixture:
    engine = ArchiveFixture()
    for room, author in ((engine.general, "kim"), (engine.staff, "bea"), (engine.plans, "bea"), (engine.direct, "ana")):
        engine.platform.write(room, author, f"door in {room.name}")
        post = engine.platform.write(room, author, "was red")
        engine.platform.edit(post.id, "red door")
    await engine.mirror_all()
    return engine


def list_posts(engine: ArchiveFixture, room: Room) -> list[Post]:
    return engine.platform.list_posts(room.id)


@pytest.mark.parametrize("question", BY_ROOM)
@pytest.mark.parametrize("hidden", ["staff", "plans", "direct"])
@pytest.mark.parametrize("is_named_by_id", [True, False])
async def test_an_invisible_room_is_answered_like_one_that_does_not_exist(
    engine: ArchiveFixture, question: str, hidden: str, is_named_by_id: bool
) -> None:
    room = getattr(engine, hidden)
    what = room.id if is_named_by_id else room.name or "direct messages"
    # Kim sees #staff; but whoever reads #general does not.
    ask = engine.ask("kim", engine.general)
    told = await answer(BY_ROOM[question], ask, what)
    assert told == await answer(BY_ROOM[question], ask, "no-such-room") == await answer(BY_ROOM[question], ask, "99")
    assert "list_posts" not in engine.ada.asked


@pytest.mark.parametrize("question", BY_POST)
@pytest.mark.parametrize("hidden", ["staff", "plans", "direct"])
@pytest.mark.parametrize("who", ["kim", "bea"])
async def test_an_invisible_post_is_answered_like_one_that_does_not_exist(
    engine: ArchiveFixture, question: str, hidden: str, who: str
) -> None:
    ask = engine.ask(who, engine.general)
    for post in list_posts(engine, getattr(engine, hidden)):
        assert await answer(BY_POST[question], ask, post.id) == await answer(BY_POST[question], ask, "999999")


async def test_searches_and_counts_of_everything_leave_invisible_rooms_out(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.general)
    assert {post.room for post in await ask.search("door")} == {"general"}
    assert [count.name for count in await ask.stats("room")] == ["general"]
    assert [(count.name, count.posts) for count in await ask.stats("author")] == [("Kim", 2)]
    assert [count.posts for count in await ask.stats("day")] == [2]


async def test_an_author_who_wrote_only_where_it_is_invisible_is_nobody(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.general)

    def by(author: str) -> Question:
        return lambda asked, _: asked.search("door", author=author)

    assert await answer(by("Bea"), ask, "") == await answer(by("bea"), ask, "") == await answer(by("nobody"), ask, "")


async def test_who_asks_counts_as_well_as_who_reads(engine: ArchiveFixture) -> None:
    assert {post.room for post in await engine.ask("bea", engine.staff).search("door")} == {
        "staff",
        "staff > plans",
    } | {"general"}
    assert {post.room for post in await engine.ask("ana", engine.staff).search("door")} == {"general"}


async def test_direct_talk_is_found_from_within_only(engine: ArchiveFixture) -> None:
    engine.platform.set_readers(engine.direct, None)  # even if the platform said that everybody reads it
    assert {post.room for post in await engine.ask("ana", engine.general).search("door")} == {"general"}
    assert {post.room for post in await engine.ask("ana", engine.direct).search("door")} >= {"direct messages"}
    other = engine.platform.add_room("", RoomKind.DIRECT, readers=["ana", engine.ada.user_id])
    await engine.mirror.rooms([other])
    assert "direct messages" not in {post.room for post in await engine.ask("ana", other).search("door")}


async def test_permissions_are_those_of_the_moment(engine: ArchiveFixture) -> None:
    ask, post = engine.ask("bea", engine.staff), list_posts(engine, engine.staff)[0]
    assert await ask.around(post.id)
    engine.platform.set_readers(engine.staff, ["kim", engine.ada.user_id])
    assert await answer(BY_POST["context"], ask, post.id) == await answer(BY_POST["context"], ask, "999999")
    assert {found.room for found in await ask.search("door")} == {"general"}


async def test_when_permissions_cannot_be_asked_nothing_is_told(engine: ArchiveFixture) -> None:
    engine.ada.fail("visible_rooms", Unavailable("down"))
    with pytest.raises(Unavailable):
        await engine.ask("bea", engine.staff).search("door")


async def test_without_a_connected_account_there_is_only_the_room_of_the_call(engine: ArchiveFixture) -> None:
    engine.channels.remove(engine.ada)
    ask = engine.ask("kim", engine.staff)
    assert {post.room for post in await ask.search("door")} == {"staff"}
    assert await answer(BY_ROOM["history"], ask, "general") == await answer(BY_ROOM["history"], ask, "no-such-room")
    assert await engine.ask("kim", engine.general, agent=BOB).search("staff") == []


async def test_a_schedule_sees_what_all_readers_of_its_place_see(engine: ArchiveFixture) -> None:
    scope = scope_for("daily", engine.general.place, kind=PrincipalKind.SCHEDULE)
    assert {post.room for post in await engine.lookup.open(scope).search("door")} == {"general"}


async def test_another_user_id_of_another_kind_is_not_the_author(engine: ArchiveFixture) -> None:
    post = engine.platform.write(engine.general, "kim", "one")
    await engine.mirror.keep([post])
    await engine.mirror.keep([engine.platform.edit(post.id, "two")])
    scope = scope_for("kim", engine.general.place, kind=PrincipalKind.WEB_USER)
    told = await answer(BY_POST["edits"], engine.lookup.open(scope), post.id)
    assert "one" not in str(told)


async def test_posts_of_people_and_rooms_that_opted_out_are_hidden_before_they_are_gone(engine: ArchiveFixture) -> None:
    async with engine.store.work() as work:
        await work.archive.opt_out(DISCORD, OptOutKind.USER, "kim", now=engine.clock.now())
        await work.archive.opt_out(DISCORD, OptOutKind.CHANNEL, engine.staff.id, now=engine.clock.now())
    engine.restart()
    assert await engine.ask("ana", engine.general).search("door") == []
    assert await engine.ask("ana", engine.general).history() == []
    assert await engine.ask("ana", engine.general).stats("author") == []
    asked = engine.ask("bea", engine.staff)
    assert await answer(BY_ROOM["history"], asked, "staff") == await answer(BY_ROOM["history"], asked, "no-such-room")


async def test_a_platform_that_is_asked_is_asked_only_for_visible_rooms() -> None:
    engine = ArchiveFixture()
    await engine.mirror.rooms(engine.rooms())
    for room in (engine.general, engine.staff):
        engine.platform.write(room, "kim", f"door in {room.name}")
    ask = engine.ask("kim", engine.general)
    told = await answer(BY_ROOM["history"], ask, "staff")
    assert told == await answer(BY_ROOM["history"], ask, "no-such-room")
    assert [post.room for post in await ask.search("door")] == ["general"]
    assert await engine.listed(engine.staff) == []


async def test_an_account_that_reads_less_than_the_archive_holds_does_not_tell_the_rest(engine: ArchiveFixture) -> None:
    bob = MemoryChannel(engine.platform, BOB)
    engine.channels.add(bob)
    direct = engine.platform.add_room("", RoomKind.DIRECT, readers=["bea", bob.user_id])
    for place in (direct, engine.staff):
        assert "staff" not in {post.room for post in await engine.ask("bea", place, agent=BOB).search("door")}


@pytest.mark.proves("C19")
@pytest.mark.parametrize("is_archived", [True, False], ids=["archived", "only on the platform"])
async def test_an_agent_that_was_reset_in_a_room_never_looks_again_at_what_was_said_there_before(
    is_archived: bool,
) -> None:
    engine = ArchiveFixture()
    before = [engine.platform.write(engine.general, "kim", f"old door {number}") for number in range(60)]
    async with engine.store.work() as work:
        await put_reset(work, ADA, engine.general.place.conversation_id, now=before[-1].created_at)
    after = engine.platform.write(engine.general, "bea", "new door")
    await (engine.mirror_all() if is_archived else engine.mirror.rooms(engine.rooms()))
    for room in (engine.staff, engine.general):
        ask = engine.ask("kim", room)
        talk = (await ask.find_talk("old door", room="general")).talk
        found = [*await ask.search("old door", room="general"), *await ask.history("general")]
        assert {post.id for post in (*found, *(post for each in talk for post in each.posts))} == {after.id}
    assert [post.id for post in await ask.around(after.id)] == [after.id]
    for question in BY_POST.values():
        assert await answer(question, ask, before[0].id) == await answer(question, ask, "999999")
    assert await ask.list_absent("old new") == ["old"]
    assert len(await engine.listed(engine.general)) == 61, "nothing is deleted"


@pytest.mark.proves("C19")
async def test_a_reset_holds_in_a_thread_of_which_the_archive_has_not_heard() -> None:
    engine = ArchiveFixture()
    before, after = (engine.platform.write(engine.plans, "kim", text) for text in ("old door", "new door"))
    async with engine.store.work() as work:
        await put_reset(work, ADA, engine.plans.place.conversation_id, now=before.created_at)
    assert [post.id for post in await engine.ask("kim", engine.plans).search("door")] == [after.id]

"""What the archive answers: search, history, context, edits and counts; and when the platform is asked instead."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from denizen.domain.archiving import ArchivePolicy
from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.room import Attachment, RoomKind
from denizen.skill import ArchiveCount
from tests.engine.archive.archive_fixture import BOB, DISCORD, ArchiveFixture, scope_for
from tests.memory_channel import MemoryChannel
from tests.memory_platform import START

pytestmark = pytest.mark.anyio


def at(second: int):
    return START + timedelta(seconds=second)


@pytest.fixture
async def engine() -> ArchiveFixture:
    """Posts at seconds 0 to 5: three in #general, one in #staff, one in its thread, one in the direct talk."""
    engine = ArchiveFixture()
    write = engine.platform.write
    write(engine.general, "ana", "The door is blue.")
    write(engine.general, "kim", "Which DOOR, Ana?")
    write(engine.general, "ana", "The back door.", attachments=[Attachment("door.png", "image/png", 9, "https://x/1")])
    write(engine.staff, "bea", "We need a new door.")
    write(engine.plans, "kim", "A green door?")
    write(engine.direct, "ana", "Is my door ok?")
    await engine.mirror_all()
    return engine


async def test_a_search_gives_posts_with_all_that_there_is_to_know_of_them(engine: ArchiveFixture) -> None:
    newest, *_ = found = await engine.ask("kim", engine.general).search("door")
    assert [post.text for post in found] == ["The back door.", "Which DOOR, Ana?", "The door is blue."]
    assert (newest.author, newest.author_id, newest.room, newest.at) == ("Ana", "ana", "general", at(2))
    assert newest.attachments == ("door.png",)
    assert newest.link == f"https://discord.com/channels/1/{engine.general.id}/{newest.id}"


async def test_a_search_is_narrowed_by_room_author_time_and_number(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.staff)
    assert [post.room for post in await ask.search("door")] == ["staff > plans", "staff", *["general"] * 3]
    assert [post.room for post in await ask.search("door", room="staff")] == ["staff"]
    ask = engine.ask("kim", engine.general)
    for author in ("Kim", "@kim", "kim", "<@kim>", "Ki", '@"Kim"'):
        assert [post.text for post in await ask.search("door", author=author)] == ["Which DOOR, Ana?"]
    for room in ("#general", "GENERAL", engine.general.id, f"<#{engine.general.id}>", "gener"):
        assert len(await ask.search("door", room=room)) == 3
    assert [post.at for post in await ask.search("door", since=at(1), until=at(2))] == [at(1)]
    assert [post.at for post in await ask.search("door", limit=1)] == [at(2)]
    assert await ask.search("window") == []


async def test_a_question_finds_what_has_some_of_its_words(engine: ArchiveFixture) -> None:
    found = await engine.ask("kim", engine.general).search("What colour is the back door of the house?")
    assert found[0].text == "The back door."
    assert len(found) == 3


async def test_history_is_read_forwards_and_backwards(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.general)
    first, second, third = await ask.history()
    assert [first.at, second.at, third.at] == [at(0), at(1), at(2)]
    assert await ask.history("general", limit=2) == [second, third]
    assert await ask.history(before=third.id, limit=1) == [second]
    assert await ask.history(after=first.id, limit=1) == [second]
    assert await ask.history(before=first.id) == []


async def test_the_talk_around_a_message_is_read(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.general)
    first, second, third = await ask.history()
    assert await ask.around(second.id, each_side=1) == [first, second, third]
    assert await ask.around(first.id, each_side=1) == [first, second]


async def test_counts_are_by_room_author_and_day(engine: ArchiveFixture) -> None:
    engine.platform.skip(days=1)
    await engine.mirror.keep([engine.platform.write(engine.general, "kim", "Good morning.")])
    ask = engine.ask("ana", engine.general)
    assert list(await ask.stats("room")) == [ArchiveCount("general", 4)]
    assert {(count.name, count.posts) for count in await ask.stats("author")} == {("Ana", 2), ("Kim", 2)}
    assert list(await ask.stats("day")) == [ArchiveCount("2026-11-02", 1), ArchiveCount("2026-11-01", 3)]
    assert list(await ask.stats("author", since=START + timedelta(hours=12))) == [ArchiveCount("Kim", 1)]
    in_staff = engine.ask("bea", engine.staff)
    assert list(await in_staff.stats("room", room="plans")) == [ArchiveCount("staff > plans", 1)]


async def test_deleted_posts_are_left_out_everywhere(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.general)
    first, second, third = await ask.history()
    await engine.mirror.delete(DISCORD, [second.id])
    assert await ask.history() == [first, third]
    assert await ask.around(first.id) == [first, third]
    assert await ask.search("which") == []
    assert list(await ask.stats("author")) == [ArchiveCount("Ana", 2)]
    with pytest.raises(NotFound):
        await ask.around(second.id)


async def test_earlier_texts_are_shown_to_the_author_and_to_moderators_only(engine: ArchiveFixture) -> None:
    edited, deleted = (
        engine.platform.write(engine.staff, "kim", "one"),
        engine.platform.write(engine.staff, "kim", "gone"),
    )
    untouched = engine.platform.write(engine.staff, "kim", "as ever")
    await engine.mirror.keep([edited, deleted, untouched])
    await engine.mirror.keep([engine.platform.edit(edited.id, "two")])
    await engine.mirror.keep([engine.platform.edit(edited.id, "three")])
    await engine.mirror.delete(DISCORD, [deleted.id])
    for who in ("kim", "bea"):
        ask = engine.ask(who, engine.staff)
        found = await ask.edits(edited.id)
        assert [text for _, text in found.earlier] == ["one", "two"]
        assert (found.post.text, found.earlier[0][0]) == ("three", edited.created_at)
        assert (await ask.edits(deleted.id)).post.deleted_at == engine.clock.now()
    engine.platform.set_readers(engine.staff, ["ana", "bea", "kim", engine.ada.user_id])
    ask = engine.ask("ana", engine.staff)
    with pytest.raises(NotAllowed):
        await ask.edits(edited.id)
    with pytest.raises(NotFound, match="no such"):
        await ask.edits(deleted.id)
    assert (await ask.edits(untouched.id)).earlier == ()


async def test_without_a_connected_account_nobody_moderates_but_authors_still_see_their_edits(
    engine: ArchiveFixture,
) -> None:
    post = engine.platform.write(engine.staff, "kim", "one")
    await engine.mirror.keep([post])
    await engine.mirror.keep([engine.platform.edit(post.id, "two")])
    engine.channels.remove(engine.ada)
    assert len((await engine.ask("kim", engine.staff).edits(post.id)).earlier) == 1
    with pytest.raises(NotAllowed):
        await engine.ask("bea", engine.staff).edits(post.id)


async def test_a_name_that_means_several_is_answered_with_their_ids(engine: ArchiveFixture) -> None:
    other = engine.platform.add_room("general-talk")
    third = engine.platform.add_room("talk")
    await engine.mirror.rooms([other, third])
    ask = engine.ask("kim", engine.general)
    assert len(await ask.history("general")) == 3
    with pytest.raises(InvalidInput) as caught:
        await ask.history("al")
    assert f"#general (Harbour) {engine.general.id}" in caught.value.fix
    assert f"#talk (Harbour) {third.id}" in caught.value.fix
    assert "staff" not in caught.value.fix
    for key in ("u1", "u2"):
        engine.platform.add_person(key, "Lou")
        await engine.mirror.keep([engine.platform.write(engine.general, key, "A door.")])
    with pytest.raises(InvalidInput) as caught:
        await ask.search("door", author="Lou")
    assert {"Lou u1", "Lou u2"} == set(caught.value.fix.partition(": ")[2].split(", "))
    assert len(await ask.search("door", author="u2")) == 1


@pytest.mark.proves("V29")
async def test_the_platform_is_asked_only_for_a_room_of_which_the_archive_has_nothing(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.general)
    engine.ada.asked.clear()
    await ask.search("door")
    await ask.search("window")
    await ask.search("window", room="general")
    await ask.history()
    await ask.history(before="1")
    with pytest.raises(NotFound):
        await ask.around("999999")
    assert "list_posts" not in engine.ada.asked

    fresh = engine.platform.add_room("fresh")
    await engine.mirror.rooms([fresh])
    for text in ("A new lamp.", "A new door.", "Nothing."):
        engine.platform.write(fresh, "kim", text)
    found = await ask.search("new", room="fresh")
    assert [post.text for post in found] == ["A new door.", "A new lamp."]
    assert engine.ada.asked.count("list_posts") == 1
    assert await engine.listed(fresh) == ["A new lamp.", "A new door.", "Nothing."]
    assert await ask.search("new", room="fresh") == found
    assert engine.ada.asked.count("list_posts") == 1


async def test_the_platform_is_asked_for_history_and_context_of_an_unknown_room_too() -> None:
    engine = ArchiveFixture()
    posts = [engine.platform.write(engine.general, "kim", str(number)) for number in range(5)]
    ask = engine.ask("kim", engine.general)
    assert [post.text for post in await ask.history(before=posts[3].id, limit=2)] == ["1", "2"]
    assert await engine.listed(engine.general) == ["1", "2"]

    engine = ArchiveFixture()
    posts = [engine.platform.write(engine.general, "kim", str(number)) for number in range(5)]
    around = await engine.ask("kim", engine.general).around(posts[2].id, each_side=1)
    assert [post.text for post in around] == ["1", "2", "3"]
    assert len(await engine.listed(engine.general)) == 5


async def test_a_search_of_an_unknown_room_is_narrowed_alike() -> None:
    narrowings: list[tuple[dict[str, Any], list[str]]] = [
        ({"author": "kim"}, ["one word"]),
        ({"author": "@Ana"}, ["another word"]),
        ({"author": "Bea"}, []),
        ({"since": at(1)}, ["another word"]),
        ({"until": at(1)}, ["one word"]),
        ({"limit": 1}, ["another word"]),
        ({"room": "general"}, ["another word", "one word"]),
    ]
    for narrowed, found in narrowings:
        engine = ArchiveFixture()
        engine.platform.write(engine.general, "kim", "one word")
        engine.platform.write(engine.general, "ana", "another word")
        await engine.mirror.rooms(engine.rooms())
        assert [post.text for post in await engine.ask("kim", engine.general).search("word", **narrowed)] == found


async def test_what_the_platform_gives_of_those_who_opted_out_is_neither_kept_nor_shown() -> None:
    engine = ArchiveFixture()
    engine.platform.write(engine.general, "kim", "his")
    engine.platform.write(engine.general, "bea", "forgotten")
    engine.platform.write(engine.general, "ana", "hers")
    await engine.privacy.opt_out_user(DISCORD, "kim")
    await engine.privacy.forget_user(DISCORD, "bea")
    assert [post.text for post in await engine.ask("ana", engine.general).history()] == ["hers"]
    assert await engine.listed(engine.general) == ["hers"]


async def test_a_platform_that_does_not_answer_is_an_error_and_not_an_empty_answer() -> None:
    engine = ArchiveFixture()
    engine.ada.fail("list_posts", Unavailable("down"))
    with pytest.raises(Unavailable):
        await engine.ask("kim", engine.general).history()


async def test_where_nothing_is_archived_that_is_said(engine: ArchiveFixture) -> None:
    terminal = engine.lookup.open(scope_for("ana", Place("terminal", "local")))
    with pytest.raises(NotFound, match="no archive"):
        await terminal.search("door")
    engine.policy = ArchivePolicy(enabled=False)
    with pytest.raises(NotFound, match="no archive"):
        await engine.ask("ana", engine.general).search("door")


async def test_each_agent_answers_through_its_own_account(engine: ArchiveFixture) -> None:
    bob = MemoryChannel(engine.platform, BOB)
    engine.channels.add(bob)
    assert engine.channels.list_platform(DISCORD) == [engine.ada, bob]
    engine.ada.asked.clear()
    await engine.ask("ana", engine.general, agent=BOB).search("door")
    assert engine.ada.asked == []
    assert bob.asked == ["visible_rooms"]


async def test_a_thread_is_found_by_its_own_name_and_with_its_channels(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.staff)
    assert len(await ask.history("plans")) == len(await ask.history("staff > plans")) == 1
    private = engine.platform.add_room(
        "secret plans", RoomKind.PRIVATE_THREAD, parent=engine.staff, readers=["bea", engine.ada.user_id]
    )
    await engine.mirror.keep([engine.platform.write(private, "bea", "private door")])
    await engine.mirror.rooms([private])
    assert await ask.search("private") == []

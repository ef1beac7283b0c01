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
from tests.engine.archive_house import BOB, DISCORD, Archived, scope_of
from tests.memory_channel import MemoryChannel
from tests.memory_platform import START

pytestmark = pytest.mark.anyio


def at(second: int):
    return START + timedelta(seconds=second)


@pytest.fixture
async def house() -> Archived:
    """Posts at seconds 0 to 5: three in #general, one in #staff, one in its thread, one in the direct talk."""
    house = Archived()
    write = house.platform.write
    write(house.general, "ana", "The door is blue.")
    write(house.general, "kim", "Which DOOR, Ana?")
    write(house.general, "ana", "The back door.", attachments=[Attachment("door.png", "image/png", 9, "https://x/1")])
    write(house.staff, "bea", "We need a new door.")
    write(house.plans, "kim", "A green door?")
    write(house.direct, "ana", "Is my door ok?")
    await house.mirror_all()
    return house


async def test_a_search_gives_posts_with_all_that_there_is_to_know_of_them(house: Archived) -> None:
    newest, *_ = found = await house.ask("kim", house.general).search("door")
    assert [post.text for post in found] == ["The back door.", "Which DOOR, Ana?", "The door is blue."]
    assert (newest.author, newest.author_id, newest.room, newest.at) == ("Ana", "ana", "general", at(2))
    assert newest.attachments == ("door.png",)
    assert newest.link == f"https://discord.com/channels/1/{house.general.id}/{newest.id}"


async def test_a_search_is_narrowed_by_room_author_time_and_number(house: Archived) -> None:
    ask = house.ask("kim", house.staff)
    assert [post.room for post in await ask.search("door")] == ["staff > plans", "staff", *["general"] * 3]
    assert [post.room for post in await ask.search("door", room="staff")] == ["staff"]
    ask = house.ask("kim", house.general)
    for author in ("Kim", "@kim", "kim", "<@kim>", "Ki"):
        assert [post.text for post in await ask.search("door", author=author)] == ["Which DOOR, Ana?"]
    for room in ("#general", "GENERAL", house.general.id, f"<#{house.general.id}>", "gener"):
        assert len(await ask.search("door", room=room)) == 3
    assert [post.at for post in await ask.search("door", since=at(1), until=at(2))] == [at(1)]
    assert [post.at for post in await ask.search("door", limit=1)] == [at(2)]
    assert await ask.search("window") == []


async def test_history_is_read_forwards_and_backwards(house: Archived) -> None:
    ask = house.ask("kim", house.general)
    first, second, third = await ask.history()
    assert [first.at, second.at, third.at] == [at(0), at(1), at(2)]
    assert await ask.history("general", limit=2) == [second, third]
    assert await ask.history(before=third.id, limit=1) == [second]
    assert await ask.history(after=first.id, limit=1) == [second]
    assert await ask.history(before=first.id) == []


async def test_the_talk_around_a_message_is_read(house: Archived) -> None:
    ask = house.ask("kim", house.general)
    first, second, third = await ask.history()
    assert await ask.around(second.id, each_side=1) == [first, second, third]
    assert await ask.around(first.id, each_side=1) == [first, second]


async def test_counts_are_by_room_author_and_day(house: Archived) -> None:
    house.platform.skip(days=1)
    await house.mirror.keep([house.platform.write(house.general, "kim", "Good morning.")])
    ask = house.ask("ana", house.general)
    assert list(await ask.stats("room")) == [ArchiveCount("general", 4)]
    assert {(count.name, count.posts) for count in await ask.stats("author")} == {("Ana", 2), ("Kim", 2)}
    assert list(await ask.stats("day")) == [ArchiveCount("2026-11-02", 1), ArchiveCount("2026-11-01", 3)]
    assert list(await ask.stats("author", since=START + timedelta(hours=12))) == [ArchiveCount("Kim", 1)]
    in_staff = house.ask("bea", house.staff)
    assert list(await in_staff.stats("room", room="plans")) == [ArchiveCount("staff > plans", 1)]


async def test_deleted_posts_are_left_out_everywhere(house: Archived) -> None:
    ask = house.ask("kim", house.general)
    first, second, third = await ask.history()
    await house.mirror.delete(DISCORD, [second.id])
    assert await ask.history() == [first, third]
    assert await ask.around(first.id) == [first, third]
    assert await ask.search("which") == []
    assert list(await ask.stats("author")) == [ArchiveCount("Ana", 2)]
    with pytest.raises(NotFound):
        await ask.around(second.id)


async def test_earlier_texts_are_shown_to_the_author_and_to_moderators_only(house: Archived) -> None:
    edited, deleted = house.platform.write(house.staff, "kim", "one"), house.platform.write(house.staff, "kim", "gone")
    untouched = house.platform.write(house.staff, "kim", "as ever")
    await house.mirror.keep([edited, deleted, untouched])
    await house.mirror.keep([house.platform.edit(edited.id, "two")])
    await house.mirror.keep([house.platform.edit(edited.id, "three")])
    await house.mirror.delete(DISCORD, [deleted.id])
    for who in ("kim", "bea"):
        ask = house.ask(who, house.staff)
        found = await ask.edits(edited.id)
        assert [text for _, text in found.earlier] == ["one", "two"]
        assert (found.post.text, found.earlier[0][0]) == ("three", edited.created_at)
        assert (await ask.edits(deleted.id)).post.deleted_at == house.clock.now()
    house.platform.set_readers(house.staff, ["ana", "bea", "kim", house.ada.user_id])
    ask = house.ask("ana", house.staff)
    with pytest.raises(NotAllowed):
        await ask.edits(edited.id)
    with pytest.raises(NotFound, match="no such"):
        await ask.edits(deleted.id)
    assert (await ask.edits(untouched.id)).earlier == ()


async def test_without_a_connected_account_nobody_moderates_but_authors_still_see_their_edits(house: Archived) -> None:
    post = house.platform.write(house.staff, "kim", "one")
    await house.mirror.keep([post])
    await house.mirror.keep([house.platform.edit(post.id, "two")])
    house.channels.remove(house.ada)
    assert len((await house.ask("kim", house.staff).edits(post.id)).earlier) == 1
    with pytest.raises(NotAllowed):
        await house.ask("bea", house.staff).edits(post.id)


async def test_a_name_that_means_several_is_answered_with_their_ids(house: Archived) -> None:
    other = house.platform.add_room("general-talk")
    third = house.platform.add_room("talk")
    await house.mirror.rooms([other, third])
    ask = house.ask("kim", house.general)
    assert len(await ask.history("general")) == 3
    with pytest.raises(InvalidInput) as caught:
        await ask.history("al")
    assert f"#general (Harbour) {house.general.id}" in caught.value.fix
    assert f"#talk (Harbour) {third.id}" in caught.value.fix
    assert "staff" not in caught.value.fix
    for key in ("u1", "u2"):
        house.platform.add_person(key, "Lou")
        await house.mirror.keep([house.platform.write(house.general, key, "A door.")])
    with pytest.raises(InvalidInput) as caught:
        await ask.search("door", author="Lou")
    assert {"Lou u1", "Lou u2"} == set(caught.value.fix.partition(": ")[2].split(", "))
    assert len(await ask.search("door", author="u2")) == 1


@pytest.mark.proves("V29")
async def test_the_platform_is_asked_only_for_a_room_of_which_the_archive_has_nothing(house: Archived) -> None:
    ask = house.ask("kim", house.general)
    house.ada.asked.clear()
    await ask.search("door")
    await ask.search("window")
    await ask.search("window", room="general")
    await ask.history()
    await ask.history(before="1")
    with pytest.raises(NotFound):
        await ask.around("999999")
    assert "list_posts" not in house.ada.asked

    fresh = house.platform.add_room("fresh")
    await house.mirror.rooms([fresh])
    for text in ("A new lamp.", "A new door.", "Nothing."):
        house.platform.write(fresh, "kim", text)
    found = await ask.search("new", room="fresh")
    assert [post.text for post in found] == ["A new door.", "A new lamp."]
    assert house.ada.asked.count("list_posts") == 1
    assert await house.listed(fresh) == ["A new lamp.", "A new door.", "Nothing."]
    assert await ask.search("new", room="fresh") == found
    assert house.ada.asked.count("list_posts") == 1


async def test_the_platform_is_asked_for_history_and_context_of_an_unknown_room_too() -> None:
    house = Archived()
    posts = [house.platform.write(house.general, "kim", str(number)) for number in range(5)]
    ask = house.ask("kim", house.general)
    assert [post.text for post in await ask.history(before=posts[3].id, limit=2)] == ["1", "2"]
    assert await house.listed(house.general) == ["1", "2"]

    house = Archived()
    posts = [house.platform.write(house.general, "kim", str(number)) for number in range(5)]
    around = await house.ask("kim", house.general).around(posts[2].id, each_side=1)
    assert [post.text for post in around] == ["1", "2", "3"]
    assert len(await house.listed(house.general)) == 5


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
        house = Archived()
        house.platform.write(house.general, "kim", "one word")
        house.platform.write(house.general, "ana", "another word")
        await house.mirror.rooms(house.rooms())
        assert [post.text for post in await house.ask("kim", house.general).search("word", **narrowed)] == found


async def test_what_the_platform_gives_of_those_who_opted_out_is_neither_kept_nor_shown() -> None:
    house = Archived()
    house.platform.write(house.general, "kim", "his")
    house.platform.write(house.general, "bea", "forgotten")
    house.platform.write(house.general, "ana", "hers")
    await house.privacy.opt_out_user(DISCORD, "kim")
    await house.privacy.forget_user(DISCORD, "bea")
    assert [post.text for post in await house.ask("ana", house.general).history()] == ["hers"]
    assert await house.listed(house.general) == ["hers"]


async def test_a_platform_that_does_not_answer_is_an_error_and_not_an_empty_answer() -> None:
    house = Archived()
    house.ada.fail("list_posts", Unavailable("down"))
    with pytest.raises(Unavailable):
        await house.ask("kim", house.general).history()


async def test_where_nothing_is_archived_that_is_said(house: Archived) -> None:
    terminal = house.lookup.open(scope_of("ana", Place("terminal", "local")))
    with pytest.raises(NotFound, match="no archive"):
        await terminal.search("door")
    house.policy = ArchivePolicy(enabled=False)
    with pytest.raises(NotFound, match="no archive"):
        await house.ask("ana", house.general).search("door")


async def test_each_agent_answers_through_its_own_account(house: Archived) -> None:
    bob = MemoryChannel(house.platform, BOB)
    house.channels.add(bob)
    assert house.channels.list_platform(DISCORD) == [house.ada, bob]
    house.ada.asked.clear()
    await house.ask("ana", house.general, agent=BOB).search("door")
    assert house.ada.asked == []
    assert bob.asked == ["visible_rooms"]


async def test_a_thread_is_found_by_its_own_name_and_with_its_channels(house: Archived) -> None:
    ask = house.ask("kim", house.staff)
    assert len(await ask.history("plans")) == len(await ask.history("staff > plans")) == 1
    private = house.platform.add_room(
        "secret plans", RoomKind.PRIVATE_THREAD, parent=house.staff, readers=["bea", house.ada.user_id]
    )
    await house.mirror.keep([house.platform.write(private, "bea", "private door")])
    await house.mirror.rooms([private])
    assert await ask.search("private") == []

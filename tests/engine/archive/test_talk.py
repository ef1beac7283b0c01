"""Search shows the talk around what it finds, and a question says itself whom, which room and which time it means."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from denizen.domain.room import Post, RoomKind
from denizen.ports.archive import OptOutKind
from denizen.skill import ArchivedTalk, FoundTalk, TalkFilters
from tests.engine.archive.archive_fixture import DISCORD, ArchiveFixture
from tests.memory_platform import START

pytestmark = pytest.mark.anyio


def texts(found: FoundTalk) -> list[list[str]]:
    """What is shown, excerpt by excerpt; what was not itself found in brackets."""

    def write(talk: ArchivedTalk) -> list[str]:
        return [post.text if post.id in talk.found else f"({post.text})" for post in talk.posts]

    return [write(talk) for talk in found.talk]


@pytest.fixture
async def engine() -> ArchiveFixture:
    """Two talks in #general, days apart; then one in #staff."""
    engine = ArchiveFixture()
    write, platform = engine.platform.write, engine.platform
    write(engine.general, "ana", "Good morning.")
    boiler = write(engine.general, "ana", "The boiler is cold again.")
    write(engine.general, "kim", "I call the plumber.")
    write(engine.general, "bea", "Thank you!")
    platform.skip(days=7)
    write(engine.general, "kim", "Lunch?")
    write(engine.general, "kim", "It was the pump of the boiler.", reply_to=boiler.id)
    platform.skip(days=2)
    write(engine.staff, "bea", "Who pays the plumber?")
    write(engine.staff, "kim", "The landlord pays.")
    engine.clock.advance(days=9)
    await engine.mirror_all()
    return engine


async def test_what_is_found_stands_between_what_was_said_right_before_and_after_it(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.general)
    assert texts(await ask.find_talk("plumber")) == [
        ["(The boiler is cold again.)", "I call the plumber.", "(Thank you!)"]
    ]
    assert texts(await ask.find_talk("pump")) == [
        ["(The boiler is cold again.)", "(Lunch?)", "It was the pump of the boiler."]
    ]


async def test_hits_in_the_same_stretch_of_talk_come_once_and_always_in_the_same_order(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.general)
    found = await ask.find_talk("plumber cold boiler")
    assert texts(found) == [
        [
            "(Good morning.)",
            "The boiler is cold again.",
            "I call the plumber.",
            "(Thank you!)",
            "(Lunch?)",
            "It was the pump of the boiler.",
        ]
    ]
    engine.restart()
    assert await engine.ask("kim", engine.general).find_talk("plumber cold boiler") == found


async def test_a_neighbour_that_the_asker_may_not_see_is_not_shown(engine: ArchiveFixture) -> None:
    """Kim sees #staff, but not everybody who reads #general does."""
    secret = engine.platform.write(engine.staff, "bea", "Ana must not know of the party.")
    private = engine.platform.add_room("party", RoomKind.PRIVATE_THREAD, parent=engine.general, readers=["bea"])
    hidden = engine.platform.write(private, "bea", "The cake is for Ana.")
    direct = engine.platform.write(engine.direct, "ana", "I hate surprises.")
    for number, target in enumerate((secret, hidden, direct)):
        engine.platform.write(engine.general, "kim", f"balloons {number}", reply_to=target.id)
        engine.platform.skip(days=2)
    await engine.mirror.rooms([*engine.rooms(), private])
    await engine.mirror.keep([written.post for written in engine.platform.posts.values()])
    assert sorted(texts(await engine.ask("kim", engine.general).find_talk("balloons"))) == [
        ["balloons 0"],
        ["balloons 1"],
        ["balloons 2"],
    ]
    (in_staff,) = [
        each for each in texts(await engine.ask("kim", engine.staff).find_talk("balloons")) if "balloons 0" in each
    ]
    assert in_staff == ["(Ana must not know of the party.)", "balloons 0"]


async def test_a_deleted_neighbour_is_not_shown_and_the_next_one_takes_its_place(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.general)
    boiler = (await ask.search("cold"))[0]
    await engine.mirror.delete(DISCORD, [boiler.id])
    assert texts(await ask.find_talk("plumber")) == [["(Good morning.)", "I call the plumber.", "(Thank you!)"]]
    assert texts(await ask.find_talk("pump")) == [["(Lunch?)", "It was the pump of the boiler."]]


async def test_what_a_neighbour_had_forgotten_or_opted_out_of_is_not_shown(engine: ArchiveFixture) -> None:
    async with engine.store.work() as work:  # opted out, and not gone yet
        await work.archive.opt_out(DISCORD, OptOutKind.USER, "bea", now=engine.clock.now())
    engine.restart()
    ask = engine.ask("kim", engine.general)
    assert texts(await ask.find_talk("plumber")) == [["(The boiler is cold again.)", "I call the plumber."]]
    await engine.privacy.forget_user(DISCORD, "ana")
    assert texts(await ask.find_talk("plumber")) == [["I call the plumber."]]
    assert texts(await ask.find_talk("pump")) == [["(Lunch?)", "It was the pump of the boiler."]]
    assert texts(await engine.ask("kim", engine.staff).find_talk("landlord")) == [["The landlord pays."]]


async def test_an_edited_neighbour_is_shown_as_it_is_now(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.general)
    boiler = (await ask.search("cold"))[0]
    await engine.mirror.keep([engine.platform.edit(boiler.id, "The heating is fine.")])
    (talk,) = (await ask.find_talk("plumber")).talk
    assert talk.posts[0].text == "The heating is fine."
    assert talk.posts[0].edited_at is not None
    assert "cold" not in str(await ask.find_talk("plumber"))


async def test_a_room_of_which_the_archive_has_nothing_is_fetched_with_its_talk() -> None:
    engine = ArchiveFixture()
    for author, text in (("ana", "one"), ("kim", "two"), ("ana", "three")):
        engine.platform.write(engine.general, author, text)
    await engine.privacy.opt_out_user(DISCORD, "ana")
    assert texts(await engine.ask("kim", engine.general).find_talk("two")) == [["two"]]


async def test_person_room_and_time_of_a_question_narrow_the_search(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.staff)
    found = await ask.find_talk("What did Bea say about the plumber in #staff today?")
    assert found.filters.author == "Bea"
    assert found.filters.room == "staff"
    assert texts(found) == [["Who pays the plumber?", "(The landlord pays.)"]]


async def test_with_nothing_else_to_search_for_the_newest_of_them_are_shown(engine: ArchiveFixture) -> None:
    ask = engine.ask("ana", engine.general)
    assert texts(await ask.find_talk("What did Ana say?", limit=1)) == [
        ["(Good morning.)", "The boiler is cold again.", "(I call the plumber.)"]
    ]
    found = await ask.find_talk("what was said in #general on 8 November")
    assert texts(found) == [["(The boiler is cold again.)", "Lunch?", "It was the pump of the boiler."]]
    assert found.filters == TalkFilters(
        room="general", since=START + timedelta(days=6, hours=12), until=START + timedelta(days=7, hours=12)
    )


async def test_times_are_those_of_the_zone_in_which_the_agent_is_told_them(engine: ArchiveFixture) -> None:
    engine.zone = ZoneInfo("Asia/Tokyo")
    found = await engine.ask("kim", engine.general).find_talk("what was said on 1 November")
    assert found.filters.since == START - timedelta(hours=21)


async def test_arguments_go_before_what_the_words_say(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.general)
    found = await ask.find_talk("What did Ana say about the plumber last month?", author="kim", since=START)
    assert texts(found) == [["(The boiler is cold again.)", "I call the plumber.", "(Thank you!)"]]
    assert not found.filters


async def test_where_nothing_is_so_narrow_everything_is_searched_and_that_is_told(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.general)
    found = await ask.find_talk("What did Bea say about the pump?")
    assert found.is_widened
    assert found.filters == TalkFilters(author="Bea")
    assert texts(found) == [["(The boiler is cold again.)", "(Lunch?)", "It was the pump of the boiler."]]
    nothing = await ask.find_talk("What did Bea say in June?")
    assert (list(nothing.talk), nothing.is_widened) == ([], False)


async def test_rooms_and_people_that_may_not_be_seen_are_as_good_as_not_there(engine: ArchiveFixture) -> None:
    ask = engine.ask("kim", engine.general)
    hidden = await ask.find_talk("who pays in #staff")
    unknown = await ask.find_talk("who pays in #nowhere")
    assert replace(hidden, words="") == replace(unknown, words="")
    engine.platform.add_person("eve", "Eve")
    await engine.mirror.keep([engine.platform.write(engine.staff, "eve", "Eve was here.")])
    seen_in_staff = await ask.find_talk("What did Eve say about the boiler?")
    nobody = await ask.find_talk("What did Udo say about the boiler?")
    assert replace(seen_in_staff, words="") == replace(nobody, words="")


async def test_somebody_who_opted_out_is_no_filter(engine: ArchiveFixture) -> None:
    async with engine.store.work() as work:
        await work.archive.opt_out(DISCORD, OptOutKind.USER, "ana", now=engine.clock.now())
    engine.restart()
    found = await engine.ask("kim", engine.general).find_talk("What did Ana say about the boiler?")
    assert not found.filters
    assert "cold" not in str(found)


def by(engine: ArchiveFixture, who: str) -> list[Post]:
    return [written.post for written in engine.platform.posts.values() if written.post.author.id == who]


async def test_i_is_who_asks(engine: ArchiveFixture) -> None:
    found = await engine.ask("bea", engine.staff).find_talk("What did I say?")
    assert found.filters.author == "Bea"
    assert {key for talk in found.talk for key in talk.found} == {post.id for post in by(engine, "bea")}

"""Contract: summaries of stretches of sessions, and messages that a session keeps no longer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from denizen.domain.conversation import Place, Session
from denizen.domain.errors import NotFound
from denizen.domain.ids import MessageId, SessionId, TurnId
from denizen.domain.message import Author
from denizen.domain.summary import Summary
from denizen.ports.store import Store
from denizen.testing.store_records import PLATFORM, at, make_message, open_conversation


def make_summary(session: Session, first: int, last: int, text: str = "") -> Summary:
    return Summary(session.id, first, last, text or f"what {first} to {last} said", at(first))


async def fill_session(store: Store, session: Session, count: int) -> None:
    """Messages of the posts 1, 2, ... on the platform, written by two people in turns, two to a turn."""
    async with store.work() as work:
        for number in range(1, count + 1):
            message = replace(
                make_message(session, f"{session.id} {number}", f"said {number}"),
                author=Author(str(number % 2), "Somebody"),
                platform_id=str(number),
                turn_id=TurnId(f"t{(number + 1) // 2}"),
            )
            await work.messages.add(message)


async def list_summaries(store: Store, session: Session) -> Sequence[str]:
    async with store.work(write=False) as work:
        return [each.reference for each in await work.summaries.list_summaries(session.id)]


@pytest.mark.anyio
class SummaryContract:
    async def test_a_summary_comes_back_as_it_was_put(self, store: Store) -> None:
        _, session = await open_conversation(store)
        given = make_summary(session, 1, 4, 'A line.\nAnother \x00, "quoted" 🦊')
        async with store.work() as work:
            assert await work.summaries.list_summaries(session.id) == []
            assert await work.summaries.put(given, known=[])
        async with store.work(write=False) as work:
            assert await work.summaries.list_summaries(session.id) == [given]
            assert await work.summaries.list_summaries(SessionId("other")) == []

    async def test_a_later_summary_takes_the_place_of_those_in_its_stretch(self, store: Store) -> None:
        _, session = await open_conversation(store)
        first, second, third = (make_summary(session, *ends) for ends in ((1, 4), (5, 9), (10, 12)))
        merged = make_summary(session, 5, 20)
        async with store.work() as work:
            assert await work.summaries.put(second, known=[])
            assert await work.summaries.put(first, known=[second])
            assert await work.summaries.put(third, known=[first, second])
            assert await work.summaries.put(merged, known=[first, second, third])
        assert await list_summaries(store, session) == ["1-4", "5-20"]

    async def test_nothing_is_put_where_others_were_put_meanwhile(self, store: Store) -> None:
        _, session = await open_conversation(store)
        first = make_summary(session, 1, 4)
        async with store.work() as work:
            assert await work.summaries.put(first, known=[])
            assert not await work.summaries.put(make_summary(session, 1, 9), known=[])
            assert not await work.summaries.put(make_summary(session, 5, 9), known=[replace(first, text="other")])
        assert await list_summaries(store, session) == ["1-4"]

    async def test_a_summary_belongs_to_a_session_that_there_is(self, store: Store) -> None:
        _, session = await open_conversation(store)
        lost = replace(make_summary(session, 1, 4), session_id=SessionId("none"))
        with pytest.raises(NotFound):
            async with store.work() as work:
                await work.summaries.put(lost, known=[])

    async def test_a_unit_that_fails_puts_no_summary_and_drops_none(self, store: Store) -> None:
        _, session = await open_conversation(store)
        await fill_session(store, session, 4)
        first = make_summary(session, 1, 2)
        async with store.work() as work:
            await work.summaries.put(first, known=[])
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - all of it is to be undone
            async with store.work() as work:
                await work.summaries.put(make_summary(session, 3, 4), known=[first])
                await work.archive.forget_author(PLATFORM, "1")
                await work.messages.keep_newest(session.id, limit=1)
                raise ZeroDivisionError
        assert await list_summaries(store, session) == ["1-2"]
        async with store.work(write=False) as work:
            assert len(await work.messages.list_tail(session.id, limit=9)) == 4

    async def test_an_author_who_is_forgotten_goes_from_summaries_too(self, store: Store) -> None:
        _, session = await open_conversation(store)
        _, elsewhere = await open_conversation(store, Place("other", "general"))
        for each in (session, elsewhere):
            await fill_session(store, each, 3)
            async with store.work() as work:
                only = replace(make_message(each, f"{each.id} by another"), author=Author("7", "Zoe"))
                await work.messages.add(only)
                known: list[Summary] = []
                for ends in ((1, 2), (3, 3), (4, 4)):
                    assert await work.summaries.put(make_summary(each, *ends), known=known)
                    known.append(make_summary(each, *ends))
        async with store.work() as work:
            await work.archive.forget_author(PLATFORM, "0")
        assert await list_summaries(store, session) == ["3-3", "4-4"]
        async with store.work() as work:
            await work.archive.forget_author(PLATFORM, "1")
            await work.archive.forget_author(PLATFORM, "")
        assert await list_summaries(store, session) == ["4-4"]
        assert await list_summaries(store, elsewhere) == ["1-2", "3-3", "4-4"]

    async def test_a_post_that_is_forgotten_goes_from_summaries_too(self, store: Store) -> None:
        _, session = await open_conversation(store)
        await fill_session(store, session, 6)
        first, second = make_summary(session, 1, 3), make_summary(session, 4, 6)
        async with store.work() as work:
            await work.summaries.put(first, known=[])
            await work.summaries.put(second, known=[first])
            await work.archive.forget_posts(PLATFORM, ["99", ""])
        assert await list_summaries(store, session) == ["1-3", "4-6"]
        async with store.work() as work:
            await work.archive.forget_posts(PLATFORM, ["4"])
        assert await list_summaries(store, session) == ["1-3"]

    async def test_a_turn_that_is_asked_anew_goes_from_summaries_too(self, store: Store) -> None:
        _, session = await open_conversation(store)
        await fill_session(store, session, 6)
        first, second = make_summary(session, 1, 4), make_summary(session, 5, 6)
        async with store.work() as work:
            await work.summaries.put(first, known=[])
            await work.summaries.put(second, known=[first])
            await work.messages.forget_turn(TurnId("t2"))
        assert await list_summaries(store, session) == ["5-6"]

    async def test_a_session_keeps_as_many_messages_as_it_is_told(self, store: Store) -> None:
        _, session = await open_conversation(store)
        await fill_session(store, session, 6)
        async with store.work() as work:
            await work.messages.keep_newest(session.id, limit=6)
            assert len(await work.messages.list_tail(session.id, limit=9)) == 6
            await work.messages.keep_newest(session.id, limit=2)
            tail = await work.messages.list_tail(session.id, limit=9)
            gone = await work.messages.get(MessageId(f"{session.id} 1"))
            found = await work.messages.search("make_message", conversation_ids=[session.conversation_id])
            assert (await work.messages.add(make_message(session, "next"))).sequence == 7
        assert [message.sequence for message in tail] == [5, 6]
        assert (gone.session_id, gone.sequence, gone.parts, gone.turn_id) == (None, 0, (), "t1")
        assert len(found) == 2

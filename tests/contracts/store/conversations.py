"""The conversation contract of the store: conversations, sessions and the order of messages, summaries of stretches of
sessions, messages that a session no longer keeps, and the closed blocks of transcripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest

from denizen.domain.conversation import Place, Session
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, ConversationId, MessageId, SessionId, TurnId
from denizen.domain.message import Author, Message
from denizen.domain.room import PostChanges
from denizen.domain.summary import Summary
from denizen.domain.transcript import DELETED, TranscriptBlock, TranscriptEvent
from denizen.ports.archive import PostRange
from denizen.ports.store import RecentSession, Store
from tests.contracts.store.languages import SCRIPTS
from tests.contracts.store.records import AGENT, NOON, PLACE, PLATFORM, at, make_message, make_post, open_conversation


@pytest.mark.anyio
class ConversationContract:
    async def test_a_place_is_one_conversation_however_often_it_is_put(self, store: Store) -> None:
        async with store.work() as work:
            first = await work.conversations.put(PLACE, title="General", now=NOON)
            again = await work.conversations.put(PLACE, now=at(1))
            renamed = await work.conversations.put(PLACE, title="Lounge", now=at(2))
        assert first.id == PLACE.conversation_id
        assert (first.place, first.title, first.created_at) == (PLACE, "General", NOON)
        assert again == first
        assert renamed == replace(first, title="Lounge")
        async with store.work(write=False) as work:
            assert await work.conversations.get(first.id) == renamed
            assert await work.conversations.list_recent() == [renamed]

    async def test_a_channel_without_a_thread_is_one_conversation_also_for_two_who_put_it_at_once(
        self, store: Store
    ) -> None:
        async def put(place: Place) -> None:
            async with store.work() as work:
                await work.conversations.put(place, now=NOON)

        async with anyio.create_task_group() as tasks:
            for channel in range(10):
                for thread in ("", "", "", "t", "t", "t"):
                    tasks.start_soon(put, Place("discord", f"c{channel}", thread))
        async with store.work(write=False) as work:
            assert len(await work.conversations.list_recent()) == 20

    async def test_what_does_not_exist_is_not_found(self, store: Store) -> None:
        async with store.work(write=False) as work:
            with pytest.raises(NotFound):
                await work.conversations.get(ConversationId("conv_none"))
            with pytest.raises(NotFound):
                await work.sessions.get(SessionId("sess_none"))
            with pytest.raises(NotFound):
                await work.messages.get(MessageId("msg_none"))
            assert await work.messages.list_tail(SessionId("sess_none"), limit=5) == []

    async def test_recent_conversations_come_by_their_latest_message_and_empty_ones_by_their_beginning(
        self, store: Store
    ) -> None:
        places = [Place("discord", "a"), Place("web", "b"), Place("discord", "c"), Place("web", "d")]
        async with store.work() as work:
            for index, place in enumerate(places):
                conversation = await work.conversations.put(place, now=at(index))
                session = await work.sessions.current(conversation.id, AGENT, now=at(index))
                if place.channel == "a":
                    await work.messages.add(make_message(session, "late", hours=9))
                    await work.messages.add(make_message(session, "early", hours=-9))
                if place.channel == "b":
                    await work.messages.add(make_message(session, "middle", hours=2.5))
        async with store.work(write=False) as work:
            recent = await work.conversations.list_recent()
            assert [row.place.channel for row in recent] == ["a", "d", "b", "c"]
            assert [row.place.channel for row in await work.conversations.list_recent(platform="web")] == ["d", "b"]
            assert [row.place.channel for row in await work.conversations.list_recent(limit=1)] == ["a"]
            assert await work.conversations.list_recent(platform="github") == []

    @pytest.mark.proves("T-store-sessions")
    async def test_an_agent_has_one_open_session_in_a_conversation(self, store: Store) -> None:
        conversation, session = await open_conversation(store)
        async with store.work() as work:
            again = await work.sessions.current(conversation.id, AGENT, now=at(1))
            other = await work.sessions.current(conversation.id, AgentName("scribe"), now=at(1))
        assert again == session
        assert (session.agent, session.created_at, session.closed_at) == (AGENT, NOON, None)
        assert other.id != session.id

    @pytest.mark.proves("T-store-sessions")
    async def test_a_renewed_session_is_empty_and_the_old_one_keeps_its_messages(self, store: Store) -> None:
        conversation, old = await open_conversation(store)
        async with store.work() as work:
            await work.messages.add(make_message(old, "before"))
            new = await work.sessions.renew(conversation.id, AGENT, now=at(1))
            newest = await work.sessions.renew(conversation.id, AGENT, now=at(1))
        async with store.work() as work:
            assert await work.sessions.current(conversation.id, AGENT, now=at(2)) == newest
            assert await work.sessions.get(old.id) == replace(old, closed_at=at(1))
            sessions = await work.sessions.list_sessions(conversation.id, AGENT)
            assert [session.id for session in sessions] == [newest.id, new.id, old.id]
            assert [session.closed_at for session in sessions] == [None, at(1), at(1)]
            assert await work.messages.list_tail(newest.id, limit=5) == []
            assert [message.id for message in await work.messages.list_tail(old.id, limit=5)] == ["before"]
            assert await work.sessions.list_sessions(conversation.id, AgentName("scribe")) == []

    async def test_recent_sessions_come_by_their_last_message_without_empty_and_closed_ones(self, store: Store) -> None:
        _, talk = await open_conversation(store)
        _, web = await open_conversation(store, Place("web", "\ufdd0", "1"))
        _, given = await open_conversation(store, Place("delegate", "local:ana", "delegate:t1:a"))
        await open_conversation(store, Place("web", "empty"))
        async with store.work() as work:
            await work.messages.add(make_message(given, "e", hours=1))
            scribe = await work.sessions.current(talk.conversation_id, AgentName("scribe"), now=NOON)
            for message in (
                make_message(talk, "a", hours=1),
                make_message(web, "b", hours=3),
                make_message(talk, "c", hours=2),
            ):
                await work.messages.add(message)
            await work.messages.add(make_message(scribe, "d", hours=4))
            await work.sessions.renew(talk.conversation_id, AgentName("scribe"), now=NOON)
        async with store.work(write=False) as work:
            recent = await work.sessions.list_recent()
            of_discord = await work.sessions.list_recent(platform="discord", agent="denizen")
            assert await work.sessions.list_recent(agent="scribe") == []
            assert [row.session for row in await work.sessions.list_recent(platform="delegate")] == [given]
            assert await work.sessions.list_recent(limit=1) == recent[:1]
            for prefix, left in (("on", [talk, web]), ("1", [talk]), ("1 ", [talk, web]), ("%", [talk, web])):
                others = await work.sessions.list_recent(except_prefix=prefix)
                assert {row.session.id for row in others} == {session.id for session in left}
            assert await work.sessions.list_recent(except_prefix="1", limit=1) == recent[1:]
        assert recent == [
            RecentSession(web, Place("web", "\ufdd0", "1"), 1, at(3)),
            RecentSession(talk, PLACE, 2, at(2)),
        ]
        assert of_discord == recent[1:]

    @pytest.mark.proves("T-store-sessions")
    async def test_many_who_ask_at_once_get_the_same_open_session(self, store: Store) -> None:
        async with store.work() as work:
            conversation = await work.conversations.put(PLACE, now=NOON)
        opened: list[SessionId] = []

        async def ask() -> None:
            async with store.work() as work:
                opened.append((await work.sessions.current(conversation.id, AGENT, now=NOON)).id)

        async def renew() -> None:
            async with store.work() as work:
                await work.sessions.renew(conversation.id, AGENT, now=NOON)

        async with anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(ask)
        assert len(set(opened)) == 1
        async with anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(renew)
        async with store.work(write=False) as work:
            sessions = await work.sessions.list_sessions(conversation.id, AGENT)
            assert len(sessions) == 13
            assert [session.closed_at for session in sessions].count(None) == 1

    async def test_a_session_of_an_unknown_conversation_is_refused(self, store: Store) -> None:
        with pytest.raises(NotFound):
            async with store.work() as work:
                await work.sessions.current(ConversationId("conv_none"), AGENT, now=NOON)
        with pytest.raises(NotFound):
            async with store.work() as work:
                await work.sessions.renew(ConversationId("conv_none"), AGENT, now=NOON)

    async def test_a_message_comes_back_as_it_was_with_its_place_in_the_session(self, store: Store) -> None:
        _, session = await open_conversation(store)
        async with store.work() as work:
            first = await work.messages.add(make_message(session, "m1"))
            second = await work.messages.add(make_message(session, "m2"))
        assert first == replace(make_message(session, "m1"), sequence=first.sequence)
        assert 0 < first.sequence < second.sequence
        async with store.work(write=False) as work:
            assert await work.messages.get(first.id) == first
            assert await work.messages.list_tail(session.id, limit=10) == [first, second]

    async def test_a_message_added_again_stays_as_it_was(self, store: Store) -> None:
        _, session = await open_conversation(store)
        async with store.work() as work:
            first = await work.messages.add(make_message(session, "m1", "first"))
        async with store.work() as work:
            assert await work.messages.add(make_message(session, "m1", "second", hours=3)) == first
            assert await work.messages.add(make_message(session, "m1", "third")) == first
        async with store.work(write=False) as work:
            assert await work.messages.list_tail(session.id, limit=10) == [first]

    async def test_messages_of_two_sessions_are_counted_apart(self, store: Store) -> None:
        conversation, session = await open_conversation(store)
        async with store.work() as work:
            other = await work.sessions.current(conversation.id, AgentName("scribe"), now=NOON)
            for number in range(3):
                await work.messages.add(make_message(session, f"a{number}"))
                await work.messages.add(make_message(other, f"b{number}"))
        async with store.work(write=False) as work:
            assert [row.id for row in await work.messages.list_tail(session.id, limit=9)] == ["a0", "a1", "a2"]
            assert [row.id for row in await work.messages.list_tail(other.id, limit=9)] == ["b0", "b1", "b2"]

    async def test_a_message_outside_sessions_has_no_sequence(self, store: Store) -> None:
        _, session = await open_conversation(store)
        mirrored = replace(make_message(session, "m1"), session_id=None, platform_id="998877")
        async with store.work() as work:
            stored = await work.messages.add(mirrored)
            await work.messages.add(replace(mirrored, id=MessageId("m2")))
        assert stored == mirrored
        async with store.work(write=False) as work:
            assert await work.messages.get(stored.id) == mirrored
            assert await work.messages.list_tail(session.id, limit=9) == []

    async def test_a_message_of_an_unknown_conversation_or_session_is_refused(self, store: Store) -> None:
        _, session = await open_conversation(store)
        for wrong in (
            replace(make_message(session, "m1"), conversation_id=ConversationId("conv_none")),
            replace(make_message(session, "m2"), session_id=SessionId("sess_none")),
        ):
            with pytest.raises(NotFound):
                async with store.work() as work:
                    await work.messages.add(wrong)
            async with store.work(write=False) as work:
                with pytest.raises(NotFound):
                    await work.messages.get(wrong.id)

    async def test_the_tail_is_the_newest_messages_oldest_first_and_pages_backwards(self, store: Store) -> None:
        _, session = await open_conversation(store)
        async with store.work() as work:
            for number in range(7):
                # The order of a session is that of arrival, whatever the clocks say.
                await work.messages.add(make_message(session, f"m{number}", hours=-number))

        async def page(limit: int, before: int | None = None) -> tuple[list[str], int]:
            async with store.work(write=False) as work:
                rows = await work.messages.list_tail(session.id, limit=limit, before=before)
            return [row.id for row in rows], rows[0].sequence if rows else 0

        newest, bound = await page(3)
        older, bound = await page(3, bound)
        oldest, bound = await page(3, bound)
        assert (newest, older, oldest) == (["m4", "m5", "m6"], ["m1", "m2", "m3"], ["m0"])
        assert await page(3, bound) == ([], 0)
        assert (await page(0))[0] == []
        assert len((await page(100))[0]) == 7

    async def test_twenty_who_write_into_one_session_at_once_get_twenty_sequences(self, store: Store) -> None:
        _, session = await open_conversation(store)
        stored: list[Message] = []

        async def add(number: int) -> None:
            async with store.work() as work:
                stored.append(await work.messages.add(make_message(session, f"m{number}")))

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(add, number)
        assert len({message.sequence for message in stored}) == 20
        async with store.work(write=False) as work:
            rows = await work.messages.list_tail(session.id, limit=50)
        assert rows == sorted(stored, key=lambda message: message.sequence)


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

    @pytest.mark.parametrize("script", SCRIPTS)
    @pytest.mark.proves("V5-search")
    async def test_messages_are_found_by_words_of_any_script_parts_of_compounds_and_other_forms(
        self, store: Store, script: str
    ) -> None:
        text, asked, other = SCRIPTS[script]
        _, session = await open_conversation(store)
        async with store.work() as work:
            await work.messages.add(make_message(session, "1", other))
            await work.messages.add(make_message(session, "2", text))
            found = await work.messages.search(asked, conversation_ids=[session.conversation_id])
        assert [hit.message.id for hit in found] == ["2"]

    async def test_a_session_keeps_as_many_messages_as_it_is_told(self, store: Store) -> None:
        _, session = await open_conversation(store)
        await fill_session(store, session, 6)
        async with store.work() as work:
            await work.messages.keep_newest(session.id, limit=6)
            assert len(await work.messages.list_tail(session.id, limit=9)) == 6
            await work.messages.keep_newest(session.id, limit=2)
            tail = await work.messages.list_tail(session.id, limit=9)
            gone = await work.messages.get(MessageId(f"{session.id} 1"))
            found = await work.messages.search("said", conversation_ids=[session.conversation_id])
            assert (await work.messages.add(make_message(session, "next"))).sequence == 7
        assert [message.sequence for message in tail] == [5, 6]
        assert (gone.session_id, gone.sequence, gone.parts, gone.turn_id) == (None, 0, (), "t1")
        assert len(found) == 2


THREAD = Place(PLACE.platform, PLACE.channel, "t1")


def make_block(number: int, first: str, last: str) -> TranscriptBlock:
    return TranscriptBlock(
        number=number,
        room="10",
        first=first,
        last=last,
        tokens=100 * number,
        digest=f"digest {number}",
        posts=3,
        versions={"7": 2},
        left_out=("8",),
        events=(TranscriptEvent("5", DELETED, first), TranscriptEvent("6", 1)),
    )


@pytest.mark.anyio
class TranscriptContract:
    @pytest.mark.proves("C11")
    async def test_closed_blocks_come_back_in_order_each_place_with_its_own(self, store: Store) -> None:
        first, second = make_block(1, "99", "100"), make_block(2, "101", "1000")
        async with store.work() as work:
            assert await work.transcripts.add_blocks(PLACE, [first, second]) == 2
            assert await work.transcripts.add_blocks(THREAD, [first]) == 1
        async with store.work(write=False) as work:
            assert await work.transcripts.list_blocks(PLACE) == [first, second]
            assert await work.transcripts.list_blocks(THREAD) == [first]
            assert await work.transcripts.list_blocks(Place("discord", "other")) == []

    @pytest.mark.proves("CW11")
    async def test_a_block_is_closed_once_also_where_there_is_no_thread(self, store: Store) -> None:
        first = make_block(1, "99", "100")
        async with store.work() as work:
            await work.transcripts.add_blocks(PLACE, [first])
        async with store.work() as work:
            assert (
                await work.transcripts.add_blocks(PLACE, [make_block(1, "99", "105"), make_block(2, "106", "110")]) == 0
            )
            assert await work.transcripts.add_blocks(PLACE, [make_block(2, "99", "105")]) == 0
            assert (
                await work.transcripts.add_blocks(PLACE, [make_block(2, "101", "105"), make_block(2, "106", "110")])
                == 1
            )
        async with store.work(write=False) as work:
            assert await work.transcripts.list_blocks(PLACE) == [first, make_block(2, "101", "105")]

    async def test_a_block_is_renewed_only_as_it_was_read(self, store: Store) -> None:
        block = make_block(1, "99", "100")
        new = replace(block, digest="other", tokens=7, posts=2, events=(), versions={})
        async with store.work() as work:
            await work.transcripts.add_blocks(PLACE, [block])
            assert await work.transcripts.renew_block(PLACE, new, digest=block.digest)
            assert not await work.transcripts.renew_block(PLACE, block, digest=block.digest)
            assert not await work.transcripts.renew_block(THREAD, block, digest="other")
            assert await work.transcripts.list_blocks(PLACE) == [new]

    async def test_blocks_are_removed_by_number(self, store: Store) -> None:
        blocks = [make_block(1, "1", "2"), make_block(2, "3", "4"), make_block(3, "5", "6")]
        async with store.work() as work:
            await work.transcripts.add_blocks(PLACE, blocks)
            await work.transcripts.remove_blocks(PLACE, [1, 2, 9])
            await work.transcripts.remove_blocks(PLACE, [])
            assert await work.transcripts.list_blocks(PLACE) == blocks[2:]

    async def test_a_stretch_has_every_post_with_its_earlier_texts_deleted_ones_too(self, store: Store) -> None:
        async with store.work() as work:
            await work.archive.put([make_post(str(key)) for key in (98, 99, 100, 101, 102)])
            await work.archive.put([make_post("100", room="11")])
            edited = replace(make_post("99", "new"), changes=PostChanges(edited_at=at(5)))
            await work.archive.put([edited])
            await work.archive.put([replace(edited, text="newest", changes=PostChanges(edited_at=at(6)))])
            await work.archive.mark_deleted(PLATFORM, ["101"], at=at(7))
        stretch = PostRange(PLATFORM, "10", "99", "101")
        async with store.work(write=False) as work:
            found = await work.transcripts.list_range(stretch)
            changed = await work.transcripts.list_range(stretch, changed=True)
            count = await work.transcripts.count_range(stretch)
            chosen = await work.transcripts.find_archived(PLATFORM, ["101", "99", "gone"])
            none = await work.transcripts.find_archived(PLATFORM, [])
        told = [(each.post.id, each.earlier, each.post.text, each.post.changes.deleted_at) for each in found]
        edits = ("99", ("post 99", "new"), "newest", None)
        gone = ("101", (), "post 101", at(7))
        assert [each for each in told if each[0] != "100"] == [edits, gone]
        assert [(each.post.id, each.post.text) for each in changed] == [("99", "newest"), ("101", "post 101")]
        assert chosen == changed
        assert [each.text_at(number) for each in changed[:1] for number in range(4)] == [
            "post 99",
            "new",
            "newest",
            "newest",
        ]
        assert count == len(found)
        assert none == []

    async def test_what_is_forgotten_is_missing_in_a_stretch(self, store: Store) -> None:
        async with store.work() as work:
            await work.archive.put([make_post("1"), make_post("2", author="2"), make_post("3")])
            await work.archive.forget_author(PLATFORM, "2")
            stretch = PostRange(PLATFORM, "10", "1", "3")
            assert [each.post.id for each in await work.transcripts.list_range(stretch)] == ["1", "3"]
            assert await work.transcripts.count_range(stretch) == 2

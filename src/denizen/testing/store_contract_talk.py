"""The store's promises about conversations, sessions and the order of messages."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from denizen.domain.conversation import Place
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, ConversationId, MessageId, SessionId
from denizen.domain.message import Message
from denizen.ports.store import RecentSession, Store
from denizen.testing.store_records import AGENT, NOON, PLACE, at, make_message, open_conversation


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

    async def test_an_agent_has_one_open_session_in_a_conversation(self, store: Store) -> None:
        conversation, session = await open_conversation(store)
        async with store.work() as work:
            again = await work.sessions.current(conversation.id, AGENT, now=at(1))
            other = await work.sessions.current(conversation.id, AgentName("scribe"), now=at(1))
        assert again == session
        assert (session.agent, session.created_at, session.closed_at) == (AGENT, NOON, None)
        assert other.id != session.id

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
        await open_conversation(store, Place("web", "empty"))
        async with store.work() as work:
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
            assert await work.sessions.list_recent(limit=1) == recent[:1]
        assert recent == [
            RecentSession(web, Place("web", "\ufdd0", "1"), 1, at(3)), RecentSession(talk, PLACE, 2, at(2)),
        ]  # fmt: skip
        assert of_discord == recent[1:]

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

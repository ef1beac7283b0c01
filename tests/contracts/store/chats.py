"""The chat contract of the store: chats by owner, shares, forks of sessions, votes, and removal for good."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest

from denizen.domain.chat import Chat, ChatId, ChatMode, MessageVote, Vote, VoteCount
from denizen.domain.conversation import Place, Session
from denizen.domain.delegation import Delegation
from denizen.domain.errors import NotFound
from denizen.domain.ids import MessageId, SessionId, TurnId
from denizen.domain.message import Role
from denizen.domain.summary import Summary
from denizen.domain.turn import TurnResult, TurnStatus
from denizen.ports.chats import ChatChanges
from denizen.ports.store import Fork, Store
from tests.contracts.store.records import AGENT, NOON, at, make_message, make_step, make_turn, open_conversation

ANN, BEN = "web_user:\x00ann", "web_user:ben"


async def open_chat(store: Store, owner: str, name: str, *, hours: float = 0, **more: Any) -> tuple[Chat, Session]:
    conversation, session = await open_conversation(store, Place("web", owner, name))
    chat = Chat(
        id=ChatId(name),
        conversation_id=conversation.id,
        owner=owner,
        agent=AGENT,
        created_at=at(hours),
        updated_at=at(hours),
    )
    async with store.work() as work:
        chat, _ = await work.chats.put(replace(chat, **more))
    return chat, session


@pytest.mark.anyio
class ChatContract:
    async def test_chats_are_listed_by_owner_pinned_ones_first_and_then_the_newest(self, store: Store) -> None:
        old, _ = await open_chat(store, ANN, "old", title="A \x00 title", mode=ChatMode.ADMIN)
        new, _ = await open_chat(store, ANN, "new", hours=2)
        pinned, _ = await open_chat(store, ANN, "pinned", hours=1, is_pinned=True)
        others, _ = await open_chat(store, BEN, "old", hours=3)
        async with store.work(write=False) as work:
            assert await work.chats.list_chats(ANN) == [pinned, new, old]
            assert await work.chats.list_chats(ANN, limit=2) == [pinned, new]
            assert await work.chats.list_chats(ANN, before=at(2)) == [old]
            assert await work.chats.list_chats(BEN) == [others]
            assert await work.chats.find(ANN, ChatId("old")) == old
            assert await work.chats.find("web_user:nobody", ChatId("old")) is None

    async def test_a_chat_is_put_once_for_two_who_put_it_at_once(self, store: Store) -> None:
        chat, _ = await open_chat(store, ANN, "one")
        found: list[tuple[Chat, bool]] = []

        async def put(title: str) -> None:
            async with store.work() as work:
                found.append(await work.chats.put(replace(chat, title=title)))

        async with anyio.create_task_group() as tasks:
            for title in ("a", "b"):
                tasks.start_soon(put, title)
        assert found == [(chat, False)] * 2

    async def test_only_what_is_given_changes(self, store: Store) -> None:
        chat, _ = await open_chat(store, ANN, "one", title="first")
        async with store.work() as work:
            changes = ChatChanges(title="second", is_pinned=True, updated_at=at(5))
            assert await work.chats.change(chat.conversation_id, changes)
            assert await work.chats.change(chat.conversation_id, ChatChanges())
            assert not await work.chats.set_title(chat.conversation_id, "third", instead_of="first")
            assert await work.chats.set_title(chat.conversation_id, "third", instead_of="second")
        async with store.work(write=False) as work:
            changed = replace(chat, title="third", is_pinned=True, updated_at=at(5))
            assert await work.chats.find(ANN, chat.id) == changed

    async def test_a_shared_chat_is_found_by_its_token_until_it_is_not_shared_any_more(self, store: Store) -> None:
        chat, _ = await open_chat(store, ANN, "one")
        await open_chat(store, ANN, "two")  # neither is shared, which is no clash
        async with store.work() as work:
            await work.chats.change(chat.conversation_id, ChatChanges(share_token="t"))
            assert await work.chats.find_shared("t") == replace(chat, share_token="t")
            await work.chats.change(chat.conversation_id, ChatChanges(share_token=""))
            assert await work.chats.find_shared("t") is None
            assert await work.chats.find_shared("") is None

    async def test_a_fork_begins_with_copies_of_the_messages_and_summaries_before_its_place(self, store: Store) -> None:
        chat, session = await open_chat(store, ANN, "one")
        async with store.work() as work:
            for name in ("a", "b", "c", "d"):
                message = replace(make_message(session, name, f"needle {name}"), turn_id=TurnId(f"t-{name}"))
                await work.messages.add(message)
            told = [Summary(session.id, first, last, f"{first}", at(0)) for first, last in ((1, 2), (3, 4))]
            assert await work.summaries.put(told[0], known=())
            assert await work.summaries.put(told[1], known=told[:1])
            fork = await work.sessions.renew(
                chat.conversation_id, AGENT, now=at(1), fork=Fork(parent_id=session.id, sequence=3)
            )
            assert await work.messages.copy(session.id, fork, before=3) == 2
            assert await work.messages.copy(session.id, fork, before=3) == 2
            await work.messages.add(make_message(fork, "e"))
        async with store.work(write=False) as work:
            copies = await work.messages.list_tail(fork.id, limit=10)
            summaries = await work.summaries.list_summaries(fork.id)
            sessions = await work.sessions.list_all(chat.conversation_id)
            hits = await work.messages.search("needle", conversation_ids=[chat.conversation_id])
            old = await work.messages.list_tail(session.id, limit=10)
        assert [(each.text, each.sequence, each.turn_id) for each in copies] == [
            ("needle a", 1, "t-a"),
            ("needle b", 2, "t-b"),
            ("e", 3, None),
        ]
        assert {each.id for each in copies}.isdisjoint({each.id for each in old}) and len(old) == 4
        assert [(each.first, each.last) for each in summaries] == [(1, 2)]
        assert [(each.id, each.parent_id, each.fork_sequence) for each in sessions] == [
            (session.id, None, 0),
            (fork.id, session.id, 3),
        ]
        assert sorted(hit.message.id for hit in hits) == ["a", "b", "c", "d"]

    async def test_an_earlier_session_is_opened_again_in_the_place_of_the_open_one(self, store: Store) -> None:
        chat, first = await open_chat(store, ANN, "one")
        async with store.work() as work:
            second = await work.sessions.renew(chat.conversation_id, AGENT, now=at(1))
            assert await work.sessions.reopen(first.id, now=at(2)) == first
            assert await work.sessions.current(chat.conversation_id, AGENT, now=at(3)) == first
            assert (await work.sessions.get(second.id)).closed_at == at(2)
            assert await work.sessions.reopen(first.id, now=at(4)) == first
            with pytest.raises(NotFound):
                await work.sessions.reopen(SessionId("sess_none"), now=at(5))

    async def test_sessions_are_listed_by_the_channel_of_their_conversation(self, store: Store) -> None:
        for key, owner in (("a", ANN), ("b", BEN)):
            _, session = await open_chat(store, owner, "one")
            async with store.work() as work:
                await work.messages.add(make_message(session, key))
        async with store.work(write=False) as work:
            found = await work.sessions.list_recent(platform="web", channel=ANN)
        assert [each.place.channel for each in found] == [ANN]

    async def test_votes_are_counted_by_the_time_of_the_answer(self, store: Store) -> None:
        _, session = await open_chat(store, ANN, "one")
        votes = [
            MessageVote(message_id=MessageId(f"m{hours}"), vote=vote, reason="so \x00", said_at=at(hours))
            for hours, vote in enumerate((Vote.NEGATIVE, Vote.POSITIVE, Vote.POSITIVE))
        ]
        async with store.work() as work:
            for vote in votes:
                await work.messages.add(make_message(session, vote.message_id, role=Role.ASSISTANT))
                await work.chats.put_vote(replace(vote, vote=Vote.NEGATIVE))
                await work.chats.put_vote(vote)
            late = replace(votes[0], message_id=MessageId("late"), said_at=at(12))
            await work.messages.add(make_message(session, late.message_id, role=Role.ASSISTANT))
            await work.chats.put_vote(late)
            today, tomorrow = (each.date().isoformat() for each in (at(0), at(12)))
            assert await work.chats.count_votes(since=at(0), until=at(2)) == {today: VoteCount(1, 1)}
            assert await work.chats.count_votes(since=at(0), until=at(13)) == {
                today: VoteCount(2, 1),
                tomorrow: VoteCount(0, 1),
            }
            assert await work.chats.count_votes(since=at(3), until=at(9)) == {}
            await work.chats.remove_vote(votes[2].message_id)
            found = await work.chats.list_votes([vote.message_id for vote in votes])
        assert found == {vote.message_id: vote for vote in votes[:2]}
        assert (VoteCount(3, 1).score, VoteCount(0, 0).score) == (0.75, None)

    async def test_a_removed_chat_leaves_empty_turns_only_and_can_be_made_again(self, store: Store) -> None:
        chat, session = await open_chat(store, ANN, "one", share_token="token")
        kept, other = await open_chat(store, ANN, "two")
        turns = [make_turn(session, "t1"), make_turn(session, "t2"), make_turn(other, "t3")]
        async with store.work() as work:
            for turn, place in zip(turns, (session, session, other), strict=True):
                await work.turns.open(turn)
                await work.turns.add_step(make_step(turn, 1))
                await work.messages.add(replace(make_message(place, f"m-{turn.id}"), turn_id=turn.id))
            result = TurnResult(reply="secret", model="m1")
            await work.turns.close(replace(turns[0], status=TurnStatus.DONE, closed_at=at(1), result=result))
        async with store.work() as work:
            for _ in range(2):
                await work.chats.remove(chat.conversation_id, now=at(2))
        async with store.work(write=False) as work:
            done, stopped, running = [await work.turns.get(turn.id) for turn in turns]
            assert (done.status, done.result.reply, done.result.model, done.options) == (TurnStatus.DONE, "", "m1", {})
            assert (stopped.status, stopped.closed_at) == (TurnStatus.CANCELLED, at(2))
            assert (running.status, running.options) == (TurnStatus.OPEN, turns[2].options)
            assert len(await work.turns.list_steps(done.id)) == 1
            assert await work.chats.list_chats(ANN) == [kept]
            assert await work.chats.find_shared("token") is None
            assert await work.messages.list_tail(session.id, limit=10) == []
            assert len(await work.messages.list_tail(other.id, limit=10)) == 1
            assert (await work.sessions.get(session.id)).closed_at == at(2)
        again, renewed = await open_chat(store, ANN, "one")
        assert again.conversation_id == chat.conversation_id and renewed.id != session.id

    async def test_what_agents_were_given_in_a_chat_goes_with_it(self, store: Store) -> None:
        chat, session = await open_chat(store, ANN, "one")
        _, given = await open_conversation(store, Place("delegate", ANN, "delegate:t1:a"))
        _, other = await open_conversation(store, Place("delegate", ANN, "delegate:t9:a"))
        async with store.work() as work:
            for place, key, parent in ((session, "t1", ""), (given, "t2", "t1"), (other, "t3", "t9")):
                turn = make_turn(place, key)
                await work.turns.open(turn)
                await work.messages.add(replace(make_message(place, f"m-{key}"), turn_id=turn.id))
                if parent:
                    await work.delegations.add(
                        Delegation(
                            turn_id=turn.id,
                            task_id=f"task_{key}",
                            parent_id=TurnId(parent),
                            asker=ANN,
                            is_background=True,
                            created_at=NOON,
                        )
                    )
        async with store.work() as work:
            found = await work.delegations.list_in_conversation(chat.conversation_id)
            assert [each.turn_id for each in found] == ["t2"]
            await work.chats.remove(chat.conversation_id, now=at(2))
        async with store.work(write=False) as work:
            assert await work.messages.list_tail(given.id, limit=10) == []
            assert (await work.turns.get(TurnId("t2"))).status is TurnStatus.CANCELLED
            assert len(await work.messages.list_tail(other.id, limit=10)) == 1
            assert (await work.turns.get(TurnId("t3"))).status is TurnStatus.OPEN

    async def test_many_turns_and_their_citations_are_read_at_once(self, store: Store) -> None:
        _, session = await open_chat(store, ANN, "one")
        turns = [make_turn(session, f"t{number}") for number in range(3)]
        async with store.work() as work:
            for turn in turns:
                await work.turns.open(turn)
            found = await work.turns.find_many([turns[0].id, turns[2].id, TurnId("none")])
            assert await work.turns.find_many([]) == []
            assert await work.citations.list_for_all([turns[0].id]) == {}
        assert sorted(turn.id for turn in found) == ["t0", "t2"]

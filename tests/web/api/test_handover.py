"""A chat of the web that is handed to another agent: who answers there, until when, and what ends it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from denizen.domain.agent import Agent, HistorySettings, ToolAccess
from denizen.domain.handover import HAND_OVER, plan_handover
from denizen.domain.ids import AgentName
from denizen.domain.message import ToolResultPart
from denizen.engine.configuration.handovers import find_session_handover
from denizen.ports.model import ModelRequest
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.platform_fixture import list_texts
from tests.web.api.test_chats import events, read, say, texts
from tests.web.api.test_commands import give, reply
from tests.web_fixture import WebFixture, open_web

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V35-handover")]

ADA, BOB, CLEO = AgentName("ada"), AgentName("bob"), AgentName("cleo")
AGENTS = [
    Agent(name, history=HistorySettings(recent_messages=0), tool_access=ToolAccess(delegates_to=to))
    for name, to in ((ADA, (BOB,)), (BOB, (CLEO,)), (CLEO, (BOB,)))
]
BEGUN = "bob answers here from now on, for 15 minutes or 20 messages. Write `!exit` to end it."
ENDED = "ann has ended it: bob does not answer here any more, ada does."


def script(**limits: Any) -> ScriptedModel:
    """Whoever is asked for another agent hands the chat over; everybody else answers."""

    def answer(request: ModelRequest) -> ScriptedReply:
        said = [text for text in list_texts(request) if text][-1]
        is_done = any(isinstance(part, ToolResultPart) for part in request.messages[-1].parts)
        for name in (BOB, CLEO):
            if f"{name}, please" in said and not is_done:
                return ScriptedReply(calls=[call(HAND_OVER, agent=name, **limits)])
        return ScriptedReply(f"Answer to: {said.splitlines()[-1]}")

    return ScriptedModel(otherwise=answer)


async def who_answered(web: WebFixture) -> list[str]:
    """Returns the agents of the turns, in the order of what was said."""
    turns = await web.turns()
    async with web.store.work(write=False) as work:
        order = {turn.id: (await work.messages.get(turn.trigger_id)).sequence for turn in turns}
    return [turn.agent for turn in sorted(turns, key=lambda turn: order[turn.id])]


async def test_an_agent_hands_its_chat_over_and_the_chat_shows_who_answers_and_for_how_long() -> None:
    async with open_web(script(), agents=AGENTS) as web, web.client() as client:
        begun = await say(client, "boats", "bob, please", agent=ADA)
        assert BEGUN in [event["text"] for event in begun if event["type"] == "notice"]
        shown = await read(client, "boats")
        assert (shown["chat"]["agent"], shown["handover"]["agent"], shown["handover"]["messages_left"]) == (
            BOB,
            BOB,
            20,
        )
        await say(client, "boats", "How are boats made?", agent=ADA)  # the page has not heard of it yet
        shown = await read(client, "boats")
        assert shown["handover"]["messages_left"] == 19
        assert [message["author"] for message in shown["messages"] if message["role"] == "assistant"][-2:] == [ADA, BOB]
        assert texts(shown)[0] == "bob, please", "bob goes on with what was said"
        assert await who_answered(web) == [ADA, BOB]


async def test_a_person_hands_a_chat_over_and_exit_ends_it() -> None:
    async with open_web(script(), agents=AGENTS) as web, web.client() as client:
        await say(client, "boats", "Hello")
        said = await reply(client, "/handover bob minutes:5 messages:3", chat="boats")
        assert said == BEGUN.replace("15", "5").replace("20", "3")
        await say(client, "boats", "How are boats made?")
        assert await reply(client, "!exit", chat="boats", agent=BOB) == ENDED.replace("ann", "local")
        shown = await read(client, "boats")
        assert (shown["chat"]["agent"], shown["handover"]) == (ADA, None)
        await say(client, "boats", "And ships?", agent=ADA)
        assert texts(await read(client, "boats"))[-4:] == [
            "How are boats made?",
            "Answer to: How are boats made?",
            "And ships?",
            "Answer to: And ships?",
        ]
        assert await reply(client, "!exit", chat="boats") == "This room was not handed over."
        assert await who_answered(web) == [ADA, BOB, ADA]


async def test_exit_as_a_message_ends_it_too() -> None:
    async with open_web(script(), agents=AGENTS) as web, web.client() as client:
        await say(client, "boats", "bob, please")
        await say(client, "boats", "!exit")
        assert (await read(client, "boats"))["handover"] is None
        assert await who_answered(web) == [ADA, ADA]


async def test_it_ends_after_its_messages_and_after_its_time() -> None:
    async with open_web(script(messages=2), agents=AGENTS) as web, web.client() as client:
        await say(client, "boats", "bob, please")
        for text in ("one", "two"):
            await say(client, "boats", text, agent=BOB)
        shown = await read(client, "boats")
        assert (shown["chat"]["agent"], shown["handover"], texts(shown)[-1]) == (ADA, None, "Answer to: two")
        await say(client, "boats", "three", agent=BOB)  # a page that was not read again
        await reply(client, "/handover cleo minutes:5", chat="boats")
        web.clock.advance(299)
        await say(client, "boats", "four")
        web.clock.advance(1)
        await say(client, "boats", "five")
        assert await who_answered(web) == [ADA, BOB, BOB, ADA, CLEO, ADA]


async def test_it_is_kept_in_the_store_so_that_it_outlives_a_reload_and_a_restart() -> None:
    async with open_web(script(), agents=AGENTS) as web:
        async with web.client() as client:
            await say(client, "boats", "bob, please")
        async with web.client() as again:
            assert (await read(again, "boats"))["handover"]["agent"] == BOB
        [turn] = await web.turns()
        async with web.store.work(write=False) as work:
            [chat] = await work.chats.list_chats(turn.principal.key)
            kept = await find_session_handover(work, chat.conversation_id)
    assert kept is not None
    assert (kept.own, kept.handover) == (ADA, plan_handover(BOB, web.clock.now()))


async def test_agents_hand_a_chat_on_once_only_and_a_choice_of_who_answers_ends_it() -> None:
    async with open_web(script(), agents=AGENTS) as web, web.client() as client:
        for text in ("bob, please", "cleo, please", "bob, please"):
            end = (await say(client, "boats", text))[-1]
        assert end["type"] == "finished"
        assert (await read(client, "boats"))["handover"]["agent"] == CLEO
        assert "handed on already" in str(await _results(client))
        await client.patch("/api/chats/boats", json={"agent": BOB})
        shown = await read(client, "boats")
        assert (shown["chat"]["agent"], shown["handover"]) == (BOB, None)


async def _results(client: httpx2.AsyncClient) -> list[Any]:
    return [use["text"] for message in (await read(client, "boats"))["messages"] for use in message["calls"]]


async def test_a_message_that_is_repeated_stays_with_the_agent_that_took_it() -> None:
    async with open_web(script(), agents=AGENTS) as web, web.client() as client:
        for _ in range(2):
            response = await client.post(
                "/api/chats/boats", json={"message": "bob, please"}, headers={"Idempotency-Key": "k"}
            )
            assert events(response)[-1]["type"] == "finished"
        assert await who_answered(web) == [ADA]


async def test_a_message_that_is_repeated_counts_once() -> None:
    async with open_web(script(messages=5), agents=AGENTS) as web, web.client() as client:
        await say(client, "boats", "bob, please")
        for path, said in (("/api/chats/boats", {}), ("/api/chat", {"session": "boats"})):
            for _ in range(2):
                body = {"message": "How are boats made?", **said}
                response = await client.post(path, json=body, headers={"Idempotency-Key": path})
                assert events(response)[-1]["type"] == "finished"
        assert (await read(client, "boats"))["handover"]["messages_left"] == 3
        assert await who_answered(web) == [ADA, BOB, BOB]


async def test_a_command_tells_who_answers_after_it() -> None:
    async with open_web(script(), agents=AGENTS) as web, web.client() as client:
        await say(client, "boats", "Hello")
        agents: list[str] = []
        for text in ("/handover bob", "/help", "!exit", "/handover bob", "/handover back"):
            [event] = await give(client, text, chat="boats")
            agents.append(event["agent"])
        assert agents == [BOB, BOB, ADA, BOB, ADA]


async def test_an_agent_that_is_not_offered_a_room_and_limits_of_others_are_refused() -> None:
    async with open_web(script(), agents=AGENTS) as web, web.client() as client:
        for text in ("/handover nobody", "/handover bob minutes:0", "/handover ada"):
            await client.post("/api/command", json={"input": text, "chat": "boats"})
        response = await client.post("/v1/chat/completions", json={"model": ADA, "messages": [_said("bob, please")]})
        assert response.status_code == 200
        turns = await web.turns()
        async with web.store.work(write=False) as work:
            for turn in turns:
                assert await find_session_handover(work, turn.conversation_id) is None


def _said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


async def test_a_chat_that_is_removed_leaves_no_hand_over_behind() -> None:
    async with open_web(script(), agents=AGENTS) as web, web.client() as client:
        await say(client, "boats", "bob, please")
        [turn] = await web.turns()
        assert (await client.delete("/api/chats/boats")).status_code == 204
        async with web.store.work(write=False) as work:
            assert await find_session_handover(work, turn.conversation_id) is None


async def test_who_had_a_chat_answers_again_once_chosen_and_where_its_own_agent_is_gone() -> None:
    async with open_web(script(), agents=AGENTS) as web, web.client() as client:
        await say(client, "boats", "bob, please")
        await reply(client, "!exit", chat="boats")
        await client.patch("/api/chats/boats", json={"agent": BOB})
        await say(client, "boats", "one", agent=BOB)
        await say(client, "boats", "bob, please", agent=ADA)
        await reply(client, "!exit", chat="boats")
        left = replace(web.runtime.current, agents={each.name: each for each in AGENTS if each.name != ADA})
        await web.runtime.swap(replace(left, number=2, default_agent=BOB))
        await say(client, "boats", "two", agent=BOB)
        assert await who_answered(web) == [ADA, BOB, ADA, BOB]

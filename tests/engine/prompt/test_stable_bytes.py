"""What was sent once is sent again with the same bytes, so that providers read it from their cache (P5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from denizen.domain.agent import Agent, AgentInstructions, ContextStrategy, TimestampPolicy, TurnLimits
from denizen.domain.message import Role, TextPart
from denizen.domain.prompt import PromptMessage
from denizen.domain.turn import SessionChoice
from denizen.engine.prompt.system_prompt import assemble_system_prompt
from denizen.testing.model_server import ModelAnswer, ModelCall, ModelServer, model_server
from denizen.testing.prompt_cache import PromptCache
from tests.adapters.models.wire_fixture import ANTHROPIC, OPENAI, Wire
from tests.engine.engine_fixture import NAME, message
from tests.engine.prompt.provider_fixture import PersistentState, ProviderFixture, open_provider_engine
from tests.prompt_prefix import assert_stable_prefixes, find_first_change, split_prompt

pytestmark = pytest.mark.anyio

PERSONA = (("SOUL.md", "You are Ada, who looks after a library. " * 40),)
ASSISTANT = Agent(NAME, instructions=AgentInstructions(persona=PERSONA))
PARTICIPANT = replace(ASSISTANT, history=replace(ASSISTANT.history, context=ContextStrategy.TRANSCRIPT))
WIRES = pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI], ids=lambda wire: wire.kind)
AGENTS = pytest.mark.parametrize("agent", [ASSISTANT, PARTICIPANT], ids=lambda agent: agent.history.context)


def name_segments(agent: Agent) -> Mapping[str, str]:
    return {segment.text: segment.name for segment in assemble_system_prompt(agent, tool_rules=True)}


def look(number: int) -> ModelAnswer:
    return ModelAnswer(text="One moment.", calls=[ModelCall("look", {"q": "x" * 40 * number}, f"look-{number}")])


def write(number: int) -> ModelAnswer:
    return ModelAnswer(calls=[ModelCall("write", {"q": f"note {number}"}, f"write-{number}")])


async def three_turns(fixture: ProviderFixture, server: ModelServer, number: int) -> None:
    """A plain one, one that looks something up twice, one that writes something down."""
    server.script(
        ModelAnswer(text=f"Answer {number}."),
        look(number),
        look(number + 50),
        ModelAnswer(text="Found."),
        write(number),
        ModelAnswer(text="Noted."),
    )
    for question in ("hello", "look it up", "write it down"):
        await fixture.ask(f"{question} {number}")
        await fixture.remember(f"what Ana said: {question}, and {number} it was")
        fixture.state.clock.advance(minutes=2)


@WIRES
@AGENTS
@pytest.mark.proves("P5")
async def test_the_prompt_keeps_its_bytes_through_tools_memories_reload_midnight_and_restart(
    wire: Wire, agent: Agent
) -> None:
    state = PersistentState()
    state.clock.time = state.clock.time.replace(hour=22)
    async with model_server(cache=PromptCache()) as server:
        async with open_provider_engine(server, wire, agent, state) as fixture:
            await three_turns(fixture, server, 1)
            await fixture.reload()
            await three_turns(fixture, server, 2)
            state.clock.advance(hours=3)
            await three_turns(fixture, server, 3)
        async with open_provider_engine(server, wire, agent, state) as fixture:
            await three_turns(fixture, server, 4)
        bodies = server.bodies
    if agent is PARTICIPANT:  # what it does with tools is in no later prompt
        bodies = [body for body in bodies if not _uses_tools(body)]
    assert len(bodies) >= 12
    assert "what Ana said" in json.dumps(bodies[-1])
    assert_stable_prefixes(bodies, name_segments(agent))


def _uses_tools(body: Mapping[str, object]) -> bool:
    return any(f'"{word}"' in json.dumps(body["messages"]) for word in ("tool_result", "tool_use", "tool_calls"))


@pytest.mark.proves("P5", "C22")
async def test_a_session_reads_all_but_the_newest_from_the_cache() -> None:
    cache = PromptCache(least=1)
    async with model_server(cache=cache) as server, open_provider_engine(server, ANTHROPIC, ASSISTANT) as fixture:
        for number in range(1, 9):
            await three_turns(fixture, server, number)
    late = cache.bills[-6:]
    assert sum(bill.read for bill in late) > 0.95 * sum(bill.input for bill in late)
    assert all(bill.long == 0 for bill in late)


@pytest.mark.proves("P5", "C22")
async def test_a_participant_reads_all_but_the_newest_of_a_channel_from_the_cache() -> None:
    cache, state = PromptCache(), PersistentState()
    async with (
        model_server(cache=cache) as server,
        open_provider_engine(server, ANTHROPIC, PARTICIPANT, state) as fixture,
    ):
        for number in range(200):
            await fixture.post(("Ana", "Bob")[number % 2], f"they talk about the weather of day {number} " * 3)
        for number in range(14):
            await fixture.post("Bob", f"it still rains {number}")
            server.script(ModelAnswer(text=f"It does. {number}"))
            await fixture.ask(f"does it rain {number}?")
            cache.advance(60)
            state.clock.advance(minutes=1)
    late = cache.bills[9:]
    assert sum(bill.read for bill in late) > 0.95 * sum(bill.input for bill in late)


@pytest.mark.proves("P5")
async def test_an_assistant_reads_all_but_the_newest_from_the_cache_in_a_channel_where_others_talk_too() -> None:
    cache, state = PromptCache(), PersistentState()
    async with (
        model_server(cache=cache) as server,
        open_provider_engine(server, ANTHROPIC, ASSISTANT, state) as fixture,
    ):
        for number in range(36):
            for name in ("Bob", "Cleo"):
                await fixture.post(name, f"it still rains {number}")
            text = f"does it rain {number}? " + "and for how long? " * 5
            server.script(ModelAnswer(text=f"It does. {number} " + "and it goes on " * 20))
            await fixture.answer(await fixture.post("Ana", text), text)
            cache.advance(60)
            state.clock.advance(minutes=1)
        assert "Cleo: it still rains 35" in json.dumps(server.bodies[-1])
    late = cache.bills[24:]
    assert sum(bill.read for bill in late) > 0.95 * sum(bill.input for bill in late)


@pytest.mark.proves("C22")
async def test_longer_pauses_are_noticed_and_the_conversation_is_kept_for_an_hour() -> None:
    cache, state = PromptCache(least=1), PersistentState()
    async with (
        model_server(cache=cache) as server,
        open_provider_engine(server, ANTHROPIC, ASSISTANT, state) as fixture,
    ):
        for number in range(12):
            server.script(ModelAnswer(text="Yes."))
            await fixture.ask(f"question {number}")
            state.clock.advance(minutes=7)
            cache.advance(420)
    assert all(bill.read > 0.9 * bill.input and bill.short == 0 for bill in cache.bills[3:])


@WIRES
@AGENTS
async def test_who_is_asked_knows_the_date_also_on_the_next_day(wire: Wire, agent: Agent) -> None:
    state = PersistentState()
    async with model_server() as server, open_provider_engine(server, wire, agent, state) as fixture:
        for day in (1, 1, 2):
            state.clock.time = state.clock.time.replace(day=day)
            server.script(ModelAnswer(text="Yes."))
            await fixture.ask("which day is it?")
        texts = [json.dumps(body["messages"]) for body in server.bodies]
        systems = {json.dumps(body.get("system")) for body in server.bodies}
    assert [("2026-11-01" in text, "2026-11-02" in text) for text in texts][:2] == [(True, False)] * 2
    assert "2026-11-02" in texts[2]
    if wire is ANTHROPIC:
        assert len(systems) == 1


async def test_the_date_is_told_behind_the_question_where_its_mark_has_left_the_window() -> None:
    agent = replace(ASSISTANT, limits=TurnLimits(max_history_tokens=80))
    async with model_server() as server, open_provider_engine(server, ANTHROPIC, agent) as fixture:
        for number in range(3):
            server.script(ModelAnswer(text="Yes. " * 20))
            await fixture.ask(f"{number} " * 40)
        first, *_, last = server.bodies
    assert [text for text in list_texts(first) if "Today is" in text] == list_texts(first)
    assert list_texts(last)[-1].startswith("[Today is")
    assert "cache_control" not in last["messages"][-1]["content"][-1]


async def test_clients_that_carry_the_history_are_told_the_date_at_the_end_of_the_system_prompt() -> None:
    history = (PromptMessage(Role.USER, (TextPart("hi"),)), PromptMessage(Role.ASSISTANT, (TextPart("Hello."),)))
    async with model_server() as server, open_provider_engine(server, ANTHROPIC, ASSISTANT) as fixture:
        server.script(ModelAnswer(text="Yes."))
        asked = message("which day is it?", agent=NAME, model=ANTHROPIC.name, session=SessionChoice(history=history))
        assert not (await fixture.turns.ask(asked)).failure
        body = server.bodies[0]
    assert body["system"][-1]["text"].startswith("Today is")
    assert "cache_control" in body["system"][-2]
    assert "Today is" not in json.dumps(body["messages"])


def list_texts(body: Mapping[str, Any]) -> list[str]:
    return [block["text"] for told in body["messages"] for block in told["content"] if block["type"] == "text"]


async def test_the_date_is_told_in_the_zone_of_the_agent() -> None:
    agent = replace(ASSISTANT, history=replace(ASSISTANT.history, timestamps=TimestampPolicy("Asia/Tokyo")))
    state = PersistentState()
    state.clock.time = state.clock.time.replace(day=1, hour=20)
    async with model_server() as server, open_provider_engine(server, ANTHROPIC, agent, state) as fixture:
        server.script(ModelAnswer(text="Yes."))
        await fixture.ask("which day is it?")
        assert "Today is Monday, 2026-11-02 (Asia/Tokyo)." in json.dumps(server.bodies[0]["messages"])


def test_what_broke_first_is_named() -> None:
    system = [{"type": "text", "text": "You are Ada."}, {"type": "text", "text": "Be brief."}]
    told = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}]
    earlier = {"tools": [{"name": "look"}], "system": system, "messages": told[:1]}
    names = {"You are Ada.": "persona"}
    assert find_first_change(earlier, {**earlier, "messages": told}) == ""
    assert "tool 'look' broke" in find_first_change(earlier, {**earlier, "tools": [{"name": "see"}]})
    changed = [{"type": "text", "text": "You are Bob."}, system[1]]
    assert find_first_change(earlier, {**earlier, "system": changed}, names).startswith(
        "system segment 'persona' broke"
    )
    other = [{"role": "user", "content": "ho"}]
    assert find_first_change(earlier, {**earlier, "messages": other}).startswith("message 0 (user), part 0 broke")
    assert "became nothing" in find_first_change({**earlier, "messages": told}, earlier)
    assert len(split_prompt(earlier, names)) == 4

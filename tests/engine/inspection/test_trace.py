"""What is recorded of a turn for people who ask why: its prompts by segment, what was cached, its question."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from denizen.domain.agent import Agent, AgentInstructions, ToolPlanning
from denizen.domain.ids import TurnId
from denizen.domain.prompt import Stability
from denizen.domain.trace import sha256_hex
from denizen.domain.usage import Usage
from denizen.engine.inspection.queries import Queries, TurnTrace
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.engine_fixture import ANA, NAME, EngineFixture, open_engine

pytestmark = pytest.mark.anyio

ADA = Agent(NAME, instructions=AgentInstructions(persona=(("IDENTITY.md", "You are Ada."),)))


async def load_trace(engine: EngineFixture, turn_id: TurnId) -> TurnTrace:
    return await Queries(engine.runtime, engine.services).get_turn(turn_id)


@pytest.mark.proves("P4")
async def test_a_turn_tells_what_its_prompt_was_made_of() -> None:
    model = ScriptedModel(
        ScriptedReply("Hello."), ScriptedReply(calls=[call("look", q="a")]), ScriptedReply("It is a.")
    )
    async with open_engine(model, agent=ADA) as engine:
        await engine.say("hi")
        done = await engine.say("what is a?", instructions="Be kind.")
        trace = await load_trace(engine, done.turn_id)
    assert trace.question == "what is a?"
    [prompt] = trace.prompts  # both steps were asked with the same segments and tools
    assert (prompt.step, prompt.model, prompt.tools) == (1, "scripted/model", ("look", "write"))
    assert prompt.tool_tokens > 0
    assert [(m.kind, m.count) for m in prompt.messages] == [("history", 2), ("question", 1)]
    sent = model.requests[-1].segments
    assert [(s.name, s.text, s.sha256) for s in prompt.segments] == [(s.name, s.text, sha256_hex(s.text)) for s in sent]
    assert {s.name: s.stability for s in prompt.segments}["instructions"] is Stability.SESSION
    assert prompt.segments[0].text == "You are Ada."


@pytest.mark.proves("P4")
async def test_a_prompt_of_its_own_is_recorded_for_each_step_with_other_segments_or_tools() -> None:
    model = ScriptedModel(
        ScriptedReply('{"tool": "look", "args": {"q": "a"}}'),
        ScriptedReply('{"tool": "none"}'),
        ScriptedReply("It is a."),
    )
    async with open_engine(
        model, agent=replace(ADA, tool_access=replace(ADA.tool_access, planning=ToolPlanning.PLAN))
    ) as engine:
        trace = await load_trace(engine, (await engine.say("what is a?")).turn_id)
    assert [step.purpose for step in trace.steps] == ["plan", "plan", "answer"]
    assert [(p.step, p.segments[0].name) for p in trace.prompts] == [(1, "planner"), (3, "persona")]
    assert [(m.kind, m.count) for m in trace.prompts[1].messages] == [("question", 1), ("note", 1)]


@pytest.mark.proves("P4")
async def test_each_step_tells_what_the_provider_read_from_its_cache_and_wrote_to_it() -> None:
    usage = Usage(1000, 5, cache_read_tokens=700, cache_write_tokens=200, requests=1, cost_usd=Decimal("0.02"))
    async with open_engine(ScriptedModel(ScriptedReply("Hello.", usage=usage)), agent=ADA) as engine:
        [step] = (await load_trace(engine, (await engine.say("hi")).turn_id)).steps
    read = step.usage
    assert (read.cache_read_tokens, read.cache_write_tokens, read.new_tokens) == (700, 200, 100)
    assert read.cost_usd == Decimal("0.02")


async def test_words_that_may_be_forgotten_are_kept_nowhere_else() -> None:
    """The record of a prompt has sizes and hashes; what the operator wrote is the only text."""
    said = ("my secret is plum", "the peach is yours", "call me apricot")
    model = ScriptedModel(ScriptedReply(said[1]), ScriptedReply("ok"))
    async with open_engine(model, agent=ADA) as engine:
        await engine.say(said[0])
        done = await engine.say("again", instructions=said[2])
        async with engine.store.work() as work:
            await work.archive.forget_author("terminal", ANA.id)
            kept = repr(await work.turns.list_prompts(done.turn_id))
        trace = await load_trace(engine, done.turn_id)
    assert "You are Ada." in kept
    assert not [words for words in said if words in kept]
    assert trace.question == "[forgotten]"

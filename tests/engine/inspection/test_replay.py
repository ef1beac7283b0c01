"""A turn once more: on another model or agent, with the results of then, and without any trace of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from denizen.domain.agent import Agent, AgentInstructions, ContextStrategy, HistorySettings, ToolAccess, ToolPlanning
from denizen.domain.errors import Conflict, NotFound
from denizen.domain.hook import Hook, Hooks
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.message import ImagePart, TextPart, ToolResultPart, join_text
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.usage import Usage
from denizen.engine.configuration.generation import Generation
from denizen.engine.hooks.runner import hook_run_id
from denizen.engine.inspection.replay import ReplayResult, replay_turn
from denizen.ports.model import Capabilities, ModelRequest
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedModels, ScriptedReply, call
from tests.clock import ManualClock
from tests.engine.engine_fixture import ANA, NAME, EngineFixture, ToolsetFixture, message, open_engine, strip_date

pytestmark = pytest.mark.anyio

BOB = AgentName("bob")


@asynccontextmanager
async def open_two(
    first: ScriptedModel, second: ScriptedModel, *agents: Agent, tools: ToolsetFixture | None = None
) -> AsyncGenerator[EngineFixture]:
    """The agents, on `first` unless they say otherwise; `second` is another model that is configured."""
    known = agents or (Agent(NAME, model="first"),)
    async with open_engine(first, tools) as engine:
        models = ScriptedModels({"first": first, "second": second})
        generation = Generation(
            number=2,
            agents={agent.name: agent for agent in known},
            default_agent=known[0].name,
            models=models,
            toolsets=(engine.tools,),
        )
        await engine.runtime.swap(generation)
        yield engine


async def replay(engine: EngineFixture, turn_id: TurnId, *, agent: str = "", model: str = "second") -> ReplayResult:
    return await replay_turn(engine.runtime, engine.services, turn_id, agent=agent, model=model)


def list_texts(request: ModelRequest) -> list[str]:
    """Texts and results, without the notes in brackets."""
    parts = [part for message in request.messages for part in message.parts]
    return [strip_date(part.text) for part in parts if isinstance(part, TextPart | ToolResultPart)]


async def test_a_replay_of_a_schedule_s_turn_reads_what_its_hooks_put_out_then_and_runs_none() -> None:
    first, second = ScriptedModel(ScriptedReply("Then.")), ScriptedModel(ScriptedReply("Now."))
    hooks = Hooks((Hook("look", {"q": "news"}),), (Hook("look", {"q": "after"}),))
    async with open_two(first, second, Agent(NAME, model="first", hooks=hooks)) as engine:
        done = await engine.say("Tell.", principal=Principal(PrincipalKind.SCHEDULE, "digest", "digest"))
        await engine.durable.wait(hook_run_id(done.turn_id))
        result = await replay(engine, done.turn_id)
        assert [each.args["q"] for each in engine.tools.calls] == ["news", "after"]
    assert result.reply == "Now."
    assert "found news" in str(list_texts(first.requests[0]))
    assert list_texts(second.requests[0]) == list_texts(first.requests[0])


@pytest.mark.proves("P4")
async def test_another_model_answers_the_same_question_with_the_history_of_then_and_the_results_of_then() -> None:
    first = ScriptedModel(
        ScriptedReply("Hello."),
        ScriptedReply(calls=[call("look", q="a")]),
        ScriptedReply("It is a."),
        ScriptedReply("later"),
    )
    second = ScriptedModel(
        ScriptedReply(calls=[call("look", q="a")], usage=Usage(20, 2, requests=1)),
        ScriptedReply("It is A."),
        name="scripted/second",
    )
    async with open_two(first, second) as engine:
        await engine.say("hi")
        done = await engine.say("what is a?")
        await engine.say("and then?")
        ran = len(engine.tools.calls)
        result = await replay(engine, done.turn_id)
        assert len(engine.tools.calls) == ran == 1
    assert (result.recorded.turn.result.reply, result.reply, result.model) == (
        "It is a.",
        "It is A.",
        "scripted/second",
    )
    assert result.usage == Usage(30, 7, requests=2)
    assert [step.purpose for step in result.steps] == ["act", "act"]
    assert [record.outcome.result.text for record in result.calls] == ["found a"]
    assert result.unrecorded == []
    assert list_texts(second.requests[0]) == ["hi", "Hello.", "what is a?"] == list_texts(first.requests[1])
    assert list_texts(second.requests[1])[-1] == "found a"


async def test_a_replay_leaves_nothing_behind() -> None:
    first, second = (
        ScriptedModel(ScriptedReply(calls=[call("look", q="a")]), ScriptedReply("yes")),
        ScriptedModel(ScriptedReply(calls=[call("look", q="a")]), ScriptedReply("no")),
    )
    async with open_two(first, second) as engine:
        done = await engine.say("well?")

        async def everything() -> object:
            async with engine.store.work() as work:
                turns = await work.turns.list_turns()
                steps = [await work.turns.list_steps(turn.id) for turn in turns]
                calls = [await work.turns.list_calls(turn.id) for turn in turns]
                tail = await work.messages.list_tail(turns[0].session_id, limit=100)
                usage = await work.ledger.list_usage(since=turns[-1].opened_at)
                return turns, steps, calls, tail, usage

        before = await everything()
        await replay(engine, done.turn_id)
        assert await everything() == before
        assert await engine.durable.pending() == []


async def test_a_call_that_was_not_recorded_gets_an_error_and_does_not_run() -> None:
    first = ScriptedModel(ScriptedReply(calls=[call("look", q="a")]), ScriptedReply("It is a."))
    second = ScriptedModel(
        ScriptedReply(calls=[call("look", q="b"), call("write", q="a"), call("gone")]), ScriptedReply("I do not know.")
    )
    async with open_two(first, second) as engine:
        done = await engine.say("what is a?")
        engine.tools.calls.clear()
        result = await replay(engine, done.turn_id)
        assert engine.tools.calls == []
    assert [(each.tool, each.args) for each in result.unrecorded] == [("look", {"q": "b"}), ("write", {"q": "a"})]
    texts = list_texts(second.requests[1])[-3:]
    assert [text == "This call was not recorded, and nothing runs in a replay." for text in texts] == [
        True,
        True,
        False,
    ]


async def test_results_of_the_same_call_come_in_the_order_of_then_and_the_last_stays() -> None:
    count = iter(range(10))

    async def run(call: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult(f"written {next(count)}")

    write = call("write", q="a")
    first = ScriptedModel(ScriptedReply(calls=[write]), ScriptedReply(calls=[write]), ScriptedReply("done"))
    second = ScriptedModel(ScriptedReply(calls=[write, write]), ScriptedReply(calls=[write]), ScriptedReply("done"))
    async with open_two(first, second, tools=ToolsetFixture(run=run)) as engine:
        done = await engine.say("write it twice")
        result = await replay(engine, done.turn_id)
    assert [record.outcome.result.text for record in result.calls] == ["written 0", "written 1", "written 1"]
    assert next(count) == 2


async def test_answers_given_while_the_question_waited_belong_to_its_history() -> None:
    gate = ReplyGate()
    first, second = (
        ScriptedModel(ScriptedReply("one", before=gate), ScriptedReply("two")),
        ScriptedModel(ScriptedReply("2")),
    )
    async with open_two(first, second) as engine:
        await engine.turns.submit(message("1?"))
        await gate.reached.wait()
        waiting = await engine.turns.submit(message("2?"))
        gate.open.set()
        await engine.durable.wait(waiting.id)
        await replay(engine, waiting.id)
    assert list_texts(second.requests[0]) == list_texts(first.requests[1]) == ["1?", "one", "2?"]


async def test_another_agent_answers_on_its_own_model_with_its_own_prompt() -> None:
    first, second = (
        ScriptedModel(ScriptedReply("a")),
        ScriptedModel(ScriptedReply('{"tool": "none"}'), ScriptedReply("b"), name="scripted/second"),
    )
    bob = Agent(
        BOB,
        model="second",
        instructions=AgentInstructions(persona=(("SOUL.md", "You are Bob."),)),
        tool_access=ToolAccess(planning=ToolPlanning.PLAN),
    )
    async with open_two(first, second, Agent(NAME, model="first"), bob) as engine:
        done = await engine.say("who?", model="first")
        result = await replay(engine, done.turn_id, agent="bob", model="")
    assert (result.agent, result.model, result.reply) == (BOB, "scripted/second", "b")
    assert second.requests[1].segments[0].text == "You are Bob."


async def test_what_cannot_be_repeated_is_told() -> None:
    gate = ReplyGate()
    first, second = ScriptedModel(ScriptedReply("a"), ScriptedReply("b", before=gate)), ScriptedModel()
    async with open_two(first, second) as engine:
        done = await engine.say("x")
        running = await engine.turns.submit(message("y"))
        await gate.reached.wait()
        with pytest.raises(Conflict, match="has not ended"):
            await replay(engine, running.id)
        gate.open.set()
        await engine.durable.wait(running.id)
        with pytest.raises(NotFound, match="no turn turn_none"):
            await replay(engine, TurnId("turn_none"))
        with pytest.raises(NotFound, match="no agent 'zed'"):
            await replay(engine, done.turn_id, agent="zed")
        with pytest.raises(NotFound, match="no model 'huge'"):
            await replay(engine, done.turn_id, model="huge")
        async with engine.store.work() as work:
            await work.messages.forget_turn(running.id)
        with pytest.raises(Conflict, match="was asked anew"):
            await replay(engine, running.id)
        async with engine.store.work() as work:
            await work.archive.forget_author("terminal", ANA.id)
        with pytest.raises(Conflict, match="was forgotten"):
            await replay(engine, done.turn_id)


async def test_a_turn_of_an_agent_or_model_that_is_gone_says_what_to_name() -> None:
    first, second = ScriptedModel(ScriptedReply("a"), ScriptedReply("b")), ScriptedModel()
    async with open_two(first, second) as engine:
        done = await engine.say("x")
        named = await engine.say("x", model="first")
        bob = Agent(BOB, model="second")
        await engine.runtime.swap(
            Generation(
                number=3,
                agents={BOB: bob},
                default_agent=BOB,
                models=ScriptedModels({"second": second}),
                toolsets=(engine.tools,),
            )
        )
        with pytest.raises(NotFound) as gone:
            await replay(engine, done.turn_id)
        assert (gone.value.message, gone.value.fix) == (
            "The agent 'ada' of this turn is not configured any more.",
            "Name another with --agent.",
        )
        ada = Agent(NAME, model="second")
        await engine.runtime.swap(
            Generation(
                number=4,
                agents={NAME: ada},
                default_agent=NAME,
                models=ScriptedModels({"second": second}),
                toolsets=(engine.tools,),
            )
        )
        with pytest.raises(NotFound) as lost:
            await replay(engine, named.turn_id, model="")
        assert lost.value.fix == "Name another with --model."


async def test_pictures_whose_addresses_have_expired_are_left_out() -> None:
    sees = Capabilities(images=True)
    first = ScriptedModel(ScriptedReply("a cat"), ScriptedReply("yes"), capabilities=sees)
    second = ScriptedModel(*[ScriptedReply("a dog")] * 3, capabilities=sees)
    asked = (TextPart("what is it?"), ImagePart("https://pictures.example/1.png"))
    async with open_two(first, second) as engine:
        done = await engine.say("x", parts=asked)
        more = await engine.say("sure?")
        await replay(engine, done.turn_id)
        later = replace(engine.services, clock=ManualClock(datetime.now(UTC) + timedelta(days=1)))
        await replay_turn(engine.runtime, later, done.turn_id, model="second")
        await replay_turn(engine.runtime, later, more.turn_id, model="second")
    text, picture = second.requests[0].messages[-1].parts
    assert (join_text([text]), picture) == (join_text(first.requests[0].messages[0].parts), asked[1])
    remark = TextPart("[a picture was shown here]")
    assert second.requests[1].messages[-1].parts == second.requests[2].messages[0].parts == (text, remark)


async def test_a_participant_reads_what_was_said_up_to_the_question() -> None:
    first, second = (
        ScriptedModel(ScriptedReply("one"), ScriptedReply("two"), ScriptedReply("three")),
        ScriptedModel(ScriptedReply("2")),
    )
    participant = Agent(
        NAME,
        model="first",
        history=HistorySettings(context=ContextStrategy.TRANSCRIPT),
        tool_access=ToolAccess(tools=()),
    )
    async with open_two(first, second, participant) as engine:
        await engine.say("first?")
        done = await engine.say("second?")
        await engine.say("third?")
        await replay(engine, done.turn_id)
    assert list_texts(second.requests[0]) == list_texts(first.requests[1])

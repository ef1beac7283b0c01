"""Plan-then-act for small models and those without native tool calls."""

import json

import pytest

from denizen.domain.agent import Agent, AgentInstructions, ToolAccess, ToolPlanning
from denizen.domain.errors import Unavailable
from denizen.domain.json import Json
from denizen.domain.message import Role, TextPart
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import TurnStatus
from denizen.engine.loop.planning import MAX_PLANS
from denizen.engine.loop.steps import LIMIT_NOTE
from denizen.engine.tools.toolbox import uses_planning
from denizen.ports.model import Capabilities, ModelRequest
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.engine_fixture import NAME, ToolsetFixture, open_engine

pytestmark = pytest.mark.anyio

LARGE = Capabilities(native_tools=False)
SMALL = Capabilities(native_tools=False, small=True, context_tokens=8192)


NO_TOOL = ScriptedReply('{"tool": "none"}')


def plan(tool: str, **args: Json) -> ScriptedReply:
    return ScriptedReply(json.dumps({"tool": tool, "args": args}))


def get_last_text(request: ModelRequest) -> str:
    part = request.messages[-1].parts[-1]
    assert isinstance(part, TextPart)
    return part.text


def test_small_models_and_those_without_tools_plan_unless_told_otherwise() -> None:
    assert uses_planning(ToolPlanning.AUTO, SMALL)
    assert uses_planning(ToolPlanning.AUTO, Capabilities(small=True))
    assert not uses_planning(ToolPlanning.AUTO, Capabilities())
    assert uses_planning(ToolPlanning.PLAN, Capabilities())
    assert not uses_planning(ToolPlanning.NATIVE, SMALL)


@pytest.mark.proves("L8", "L4")
async def test_a_plan_is_carried_out_and_answered_from_its_results() -> None:
    model = ScriptedModel(plan("look", q="Rome"), ScriptedReply("Sunny."), capabilities=SMALL)
    async with open_engine(model) as engine:
        done = await engine.say("Weather in Rome?")
        assert done.reply == "Sunny."
        assert "found Rome" in get_last_text(model.requests[1])
        assert model.requests[0].output_schema is not None
        assert model.requests[0].tools == ()
        assert [m.role for m in await engine.session()] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]


async def test_the_plan_is_not_shown_and_the_answer_is_streamed() -> None:
    model = ScriptedModel(plan("look", q="a"), ScriptedReply("Here."), capabilities=SMALL)
    async with open_engine(model) as engine:
        events = await engine.watch("x")
        assert "".join(getattr(event, "text", "") for event in events if type(event).__name__ == "TextAdded") == "Here."


async def test_a_plan_sees_the_tools_and_the_end_of_the_conversation_and_not_the_persona() -> None:
    agent = Agent(NAME, instructions=AgentInstructions(persona=(("IDENTITY.md", "You are Ada."),)))
    model = ScriptedModel(otherwise=lambda r: NO_TOOL if r.output_schema else ScriptedReply("ok"), capabilities=SMALL)
    async with open_engine(model, agent=agent) as engine:
        for number in range(6):
            await engine.say(f"message {number}")
        planned, answered = model.requests[-2:]
        assert [segment.name for segment in planned.segments] == ["planner", "date"]
        assert len(planned.messages) == 5 and get_last_text(planned) == "message 5"
        assert len(answered.messages) == 11


@pytest.mark.proves("T15")
async def test_an_answer_after_the_last_plan_says_so_in_brackets() -> None:
    plans = [plan("look", q=str(number)) for number in range(MAX_PLANS)]
    model = ScriptedModel(*plans, ScriptedReply("Half of it."), capabilities=LARGE)
    async with open_engine(model) as engine:
        assert (await engine.say("x")).reply == "Half of it." + LIMIT_NOTE
    model = ScriptedModel(*plans[1:], NO_TOOL, ScriptedReply("All of it."), capabilities=LARGE)
    async with open_engine(model) as engine:
        assert (await engine.say("x")).reply == "All of it."


@pytest.mark.proves("LW10")
async def test_a_second_tool_is_planned_with_the_first_result_in_sight() -> None:
    model = ScriptedModel(
        plan("look", q="Oslo"),
        plan("look", q="Madrid"),
        NO_TOOL,
        ScriptedReply("Madrid is warmer."),
        capabilities=LARGE,
    )
    async with open_engine(model) as engine:
        await engine.say("Oslo or Madrid?")
        assert "found Oslo" in get_last_text(model.requests[1])
        assert "found Oslo" in get_last_text(model.requests[3]) and "found Madrid" in get_last_text(model.requests[3])


async def test_the_same_call_again_ends_the_planning() -> None:
    model = ScriptedModel(plan("look", q="a"), plan("look", q="a"), ScriptedReply("a it is"), capabilities=LARGE)
    async with open_engine(model) as engine:
        assert (await engine.say("x")).reply == "a it is"
        assert len(engine.tools.calls) == 1


@pytest.mark.proves("L5")
async def test_a_call_that_failed_is_planned_once_more_with_the_error_in_sight() -> None:
    model = ScriptedModel(plan("look"), plan("look", q="a"), ScriptedReply("found it"), capabilities=SMALL)
    async with open_engine(model) as engine:
        done = await engine.say("x")
        assert done.reply == "found it"
        assert "Expected: q (string, required)" in get_last_text(model.requests[1])
        assert len(engine.tools.calls) == 1


@pytest.mark.parametrize(
    "bad", [ScriptedReply("I think..."), ScriptedReply(""), ScriptedReply('{"tool": "fly"}'), Unavailable("down")]
)
@pytest.mark.proves("L4", "L10", "E10")
async def test_a_bad_plan_never_fails_the_chat(bad: ScriptedReply | Unavailable) -> None:
    model = ScriptedModel(
        bad, otherwise=lambda r: ScriptedReply("" if r.output_schema else "Anyway."), capabilities=SMALL
    )
    async with open_engine(model) as engine:
        done = await engine.say("x")
        assert (done.status, done.reply) == (TurnStatus.DONE, "Anyway.")


@pytest.mark.proves("L10")
async def test_a_failing_tool_is_answered_with_its_reason_in_sight() -> None:
    async def fail(call: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult("no such place", is_error=True)

    model = ScriptedModel(plan("look", q="x"), NO_TOOL, ScriptedReply("Sorry, no such place."), capabilities=SMALL)
    async with open_engine(model, ToolsetFixture(run=fail)) as engine:
        await engine.say("x")
        assert "failed: no such place" in get_last_text(model.requests[-1])


@pytest.mark.proves("T19")
async def test_at_most_five_tools_are_offered_those_that_fit_the_question_first() -> None:
    specs = [ToolSpec(f"tool_{n}", f"Does thing {n}.", {"type": "object"}, tier=Tier.HARMLESS) for n in range(9)]
    specs.append(ToolSpec("weather", "The weather of a place.", {"type": "object"}, tier=Tier.HARMLESS))
    model = ScriptedModel(NO_TOOL, ScriptedReply("ok"), capabilities=SMALL)
    async with open_engine(model, ToolsetFixture(specs)) as engine:
        await engine.say("How is the weather?")
        lines = model.requests[0].segments[0].text.splitlines()
        offered = [line.split("(")[0][2:] for line in lines if line.startswith("- ")]
        assert offered == ["tool_0", "tool_1", "tool_2", "tool_3", "weather"]


async def test_without_tools_there_is_no_plan() -> None:
    model = ScriptedModel(ScriptedReply("hi"), capabilities=SMALL)
    async with open_engine(model, agent=Agent(NAME, tool_access=ToolAccess(tools=()))) as engine:
        assert (await engine.say("x")).reply == "hi"
        assert len(model.requests) == 1

"""Plan-then-act for small models and those without native tool calls."""

import json
from dataclasses import replace

import anyio
import pytest

from denizen.domain.agent import Agent, AgentInstructions, ToolAccess, ToolPlanning, TurnLimits
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, Unavailable
from denizen.domain.events import TextAdded
from denizen.domain.json import Json
from denizen.domain.message import Role, TextPart, join_text
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import TurnStatus
from denizen.engine.loop.loop import APOLOGY
from denizen.engine.loop.planning import MAX_PLANS
from denizen.engine.loop.steps import LIMIT_NOTE
from denizen.engine.tools.toolbox import uses_planning
from denizen.ports.model import Capabilities, ModelRequest
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.engine_fixture import LOOK, NAME, Run, ToolsetFixture, open_engine, strip_date

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


FENCED = """I will look:
```json
{"useTool": true, "tool": "look", "args": {"q": "Rome"}, "reason": "asked for"}
```"""


@pytest.mark.proves("L8", "L4", "LW9")
@pytest.mark.parametrize("planned", [plan("look", q="Rome"), ScriptedReply(FENCED)])
async def test_a_plan_is_carried_out_and_answered_from_its_results(planned: ScriptedReply) -> None:
    model = ScriptedModel(planned, ScriptedReply("Sunny."), capabilities=SMALL)
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


@pytest.mark.proves("L-prompt-planner", "L-prompt-response", "L-prompt-general")
async def test_the_prompts_ask_for_one_tool_in_json_and_for_short_answers_in_persona() -> None:
    agent = Agent(NAME, instructions=AgentInstructions(persona=(("IDENTITY.md", "You are Ada, a sailor."),)))
    model = ScriptedModel(plan("look", q="a"), ScriptedReply("b"), NO_TOOL, ScriptedReply("c"), capabilities=SMALL)
    async with open_engine(model, agent=agent) as engine:
        await engine.say("with a tool")
        await engine.say("without")
    planned, described, _, direct = model.requests
    told = planned.segments[0].text
    assert "decide which tool, if any" in told and "Reply with JSON only: {" in told
    assert "Take the arguments from the message; invent nothing." in told
    for request in (described, direct):
        system = "\n".join(segment.text for segment in request.segments)
        assert "You are Ada, a sailor." in system and "Answer briefly and to the point." in system
    described_last = get_last_text(described)
    assert "Answer the message above" in described_last and "using these results" in described_last
    assert "write no web addresses of pictures" in described_last
    assert strip_date(get_last_text(direct)) == "without"


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


@pytest.mark.proves("LW10")
@pytest.mark.parametrize(
    ("question", "used"), [("Look for Oslo, and at the clock.", ["look", "clock"]), ("Look for Oslo.", ["look"])]
)
async def test_a_small_model_plans_another_tool_that_the_question_names(question: str, used: list[str]) -> None:
    clock = ToolSpec("clock", "Tells the time.", {"type": "object", "properties": {}}, tier=Tier.HARMLESS)
    toolset = ToolsetFixture([LOOK, clock, replace(clock, name="forget_look")])
    model = ScriptedModel(plan("look", q="Oslo"), plan("clock"), ScriptedReply("Done."), capabilities=SMALL)
    async with open_engine(model, toolset) as engine:
        await engine.say(question)
    assert [each.tool for each in toolset.calls] == used


@pytest.mark.proves("T15")
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


@pytest.mark.proves("L8")
async def test_the_answer_after_a_tool_is_written_from_history_message_and_result() -> None:
    planned = plan("look", q="Rome")
    model = ScriptedModel(NO_TOOL, ScriptedReply("Hi."), planned, ScriptedReply("Sunny."), capabilities=SMALL)
    async with open_engine(model) as engine:
        await engine.say("hello")
        await engine.say("Weather in Rome?")
    said = "\n".join(join_text(message.parts) for message in model.requests[3].messages)
    assert all(text in said for text in ("hello", "Hi.", "Weather in Rome?", "found Rome"))


@pytest.mark.proves("L8")
async def test_without_a_tool_the_answer_is_written_directly_from_the_talk() -> None:
    model = ScriptedModel(NO_TOOL, ScriptedReply("Hi."), NO_TOOL, ScriptedReply("Well."), capabilities=SMALL)
    async with open_engine(model) as engine:
        await engine.say("hello")
        await engine.say("how are you?")
    said = [strip_date(join_text(message.parts)) for message in model.requests[3].messages]
    assert said == ["hello", "Hi.", "how are you?"]


@pytest.mark.parametrize(
    "bad",
    [
        ScriptedReply("I think..."),
        ScriptedReply(""),
        ScriptedReply('{"tool": "fly"}'),
        Unavailable("down"),
        InvalidInput("no schemas here"),
        NeedsAttention("the key is refused"),
    ],
)
@pytest.mark.proves("L4", "L10", "E10")
async def test_a_bad_plan_never_fails_the_chat(bad: ScriptedReply | DenizenError) -> None:
    model = ScriptedModel(
        bad, otherwise=lambda r: ScriptedReply("" if r.output_schema else "Anyway."), capabilities=SMALL
    )
    async with open_engine(model) as engine:
        done = await engine.say("x")
        assert (done.status, done.reply) == (TurnStatus.DONE, "Anyway.")
        assert engine.tools.calls == []


@pytest.mark.proves("X-iteration-limit")
async def test_a_plan_keeps_two_steps_for_the_answer_and_says_that_the_steps_were_used_up() -> None:
    plans = (ScriptedReply(json.dumps({"tool": "look", "args": {"q": str(number)}})) for number in range(2))
    model = ScriptedModel(*plans, ScriptedReply("Done."))
    asked = Agent(NAME, tool_access=ToolAccess(planning=ToolPlanning.PLAN), limits=TurnLimits(max_steps=4))
    async with open_engine(model, agent=asked) as engine:
        reply = (await engine.say("x")).reply
    assert [request.output_schema is not None for request in model.requests] == [True, True, False]
    assert reply.startswith("Done.") and reply.endswith(LIMIT_NOTE)


@pytest.mark.proves("L5", "L4")
async def test_arguments_that_never_fit_are_told_with_tool_and_fault_and_kept_in_the_history() -> None:
    model = ScriptedModel(plan("look"), plan("look"), ScriptedReply("Cats are nice."), capabilities=SMALL)
    async with open_engine(model) as engine:
        done = await engine.say("cats?")
        said = [m.text for m in await engine.session()]
    told = "Sorry, I could not use `look`: Wrong arguments for 'look': 'q' is a required property. Expected:"
    assert done.reply.startswith(told) and "Please say it in another way." in done.reply
    assert done.reply.endswith("\n\nCats are nice.")
    assert said[-1] == done.reply
    assert engine.tools.calls == []


async def fail(call: ToolCall, scope: CallScope) -> ToolResult:
    return ToolResult("no such place.\nTry another.", is_error=True)


async def hang(call: ToolCall, scope: CallScope) -> ToolResult:
    await anyio.sleep_forever()
    raise AssertionError


@pytest.mark.proves("L10", "L6")
@pytest.mark.parametrize("can", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(("run", "reason"), [(fail, "no such place"), (hang, "'look' did not finish within 0.01 s")])
async def test_a_failing_tool_is_answered_with_an_apology_and_its_reason_whatever_the_model_says(
    run: Run, reason: str, can: Capabilities
) -> None:
    tools = ToolsetFixture([replace(LOOK, timeout_s=0.01)], run=run)
    model = ScriptedModel(plan("look", q="x"), NO_TOOL, ScriptedReply("It is sunny."), capabilities=can)
    async with open_engine(model, tools) as engine:
        events = await engine.watch("x")
        reply = (await engine.session())[-1].text
    assert reply.startswith(f"Sorry, `look` failed: {reason}") and reply.endswith("\n\nIt is sunny.")
    assert "".join(event.text for event in events if isinstance(event, TextAdded)) == reply
    assert f"failed: {reason}" in str(model.requests[-1].messages)


@pytest.mark.proves("L10")
@pytest.mark.parametrize("failing", [("look",), ("write",), ("look", "write")], ids="+".join)
async def test_each_failure_of_a_plan_with_several_calls_is_apologised_for(failing: tuple[str, ...]) -> None:
    async def run(call: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult(f"no {call.tool} today", is_error=call.tool in failing)

    calls = [{"tool": name, "args": {"q": "x"}} for name in ("look", "write")]
    planned = ScriptedReply(json.dumps({"calls": calls}))
    model = ScriptedModel(planned, NO_TOOL, ScriptedReply("It is sunny."), capabilities=LARGE)
    async with open_engine(model, ToolsetFixture(run=run)) as engine:
        reply = (await engine.say("x")).reply
    *apologies, _, answer = reply.split("\n")
    assert apologies == [f"Sorry, `{name}` failed: no {name} today." for name in failing]
    assert answer == "It is sunny."


@pytest.mark.proves("L10", "S13")
async def test_without_plan_and_without_answer_there_is_a_fallback_text() -> None:
    silent = ScriptedModel(otherwise=ScriptedReply(""), capabilities=SMALL)
    async with open_engine(silent) as engine:
        assert (await engine.say("x")).reply == APOLOGY
        assert (await engine.session())[-1].text == APOLOGY
    assert len(silent.requests) == 3, "a plan, an answer, and once more"
    assert APOLOGY.startswith("I could not find an answer to that.")


@pytest.mark.proves("S13")
@pytest.mark.parametrize("planned", [plan("look", q="a"), NO_TOOL], ids=["with a tool", "without"])
async def test_an_answer_without_text_is_asked_for_once_more(planned: ScriptedReply) -> None:
    model = ScriptedModel(planned, ScriptedReply(" "), ScriptedReply("Now then."), capabilities=SMALL)
    async with open_engine(model) as engine:
        assert (await engine.say("x")).reply == "Now then."
    assert not any(request.tools for request in model.requests[1:])


@pytest.mark.proves("L8")
async def test_pictures_that_are_shown_are_in_the_answer_neither_as_addresses_nor_as_links() -> None:
    url, view = "https://cdn.example/fox.png", "https://cdn.example/fox-north.png"

    async def draw(call: ToolCall, scope: CallScope) -> ToolResult:
        images: list[Json] = [{"url": url, "links": {"north": view}}]
        return ToolResult(f"Drawn: {url} ([north]({view})). Source: https://a.example", data={"images": images})

    drawn = ScriptedReply(f"A fox: ![it]({url}), [from the north]({view}) and <{url}>. See https://a.example.")
    model = ScriptedModel(plan("look", q="fox"), drawn, capabilities=SMALL)
    async with open_engine(model, ToolsetFixture(run=draw)) as engine:
        done = await engine.say("a fox?")
    assert done.images == (url,)
    assert done.reply == "A fox: it, from the north and. See https://a.example."
    seen = get_last_text(model.requests[1])
    assert "write no web addresses of pictures" in seen and url not in seen and view not in seen
    assert "https://a.example" in seen


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

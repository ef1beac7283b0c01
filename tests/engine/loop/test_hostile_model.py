"""A model that writes nonsense, by accident or because a page told it to: the turn goes on, within its bounds."""

import pytest

from denizen.domain.json import JsonObject
from denizen.domain.message import ToolResultPart
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import TurnStatus
from denizen.engine.gate.executor import MAX_RESULT_CHARS
from denizen.engine.loop.loop import MAX_CALLS_PER_STEP
from denizen.engine.loop.planning import parse_plan
from denizen.engine.tools.arguments import ArgumentsError, check_arguments
from denizen.ports.model import RAW_ARGS, Capabilities
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.engine_fixture import ToolsetFixture, open_engine

ANY = ToolSpec(
    "any",
    "",
    {
        "type": "object",
        "properties": {
            "whole": {"type": "integer"},
            "number": {"type": "number"},
            "list": {"type": "array"},
            "word": {"type": "string", "maxLength": 5},
        },
        "additionalProperties": False,
    },
    tier=Tier.HARMLESS,
)


@pytest.mark.parametrize(
    "args",
    [
        {"whole": "1" * 5000},
        {"list": "[" * 100_000},
        {"number": "NaN"},
        {"number": "1e999"},
        {"list": '["\\ud800"]'},
        {RAW_ARGS: "[" * 100_000},
        {RAW_ARGS: '{"whole": ' + "1" * 5000 + "}"},
        {RAW_ARGS: '{"number": NaN}'},
    ],
)
def test_arguments_that_cannot_be_read_are_an_error_that_the_model_reads(args: JsonObject) -> None:
    with pytest.raises(ArgumentsError, match="'any'"):
        check_arguments(ANY, args)


def test_a_problem_does_not_repeat_a_long_value() -> None:
    with pytest.raises(ArgumentsError) as caught:
        check_arguments(ANY, {"word": "x" * 1_000_000, "unknown": 1})
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "text", ["[" * 5000, '{"tool":"look","args":{"q":' + "1" * 5000 + "}}", '{"tool":"look","args":{"q":NaN}}']
)
def test_a_plan_that_cannot_be_read_is_no_plan(text: str) -> None:
    assert parse_plan(text) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    "plan", ["[" * 5000, '{"tool":"look","args":{"q":1e999}}', '{"tool":"look","args":{"q":"\\ud800"}}']
)
async def test_a_small_model_that_writes_no_plan_still_answers(plan: str) -> None:
    model = ScriptedModel(
        ScriptedReply(plan), ScriptedReply("Hello."), capabilities=Capabilities(small=True, native_tools=False)
    )
    async with open_engine(model) as engine:
        done = await engine.say("hi")
        assert (done.status, done.reply) == (TurnStatus.DONE, "Hello.")
        assert engine.tools.calls == []


@pytest.mark.anyio
async def test_one_reply_starts_a_bounded_number_of_calls_and_every_call_gets_a_result() -> None:
    asked = [call("write", q=str(number)) for number in range(MAX_CALLS_PER_STEP + 100)]
    model = ScriptedModel(ScriptedReply(calls=asked), ScriptedReply("Done."))
    async with open_engine(model) as engine:
        done = await engine.say("go")
        assert done.reply == "Done."
        assert len(engine.tools.calls) == MAX_CALLS_PER_STEP
        results = [part for part in model.requests[1].messages[-1].parts if isinstance(part, ToolResultPart)]
        assert len(results) == len(asked)
        assert [result.is_error for result in results] == [False] * MAX_CALLS_PER_STEP + [True] * 100
        assert "Not run" in results[-1].text


@pytest.mark.anyio
async def test_a_result_without_end_is_cut_before_it_is_recorded() -> None:
    async def run(call: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult("x" * 3_000_000, data={"kept": True})

    async with open_engine(
        ScriptedModel(ScriptedReply(calls=[call("look", q="a")]), ScriptedReply("Long.")), ToolsetFixture(run=run)
    ) as engine:
        done = await engine.say("go")
        async with engine.store.work(write=False) as work:
            [record] = await work.turns.list_calls(done.turn_id)
    assert len(record.outcome.result.text) < MAX_RESULT_CHARS + 100
    assert record.outcome.result.text.endswith("[cut: the result has 3000000 characters]")


@pytest.mark.anyio
async def test_half_of_a_surrogate_pair_in_a_result_does_not_spoil_the_session() -> None:
    async def run(call: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult("a \ud83d b")

    model = ScriptedModel(ScriptedReply(calls=[call("look", q="a")]), ScriptedReply("Fine."))
    async with open_engine(model, ToolsetFixture(run=run)) as engine:
        await engine.say("go")
    result = model.requests[1].messages[-1].parts[0]
    assert isinstance(result, ToolResultPart)
    assert result.text == "a ? b"

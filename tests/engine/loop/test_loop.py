"""Model and tools until there is an answer or a limit."""

from dataclasses import replace

import anyio
import pytest

from denizen.domain.agent import Agent, ToolAccess, TurnLimits
from denizen.domain.errors import Unavailable
from denizen.domain.events import TextAdded, ToolFinished, ToolStarted, TurnFinished
from denizen.domain.message import Role, TextPart, ToolCallPart, ToolResultPart
from denizen.domain.tool import CacheScope, ToolCall, ToolResult
from denizen.domain.turn import TurnStatus
from denizen.engine.loop.loop import APOLOGY, must_answer
from denizen.engine.loop.steps import LIMIT_NOTE
from denizen.ports.model import ModelRequest
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.engine_fixture import LOOK, NAME, WRITE, ToolsetFixture, open_engine
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


def last_text(request: ModelRequest) -> str:
    part = request.messages[-1].parts[-1]
    return part.text if isinstance(part, TextPart) else ""


@pytest.mark.proves("V9", "T8")
async def test_a_turn_runs_tools_and_answers_with_their_results() -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("look", q="a")]), ScriptedReply("It is a."))
    async with open_engine(model) as engine:
        done = await engine.say("what?")
        assert (done.status, done.reply) == (TurnStatus.DONE, "It is a.")
        result = model.requests[1].messages[-1].parts[0]
        assert isinstance(result, ToolResultPart)
        assert (result.text, result.is_error) == ("found a", False)
        roles = [m.role for m in await engine.session()]
        assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]


@pytest.mark.proves("T13", "LW10")
async def test_calls_of_one_step_run_side_by_side_and_are_recorded_in_the_order_asked() -> None:
    first_done, second_ran = anyio.Event(), anyio.Event()

    async def run(call: ToolCall, scope: CallScope) -> ToolResult:
        if call.args["q"] == "first":
            await second_ran.wait()
            first_done.set()
        else:
            second_ran.set()
        return ToolResult(f"{call.args['q']} done")

    model = ScriptedModel(ScriptedReply(calls=[call("look", q="first"), call("look", q="second")]), ScriptedReply("ok"))
    async with open_engine(model, ToolsetFixture(run=run)) as engine:
        with anyio.fail_after(HANG_LIMIT_S):
            done = await engine.say("both")
        texts = [part.text for part in model.requests[1].messages[-1].parts if isinstance(part, ToolResultPart)]
        assert texts == ["first done", "second done"]
        async with engine.store.work() as work:
            records = await work.turns.list_calls(done.turn_id)
        assert [record.tool_call.args["q"] for record in records] == ["first", "second"]


@pytest.mark.proves("V10", "VW4")
@pytest.mark.parametrize("cache", [CacheScope.NONE, CacheScope.EVERYONE])
@pytest.mark.parametrize("is_one", [True, False], ids=["one toolset", "two toolsets"])
async def test_a_repeated_write_happens_again_and_makes_reads_fresh(cache: CacheScope, *, is_one: bool) -> None:
    look = replace(LOOK, idempotent=cache is CacheScope.EVERYONE, cache=cache)
    model = ScriptedModel(
        ScriptedReply(calls=[call("look", q="a"), call("write", q="a")]),
        ScriptedReply(calls=[call("look", q="a"), call("write", q="a")]),
        ScriptedReply("done"),
    )
    async with open_engine(model, ToolsetFixture([look, WRITE] if is_one else [look])) as engine:
        others = ToolsetFixture([] if is_one else [WRITE], name="others")
        now = engine.runtime.current
        await engine.runtime.swap(replace(now, number=2, toolsets=(engine.tools, others)))
        done = await engine.say("twice")
        calls = [*engine.tools.calls, *others.calls]
        assert sorted(c.tool for c in calls) == ["look", "look", "write", "write"]
        async with engine.store.work() as work:
            records = await work.turns.list_calls(done.turn_id)
        assert [(r.tool_call.tool, r.cached) for r in records] == [
            ("look", False),
            ("write", False),
            ("look", False),
            ("write", False),
        ]


@pytest.mark.proves("V10", "V9")
async def test_a_read_after_another_step_is_answered_from_the_cache_when_its_arguments_are_equal() -> None:
    looks = [replace(LOOK, parameters={"type": "object"}), replace(LOOK, name="see", parameters={"type": "object"})]
    again = [call("look", at=1, q="a"), call("look", q="b", at=1), call("look", q="a"), call("see", q="a", at=1)]
    model = ScriptedModel(
        ScriptedReply(calls=[call("look", q="a", at=1)]), ScriptedReply(calls=again), ScriptedReply("done")
    )
    async with open_engine(model, ToolsetFixture(looks)) as engine:
        done = await engine.say("twice")
        async with engine.store.work() as work:
            records = await work.turns.list_calls(done.turn_id)
        assert [r.cached for r in records] == [False, True, False, False, False]
        assert len(engine.tools.calls) == 4
        assert [r.outcome.result.text for r in records] == [f"found {q}" for q in "aabaa"]


@pytest.mark.proves("V10")
async def test_the_cache_ends_with_its_turn() -> None:
    model = ScriptedModel(
        ScriptedReply(calls=[call("look", q="a")]),
        ScriptedReply("1"),
        ScriptedReply(calls=[call("look", q="a")]),
        ScriptedReply("2"),
    )
    async with open_engine(model) as engine:
        await engine.say("one")
        await engine.say("two")
        assert len(engine.tools.calls) == 2


async def test_the_same_read_twice_in_one_step_runs_once() -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("look", q="a"), call("look", q="a")]), ScriptedReply("ok"))
    async with open_engine(model) as engine:
        await engine.say("x")
        assert len(engine.tools.calls) == 1
        assert [p.text for p in model.requests[1].messages[-1].parts if isinstance(p, ToolResultPart)] == [
            "found a"
        ] * 2


@pytest.mark.proves("T14")
async def test_wrong_arguments_and_unknown_tools_come_back_as_errors_that_teach() -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("look"), call("fly", q="x")]), ScriptedReply("sorry"))
    async with open_engine(model) as engine:
        await engine.say("x")
        wrong, unknown = model.requests[1].messages[-1].parts
        assert isinstance(wrong, ToolResultPart) and isinstance(unknown, ToolResultPart)
        assert wrong.is_error and "q (string, required)" in wrong.text
        assert unknown.is_error and "Tools: look, write" in unknown.text
        assert engine.tools.calls == []


@pytest.mark.proves("T9", "T8", "E8")
async def test_a_changed_tool_set_is_told_once_and_not_stored() -> None:
    tools = ToolsetFixture()

    async def run(call: ToolCall, scope: CallScope) -> ToolResult:
        tools.specs = [LOOK] if call.args["q"] == "a" else [LOOK, replace(LOOK, name="see")]
        return ToolResult("ok")

    tools.run = run
    calls = [[call("look", q=asked)] for asked in "abb"]
    model = ScriptedModel(*(ScriptedReply(calls=each) for each in calls), ScriptedReply("done"))
    async with open_engine(model, tools) as engine:
        await engine.say("x")
        assert "have changed" not in str(model.requests[0].messages)
        assert [last_text(request) for request in model.requests[1:]] == [
            "[Your tools have changed. Available now: look.]",
            "[Your tools have changed. Available now: look, see.]",
            "",
        ]
        offered = [[spec.name for spec in request.tools] for request in model.requests]
        assert offered == [["look", "write"], ["look"], ["look", "see"], ["look", "see"]]
        assert not any("have changed" in message.text for message in await engine.session())


@pytest.mark.proves("S9", "X-iteration-limit", "E8", "T8", "T-config-limits")
@pytest.mark.parametrize("steps", [3, 5])
async def test_the_last_two_steps_are_without_tools(steps: int) -> None:
    model = ScriptedModel(
        otherwise=lambda r: ScriptedReply("end" if r.tool_choice == "none" else "", _call_until_told(r))
    )
    agent = Agent(NAME, limits=TurnLimits(max_steps=steps))
    async with open_engine(model, agent=agent) as engine:
        done = await engine.say("x")
        assert done.reply == "end" + LIMIT_NOTE
        assert [request.tool_choice for request in model.requests] == [*["auto"] * (steps - 2), "none"]
        assert model.requests[-1].tools, "the tools stay in the prompt: they are part of its cached prefix"


@pytest.mark.proves("T15")
async def test_an_answer_after_looking_for_a_tool_and_using_it_does_not_say_that_steps_were_used_up() -> None:
    tools = ToolsetFixture([replace(LOOK, name=f"tool{number}", description="Looks.") for number in range(40)])
    agent = Agent(NAME, limits=TurnLimits(max_steps=4))
    find, use = ScriptedReply(calls=[call("find_tools", query="look")]), ScriptedReply(calls=[call("tool1", q="a")])
    for replies, told in (
        ([find, use, ScriptedReply("All of it.")], False),
        ([find, use, ScriptedReply("All of it.", [call("tool1", q="b")])], True),
        ([use, replace(use, calls=[call("tool1", q="b")]), ScriptedReply("Half of it.")], True),
    ):
        async with open_engine(ScriptedModel(*replies), tools, agent=agent) as engine:
            assert (await engine.say("x")).reply.endswith(LIMIT_NOTE) is told


def _call_until_told(request: ModelRequest) -> list[ToolCallPart]:
    return [call("look", q=str(len(request.messages)))] if request.tool_choice == "auto" else []


@pytest.mark.proves("T15")
async def test_an_answer_at_the_limit_says_so_in_brackets_and_an_earlier_one_does_not() -> None:
    for steps, told in ((3, True), (4, False)):
        model = ScriptedModel(ScriptedReply(calls=[call("look", q="a")]), ScriptedReply("Half of it."))
        async with open_engine(model, agent=Agent(NAME, limits=TurnLimits(max_steps=steps))) as engine:
            *_, done = events = await engine.watch("x")
            assert isinstance(done, TurnFinished)
            assert done.reply == "Half of it." + (LIMIT_NOTE if told else "")
            assert LIMIT_NOTE.startswith("\n\n[") and LIMIT_NOTE.endswith("]")
            streamed = "".join(event.text for event in events if isinstance(event, TextAdded))
            assert streamed == done.reply
            assert (await engine.session())[-1].text == "Half of it.", "the next prompt does not have the note"


@pytest.mark.proves("X-iteration-limit", "V9")
async def test_twenty_steps_are_the_default_limit() -> None:
    model = ScriptedModel(otherwise=lambda r: ScriptedReply("and", _call_until_told(r)))
    async with open_engine(model) as engine:
        await engine.say("x")
        assert len(model.requests) == 19
        assert [request.tool_choice for request in model.requests[-2:]] == ["auto", "none"]


@pytest.mark.proves("S10")
async def test_four_tool_only_steps_in_the_later_part_force_a_step_without_tools() -> None:
    assert [must_answer(number, 20, 4) for number in range(1, 21)] == [False] * 11 + [True] * 9
    assert not must_answer(6, 10, 3)
    assert not must_answer(2, 4, 9), "the early part is left alone, however long the streak"
    agent = Agent(NAME, limits=TurnLimits(max_steps=10))
    for spoken, free in ((0, 5), (3, 7)):  # the step at which the model says something besides its call

        def reply(request: ModelRequest, spoken: int = spoken) -> ScriptedReply:
            if request.tool_choice == "none":
                return ScriptedReply("end")
            number = 1 + sum(message.role is Role.TOOL for message in request.messages)
            return ScriptedReply("Hm." if number == spoken else "", _call_until_told(request))

        model = ScriptedModel(otherwise=reply)
        async with open_engine(model, agent=agent) as engine:
            assert (await engine.say("x")).reply == "end"
        assert [request.tool_choice for request in model.requests] == ["auto"] * free + ["none"]


@pytest.mark.proves("T15", "E8")
async def test_the_third_identical_round_ends_the_calls() -> None:
    model = ScriptedModel(
        ScriptedReply(calls=[call("write", q="a")]),
        ScriptedReply(calls=[call("write", q="a")]),
        ScriptedReply(calls=[call("write", q="a")]),
        ScriptedReply("I stop."),
    )
    async with open_engine(model) as engine:
        done = await engine.say("x")
        assert done.reply == "I stop."
        assert len(engine.tools.calls) == 2
        final = model.requests[-1]
        assert (final.tools, final.tool_choice) == ((), "none")
        assert "[Result of write: found a]" in [
            m.parts[0].text for m in final.messages if isinstance(m.parts[0], TextPart)
        ]


@pytest.mark.proves("T15", "E8")
async def test_only_three_rounds_in_a_row_with_the_very_same_calls_end_the_calls() -> None:
    same = [call("write", q="a")]
    others = [[call("write", q="b")], [call("look", q="a")], [*same, call("look", q="b")]]
    rounds = [calls for other in others for calls in (same, same, other)] + [same] * 3
    model = ScriptedModel(*(ScriptedReply("Hm.", calls=calls) for calls in rounds), ScriptedReply("I stop."))
    async with open_engine(model) as engine:
        assert (await engine.say("x")).reply == "I stop."
    assert [bool(request.tools) for request in model.requests] == [True] * len(rounds) + [False]


@pytest.mark.proves("S13", "S9")
async def test_a_model_that_calls_tools_although_it_may_not_is_asked_where_there_are_none() -> None:
    model = ScriptedModel(
        otherwise=lambda r: (
            ScriptedReply(calls=[call("look", q=str(len(r.messages)))]) if r.tools else ScriptedReply("ok")
        )
    )
    agent = Agent(NAME, limits=TurnLimits(max_steps=2))
    async with open_engine(model, agent=agent) as engine:
        assert (await engine.say("x")).reply == "ok" + LIMIT_NOTE
        assert len(engine.tools.calls) == 1, "what it calls in the step for the answer does not run"


@pytest.mark.proves("S13", "S9", "E8")
async def test_an_empty_answer_is_asked_for_once_more_and_then_apologised_for() -> None:
    model = ScriptedModel(ScriptedReply(""), ScriptedReply("Now then."))
    async with open_engine(model) as engine:
        assert (await engine.say("x")).reply == "Now then."
    assert [(bool(request.tools), request.tool_choice) for request in model.requests] == [
        (True, "auto"),
        (False, "none"),
    ]
    model = ScriptedModel(ScriptedReply(""), ScriptedReply(""))
    async with open_engine(model) as engine:
        assert (await engine.say("x")).reply == APOLOGY
        assert (await engine.session())[-1].text == APOLOGY
    assert len(model.requests) == 2


@pytest.mark.proves("T16")
async def test_text_instead_of_a_call_is_nudged_and_the_custom_words_come_last() -> None:
    agent = Agent(NAME, limits=TurnLimits(nudges=2, nudge_text="Really do it."))
    model = ScriptedModel(
        ScriptedReply("I would look."),
        ScriptedReply("I would."),
        ScriptedReply(calls=[call("look", q="a")]),
        ScriptedReply("done"),
    )
    async with open_engine(model, agent=agent) as engine:
        assert (await engine.say("x")).reply == "done"
        assert last_text(model.requests[1]).startswith("[Use one of your tools")
        assert last_text(model.requests[2]) == "[Really do it.]"
    model = ScriptedModel(otherwise=ScriptedReply("I would look."))
    async with open_engine(model, agent=agent) as engine:
        assert (await engine.say("x")).reply == "I would look."
        assert len(model.requests) == 3
    model = ScriptedModel(otherwise=ScriptedReply("I would look."))
    async with open_engine(model) as engine:
        await engine.say("x")
        assert len(model.requests) == 1, "without the setting nothing is asked"


async def test_no_nudge_follows_once_a_tool_was_used() -> None:
    agent = Agent(NAME, limits=TurnLimits(nudges=2))
    model = ScriptedModel(ScriptedReply(calls=[call("look", q="a")]), ScriptedReply("done"))
    async with open_engine(model, agent=agent) as engine:
        assert (await engine.say("x")).reply == "done"


async def test_watchers_see_text_grow_tools_run_and_preambles_taken_back() -> None:
    model = ScriptedModel(ScriptedReply("Let me look.", calls=[call("look", q="a")]), ScriptedReply("Here it is."))
    async with open_engine(model) as engine:
        events = await engine.watch("x")
        text = ""
        for event in events:
            if isinstance(event, TextAdded):
                text = "" if event.retract else text + event.text
        assert text == "Here it is."
        assert [type(e) for e in events if isinstance(e, ToolStarted | ToolFinished)] == [ToolStarted, ToolFinished]


async def test_watchers_see_nothing_of_what_was_said_beside_repeated_calls() -> None:
    again = ScriptedReply("Let me look.", calls=[call("look", q="a")])
    async with open_engine(ScriptedModel(again, again, again, ScriptedReply("I stop."))) as engine:
        text = ""
        for event in await engine.watch("x"):
            if isinstance(event, TextAdded):
                text = "" if event.retract else text + event.text
        assert text == "I stop."


async def test_watchers_see_a_call_whose_arguments_do_not_fit_but_no_tool_that_the_model_made_up() -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("look"), call("fly", q="x")]), ScriptedReply("sorry"))
    async with open_engine(model) as engine:
        seen = [each for each in await engine.watch("x") if isinstance(each, ToolStarted | ToolFinished)]
        started, ended = seen
        assert isinstance(started, ToolStarted) and (started.tool, started.args) == ("look", {})
        assert isinstance(ended, ToolFinished) and ended.is_error and "q (string, required)" in ended.text


@pytest.mark.proves("T-agent-tools", "V7")
async def test_an_agent_sees_only_the_tools_of_its_allow_list_in_its_order() -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("see", q="a")]), ScriptedReply("hi"))
    agent = Agent(NAME, tool_access=ToolAccess(tools=("w*", "look")))
    async with open_engine(model, ToolsetFixture([LOOK, WRITE, replace(LOOK, name="see")]), agent=agent) as engine:
        await engine.say("x")
        assert [spec.name for spec in model.requests[0].tools] == ["write", "look"]
        assert engine.tools.calls == [], "a model may call what it was not offered"


async def test_a_failing_provider_ends_the_turn_with_its_reason_and_keeps_what_was_done() -> None:
    dead = Unavailable("The model does not answer.", why="connection refused", fix="Check the server.")
    model = ScriptedModel(ScriptedReply(calls=[call("write", q="a")]), dead)
    async with open_engine(model) as engine:
        failure = await engine.fail("x")
        assert failure.family == "Unavailable"
        assert failure.message == "The model does not answer. (connection refused)"
        assert failure.fix == "Check the server."
        assert [m.role for m in await engine.session()] == [Role.USER, Role.ASSISTANT, Role.TOOL]

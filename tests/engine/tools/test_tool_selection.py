"""More tools than fit a prompt: which are offered, how the others are found, and that a session keeps its choice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.agent import Agent, ToolAccess, ToolPlanning, TurnLimits
from denizen.domain.message import ToolResultPart
from denizen.domain.tool import ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import SessionChoice
from denizen.engine.tools.toolbox import (
    FIND_TOOLS,
    find_more_tools,
    list_allowed,
    list_found_tools,
    rank_tools,
    select_tools,
)
from denizen.ports.model import Capabilities, ModelRequest
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.engine_fixture import LOOK, NAME, ToolsetFixture, open_engine

pytestmark = pytest.mark.anyio

SUBJECTS = ("weather", "calendar", "mail", "music", "maps", "recipes", "trains", "stocks", "plants", "films")
EMPTY = {"type": "object", "properties": {}, "additionalProperties": False}
MANY = [
    replace(LOOK, name=f"{subject}_{act}", description=f"{act}s {subject}.", parameters=EMPTY)
    for subject in SUBJECTS
    for act in ("list", "change")
]


async def run_tool(asked: ToolCall, scope: CallScope) -> ToolResult:
    return ToolResult(f"{asked.tool} ran")


def make_tools() -> ToolsetFixture:
    return ToolsetFixture(list(MANY), run=run_tool)


def list_offered(request: ModelRequest) -> list[str]:
    return [spec.name for spec in request.tools]


def make_agent(count: int, *, pinned_tools: tuple[str, ...] = (), planning: ToolPlanning = ToolPlanning.AUTO) -> Agent:
    access = ToolAccess(pinned_tools=pinned_tools, planning=planning)
    return Agent(NAME, limits=TurnLimits(max_tools=count), tool_access=access)


@pytest.mark.proves("VW8")
async def test_a_prompt_never_carries_more_than_the_configured_number_of_tools() -> None:
    model = ScriptedModel(
        *(ScriptedReply(calls=[call(FIND_TOOLS, query=subject)]) for subject in SUBJECTS),
        otherwise=ScriptedReply("Done."),
    )
    async with open_engine(model, make_tools(), agent=make_agent(6, pinned_tools=("mail_list",))) as engine:
        await engine.say("What is the weather?")
        assert len(model.requests) > 5
        for request in model.requests:
            assert len(request.tools) <= 6
            assert {"mail_list", FIND_TOOLS} <= set(list_offered(request)) or not request.tools


@pytest.mark.proves("VW8", "V7")
async def test_pinned_tools_and_the_best_matches_are_offered_and_one_that_finds_the_others() -> None:
    model = ScriptedModel(ScriptedReply("Sunny."))
    async with open_engine(model, make_tools(), agent=make_agent(4, pinned_tools=("mail_*",))) as engine:
        await engine.say("How will the weather change?")
        assert list_offered(model.requests[0]) == ["weather_change", "mail_list", "mail_change", FIND_TOOLS]


async def test_when_all_fit_nothing_is_chosen_and_nothing_is_to_be_found() -> None:
    model = ScriptedModel(ScriptedReply("Hello."))
    async with open_engine(model, make_tools(), agent=make_agent(20)) as engine:
        await engine.say("Hello")
        assert list_offered(model.requests[0]) == [spec.name for spec in MANY]


@pytest.mark.proves("VW8")
async def test_a_found_tool_can_be_used_for_the_rest_of_the_turn_and_not_before() -> None:
    model = ScriptedModel(
        ScriptedReply(calls=[call("trains_list")]),
        ScriptedReply(calls=[call(FIND_TOOLS, query="trains")]),
        ScriptedReply(calls=[call("trains_list")]),
        ScriptedReply("At noon."),
        ScriptedReply("Again."),
    )
    async with open_engine(model, make_tools(), agent=make_agent(6)) as engine:
        await engine.say("What is the weather?")
        results = [part for m in model.requests[3].messages for part in m.parts if isinstance(part, ToolResultPart)]
        assert [result.is_error for result in results] == [True, False, False]
        assert "- trains_list: lists trains." in results[1].text
        assert "trains_list ran" in results[2].text
        assert "trains_list" in list_offered(model.requests[3])
        before = list_offered(model.requests[0])
        await engine.say("And music?")
        assert list_offered(model.requests[4]) == before


@pytest.mark.proves("VW8")
async def test_a_session_keeps_its_tools_whatever_is_asked_next_and_a_new_one_chooses_anew() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Yes."))
    async with open_engine(model, make_tools(), agent=make_agent(4)) as engine:
        await engine.say("What is the weather?")
        await engine.say("Play some music")
        await engine.say("Play some music", session=SessionChoice(is_new=True))
        first, second, third = map(list_offered, model.requests)
        assert first == second
        assert "music_list" in third and "music_list" not in first


async def test_a_kept_tool_that_is_gone_makes_room_for_the_next_best() -> None:
    model, tools = ScriptedModel(otherwise=ScriptedReply("Yes.")), make_tools()
    async with open_engine(model, tools, agent=make_agent(4)) as engine:
        await engine.say("What is the weather?")
        tools.specs = [spec for spec in tools.specs if spec.name != "weather_list"]
        await engine.say("Play some music")
        first, second = map(list_offered, model.requests)
        assert set(first) - set(second) == {"weather_list"}
        assert len(second) == 4


@pytest.mark.proves("VW8", "T19")
@pytest.mark.parametrize(("limit", "offered"), [(40, 5), (3, 3)])
async def test_a_small_model_is_offered_five_at_most_chosen_by_each_question(limit: int, offered: int) -> None:
    small = Capabilities(native_tools=False, small=True, context_tokens=8192)
    model = ScriptedModel(otherwise=ScriptedReply('{"tool": "none"}'), capabilities=small)
    async with open_engine(model, make_tools(), agent=make_agent(limit, pinned_tools=("mail_list",))) as engine:
        await engine.say("What is the weather?")
        await engine.say("Play some music")
        plans = [request.segments[0].text for request in model.requests if request.output_schema]
        assert [sum(f"- {spec.name}(" in text for spec in MANY) for text in plans] == [offered] * 2
        assert "weather_list" in plans[0] and "music_list" in plans[1]
        assert all("mail_list" in text and FIND_TOOLS not in text for text in plans)


async def test_a_large_model_that_plans_can_look_for_tools_too() -> None:
    model = ScriptedModel(
        ScriptedReply('{"tool": "find_tools", "args": {"query": "trains"}}'),
        ScriptedReply('{"tool": "trains_list", "args": {}}'),
        otherwise=ScriptedReply('{"tool": "none"}'),
    )
    async with open_engine(model, make_tools(), agent=make_agent(6, planning=ToolPlanning.PLAN)) as engine:
        await engine.say("What is the weather?")
        assert [made.tool for made in engine.tools.calls] == ["trains_list"]


async def test_a_meta_tool_is_there_only_for_agents_that_list_it_in_full() -> None:
    tools = ToolsetFixture([LOOK, replace(LOOK, name="create_skill", listed_only=True)])
    for patterns, expected in (
        (("*",), ["look"]),
        (("*", "create_*"), ["look"]),
        (("*", "create_skill"), ["look", "create_skill"]),
    ):
        assert list(await list_allowed(Agent(NAME, tool_access=ToolAccess(tools=patterns)), [tools])) == expected


def test_a_word_that_few_tools_have_counts_more() -> None:
    specs = [
        replace(LOOK, name=name, description=about)
        for name, about in (
            ("one", "Lists things of the place."),
            ("two", "Lists things of the place."),
            ("three", "Lists tulips."),
        )
    ]
    assert rank_tools(specs, "list all the tulips of things")[0] == "three"


@given(
    st.lists(st.sampled_from(SUBJECTS), max_size=8).map(" ".join),
    st.integers(0, 25),
    st.sets(st.sampled_from([spec.name for spec in MANY]), max_size=25),
)
def test_a_choice_is_bounded_in_order_and_keeps_what_was_kept(words: str, limit: int, kept: set[str]) -> None:
    chosen = select_tools(MANY, words, limit=limit, kept=kept)
    names = [spec.name for spec in MANY]
    assert len(chosen) == min(limit, len(MANY))
    assert list(chosen) == [name for name in names if name in chosen]
    assert kept <= set(chosen) or len(kept) > limit
    assert select_tools(MANY, "other words", limit=limit, kept=chosen) == chosen


def test_what_was_found_is_told_from_the_calls_alone() -> None:
    calls = [call(FIND_TOOLS, query="trains"), call("mail_list"), call(FIND_TOOLS, query="films")]
    found = list_found_tools(MANY, calls, {"trains_list"})
    assert found == ("trains_change", "films_list", "films_change")
    assert find_more_tools(MANY, "nothing of that kind", set()) == []


def make_spec(name: str) -> ToolSpec:
    return replace(LOOK, name=name)


async def test_the_tools_of_markdown_skills_are_never_left_out() -> None:
    model = ScriptedModel(ScriptedReply("Hello."))
    tools = ToolsetFixture([*MANY, make_spec("read_skill")], run=run_tool)
    async with open_engine(model, tools, agent=make_agent(3)) as engine:
        await engine.say("What is the weather?")
        assert "read_skill" in list_offered(model.requests[0])

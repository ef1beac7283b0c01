"""What a session keeps of its messages, and what a model reads of it later."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from denizen.domain.agent import (
    Agent,
    HistorySettings,
    StoragePolicy,
    SummaryPolicy,
    ToolAccess,
    ToolPlanning,
    TurnLimits,
)
from denizen.domain.message import Message, Role, ToolResultPart, join_text
from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.turn import TurnStatus
from denizen.domain.usage import Usage
from denizen.engine.prompt.session_history import USED
from denizen.ports.model import ModelRequest
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.clock import NOON, ManualClock
from tests.engine.engine_fixture import NAME, PLACE, EngineFixture, ToolsetFixture, open_engine, strip_date

pytestmark = pytest.mark.anyio

SMALL = Agent(
    NAME,
    limits=TurnLimits(max_history_tokens=2000, max_history_messages=10),
    history=HistorySettings(
        storing=StoragePolicy(100, user_chars=1000, agent_chars=2000, tool_chars=1000, prompt_tool_chars=200),
        summaries=SummaryPolicy(enabled=False),
    ),
)
"""As the preset for small models has it, which sum nothing up beside the talk."""
FOX = "https://pictures.example/fox.png"


def list_results(request: ModelRequest) -> list[str]:
    return [part.text for message in request.messages for part in message.parts if isinstance(part, ToolResultPart)]


def get_result(message: Message) -> ToolResultPart:
    (part,) = message.parts
    assert isinstance(part, ToolResultPart)
    return part


@pytest.mark.proves("L-store-messages")
async def test_a_message_is_stored_with_role_content_and_time_and_that_of_a_tool_with_what_it_gave() -> None:
    clock = ManualClock()

    async def draw(asked: ToolCall, scope: CallScope) -> ToolResult:
        clock.advance(0.05)
        if asked.args["q"] == "none":
            return ToolResult("No such thing.", is_error=True)
        return ToolResult("A fox.", data={"image": "data:image/png;base64,AAAA", "imageUrl": FOX, "size": "2x2"})

    model = ScriptedModel(
        ScriptedReply(calls=[call("look", q="fox")]),
        ScriptedReply(calls=[call("look", q="none")]),
        ScriptedReply("There."),
    )
    async with open_engine(model, ToolsetFixture(run=draw), clock=clock) as engine:
        await engine.say("Draw a fox.")
        stored = await engine.session()
    assert [message.role.value for message in stored] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert (stored[0].text, stored[-1].text) == ("Draw a fox.", "There.")
    assert [message.created_at - NOON for message in stored] == [
        timedelta(milliseconds=n) for n in (0, 50, 50, 100, 100, 100)
    ]
    good, bad = get_result(stored[2]), get_result(stored[4])
    assert (good.tool, good.text, good.is_error) == ("look", "A fox.", False)
    shown = {"image": "[image/png, 3 bytes]", "imageUrl": FOX, "size": "2x2"}
    assert stored[2].meta["shown"] == {good.call_id: shown}, "an address is kept, and of a file its kind and size"
    assert (bad.tool, bad.text, bad.is_error) == ("look", "No such thing.", True)


@pytest.mark.proves("L-store-limits")
async def test_a_session_keeps_its_newest_hundred_messages_and_the_model_reads_the_last_ten() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("ok"))
    async with open_engine(model, agent=SMALL) as engine:
        for number in range(1, 61):
            await engine.say(f"q{number}")
        stored = await engine.session()
        async with engine.store.work(write=False) as work:
            hits = await work.messages.search("q3", conversation_ids=[PLACE.conversation_id])
    assert len(stored) == 100
    assert (stored[0].text, stored[-2].text) == ("q11", "q60")
    assert hits == []
    talk = [each for number in range(1, 61) for each in (("user", f"q{number}"), ("assistant", "ok"))]
    for at, request in enumerate(model.requests):
        read, said = list_conversation(request), talk[: 2 * at + 1]
        assert read == said[-len(read) :] and min(5, len(said)) <= len(read) <= 10


@pytest.mark.proves("L-store-cuts")
async def test_stored_messages_are_cut_by_who_said_them_and_results_are_read_in_short_later() -> None:
    async def find(asked: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult("r" * 3000)

    model = ScriptedModel(ScriptedReply(calls=[call("look", q="x")]), ScriptedReply("a" * 5000), ScriptedReply("ok"))
    async with open_engine(model, ToolsetFixture(run=find), agent=SMALL) as engine:
        done = await engine.say("u" * 5000)
        assert done.reply == "a" * 5000
        question, _, result, answer = await engine.session()
        await engine.say("And?")
    assert [len(m.text) for m in (question, answer)] == [1000, 2000]
    assert len(get_result(result).text) == 1000
    assert [len(text) for text in list_results(model.requests[1])] == [3000]
    assert [len(text) for text in list_results(model.requests[2])] == [200]
    assert list_results(model.requests[2])[0].endswith("…")


@pytest.mark.proves("L-store-cuts")
async def test_a_model_that_plans_reads_a_result_while_it_answers_and_no_more_later() -> None:
    async def find(asked: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult("r" * 3000)

    plan, no_tool = ScriptedReply('{"tool": "look", "args": {"q": "x"}}'), ScriptedReply('{"tool": "none"}')
    model = ScriptedModel(plan, no_tool, ScriptedReply("a" * 5000), no_tool, ScriptedReply("ok"))
    small = replace(SMALL, tool_access=ToolAccess(planning=ToolPlanning.PLAN))
    async with open_engine(model, ToolsetFixture(run=find), agent=small) as engine:
        await engine.say("u" * 5000)
        question, _, result, answer = await engine.session()
        await engine.say("And?")
    assert [len(m.text) for m in (question, answer)] == [1000, 2000]
    assert len(get_result(result).text) == 1000
    read = ["r" * 3000 in join_text(request.messages[-1].parts) for request in model.requests]
    assert read == [False, True, True, False, False]
    assert "rrr" not in str(model.requests[3:])


@pytest.mark.proves("L-store-operations")
async def test_history_is_read_added_to_formatted_for_a_model_and_cleared() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("ok"))
    async with open_engine(model) as engine:
        assert await engine.session() == []
        assert (await engine.say("one")).status is TurnStatus.DONE
        assert [message.text for message in await engine.session()] == ["one", "ok"]
        await engine.say("two")
        assert list_conversation(model.requests[-1]) == [("user", "one"), ("assistant", "ok"), ("user", "two")]
        await clear(engine)
        assert await engine.session() == []
        await engine.say("three")
        assert list_conversation(model.requests[-1]) == [("user", "three")]


@pytest.mark.proves("S11")
@pytest.mark.parametrize(("budget", "length"), [(TurnLimits().max_history_tokens, 41_000), (60_000, 45_000)])
async def test_results_of_long_ago_go_after_a_very_large_request_and_stay_away(budget: int, length: int) -> None:
    async def find(asked: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult("r" * length)

    usual, large = (Usage(input_tokens=tokens, output_tokens=5, requests=1) for tokens in (30_000, 40_001))
    looks = [ScriptedReply(calls=[call("look", q=str(at))], usage=usual) for at in range(2)]
    later = [
        ScriptedReply("two"),
        ScriptedReply("three"),
        ScriptedReply("four", usage=large),
        ScriptedReply("five"),
        ScriptedReply("six"),
    ]
    model = ScriptedModel(*looks, ScriptedReply("one", usage=usual), *later)
    async with open_engine(
        model,
        ToolsetFixture(run=find),
        agent=Agent(
            NAME,
            limits=TurnLimits(max_history_tokens=budget),
            history=HistorySettings(summaries=SummaryPolicy(enabled=False)),
        ),
    ) as engine:
        for number in range(1, 7):
            await engine.say(f"q{number}")
        stored = await engine.session()
    # Each request counts by itself, not the sum of a turn's.
    assert [(message.text, message.meta[USED]) for message in stored if USED in message.meta] == [("four", 40_001)]
    assert len([message for message in stored if message.role is Role.TOOL]) == 2  # in the store they stay
    assert [len(list_results(request)) for request in model.requests[3:]] == [2, 2, 2, 0, 0]
    before, after = list_conversation(model.requests[-2]), list_conversation(model.requests[-1])
    assert after[: len(before)] == before
    assert ("assistant", "one") in after


def list_conversation(request: ModelRequest) -> list[tuple[str, str]]:
    """The conversation of a request, without its notes."""
    shown = [message for message in request.messages if message.kind in ("history", "question")]
    return [(message.role.value, strip_date(join_text(message.parts))) for message in shown]


async def clear(engine: EngineFixture) -> None:
    """As `/new` does."""
    async with engine.store.work() as work:
        await work.sessions.renew(PLACE.conversation_id, NAME, now=engine.services.clock.now())

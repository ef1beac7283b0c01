"""The scripted model is a model: it streams, asks for tools, fails and waits as it is told."""

from __future__ import annotations

import anyio
import pytest

from denizen.domain.errors import NotFound, Unavailable
from denizen.domain.message import Role, TextPart, ToolCallPart, join_text, list_calls
from denizen.domain.prompt import PromptMessage
from denizen.ports.model import (
    Capabilities,
    Model,
    ModelEvent,
    ModelNotice,
    ModelReply,
    ModelRequest,
    Models,
    TextDelta,
    ThinkingDelta,
)
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedModels, ScriptedReply, call

pytestmark = pytest.mark.anyio

HI = ModelRequest(segments=(), messages=(PromptMessage(Role.USER, (TextPart("hi"),)),))


async def read_events(model: Model, request: ModelRequest = HI) -> list[ModelEvent]:
    return [event async for event in model.stream(request)]


def get_reply(events: list[ModelEvent]) -> ModelReply:
    assert isinstance(events[-1], ModelReply)
    return events[-1]


async def test_text_streams_in_pieces_and_comes_whole_at_the_end() -> None:
    model = ScriptedModel(ScriptedReply("Hello, friend.", thinking="hm", notices=["waking up"]), piece_chars=5)
    events = await read_events(model)
    assert events[:5] == [
        ModelNotice("waking up"),
        ThinkingDelta("hm"),
        TextDelta("Hello"),
        TextDelta(", fri"),
        TextDelta("end."),
    ]
    reply = get_reply(events)
    assert join_text(reply.parts) == "Hello, friend."
    assert (reply.finish_reason, reply.model, reply.provider) == ("stop", "scripted/model", "scripted")


async def test_requests_are_recorded_and_steps_are_played_in_order() -> None:
    model = ScriptedModel(ScriptedReply("one"))
    model.script(ScriptedReply("two"))
    assert [join_text(get_reply(await read_events(model)).parts) for _ in range(2)] == ["one", "two"]
    assert model.requests == [HI, HI]
    assert model.left == 0


async def test_tool_calls_get_ids_when_they_have_none() -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("look", at="x"), call("look", id="mine")]))
    reply = get_reply(await read_events(model))
    assert [(asked.id, asked.args) for asked in list_calls(reply.parts)] == [("call_1_1", {"at": "x"}), ("mine", {})]
    assert reply.finish_reason == "tool_calls"


async def test_an_error_comes_before_or_after_the_words() -> None:
    model = ScriptedModel(Unavailable("down"), ScriptedReply("half", error=Unavailable("broke off")))
    with pytest.raises(Unavailable, match="down"):
        await read_events(model)
    heard: list[ModelEvent] = []

    async def listen() -> None:
        async for event in model.stream(HI):
            heard.append(event)  # noqa: PERF401 - one at a time, on purpose

    with pytest.raises(Unavailable, match="broke off"):
        await listen()
    assert heard == [TextDelta("half")]


async def test_a_step_may_look_at_the_request() -> None:
    def answer(request: ModelRequest) -> ScriptedReply:
        return ScriptedReply(f"{len(request.messages)} messages")

    assert join_text(get_reply(await read_events(ScriptedModel(answer))).parts) == "1 messages"


async def test_a_script_that_is_too_short_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="no step for request 1"):
        await read_events(ScriptedModel())
    model = ScriptedModel(otherwise=ScriptedReply("always"))
    assert [join_text(get_reply(await read_events(model)).parts) for _ in range(3)] == ["always"] * 3


async def test_gates_hold_the_model_where_the_test_wants_it() -> None:
    before, halfway = ReplyGate(), ReplyGate()
    model = ScriptedModel(ScriptedReply("one two three four", before=before, halfway=halfway))
    heard: list[ModelEvent] = []

    async def listen() -> None:
        async for event in model.stream(HI):
            heard.append(event)  # noqa: PERF401 - one at a time, on purpose

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await before.reached.wait()
        assert heard == []
        before.open.set()
        await halfway.reached.wait()
        assert heard == [TextDelta("one two ")]
        halfway.open.set()
    assert join_text(get_reply(heard).parts) == "one two three four"


async def test_models_are_found_by_alias_and_by_name() -> None:
    big, small = ScriptedModel(name="a/big"), ScriptedModel(name="a/small", capabilities=Capabilities(small=True))
    models: Models = ScriptedModels({"balanced": big, "quality": big, "fast": small})
    assert models.get("balanced") is models.get("a/big") is big
    assert [(row.name, row.aliases) for row in models.list_models()] == [
        ("a/big", ("balanced", "quality")),
        ("a/small", ("fast",)),
    ]
    with pytest.raises(NotFound):
        models.get("huge")
    await models.aclose()


async def test_one_model_alone_answers_to_every_name() -> None:
    only = ScriptedModel()
    models = ScriptedModels(only)
    assert models.get("balanced") is models.get("whatever") is only
    assert isinstance(call("look"), ToolCallPart)
    await models.aclose()
    assert models.closed

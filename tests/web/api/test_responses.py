"""`/v1/responses`, asked by the official client."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from denizen.domain.errors import Unavailable
from denizen.domain.ids import CallId
from denizen.domain.message import Role, ToolCallPart, ToolResultPart, join_text
from denizen.domain.turn import TurnStatus
from denizen.domain.usage import Usage
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from tests.web.api.test_completions import leave_when_reached, official
from tests.web_fixture import ANN, BEN, make_hello_model, open_web

pytestmark = pytest.mark.anyio

PATH = "/v1/responses"
LAMP: Any = {
    "type": "function",
    "name": "switch_lamp",
    "description": "Switches a lamp.",
    "parameters": {"type": "object", "properties": {"room": {"type": "string"}}},
}


async def test_the_official_client_gets_a_response() -> None:
    usage = Usage(input_tokens=20, output_tokens=4, cache_read_tokens=12, requests=1)
    model = ScriptedModel(ScriptedReply("Ahoy.", usage=usage))
    async with open_web(model) as web, web.serve() as url, official(web, url=url) as client:
        response = await client.responses.create(
            model="denizen", input="hi", instructions="Speak like a pirate.", max_output_tokens=50, temperature=0.2
        )
        [turn] = await web.turns()
    assert (response.output_text, response.status, response.model) == ("Ahoy.", "completed", "denizen")
    assert response.id == turn.id.replace("turn_", "resp_")
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.total_tokens) == (20, 24)
    assert response.usage.input_tokens_details.cached_tokens == 12
    [request] = model.requests
    assert (request.max_output_tokens, request.sampling.temperature) == (50, 0.2)
    assert any("Speak like a pirate." in segment.text for segment in request.segments)


async def test_the_official_client_streams_the_events_of_a_response() -> None:
    model = ScriptedModel(ScriptedReply("Let me look.", calls=[call("weather", city="Oslo")]), ScriptedReply("Sunny."))
    async with (
        open_web(model) as web,
        web.serve() as url,
        official(web, url=url) as client,
        client.responses.stream(model="denizen", input="hi") as stream,
    ):
        events = [event async for event in stream]
        response = await stream.get_final_response()
    assert response.output_text == "Let me look.\n\nSunny."
    assert (
        "".join(event.delta for event in events if event.type == "response.output_text.delta") == response.output_text
    )
    kinds = Counter(event.type for event in events)
    for kind in ("created", "in_progress", "output_item.added", "content_part.added", "completed"):
        assert kinds[f"response.{kind}"] == 1
    assert [event.sequence_number for event in events] == list(range(len(events)))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_function_is_called_by_the_client_and_its_output_goes_on_from_the_response(*, stream: bool) -> None:
    model = ScriptedModel(
        ScriptedReply(calls=[call("weather", id="own-1", city="Oslo")]),
        ScriptedReply("A moment.", calls=[call("switch_lamp", id="c-1", room="hall")]),
        ScriptedReply("It is light."),
    )
    async with open_web(model) as web, web.serve() as url, official(web, url=url) as client:
        if stream:
            async with client.responses.stream(model="denizen", input="Light!", tools=[LAMP]) as events:
                async for _ in events:
                    pass
                first: Any = await events.get_final_response()
        else:
            first = await client.responses.create(model="denizen", input="Light!", tools=[LAMP])
        [made] = [item for item in first.output if item.type == "function_call"]
        assert (made.name, json.loads(made.arguments)) == ("switch_lamp", {"room": "hall"})
        last = await client.responses.create(
            model="denizen",
            previous_response_id=first.id,
            input=[{"type": "function_call_output", "call_id": made.call_id, "output": "on"}],
            tools=[LAMP],
        )
    assert last.output_text == "It is light."
    parts = [part for message in model.requests[2].messages for part in message.parts]
    assert ToolCallPart(CallId("own-1"), "weather", {"city": "Oslo"}) in parts
    assert ToolResultPart(CallId("c-1"), "switch_lamp", "on") in parts


async def test_a_client_may_carry_calls_and_outputs_itself() -> None:
    model = ScriptedModel(ScriptedReply("It is light."))
    items: Any = [
        {"role": "user", "content": [{"type": "input_text", "text": "Light!"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c-1", "name": "switch_lamp", "arguments": "{}"},
        {"type": "function_call", "call_id": "c-2", "name": "switch_lamp", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c-1", "output": "on"},
        {"type": "function_call_output", "call_id": "c-2", "output": [{"type": "input_text", "text": "on, too"}]},
    ]
    async with open_web(model) as web, official(web) as client:
        await client.responses.create(model="denizen", input=items, tools=[LAMP])
    user, assistant, tool = model.requests[0].messages
    assert [user.role, assistant.role, tool.role] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert len(assistant.parts) == 2
    assert [part.text for part in tool.parts if isinstance(part, ToolResultPart)] == ["on", "on, too"]


async def test_responses_go_on_from_any_earlier_one() -> None:
    async with open_web(make_hello_model()) as web, official(web) as client:
        first = await client.responses.create(
            model="denizen",
            input=[
                {"role": "user", "content": "zero"},
                {"role": "assistant", "content": "nought"},
                {"role": "user", "content": "one"},
            ],
        )
        second = await client.responses.create(model="denizen", input="two", previous_response_id=first.id)
        await client.responses.create(model="denizen", input="three", previous_response_id=second.id)
        await client.responses.create(model="denizen", input="other", previous_response_id=first.id)
    before = ["zero", "nought", "one", "Hello."]
    told = [[join_text(message.parts) for message in request.messages] for request in web.model.requests]
    assert told[1:] == [[*before, "two"], [*before, "two", "Hello.", "three"], [*before, "other"]]


async def test_a_response_of_somebody_else_or_that_was_not_stored_cannot_be_gone_on_from() -> None:
    async with open_web(make_hello_model(), keys=[ANN, BEN]) as web:
        async with official(web, key="key-of-ann") as ann:
            kept = await ann.responses.create(model="denizen", input="secret")
            gone = await ann.responses.create(model="denizen", input="secret", store=False)
        tries = (("key-of-ben", kept.id), ("key-of-ann", gone.id), ("key-of-ann", "resp_1"))
        for key, previous in tries:
            async with official(web, key=key) as client:
                with pytest.raises(openai.NotFoundError) as caught:
                    await client.responses.create(model="denizen", input="tell", previous_response_id=previous)
            assert caught.value.code == "previous_response_not_found"


async def test_the_official_client_parses_a_response_into_a_record() -> None:
    class City(BaseModel):
        name: str

    model = ScriptedModel(ScriptedReply('{"name": "Oslo"}'))
    async with open_web(model) as web, web.serve() as url, official(web, url=url) as client:
        response = await client.responses.parse(model="denizen", input="Which city?", text_format=City)
    assert response.output_parsed == City(name="Oslo")


@pytest.mark.proves("S15")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("place", ["before", "halfway"])
async def test_a_client_that_leaves_stops_its_turn(*, stream: bool, place: str) -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("Hello there.", **{place: gate}))  # pyright: ignore[reportArgumentType]
    async with open_web(model) as web, web.serve() as url:
        await leave_when_reached(url, gate, {"input": "hi", "stream": stream}, {}, path=PATH)
        turn = await web.ended(TurnStatus.CANCELLED)
    assert turn.result.reply == ""


@pytest.mark.proves("S15")
@pytest.mark.parametrize("stream", [False, True])
async def test_a_response_with_an_idempotency_key_is_made_although_its_client_leaves(*, stream: bool) -> None:
    gate, key = ReplyGate(), {"Idempotency-Key": "1"}
    asked = {"input": "hi", "stream": stream}
    async with open_web(ScriptedModel(ScriptedReply("Hello.", before=gate))) as web, web.serve() as url:
        await leave_when_reached(url, gate, asked, key, path=PATH)
        gate.open.set()
        await web.ended(TurnStatus.DONE)
        async with web.client(**key) as client:
            later = await client.post(PATH, json=asked)
        assert "Hello." in later.text
        assert len(web.model.requests) == 1


async def test_a_response_that_was_cut_off_is_incomplete() -> None:
    cut = ScriptedReply("Once", usage=Usage(input_tokens=5, output_tokens=9, requests=1), finish_reason="length")
    async with open_web(ScriptedModel(cut)) as web, official(web) as client:
        response = await client.responses.create(model="denizen", input="hi", max_output_tokens=9)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"


async def test_a_stream_that_fails_in_the_middle_ends_with_an_error() -> None:
    broken = ScriptedReply("Hello there,", error=Unavailable("The line broke.", code="line"))
    async with open_web(ScriptedModel(broken)) as web, official(web) as client:
        stream = await client.responses.create(model="denizen", input="hi", stream=True)
        with pytest.raises(openai.APIError, match="The line broke"):
            async for _ in stream:
                pass


@pytest.mark.parametrize(
    ("asked", "code", "word"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools_unsupported", "web_search"),
        ({"background": True}, "background_unsupported", "Idempotency-Key"),
        ({"reasoning": {"effort": "high"}}, "reasoning_unsupported", "configuration"),
        ({"include": ["reasoning.encrypted_content"]}, "include_unsupported", "include"),
        ({"input": []}, "field_invalid", "input"),
        ({"input": [{"type": "item_reference", "id": "1"}]}, "item_unsupported", "item_reference"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "part_unsupported", "input_file"),
        ({"input": [{"type": "function_call_output", "call_id": "1", "output": "x"}]}, "messages_invalid", "input[0]"),
        ({"input": [{"role": "user", "content": [{"type": []}]}]}, "field_invalid", "type"),
        ({"text": {"verbosity": []}}, "field_invalid", "verbosity"),
        ({"text": {"format": {"type": "grammar"}}}, "field_invalid", "text.format"),
    ],
)
async def test_what_responses_cannot_have_is_refused_in_words(asked: dict[str, Any], code: str, word: str) -> None:
    async with open_web() as web, web.client() as client:
        answer = await client.post(PATH, json={"input": "hi", **asked})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert word in answer.json()["error"]["message"]

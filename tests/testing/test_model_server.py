"""The model server answers as vendors do, in JSON too, and refuses what they refuse."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from denizen.testing.model_checks import check_request
from denizen.testing.model_server import (
    AnswerTokens,
    FailedAnswer,
    ModelAnswer,
    ModelCall,
    model_server,
    model_server_in_thread,
)
from tests.timing import HANG_LIMIT_S

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
MESSAGES = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
ANSWER = ModelAnswer(
    text="Hello.", thinking="hm", calls=[ModelCall("look", {"at": "x"})], tokens=AnswerTokens(100, 7, 60, 30)
)


def make_call(id: str) -> dict[str, Any]:  # noqa: A002
    function = {"name": "look", "arguments": "{}"}
    return {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]}


def frames(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.anyio
async def test_it_speaks_chat_completions() -> None:
    async with model_server() as server, httpx2.AsyncClient(base_url=server.openai_url, timeout=HANG_LIMIT_S) as client:
        server.script(ANSWER, ANSWER, ANSWER)
        whole = (await client.post("/chat/completions", json=CHAT)).json()
        choice = whole["choices"][0]
        assert choice["message"]["content"] == "Hello."
        assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]) == {"at": "x"}
        assert choice["finish_reason"] == "tool_calls"
        assert whole["usage"]["prompt_tokens_details"] == {"cached_tokens": 60}
        plain = (await client.post("/chat/completions", json=CHAT | {"stream": True})).text
        assert not any(frame.get("usage") for frame in frames(plain))
        assert plain.endswith("data: [DONE]\n\n")
        options = {"stream": True, "stream_options": {"include_usage": True}}
        counted = frames((await client.post("/chat/completions", json=CHAT | options)).text)
        assert counted[-1]["usage"]["completion_tokens"] == 7


@pytest.mark.anyio
async def test_it_speaks_responses() -> None:
    async with model_server() as server, httpx2.AsyncClient(base_url=server.openai_url, timeout=HANG_LIMIT_S) as client:
        server.script(ANSWER, ANSWER)
        whole = (await client.post("/responses", json={"model": "m", "input": "hi"})).json()
        assert [item["type"] for item in whole["output"]] == ["reasoning", "message", "function_call"]
        streamed = frames((await client.post("/responses", json={"model": "m", "input": "hi", "stream": True})).text)
        assert streamed[0]["type"] == "response.created"
        assert streamed[-1]["response"] == whole
        assert [event["sequence_number"] for event in streamed] == list(range(len(streamed)))


@pytest.mark.anyio
async def test_it_speaks_messages() -> None:
    async with model_server() as server, httpx2.AsyncClient(base_url=server.url, timeout=HANG_LIMIT_S) as client:
        server.script(ANSWER, ANSWER)
        whole = (await client.post("/v1/messages", json=MESSAGES)).json()
        assert [block["type"] for block in whole["content"]] == ["thinking", "text", "tool_use"]
        assert whole["usage"] == {
            "input_tokens": 10,
            "cache_read_input_tokens": 60,
            "cache_creation_input_tokens": 30,
            "output_tokens": 7,
        }
        streamed = frames((await client.post("/v1/messages", json=MESSAGES | {"stream": True})).text)
        assert streamed[0]["type"] == "message_start"
        assert streamed[-2]["delta"]["stop_reason"] == "tool_use"
        assert streamed[-1]["type"] == "message_stop"


@pytest.mark.anyio
async def test_it_lists_models_and_knows_no_other_routes() -> None:
    async with model_server() as server, httpx2.AsyncClient(base_url=server.url, timeout=HANG_LIMIT_S) as client:
        server.models = ["a", "b"]
        assert [row["id"] for row in (await client.get("/v1/models")).json()["data"]] == ["a", "b"]
        assert (await client.post("/v1/poems", json={})).status_code == 404


@pytest.mark.anyio
async def test_errors_have_the_vendors_form_and_headers() -> None:
    async with model_server() as server, httpx2.AsyncClient(timeout=HANG_LIMIT_S) as client:
        server.script(*[FailedAnswer(529, "Overloaded", "overloaded_error", headers={"retry-after": "3"})] * 2)
        answer = await client.post(f"{server.url}/v1/messages", json=MESSAGES)
        assert (answer.status_code, answer.headers["retry-after"]) == (529, "3")
        assert answer.json()["error"] == {"type": "overloaded_error", "message": "Overloaded"}
        answer = await client.post(f"{server.openai_url}/chat/completions", json=CHAT)
        assert answer.json()["error"]["message"] == "Overloaded"


@pytest.mark.anyio
async def test_a_script_that_is_at_its_end_is_told_as_an_error() -> None:
    async with model_server() as server, httpx2.AsyncClient(timeout=HANG_LIMIT_S) as client:
        answer = await client.post(f"{server.openai_url}/chat/completions", json=CHAT)
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "script_exhausted"
        assert server.requests[0].body == CHAT


@pytest.mark.anyio
async def test_a_wrong_prompt_is_refused_unless_that_is_switched_off() -> None:
    wrong = CHAT | {"messages": [make_call("a"), {"role": "user", "content": "?"}]}
    async with model_server() as server, httpx2.AsyncClient(base_url=server.openai_url, timeout=HANG_LIMIT_S) as client:
        server.script(ANSWER)
        assert (await client.post("/chat/completions", json=wrong)).status_code == 400
        assert server.left == 1
    async with (
        model_server(strict=False) as server,
        httpx2.AsyncClient(base_url=server.openai_url, timeout=HANG_LIMIT_S) as client,
    ):
        server.script(ANSWER)
        assert (await client.post("/chat/completions", json=wrong)).status_code == 200


def test_code_that_is_not_async_can_use_it_too() -> None:
    with model_server_in_thread() as server, httpx2.Client(timeout=HANG_LIMIT_S) as client:
        server.script(ANSWER)
        answer = client.post(f"{server.openai_url}/chat/completions", json=CHAT)
        assert answer.json()["choices"][0]["message"]["content"] == "Hello."


def result(id: str) -> dict[str, Any]:  # noqa: A002
    return {"role": "tool", "tool_call_id": id, "content": "seen"}


@pytest.mark.parametrize(
    ("messages", "refused"),
    [
        ([make_call("a"), result("a")], False),
        ([result("a")], True),
        ([make_call("a")], True),
        ([make_call("a"), make_call("b"), result("b")], True),
        ([make_call("a"), result("a"), result("a")], True),
    ],
)
def test_calls_and_results_have_to_match_in_chat_completions(messages: list[dict[str, Any]], *, refused: bool) -> None:
    assert bool(check_request("chat", {"messages": messages})) is refused


def block(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (MESSAGES, ""),
        (MESSAGES | {"max_tokens": 0}, "max_tokens"),
        (MESSAGES | {"messages": [{"role": "assistant", "content": "hi"}]}, "first message"),
        (MESSAGES | {"messages": [{"role": "user", "content": [block("text", text=" ")]}]}, "non-whitespace"),
        (
            MESSAGES | {"messages": [*MESSAGES["messages"], {"role": "assistant", "content": "Dennis: "}]},  # pyright: ignore[reportGeneralTypeIssues]
            "trailing whitespace",
        ),
        (MESSAGES | {"system": [block("text", text="x", cache_control={}) for _ in range(5)]}, "maximum of 4"),
        (
            MESSAGES | {"messages": [{"role": "user", "content": [block("tool_result", tool_use_id="a")]}]},
            "tool_result",
        ),
    ],
)
def test_anthropics_rules_are_kept(body: dict[str, Any], said: str) -> None:
    refusal = check_request("messages", body)
    assert said in refusal
    assert bool(refusal) is bool(said)

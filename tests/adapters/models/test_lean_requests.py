"""What was made cheaper does the same: requests as they would be sent anyway, chunks as servers really send them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from openai import AsyncOpenAI

from denizen.adapters.models.openai_client import LeanOpenAI
from denizen.adapters.models.openai_responses import LeanResponsesOpenAI
from denizen.domain.message import TextPart, ThinkingPart
from denizen.domain.tool import ToolSpec
from denizen.ports.model import ModelReply
from denizen.testing.model_server import ModelAnswer, ModelCall, ModelServer, RawAnswer
from tests.adapters.models.wire_fixture import (
    ANTHROPIC,
    COMPATIBLE,
    LOOK,
    OPENAI,
    WIRES,
    BuildCatalog,
    Wire,
    make_request,
    read_stream,
)

pytestmark = pytest.mark.anyio

CONVERSATION: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "You are Dennis."},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "x"}}]},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a tree"},
    ],
    "tools": [{"type": "function", "function": {"name": "look", "parameters": LOOK.parameters}}],
}
ITEMS: dict[str, Any] = {
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "a tree"},
    ],
    "tools": [{"type": "function", "name": "look", "parameters": LOOK.parameters, "strict": False}],
}


async def test_chat_completions_are_asked_for_as_the_sdk_would(server: ModelServer) -> None:
    server.script(ModelAnswer(text="ok"), ModelAnswer(text="ok"))
    for kind in (AsyncOpenAI, LeanOpenAI):
        async with kind(api_key="k", base_url=server.openai_url) as client:
            await client.chat.completions.create(model="m", temperature=0.5, **CONVERSATION, extra_body={"top_k": 3})
    first, second = server.bodies
    assert first == second
    assert first["messages"] == CONVERSATION["messages"]
    assert first["top_k"] == 3


async def test_responses_are_asked_for_as_the_sdk_would(server: ModelServer) -> None:
    server.script(ModelAnswer(text="ok"), ModelAnswer(text="ok"))
    for kind in (AsyncOpenAI, LeanResponsesOpenAI):
        async with kind(api_key="k", base_url=server.openai_url) as client:
            await client.responses.create(model="m", instructions="You are Dennis.", store=False, **ITEMS)
    first, second = server.bodies
    assert first == second
    assert first["input"] == ITEMS["input"]


async def test_a_request_without_tools_has_none(server: ModelServer, build: BuildCatalog) -> None:
    server.script(ModelAnswer(text="ok"))
    await read_stream(build(COMPATIBLE).get(COMPATIBLE.name), make_request("hi"))
    assert "tools" not in server.bodies[0]


def build_stream(*chunks: dict[str, Any]) -> RawAnswer:
    frames = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return RawAnswer("".join([*frames, "data: [DONE]\n\n"]).encode(), "text/event-stream")


async def read_reply(server: ModelServer, build: BuildCatalog, wire: Wire, *chunks: dict[str, Any]) -> ModelReply:
    server.script(build_stream(*chunks))
    return (await read_stream(build(wire).get(wire.name), make_request("hi"))).reply


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}


@pytest.mark.parametrize("wire", [OPENAI, COMPATIBLE], ids=lambda wire: wire.kind)
async def test_chunks_that_deviate_from_the_documented_form_are_read(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    bare = {"choices": [{"delta": {"role": "assistant", "content": "Good "}}]}
    odd = chunk({"content": "morning"}, created=None, object="something.else", service_tier="mine")
    reply = await read_reply(server, build, wire, bare, odd, chunk({"content": "."}, "eos"))
    assert reply.parts == (TextPart("Good morning."),)


@pytest.mark.parametrize("wire", [OPENAI, COMPATIBLE], ids=lambda wire: wire.kind)
async def test_fields_that_are_not_documented_are_kept(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    reply = await read_reply(
        server, build, wire, chunk({"reasoning_content": "Hm."}), chunk({"content": "Yes."}), chunk({}, "stop")
    )
    assert [type(part) for part in reply.parts] == [ThinkingPart, TextPart]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.kind)
async def test_tools_are_the_same_on_the_wire_for_every_request(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    server.script(ModelAnswer(calls=[ModelCall("look", {"at": "x"})]), ModelAnswer(text="ok"))
    model = build(wire).get(wire.name)
    await read_stream(model, make_request("hi", tools=(LOOK,)))
    await read_stream(model, make_request("hi", tools=(replace(LOOK, source="elsewhere"),)))
    first, second = (json.dumps(body["tools"]) for body in server.bodies)
    assert first == second


@pytest.mark.parametrize("wire", [COMPATIBLE, ANTHROPIC], ids=lambda wire: wire.kind)
async def test_a_tool_that_changes_changes_on_the_wire(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    server.script(*[ModelAnswer(text="ok")] * 3)
    model = build(wire).get(wire.name)
    schema = {"type": "object", "properties": {"where": {"type": "string", "title": "Where"}}}
    for tools in ((LOOK,), (replace(LOOK, description="Looks anew."),), (ToolSpec("look", "Looks.", schema),)):
        await read_stream(model, make_request("hi", tools=tools))
    before, described, other = (json.dumps(body["tools"]) for body in server.bodies)
    assert "Looks anew." in described
    assert "Looks anew." not in before
    assert '"where"' in other
    assert '"at"' not in other

"""Chat completions as servers of them really answer, and what asking one of them does not import."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import pytest

from denizen.domain.ids import CallId
from denizen.domain.message import Role, TextPart, ToolResultPart, list_calls
from denizen.domain.prompt import PromptMessage
from denizen.ports.model import ModelReply
from denizen.testing.model_server import ModelAnswer, ModelServer, RawAnswer
from tests.adapters.models.wire_fixture import COMPATIBLE, LOOK, BuildCatalog, make_request, read_stream
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

ASK = """
import sys, anyio
from denizen.adapters.models.catalog import ModelsSpec, build_models
from denizen.adapters.models.providers import ModelSpec, ProviderSpec
from tests.adapters.models.wire_fixture import make_request, read_stream

async def main():
    provider = ProviderSpec(name="own", kind="openai-compatible", base_url=sys.argv[1])
    models = build_models(ModelsSpec(providers=[provider], models=[ModelSpec("own/m")]))
    print((await read_stream(models.get("own/m"), make_request("hi"))).text)
    print(*sorted({"openai", "pydantic_ai", "aiohttp", "anthropic"} & sys.modules.keys()))

anyio.run(main)
"""


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


async def read_chunks(server: ModelServer, build: BuildCatalog, *chunks: dict[str, Any]) -> ModelReply:
    frames = [f"data: {json.dumps(each)}\n\n" for each in chunks]
    server.script(RawAnswer("".join([*frames, "data: [DONE]\n\n"]).encode(), "text/event-stream"))
    return (await read_stream(build(COMPATIBLE).get(COMPATIBLE.name), make_request("hi", tools=(LOOK,)))).reply


def call(name: str, args: object, **more: object) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": args}, **more}


async def test_a_server_of_chat_completions_is_asked_without_a_vendors_library(server: ModelServer) -> None:
    server.script(ModelAnswer(text="hello"))
    with anyio.fail_after(HANG_LIMIT_S):
        done = await anyio.run_process([sys.executable, "-c", ASK, server.openai_url], check=False)
    assert done.stdout.decode().splitlines() == ["hello", ""], done.stderr.decode()


@pytest.mark.parametrize(
    "pieces",
    [
        [{"tool_calls": [call("look", '{"at":', index=0, id="a")]}, {"tool_calls": [call("", ' "x"}', index=0)]}],
        [{"tool_calls": [call("look", '{"at": "x"}', id="a")]}],
        [{"tool_calls": [call("look", {"at": "x"}, index=0, id="a")]}],
        [{"tool_calls": [call("look", '{"at":', id="a")]}, {"tool_calls": [call("", ' "x"}')]}],
        [
            {"tool_calls": [call("look", '{"at":', index=0, id="a")]},
            {"tool_calls": [call("look", '"x"}', index=0, id="a")]},
        ],
    ],
    ids=["in pieces", "without an index", "as an object", "pieces without an index", "id and name with each piece"],
)
async def test_a_call_is_the_same_however_servers_cut_it(
    server: ModelServer, build: BuildCatalog, pieces: list[dict[str, Any]]
) -> None:
    reply = await read_chunks(server, build, *map(chunk, pieces), chunk({}, "tool_calls"))
    assert [(each.id, each.tool, each.args) for each in list_calls(reply.parts)] == [("a", "look", {"at": "x"})]
    assert reply.finish_reason == "tool_calls"


async def test_two_calls_that_share_an_index_stay_two(server: ModelServer, build: BuildCatalog) -> None:
    both = [call("look", '{"at": "x"}', index=0, id="a"), call("look", '{"at": "y"}', index=0, id="b")]
    reply = await read_chunks(server, build, chunk({"tool_calls": both}, "stop"))
    assert [(each.id, each.args) for each in list_calls(reply.parts)] == [("a", {"at": "x"}), ("b", {"at": "y"})]


async def test_text_in_a_list_of_parts_is_read(server: ModelServer, build: BuildCatalog) -> None:
    parts = [{"type": "text", "text": "Good "}, "morning", {"type": "reference", "ids": [1]}]
    reply = await read_chunks(server, build, chunk({"content": parts}), chunk({"content": "."}, "stop"))
    assert reply.parts == (TextPart("Good morning."),)


async def test_a_refusal_is_no_answer(server: ModelServer, build: BuildCatalog) -> None:
    reply = await read_chunks(server, build, chunk({"refusal": "I will not."}, "stop"))
    assert (reply.parts, reply.finish_reason) == ((), "content_filter")


async def test_the_sum_of_tokens_is_what_was_told_last(server: ModelServer, build: BuildCatalog) -> None:
    told = [{**chunk({"content": "a"}), "usage": {"prompt_tokens": 9, "completion_tokens": n}} for n in (1, 2)]
    reply = await read_chunks(server, build, *told, chunk({}, "stop"))
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (9, 2)


async def test_a_mark_on_a_call_goes_back_with_it(server: ModelServer, build: BuildCatalog) -> None:
    mark = {"google": {"thought_signature": "S"}}
    reply = await read_chunks(
        server, build, chunk({"tool_calls": [call("look", "{}", index=0, id="a", extra_content=mark)]}, "stop")
    )
    server.script(ModelAnswer(text="ok"))
    result = PromptMessage(Role.TOOL, (ToolResultPart(CallId("a"), "look", "seen"),))
    request = make_request("hi", PromptMessage(Role.ASSISTANT, reply.parts), result, tools=(LOOK,))
    await read_stream(build(COMPATIBLE).get(COMPATIBLE.name), request)
    [again] = [each for each in server.bodies[-1]["messages"] if each["role"] == "assistant"]
    assert again["tool_calls"][0]["extra_content"] == mark

"""Chat completions as servers of them really answer, and what asking one of them does not import."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import pytest

from denizen.adapters.models import chat_client
from denizen.adapters.models.reply import ProviderState, pack_state
from denizen.domain.errors import DenizenError, Unavailable
from denizen.domain.ids import CallId
from denizen.domain.message import Role, TextPart, ThinkingPart, ToolCallPart, ToolResultPart, list_calls
from denizen.domain.prompt import PromptMessage
from denizen.ports.model import ModelReply
from denizen.testing.model_server import BrokenAnswer, ModelAnswer, ModelServer, RawAnswer
from tests.adapters.models.wire_fixture import COMPATIBLE, LOOK, BuildCatalog, SingleAttempt, make_request, read_stream
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


def build_stream(*chunks: dict[str, Any]) -> RawAnswer:
    frames = [f"data: {json.dumps(each)}\n\n" for each in chunks]
    return RawAnswer("".join([*frames, "data: [DONE]\n\n"]).encode(), "text/event-stream")


async def read_chunks(server: ModelServer, build: BuildCatalog, *chunks: dict[str, Any]) -> ModelReply:
    server.script(build_stream(*chunks))
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
        [{"tool_calls": [call("lo", "", index=0, id="a")]}, {"tool_calls": [call("ok", '{"at": "x"}', index=0)]}],
    ],
    ids=[
        "in pieces",
        "without an index",
        "as an object",
        "pieces without an index",
        "id and name with each piece",
        "a name in pieces",
    ],
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


async def test_thinking_that_only_the_sum_has_is_output(server: ModelServer, build: BuildCatalog) -> None:
    told = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 16}
    reply = await read_chunks(server, build, {**chunk({"content": "a"}, "stop"), "usage": told})
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (9, 7)


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


async def test_calls_without_ids_that_share_an_index_stay_two(server: ModelServer, build: BuildCatalog) -> None:
    both = [call("look", '{"at": "x"}', index=0, id=""), call("look", '{"at": "y"}', index=0, id="")]
    reply = await read_chunks(server, build, *(chunk({"tool_calls": [each]}) for each in both), chunk({}, "stop"))
    assert [each.args for each in list_calls(reply.parts)] == [{"at": "x"}, {"at": "y"}]


async def test_a_refusal_stays_one_when_the_stream_ends_as_usual(server: ModelServer, build: BuildCatalog) -> None:
    reply = await read_chunks(
        server, build, chunk({"refusal": "I will"}), chunk({"refusal": " not."}), chunk({}, "stop")
    )
    assert (reply.parts, reply.finish_reason) == ((), "content_filter")


@pytest.mark.parametrize(
    ("said", "reason"),
    [("model_length", "length"), ("max_tokens", "length"), ("insufficient_system_resource", "error")],
)
async def test_the_reasons_of_servers_for_an_answer_cut_short_are_known(
    server: ModelServer, build: BuildCatalog, said: str, reason: str
) -> None:
    reply = await read_chunks(server, build, chunk({"content": "a"}), chunk({}, said))
    assert reply.finish_reason == reason


@pytest.mark.parametrize(
    "broken",
    [
        {**chunk({}, "stop"), "usage": [1]},
        {**chunk({}, "stop"), "usage": {"prompt_tokens": "many"}},
        chunk({"tool_calls": [call("look", "{}", index=0, id=7)]}, "stop"),
        chunk({"reasoning": {"text": "hm"}}, "stop"),
        chunk({}, ["stop"]),  # pyright: ignore[reportArgumentType]
    ],
    ids=["usage", "tokens", "id", "thinking", "finish"],
)
async def test_fields_of_a_wrong_type_are_an_answer_that_cannot_be_read(
    server: ModelServer, build: BuildCatalog, broken: dict[str, Any]
) -> None:
    with pytest.raises(Unavailable) as failed:
        await read_chunks(server, build, broken)
    assert failed.value.code == "model_bad_reply"


async def test_events_without_data_are_passed_over(server: ModelServer, build: BuildCatalog) -> None:
    frames = f"retry: 3000\n\nevent: ping\n\ndata: {json.dumps(chunk({'content': 'a'}, 'stop'))}\n\ndata: [DONE]\n\n"
    server.script(RawAnswer(frames.encode(), "text/event-stream"))
    assert (await read_stream(build(COMPATIBLE).get(COMPATIBLE.name), make_request("hi"))).text == "a"


async def test_a_connection_that_breaks_after_the_end_of_an_answer_loses_nothing(
    server: ModelServer, build: BuildCatalog
) -> None:
    server.script(BrokenAnswer(ModelAnswer(text="hello"), after_frames=99))
    assert (await read_stream(build(COMPATIBLE).get(COMPATIBLE.name), make_request("hi"))).text == "hello"


async def test_an_endless_answer_is_given_up(
    server: ModelServer, build: BuildCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_client, "_MOST_ANSWER_CHARS", 1000)
    with pytest.raises(Unavailable) as failed:
        await read_chunks(server, build, *[chunk({"content": "x" * 100})] * 20)
    assert failed.value.code == "model_bad_reply"
    assert "1000" in failed.value.why


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, {"error": "Incorrect API key provided: xa***."}, "model_key_refused"),
        (400, [{"error": {"code": 400, "message": "API key not valid."}}], "model_key_refused"),
        (429, [{"error": {"code": 429, "message": "Slow down."}}], "model_rate_limited"),
        (308, {}, "model_address_invalid"),
    ],
    ids=["xAI's key", "Gemini's key", "Gemini's list", "redirect"],
)
async def test_errors_in_the_forms_of_servers_say_what_to_do(
    server: ModelServer, build: BuildCatalog, status: int, body: object, code: str
) -> None:
    server.script(RawAnswer(json.dumps(body).encode(), "application/json", status))
    model = build(COMPATIBLE, pauses=SingleAttempt()).get(COMPATIBLE.name)
    with pytest.raises(DenizenError) as failed:
        await read_stream(model, make_request("hi"))
    assert failed.value.code == code
    assert "{" not in failed.value.why


@pytest.mark.parametrize("error", ["out of memory", {"message": "out of memory", "type": "api_error", "code": None}])
async def test_an_error_in_a_stream_is_the_servers_failure(
    server: ModelServer, build: BuildCatalog, error: object
) -> None:
    with pytest.raises(Unavailable) as failed:
        await read_chunks(server, build, chunk({"content": "a"}), {"error": error})
    assert (failed.value.code, failed.value.why) == ("model_server_error", "out of memory")


async def test_a_header_that_cannot_be_sent_is_not_shown(server: ModelServer, build: BuildCatalog) -> None:
    model = build(COMPATIBLE, pauses=SingleAttempt(), headers={"X-Gate": "open sesame\n"}).get(COMPATIBLE.name)
    with pytest.raises(DenizenError) as failed:
        await read_stream(model, make_request("hi"))
    assert "sesame" not in failed.value.why


async def test_a_configured_authorization_replaces_the_key(server: ModelServer, build: BuildCatalog) -> None:
    server.script(ModelAnswer(text="ok"))
    model = build(COMPATIBLE, headers={"authorization": "Basic abc"}).get(COMPATIBLE.name)
    await read_stream(model, make_request("hi"))
    assert server.requests[-1].headers["authorization"] == "Basic abc"


async def test_a_stream_that_breaks_behind_the_role_alone_is_asked_for_again(
    server: ModelServer, build: BuildCatalog
) -> None:
    role = chunk({"role": "assistant", "content": ""})
    server.script(build_stream(role, {"error": {"code": "server_error"}}), ModelAnswer(text="ok"))
    assert (await read_stream(build(COMPATIBLE).get(COMPATIBLE.name), make_request("hi"))).text == "ok"


async def test_no_state_of_a_provider_can_name_another_field_of_a_message(
    server: ModelServer, build: BuildCatalog
) -> None:
    foreign = ThinkingPart("deep", pack_state(ProviderState(COMPATIBLE.name, id="role")))
    mark = ThinkingPart("", pack_state(ProviderState(COMPATIBLE.name, details={"function": {}}, call="a")))
    server.script(ModelAnswer(text="ok"))
    reply = PromptMessage(Role.ASSISTANT, (foreign, mark, ToolCallPart(CallId("a"), "look", {"at": "x"})))
    result = PromptMessage(Role.TOOL, (ToolResultPart(CallId("a"), "look", "seen"),))
    await read_stream(build(COMPATIBLE).get(COMPATIBLE.name), make_request("hi", reply, result, tools=(LOOK,)))
    [again] = [each for each in server.bodies[-1]["messages"] if "tool_calls" in each]
    assert (again["role"], again["tool_calls"][0]["function"]["name"]) == ("assistant", "look")

"""What a provider says arrives in our form, over every wire."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from denizen.domain.ids import CallId
from denizen.domain.json import JsonObject
from denizen.domain.message import TextPart, ThinkingPart, ToolCallPart, join_text
from denizen.ports.model import RAW_ARGS, ThinkingDelta
from denizen.testing.model_server import AnswerTokens, ModelAnswer, ModelCall, ModelServer, RawAnswer
from tests.adapters.models.wire_fixture import (
    ANTHROPIC,
    CHAT_WIRES,
    GOOGLE,
    LOOK,
    OLLAMA,
    OPENAI,
    OPENROUTER,
    RESPONSES,
    WIRES,
    BuildCatalog,
    Wire,
    make_request,
    read_stream,
)

pytestmark = pytest.mark.anyio


def each_wire(*wires: Wire) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("wire", wires or WIRES, ids=lambda wire: wire.kind)


@each_wire()
@pytest.mark.proves("V13")
async def test_text_streams_in_pieces_and_comes_whole_at_the_end(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    server.script(ModelAnswer(text="Hello from the provider."))
    models = build(wire)
    heard = await read_stream(models.get(wire.name), make_request("hi"))
    assert "".join(heard.deltas) == heard.text == "Hello from the provider."
    assert len(heard.deltas) == 3
    assert heard.reply.finish_reason == "stop"
    assert (heard.reply.model, heard.reply.provider) == (wire.name, wire.kind)
    assert heard.calls == ()


async def test_several_texts_of_a_reply_stand_on_lines_of_their_own_in_the_stream_too(
    server: ModelServer, build: BuildCatalog
) -> None:
    said = [{"type": "text", "text": "One"}, {"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "two"}]
    usage = {"input_tokens": 3, "output_tokens": 2}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "content": []}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, "usage": usage}}]
    for index, block in enumerate(said):
        kind = block["type"]
        delta = {"type": f"{kind}_delta", kind: block[kind]}
        events += [
            {"type": "content_block_start", "index": index, "content_block": {"type": kind, kind: "", "signature": ""}},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    events += [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]
    frames = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    server.script(RawAnswer("".join(frames).encode(), "text/event-stream"))
    heard = await read_stream(build(ANTHROPIC).get(ANTHROPIC.name), make_request("hi"))
    assert "".join(heard.deltas) == join_text(heard.reply.parts) == "One\ntwo"


@each_wire()
@pytest.mark.proves("V14")
async def test_one_tool_call_keeps_its_id_name_and_arguments(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    args: JsonObject = {"at": "the ünïcode moon", "deep": {"ü": [1, 2.5, True, None, {}]}}
    server.script(ModelAnswer(text="I look.", calls=[ModelCall("look", args, id="abc")]))
    models = build(wire)
    heard = await read_stream(models.get(wire.name), make_request("hi", tools=(LOOK,)))
    assert heard.calls == (ToolCallPart(CallId("abc"), "look", args),)
    assert heard.text == "I look."
    assert heard.reply.finish_reason == "tool_calls"


@each_wire()
@pytest.mark.proves("V14")
async def test_five_parallel_calls_arrive_in_order(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    server.script(ModelAnswer(calls=[ModelCall("look", {"at": str(n)}) for n in range(5)]))
    models = build(wire)
    heard = await read_stream(models.get(wire.name), make_request("hi", tools=(LOOK,)))
    assert [call.args["at"] for call in heard.calls] == ["0", "1", "2", "3", "4"]
    assert len({call.id for call in heard.calls}) == 5


@each_wire()
async def test_calls_without_an_id_of_their_own_get_one(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    server.script(
        ModelAnswer(
            calls=[ModelCall("look", {"at": "a"}, "x"), ModelCall("look", {"at": "b"}, "x"), ModelCall("look")],
            bare_ids=True,
        )
    )
    models = build(wire)
    heard = await read_stream(models.get(wire.name), make_request("hi", tools=(LOOK,)))
    ids = [call.id for call in heard.calls]
    assert len(heard.calls) == 3
    assert all(ids)
    assert len(set(ids)) == 3


@each_wire(*(wire for wire in WIRES if wire is not GOOGLE))  # whose format has no texts for arguments
@pytest.mark.proves("S12")
async def test_arguments_within_a_string_are_parsed_and_those_that_are_no_object_are_kept_as_text(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    broken = '{"at": "the mo'
    written = (json.dumps('{"at": "x"}'), broken, '["at"]', "")
    server.script(ModelAnswer(calls=[ModelCall("look", args) for args in written]))
    models = build(wire)
    heard = await read_stream(models.get(wire.name), make_request("hi", tools=(LOOK,)))
    assert [call.args for call in heard.calls] == [{"at": "x"}, {RAW_ARGS: broken}, {RAW_ARGS: '["at"]'}, {}]


@each_wire()
async def test_usage_counts_cached_tokens_within_the_input(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    server.script(ModelAnswer(text="ok", tokens=AnswerTokens(input=1000, output=20, cache_read=600)))
    models = build(wire)
    usage = (await read_stream(models.get(wire.name), make_request("hi"))).reply.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (1000, 20, 600)
    assert usage.requests == 1


async def test_tokens_written_to_the_cache_are_counted_and_priced(server: ModelServer, build: BuildCatalog) -> None:
    server.script(ModelAnswer(text="ok", tokens=AnswerTokens(input=1000, output=100, cache_read=500, cache_write=400)))
    models = build(ANTHROPIC)
    usage = (await read_stream(models.get(ANTHROPIC.name), make_request("hi"))).reply.usage
    assert (usage.cache_read_tokens, usage.cache_write_tokens) == (500, 400)
    # Haiku 4.5, dollars per million: input 1, cache read 0.10, cache write 1.25, output 5.
    expected = Decimal(100) + Decimal(500) * Decimal("0.1") + Decimal(400) * Decimal("1.25") + Decimal(100) * 5
    assert usage.cost_usd == expected / 1_000_000


async def test_what_the_provider_charged_goes_before_the_price_list(server: ModelServer, build: BuildCatalog) -> None:
    server.script(ModelAnswer(text="ok"))
    models = build(OPENROUTER)
    assert (await read_stream(models.get(OPENROUTER.name), make_request("hi"))).reply.usage.cost_usd == Decimal(
        "0.0125"
    )


async def test_models_on_the_own_machine_are_free(server: ModelServer, build: BuildCatalog) -> None:
    server.script(ModelAnswer(text="ok"))
    models = build(OLLAMA)
    assert (await read_stream(models.get(OLLAMA.name), make_request("hi"))).reply.usage.cost_usd == Decimal(0)


async def test_the_price_of_an_unknown_model_is_unknown(server: ModelServer, build: BuildCatalog) -> None:
    wire = Wire("openai-compatible", "nobody-knows-this")
    server.script(ModelAnswer(text="ok"), ModelAnswer(text="ok", tokens=None))
    models = build(wire)
    assert (await read_stream(models.get(wire.name), make_request("hi"))).reply.usage.cost_usd is None
    assert (await read_stream(models.get(wire.name), make_request("hi"))).reply.usage.cost_usd is None


@each_wire()
async def test_thinking_streams_apart_from_the_text(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    server.script(ModelAnswer(thinking="Let me think about it.", text="Yes."))
    models = build(wire)
    heard = await read_stream(models.get(wire.name), make_request("hi"))
    thought = "".join(event.text for event in heard.events if isinstance(event, ThinkingDelta))
    assert thought == "Let me think about it."
    assert heard.text == "Yes."
    assert [type(part) for part in heard.reply.parts] == [ThinkingPart, TextPart]


@each_wire(*CHAT_WIRES)
@pytest.mark.parametrize("piece_chars", [1, 7, 50])
async def test_thinking_between_tags_is_no_text(
    server: ModelServer, build: BuildCatalog, wire: Wire, piece_chars: int
) -> None:
    server.script(ModelAnswer(text="<think>hm, <b>?</think>\n\nYes, <think> is a tag.", piece_chars=piece_chars))
    heard = await read_stream(build(wire).get(wire.name), make_request("hi"))
    assert heard.text == "".join(heard.deltas) == "Yes, <think> is a tag."
    assert "".join(event.text for event in heard.events if isinstance(event, ThinkingDelta)) == "hm, <b>?"


@pytest.mark.parametrize(
    ("wire", "finish"), [(ANTHROPIC, "max_tokens"), (OPENAI, "length"), (RESPONSES, "max_output_tokens")]
)
async def test_an_answer_that_hit_its_limit_says_so(
    server: ModelServer, build: BuildCatalog, wire: Wire, finish: str
) -> None:
    server.script(ModelAnswer(text="Once upon a", finish=finish))
    models = build(wire)
    assert (await read_stream(models.get(wire.name), make_request("hi"))).reply.finish_reason == "length"


@each_wire(*CHAT_WIRES)
async def test_stop_beside_tool_calls_means_the_calls(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    server.script(ModelAnswer(calls=[ModelCall("look", {"at": "x"})], finish="stop"))
    models = build(wire)
    assert (
        await read_stream(models.get(wire.name), make_request("hi", tools=(LOOK,)))
    ).reply.finish_reason == "tool_calls"


@each_wire()
async def test_an_empty_answer_is_an_answer(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    server.script(ModelAnswer())
    models = build(wire)
    heard = await read_stream(models.get(wire.name), make_request("hi"))
    assert heard.reply.parts == ()
    assert heard.reply.finish_reason == "stop"


@each_wire()
async def test_a_reader_who_leaves_early_frees_the_connection(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    server.script(ModelAnswer(text="one two three four five"), ModelAnswer(text="again"))
    models = build(wire)
    stream = models.get(wire.name).stream(make_request("hi"))
    await anext(stream)
    await stream.aclose()
    assert (await read_stream(models.get(wire.name), make_request("hi"))).text == "again"

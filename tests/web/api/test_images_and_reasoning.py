"""What comes besides the text of an answer over HTTP: pictures, and reasoning where the agent is to show it."""

from __future__ import annotations

import json
from base64 import b64encode
from io import BytesIO
from typing import Any

import httpx2
import pytest
from PIL import Image

from denizen.domain.agent import Agent
from denizen.domain.errors import Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.json import Json, JsonObject
from denizen.domain.tool import ToolCall, ToolResult
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from denizen_sdk.turns import ReasoningAddedEvent, TextAddedEvent, TurnFailedEvent, TurnFinishedEvent, decode_event
from tests.engine.engine_fixture import ToolsetFixture
from tests.web_fixture import open_web

pytestmark = pytest.mark.anyio

PNG = "data:image/png;base64," + b64encode(b"\x89PNG").decode()
PICTURES = [{"index": 0, "type": "image_url", "image_url": {"url": PNG}}]
THOUGHT = "Ana wants a flower."
ASKED: dict[str, Any] = {"model": "denizen", "messages": [{"role": "user", "content": "a rose?"}]}


def rows(response: httpx2.Response) -> list[dict[str, Any]]:
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def model() -> ScriptedModel:
    return ScriptedModel(ScriptedReply("A rose.", thinking=THOUGHT, images=[PNG]))


def agents(*, shows: bool) -> tuple[Agent, ...]:
    return (Agent(AgentName("denizen"), show_reasoning=shows),)


@pytest.mark.proves("C25", "C25-reasoning")
@pytest.mark.parametrize("shows", [True, False])
async def test_a_completion_has_pictures_and_reasoning_beside_its_text(*, shows: bool) -> None:
    async with open_web(model(), agents=agents(shows=shows)) as web, web.client() as client:
        message = (await client.post("/v1/chat/completions", json=ASKED)).json()["choices"][0]["message"]
    assert (message["content"], message["images"]) == ("A rose.", PICTURES)
    assert message.get("reasoning_content") == (THOUGHT if shows else None)


@pytest.mark.proves("C25", "C25-reasoning")
@pytest.mark.parametrize("shows", [True, False])
async def test_a_streamed_completion_has_reasoning_before_and_pictures_behind_its_text(*, shows: bool) -> None:
    async with open_web(model(), agents=agents(shows=shows)) as web, web.client() as client:
        response = await client.post("/v1/chat/completions", json={**ASKED, "stream": True})
    deltas = [row["choices"][0]["delta"] for row in rows(response)]
    order = [next(iter(delta)) for delta in deltas if delta]
    assert list(dict.fromkeys(order)) == ["role", *(["reasoning_content"] if shows else []), "content", "images"]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == (THOUGHT if shows else "")
    assert "".join(delta.get("content", "") for delta in deltas) == "A rose."
    assert [delta["images"] for delta in deltas if "images" in delta] == [PICTURES]


@pytest.mark.proves("C25", "C25-reasoning")
@pytest.mark.parametrize("shows", [True, False])
async def test_the_events_of_a_chat_tell_reasoning_and_end_with_the_pictures(*, shows: bool) -> None:
    async with open_web(model(), agents=agents(shows=shows)) as web, web.client() as client:
        events = [decode_event(row) for row in rows(await client.post("/api/chat", json={"message": "a rose?"}))]
    told = "".join(event.text for event in events if isinstance(event, ReasoningAddedEvent))
    assert told == (THOUGHT if shows else "")
    last = events[-1]
    assert isinstance(last, TurnFinishedEvent)
    assert (last.images, last.reasoning) == ((PNG,), THOUGHT if shows else "")


@pytest.mark.proves("C25-reasoning")
async def test_a_turn_that_failed_tells_its_reasoning_too() -> None:
    def fail(_: object) -> ScriptedReply:
        raise Unavailable("The model is away.")

    thinking = ScriptedReply(calls=[call("weather", city="Oslo")], thinking=THOUGHT)
    async with open_web(ScriptedModel(thinking, fail), agents=agents(shows=True)) as web, web.client() as client:
        last = decode_event(rows(await client.post("/api/chat", json={"message": "a rose?"}))[-1])
    assert isinstance(last, TurnFailedEvent)
    assert (last.error.message, last.reasoning) == ("The model is away.", THOUGHT)


@pytest.mark.proves("C25-reasoning")
async def test_a_repeated_request_gets_both_too() -> None:
    async with open_web(model(), agents=agents(shows=True)) as web, web.client() as client:
        key = {"Idempotency-Key": "once"}
        first = await client.post("/v1/chat/completions", json=ASKED, headers=key)
        again = await client.post("/v1/chat/completions", json={**ASKED, "stream": True}, headers=key)
    deltas = [row["choices"][0]["delta"] for row in rows(again)]
    assert first.json()["choices"][0]["message"]["reasoning_content"] == THOUGHT
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == THOUGHT
    assert [delta["images"] for delta in deltas if "images" in delta] == [PICTURES]


WEB_PICTURE = "https://cdn.example/2.png"
SHOWN: dict[str, Json] = {
    "images": [{"url": PNG, "title": "A fox", "links": {"north": "https://cdn.example/n.png"}}, {"url": WEB_PICTURE}],
    "embeds": [{"title": "Menu", "url": "https://a.example", "text": "Today", "fields": {"Soup": "3"}}],
    "buttons": [{"label": "Again", "value": "Draw it again"}],
    "files": [{"url": "data:text/csv;base64,YQ==", "name": "report.csv"}],
}
CARDS = """\
**[Menu](https://a.example)**
Today
Soup: 3

Again: say “Draw it again”

The file report.csv (text/csv) cannot be shown here.

**A fox**
north: [open](https://cdn.example/n.png)"""


def draws() -> ScriptedModel:
    return ScriptedModel(ScriptedReply(calls=[call("look", q="fox")]), ScriptedReply("Here."))


async def draw(asked: ToolCall, scope: CallScope) -> ToolResult:
    return ToolResult("drawn", data=SHOWN)


def without_breaks(text: str) -> str:
    return text.replace("  \n", "\n")


@pytest.mark.proves("L9")
async def test_what_tools_show_ends_a_chat_and_stands_in_a_completion() -> None:
    async with open_web(draws(), more=[ToolsetFixture(run=draw)]) as web, web.client() as client:
        last = decode_event(rows(await client.post("/api/chat", json={"message": "a fox?"}))[-1])
    assert isinstance(last, TurnFinishedEvent)
    assert (last.reply, last.images, without_breaks(last.cards)) == ("Here.", (PNG, WEB_PICTURE), CARDS)
    async with open_web(draws(), more=[ToolsetFixture(run=draw)]) as web, web.client() as client:
        message = (await client.post("/v1/chat/completions", json=ASKED)).json()["choices"][0]["message"]
    assert without_breaks(message["content"]) == f"Here.\n\n{CARDS}"
    assert [row["image_url"]["url"] for row in message["images"]] == [PNG, WEB_PICTURE]
    async with open_web(draws(), more=[ToolsetFixture(run=draw)]) as web, web.client() as client:
        streamed = rows(await client.post("/v1/chat/completions", json={**ASKED, "stream": True}))
    deltas = [row["choices"][0]["delta"] for row in streamed]
    assert without_breaks("".join(delta.get("content", "") for delta in deltas)) == f"Here.\n\n{CARDS}"
    assert [[row["image_url"]["url"] for row in d["images"]] for d in deltas if "images" in d] == [[PNG, WEB_PICTURE]]


def draw_picture() -> str:
    file = BytesIO()
    Image.new("RGB", (20, 10), "red").save(file, "PNG")
    return "data:image/png;base64," + b64encode(file.getvalue()).decode()


DRAWN, FOREIGN = draw_picture(), f"upload:api_key-ben-{'0' * 16}/c/secret-{'0' * 8}.webp"


@pytest.mark.proves("L9", "V-skill-graph-renderer")
@pytest.mark.parametrize(
    "data",
    [
        {"images": [{"url": DRAWN, "title": "Sales"}, {"url": WEB_PICTURE}, {"url": FOREIGN}]},
        {"imageUrl": DRAWN, "images": [{"url": WEB_PICTURE}]},
        {"imageUrl": FOREIGN, "images": [{"url": DRAWN}, {"url": WEB_PICTURE}]},
    ],
)
async def test_a_chat_that_is_opened_again_and_shared_still_shows_the_pictures_of_tools(data: JsonObject) -> None:
    async def chart(asked: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult("drawn", data=data)

    async with open_web(draws(), more=[ToolsetFixture(run=chart)]) as web, web.client() as client:
        sent = await client.post("/api/chats/c", json={"message": "a chart?"})
        assert sent.status_code == 200, sent.text
        answer = (await client.get("/api/chats/c")).json()["messages"][-1]
        kept, other = answer["turn"]["extras"]["images"]
        picture = await client.get(kept)
        token = (await client.patch("/api/chats/c/share", json={"is_public": True})).json()["share_token"]
        shared = (await client.get(f"/api/shared/{token}")).json()["messages"][-1]["images"]
        [turn] = await web.turns()
        async with web.store.work(write=False) as work:
            stored = await work.messages.list_tail(turn.session_id, limit=10)
    assert kept.startswith("/api/upload/") and other == WEB_PICTURE
    assert (picture.headers["content-type"], Image.open(BytesIO(picture.content)).size) == ("image/webp", (20, 10))
    assert shared == ["data:image/webp;base64," + b64encode(picture.content).decode(), WEB_PICTURE]
    assert not any("data:" in str(message.meta) for message in stored)


@pytest.mark.proves("L9")
async def test_no_stream_has_a_marker_that_the_model_writes() -> None:
    def writes() -> ScriptedModel:
        return ScriptedModel(ScriptedReply('Here 🖼️SPRITE_RESULT🖼️{"spriteId": "s1"} it is.'))

    async with open_web(writes()) as web, web.client() as client:
        events = [decode_event(row) for row in rows(await client.post("/api/chat", json={"message": "a fox?"}))]
    assert "".join(event.text for event in events if isinstance(event, TextAddedEvent)) == "Here it is."
    async with open_web(writes()) as web, web.client() as client:
        streamed = rows(await client.post("/v1/chat/completions", json={**ASKED, "stream": True}))
    assert "".join(row["choices"][0]["delta"].get("content", "") for row in streamed) == "Here it is."
    async with open_web(writes()) as web, web.client() as client:
        asked = {"model": "denizen", "input": "a fox?", "stream": True}
        told = rows(await client.post("/v1/responses", json=asked))
    assert "".join(row["delta"] for row in told if row["type"] == "response.output_text.delta") == "Here it is."


@pytest.mark.proves("L7")
async def test_a_picture_that_an_answer_draws_as_text_is_shown_beside_it_and_stored_as_a_note() -> None:
    async with open_web(ScriptedModel(ScriptedReply(f"Look: ![a fox]({PNG})"))) as web, web.client() as client:
        last = decode_event(rows(await client.post("/api/chat", json={"message": "a fox?"}))[-1])
        assert isinstance(last, TurnFinishedEvent)
        assert (last.reply, last.images) == ("Look: a fox", (PNG,))
        [turn] = await web.turns()
        async with web.store.work(write=False) as work:
            stored = await work.messages.list_tail(turn.session_id, limit=10)
        assert turn.result.reply == "Look: a fox"
        assert [message.text for message in stored] == ["a fox?", "Look: a fox [image/png, 4 bytes]"]


@pytest.mark.proves("L7")
async def test_data_uris_in_any_text_of_a_client_reach_neither_model_nor_store() -> None:
    drawn = b64encode(b"\x89PNG of a client").decode()
    text = f"this is data:image/png;base64,{drawn}"
    drawing = {"id": "c1", "type": "function", "function": {"name": "draw", "arguments": json.dumps({"like": text})}}
    asked: list[dict[str, Any]] = [{"role": role, "content": text} for role in ("system", "user", "assistant")]
    asked += [
        {"role": "assistant", "content": None, "tool_calls": [drawing]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
        {"role": "user", "content": text},
    ]
    model = ScriptedModel(otherwise=ScriptedReply("I see."))
    async with open_web(model) as web, web.client() as client:
        await client.post("/v1/chat/completions", json={"model": "denizen", "messages": asked})
        await client.post("/api/chat", json={"message": text})
        turns = await web.turns()
        async with web.store.work(write=False) as work:
            stored = [message for turn in turns for message in await work.messages.list_tail(turn.session_id, limit=9)]
    assert len(model.requests) == len(turns) == 2
    for kept in (model.requests, turns, stored):
        assert "[image/png, 16 bytes]" in str(kept)
        assert drawn not in str(kept)

"""Messages in, events of their turns out; stopping; whose turns and sessions one may see."""

import json
from typing import Any

import anyio
import httpx2
import pytest

from denizen.domain.errors import NeedsAttention
from denizen.domain.turn import TurnStatus
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from denizen.web.http.dependencies import WebTiming
from tests.timing import HANG_LIMIT_S
from tests.web_fixture import ADA, ANN, BEN, make_hello_model, open_web

pytestmark = pytest.mark.anyio

CHAT = {"message": "hi"}


def events(response: httpx2.Response) -> list[dict[str, Any]]:
    assert response.headers["content-type"].startswith("text/event-stream")
    return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]


def kinds(response: httpx2.Response) -> list[str]:
    return [event["type"] for event in events(response)]


@pytest.mark.proves("T-http-chat")
async def test_a_turn_is_told_from_its_beginning_to_its_end() -> None:
    model = ScriptedModel(
        ScriptedReply("Let me look.", calls=[call("weather", city="Longtown"), call("weather", city="Atlantis")]),
        ScriptedReply("Sunny.", notices=["Warming up"]),
    )
    async with open_web(model) as web, web.client() as client:
        response = await client.post("/api/chat", json=CHAT)
        [turn] = await web.turns()
    told = events(response)
    tools = ["tool_started", "tool_finished"]
    others = [event["type"] for event in told if event["type"] not in tools]
    assert others == ["turn", "text", "text", "retract", "notice", "text", "finished"]
    assert sorted(event["type"] for event in told[4:8]) == sorted(tools * 2)
    assert told[0] == {"type": "turn", "turn_id": turn.id, "agent": "denizen", "model": "scripted/model"}
    assert told[4]["args"] == {"city": "Longtown"}
    results = {event["text"][:8]: event for event in told if event["type"] == "tool_finished"}
    assert (len(results["Sunny. S"]["text"]), results["Sunny. S"]["truncated"]) == (1000, True)
    assert (results["There is"]["is_error"], results["There is"]["truncated"]) == (True, False)
    assert (told[-1]["status"], told[-1]["reply"], told[-1]["usage"]["input_tokens"]) == ("done", "Sunny.", 20)
    assert response.headers["x-denizen-turn"] == turn.id


async def test_each_event_is_named_so_that_plain_event_sources_can_tell_them_apart() -> None:
    async with open_web(ScriptedModel(ScriptedReply("Hello."))) as web, web.client() as client:
        response = await client.post("/api/chat", json=CHAT)
    named = [line[7:] for line in response.text.splitlines() if line.startswith("event: ")]
    assert named == kinds(response)


@pytest.mark.proves("T-http-chat")
async def test_a_turn_that_fails_ends_with_what_happened_and_what_to_do() -> None:
    failure = NeedsAttention("The provider refused the key.", code="key_refused", fix="Run `denizen setup`.")
    async with open_web(ScriptedModel(failure)) as web, web.client() as client:
        response = await client.post("/api/chat", json=CHAT)
        [turn] = await web.turns()
        stored = (await client.get(f"/api/turns/{turn.id}")).json()
    error = events(response)[-1]["error"]
    assert (response.status_code, events(response)[-1]["type"]) == (200, "error")
    assert (error["code"], error["status"], error["fix"]) == ("key_refused", 500, "Run `denizen setup`.")
    assert stored["error"] == error and error["why"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"message": " "}, 400, "message_empty"),
        ({}, 400, "message_empty"),
        ({"message": 5}, 400, "field_invalid"),
        ({"message": "x" * 100_001}, 400, "message_too_long"),
        ({"message": "hi", "agent": "nobody"}, 404, "agent_unknown"),
        ({"message": "hi", "session": ""}, 400, "session_name_invalid"),
        ({"message": "hi", "new": "yes"}, 400, "field_invalid"),
        ([], 400, "json_invalid"),
    ],
)
async def test_a_message_that_is_not_taken_has_a_status(body: object, status: int, code: str) -> None:
    async with open_web() as web, web.client() as client:
        response = await client.post("/api/chat", json=body)
        assert await web.turns() == []
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


async def test_broken_json_is_named() -> None:
    async with open_web() as web, web.client(**{"content-type": "application/json"}) as client:
        response = await client.post("/api/chat", content=b"{")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "json_invalid")


@pytest.mark.proves("T-store-reset")
async def test_a_session_is_remembered_and_new_starts_it_afresh() -> None:
    async with (
        open_web(ScriptedModel(ScriptedReply("One."), ScriptedReply("Two."), ScriptedReply("Three."))) as web,
        web.client() as client,
    ):
        await client.post("/api/chat", json={"message": "a"})
        await client.post("/api/chat", json={"message": "b"})
        await client.post("/api/chat", json={"message": "c", "new": True})
        messages = (await client.get("/api/sessions/default/messages")).json()
    assert [len(request.messages) for request in web.model.requests] == [1, 3, 1]
    assert [message["text"] for message in messages] == ["c", "Three."]


@pytest.mark.proves("T-http-chat")
async def test_sessions_and_agents_have_histories_of_their_own() -> None:
    async with open_web(make_hello_model()) as web, web.client() as client:
        for body in ({"session": "a"}, {"session": "b/c"}, {"session": "a", "agent": "scribe"}):
            await client.post("/api/chat", json={"message": "hi", **body})
        assert len((await client.get("/api/sessions/b%2Fc/messages")).json()) == 2
        assert len((await client.get("/api/sessions/a/messages", params={"agent": "scribe"})).json()) == 2
        assert (await client.get("/api/sessions/other/messages")).json() == []
    assert {len(request.messages) for request in web.model.requests} == {1}


async def test_a_repeated_message_is_the_same_turn() -> None:
    async with open_web(ScriptedModel(ScriptedReply("Once."))) as web, web.client(**{"idempotency-key": "1"}) as client:
        first = await client.post("/api/chat", json=CHAT)
        again = await client.post("/api/chat", json=CHAT)
        assert len(await web.turns()) == 1
    assert events(first)[-1] == events(again)[-1]


@pytest.mark.parametrize("change", [{"message": "Something else"}, {"session": "other"}, {"new": True}])
async def test_a_key_that_is_used_for_another_message_is_refused(change: dict[str, Any]) -> None:
    async with open_web(ScriptedModel(ScriptedReply("Once."))) as web, web.client(**{"idempotency-key": "1"}) as client:
        await client.post("/api/chat", json=CHAT)
        other = await client.post("/api/chat", json={**CHAT, **change})
        assert len(await web.turns()) == 1
    assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_conflict")
    assert other.json()["error"]["fix"]


async def test_the_turns_id_is_known_while_it_waits_and_it_can_be_stopped() -> None:
    before = ReplyGate()
    timing = WebTiming(chat_start_s=0.0)
    model = ScriptedModel(ScriptedReply("Hello.", before=before))
    async with (
        open_web(model, timing=timing) as web,
        web.serve() as url,
        httpx2.AsyncClient(base_url=url, timeout=HANG_LIMIT_S) as client,
    ):
        async with client.stream("POST", "/api/chat", json=CHAT) as response:
            turn_id = response.headers["x-denizen-turn"]
            await before.reached.wait()
            assert (await client.post(f"/api/turns/{turn_id}/cancel")).json() == {"cancelled": True}
            text = "".join([part async for part in response.aiter_text()])
        again = await client.post(f"/api/turns/{turn_id}/cancel")
    assert '"status":"cancelled"' in text
    assert again.json() == {"cancelled": False}


@pytest.mark.proves("S15")
async def test_a_reader_that_leaves_does_not_stop_the_turn() -> None:
    before = ReplyGate()
    async with open_web(ScriptedModel(ScriptedReply("Hello.", before=before))) as web, web.serve() as url:
        async with httpx2.AsyncClient(base_url=url, timeout=HANG_LIMIT_S) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: client.post("/api/chat", json=CHAT))
            await before.reached.wait()
            tasks.cancel_scope.cancel()
        before.open.set()
        assert (await web.ended(TurnStatus.DONE)).result.reply == "Hello."
        async with web.client() as client:
            assert "Hello." in (await client.get("/api/sessions/default/messages")).text


async def test_what_somebody_did_is_seen_by_them_and_by_admins_only() -> None:
    async with open_web(make_hello_model(), keys=[ANN, BEN, ADA]) as web:
        clients = {name: web.client(**{"x-api-key": f"key-of-{name}"}) for name in ("ann", "ben", "ada")}
        await clients["ann"].post("/api/chat", json={"message": "my secret"})
        [turn] = await web.turns()
        for name, status in (("ann", 200), ("ben", 404), ("ada", 200)):
            assert (await clients[name].get(f"/api/turns/{turn.id}")).status_code == status
            assert (await clients[name].post(f"/api/turns/{turn.id}/cancel")).status_code == status
            history = await clients[name].get("/api/sessions/default/messages")
            assert ("my secret" in history.text) is (name == "ann")
        missing = await clients["ben"].get("/api/turns/turn_nothing")
        foreign = await clients["ben"].get(f"/api/turns/{turn.id}")
    assert set(missing.json()["error"]) == set(foreign.json()["error"])
    assert missing.status_code == foreign.status_code

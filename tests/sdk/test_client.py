"""The client against a real server in process, and against servers that misbehave."""

import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

import httpx2
import pytest

from denizen.domain.errors import LimitExceeded, NeedsAttention, Unavailable
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from denizen_sdk import ApiError, ChatRequest, DenizenClient, NetworkError
from denizen_sdk.knowledge import SnapshotRemoteInfo
from denizen_sdk.turns import TextAddedEvent, ToolFinishedEvent, TurnFailedEvent, TurnFinishedEvent, TurnOpenedEvent
from tests.web_fixture import ANN, WebFixture, make_hello_model, open_web

pytestmark = pytest.mark.anyio

URL = "http://127.0.0.1:8650"


@asynccontextmanager
async def open_client(web: WebFixture, key: str = "") -> AsyncGenerator[DenizenClient]:
    async with DenizenClient(URL, key, transport=httpx2.ASGITransport(web.app)) as client:
        yield client


def make_client(answer: Callable[[httpx2.Request], httpx2.Response]) -> DenizenClient:
    return DenizenClient(URL, transport=httpx2.MockTransport(answer))


async def test_asking_gives_the_answer() -> None:
    async with open_web(ScriptedModel(ScriptedReply("Hello."))) as web, open_client(web) as client:
        answer = await client.ask("hi")
        [turn] = await web.turns()
    assert (answer.reply, answer.status, answer.turn_id, answer.usage.input_tokens) == ("Hello.", "done", turn.id, 10)


async def test_chatting_gives_the_events() -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("weather", city="Oslo")]), ScriptedReply("It is sunny."))
    async with open_web(model) as web, open_client(web) as client:
        events = [event async for event in client.chat(ChatRequest("hi", agent="scribe", session="trip"))]
    assert events[0] == TurnOpenedEvent(events[0].turn_id, "scribe", "scripted/model")  # pyright: ignore[reportAttributeAccessIssue]
    assert "".join(event.text for event in events if isinstance(event, TextAddedEvent)) == "It is sunny."
    assert [event.text for event in events if isinstance(event, ToolFinishedEvent)] == ["Sunny. "]
    assert isinstance(events[-1], TurnFinishedEvent)


async def test_sessions_keep_their_messages_until_a_new_one_is_started() -> None:
    async with open_web(make_hello_model()) as web, open_client(web) as client:
        await client.ask(ChatRequest("one", session="a/b"))
        await client.ask(ChatRequest("two", session="a/b"))
        assert [message.text for message in await client.list_messages("a/b")] == ["one", "Hello.", "two", "Hello."]
        await client.ask(ChatRequest("three", session="a/b", new=True))
        assert [message.text for message in await client.list_messages("a/b")] == ["three", "Hello."]


async def test_everything_that_can_be_read_is_read_as_records() -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("weather", city="Oslo")]), ScriptedReply("Sunny."))
    async with open_web(model) as web, open_client(web) as client:
        answer = await client.ask(ChatRequest("hi"))
        turn = await client.get_turn(answer.turn_id)
        assert (turn.status, turn.trace.steps[0].number, turn.trace.calls[0].decision, turn.error) == (
            "done",
            1,
            "approve",
            None,
        )
        assert [agent.name for agent in await client.list_agents()] == ["denizen", "scribe"]
        assert [model.name for model in await client.list_models()] == ["scripted/model"]
        assert [tool.name for tool in await client.list_tools(agent="denizen")] == ["weather"]
        assert (await client.health()).status == "ok"
        assert (await client.list_messages())[1].calls[0].text == "Sunny. "


async def test_a_repeated_question_with_the_same_key_is_asked_once() -> None:
    async with open_web(ScriptedModel(ScriptedReply("Once."))) as web, open_client(web) as client:
        first = await client.ask("hi", idempotency_key="1")
        assert await client.ask("hi", idempotency_key="1") == first


async def test_a_running_turn_can_be_stopped() -> None:
    before = ReplyGate()
    model = ScriptedModel(ScriptedReply("Hello.", before=before))
    async with open_web(model) as web, web.serve() as url, DenizenClient(url) as client:
        events = client.chat("hi")
        opened = await anext(events)
        assert isinstance(opened, TurnOpenedEvent)
        await before.reached.wait()
        assert await client.cancel(opened.turn_id)
        last = [event async for event in events][-1]
        assert isinstance(last, TurnFinishedEvent)
        assert last.status == "cancelled"
        assert not await client.cancel(opened.turn_id)


# --- errors ----------------------------------------------------------------------------------------------------------


async def test_a_failed_turn_raises_what_happened_and_what_to_do() -> None:
    failure = NeedsAttention("The provider refused the key.", code="key_refused", fix="Run `denizen setup`.")
    async with open_web(ScriptedModel(failure)) as web, open_client(web) as client:
        with pytest.raises(ApiError) as caught:
            await client.ask("hi")
        [turn] = await web.turns()
    error = caught.value
    assert (error.code, error.status, error.turn_id, error.is_server) == ("key_refused", 500, turn.id, True)
    assert "fix: Run `denizen setup`." in str(error)


async def test_the_stream_of_a_failed_turn_ends_with_the_failure() -> None:
    async with open_web(ScriptedModel(LimitExceeded("No money left."))) as web, open_client(web) as client:
        events = [event async for event in client.chat("hi")]
    assert isinstance(events[-1], TurnFailedEvent)
    assert events[-1].error.status == 429


@pytest.mark.proves("S-sdk-errors")
async def test_faults_are_told_apart() -> None:
    model = ScriptedModel(LimitExceeded("No money left."), Unavailable("Down."), NeedsAttention("No key."))
    async with (
        open_web(model, keys=[ANN]) as web,
        open_client(web, "wrong") as stranger,
        open_client(web, "key-of-ann") as client,
    ):
        calls = (
            stranger.list_agents,
            client.compute_statistics,  # which only admins may
            partial(client.ask, "hi"),
            partial(client.ask, "hi"),
            partial(client.ask, "hi"),
            partial(client.ask, ChatRequest("hi", agent="nobody")),
        )
        found: list[tuple[int, bool, bool, bool]] = []
        for fail in calls:
            with pytest.raises(ApiError) as caught:
                await fail()
            error = caught.value
            found.append((error.status, error.is_auth, error.is_rate_limit, error.is_server))
    assert found == [
        (401, True, False, False),
        (403, True, False, False),
        (429, False, True, False),
        (503, False, False, True),
        (500, False, False, True),
        (404, False, False, False),
    ]


@pytest.mark.proves("S-sdk-errors")
async def test_a_server_that_cannot_be_reached_is_an_error_of_the_network_and_not_of_the_api() -> None:
    assert not issubclass(NetworkError, ApiError)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        async with DenizenClient(f"http://127.0.0.1:{taken.getsockname()[1]}") as client:
            for fail in (client.health, partial(client.ask, "hi")):
                with pytest.raises(NetworkError):
                    await fail()


async def test_a_limit_tells_when_to_come_back() -> None:
    def limited(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(
            429, json={"error": {"code": "c", "message": "m", "status": 429}}, headers={"retry-after": "7"}
        )

    async with make_client(limited) as client:
        with pytest.raises(ApiError) as rate:
            await client.health()
    assert (rate.value.is_rate_limit, rate.value.retry_after_s) == (True, 7.0)


@pytest.mark.parametrize(
    "body",
    [{"text": "<html>Bad gateway</html>"}, {"json": {"error": "plain"}}, {"json": []}, {"json": {"detail": "x"}}],
)
async def test_an_answer_of_something_in_between_is_told_by_its_status(body: dict[str, object]) -> None:
    async with make_client(lambda _: httpx2.Response(502, **body)) as client:  # pyright: ignore[reportArgumentType]
        with pytest.raises(ApiError) as caught:
            await client.health()
    assert (caught.value.status, caught.value.code, caught.value.is_server) == (502, "http", True)


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
async def test_a_page_in_place_of_an_answer_is_an_error_of_the_server(kind: str) -> None:
    def page(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, text="<html>Log in</html>", headers={"content-type": kind})

    async with make_client(page) as client:
        for asked in (client.health, partial(client.ask, "hi")):
            with pytest.raises(ApiError) as caught:
                await asked()
            assert (caught.value.status, caught.value.code) == (200, "http")
            assert f"'{kind}'" in str(caught.value) and "base_url" in str(caught.value)


async def test_an_event_that_is_garbled_is_an_error_of_the_server() -> None:
    headers = {"content-type": "text/event-stream"}
    async with make_client(lambda _: httpx2.Response(200, text="data: {oops\n\n", headers=headers)) as client:
        for asked in (partial(client.ask, "hi"), partial(client.wait_for_sync, "sync_1")):
            with pytest.raises(ApiError, match="not Denizen's"):
                await asked()


async def test_an_error_that_is_no_json_after_all_is_told_by_its_status() -> None:
    headers = {"content-type": "application/json"}
    async with make_client(lambda _: httpx2.Response(502, text="Bad gateway", headers=headers)) as client:
        with pytest.raises(ApiError) as caught:
            await client.health()
    assert (caught.value.status, caught.value.code) == (502, "http")


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (httpx2.ReadTimeout, "did not answer within 7 s; it may still be doing it. Raise timeout_s."),
        (httpx2.WriteTimeout, "did not answer within 7 s; it may still be doing it. Raise timeout_s."),
        (httpx2.ConnectTimeout, "could not be reached within 7 s. Raise timeout_s if that is too short."),
        (httpx2.ReadError, "could not be reached, or the connection broke: ReadError"),
    ],
)
async def test_a_lost_server_is_named_and_silence_is_told_apart(fault: type[httpx2.TransportError], told: str) -> None:
    def lose(request: httpx2.Request) -> httpx2.Response:
        raise fault("", request=request)

    address = "http://ann:secret@denizen.example:81"
    async with DenizenClient(address, timeout_s=7, transport=httpx2.MockTransport(lose)) as client:
        for asked in (client.health, partial(client.ask, "hi")):
            with pytest.raises(NetworkError) as caught:
                await asked()
            assert str(caught.value) == f"The server http://denizen.example:81 {told}"


@pytest.mark.parametrize("timeout_s", [7.0, 9000.0])
async def test_what_takes_the_server_long_is_waited_for_longer(timeout_s: float) -> None:
    def lose(request: httpx2.Request) -> httpx2.Response:
        timeout = request.extensions["timeout"]
        assert (timeout["connect"], timeout["write"], timeout["pool"]) == (timeout_s, timeout_s, timeout_s)
        raise httpx2.ReadTimeout(f"{timeout['read']:g}", request=request)

    async with DenizenClient(URL, timeout_s=timeout_s, transport=httpx2.MockTransport(lose)) as client:
        for asked, least_s in (
            (client.health, 0),
            (partial(client.bash, "ls"), 120),
            (partial(client.bash_batch, ["ls"]), 120),
            (client.publish_snapshot, 300),
            (partial(client.remove_source, "docs"), 300),
            (partial(client.edit_source, "docs"), 300),
            (partial(client.set_snapshot_remote, SnapshotRemoteInfo("https://git.example/a.git")), 3600),
        ):
            with pytest.raises(NetworkError) as caught:
                await asked()
            waited = str(caught.value.__cause__)
            assert f"within {waited} s" in str(caught.value)
            assert float(waited) == timeout_s if timeout_s > least_s else float(waited) > least_s


@pytest.mark.proves("S-sdk-errors")
async def test_a_stream_that_breaks_off_names_the_turn() -> None:
    def cut(_: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream", "x-denizen-turn": "turn_1"}
        return httpx2.Response(200, text='data: {"type":"text","text":"Hel"}\n\n', headers=headers)

    async with make_client(cut) as client:
        with pytest.raises(NetworkError) as caught:
            await client.ask("hi")
    assert caught.value.turn_id == "turn_1"


def test_a_client_without_an_address_fails_at_construction() -> None:
    with pytest.raises(ValueError, match="base_url is missing"):
        DenizenClient("")


def test_the_sdk_needs_nothing_of_the_server_and_loads_the_client_when_asked() -> None:
    code = (
        "import sys, denizen_sdk; assert 'httpx2' not in sys.modules; denizen_sdk.DenizenClient; "
        "assert 'httpx2' in sys.modules; assert 'denizen' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""The OpenAI-compatible API, asked by the official client; over a real connection where that matters."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionChunk

from denizen.domain.errors import DenizenError, NeedsAttention, Unavailable
from denizen.domain.message import ImagePart, TextPart
from denizen.domain.prompt import PromptMessage
from denizen.domain.turn import TurnStatus
from denizen.domain.usage import Usage
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from denizen.web.http.dependencies import WebTiming
from tests.engine.engine_fixture import strip_date
from tests.timing import HANG_LIMIT_S
from tests.web_fixture import ANN, BEN, LOCAL, WebFixture, make_hello_model, open_web

pytestmark = pytest.mark.anyio

HI: Any = [{"role": "user", "content": "hi"}]
BODY = {"model": "denizen", "messages": HI}
PATH = "/v1/chat/completions"


@asynccontextmanager
async def official(web: WebFixture, *, key: str = "any", url: str = LOCAL) -> AsyncGenerator[openai.AsyncOpenAI]:
    """OpenAI's own client. Without the address of a served site it is in process. Errors are not repeated."""
    own = web.client() if url == LOCAL else httpx2.AsyncClient(timeout=HANG_LIMIT_S)
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, http_client=own) as client:
        yield client


async def read(stream: openai.AsyncStream[ChatCompletionChunk]) -> tuple[str, list[ChatCompletionChunk]]:
    chunks = [chunk async for chunk in stream]
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices), chunks


def texts(messages: tuple[PromptMessage, ...]) -> list[str]:
    return [part.text for message in messages for part in message.parts if isinstance(part, TextPart)]


# --- what the official client gets -----------------------------------------------------------------------------------


async def test_the_official_client_gets_an_answer() -> None:
    usage = Usage(input_tokens=20, output_tokens=4, cache_read_tokens=12, requests=1)
    model = ScriptedModel(ScriptedReply("Hello there.", usage=usage))
    async with open_web(model) as web, web.serve() as url, official(web, url=url) as client:
        response = await client.chat.completions.with_raw_response.create(model="denizen", messages=HI)
        answer = response.parse()
        [turn] = await web.turns()
    assert answer.choices[0].message.content == "Hello there."
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.id, answer.model, answer.object) == (f"chatcmpl-{turn.id}", "denizen", "chat.completion")
    assert response.headers["x-denizen-turn"] == turn.id
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (20, 4, 24)
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 12


@pytest.mark.proves("TW16")
async def test_the_official_client_streams() -> None:
    model = ScriptedModel(ScriptedReply("Hello there, friend."))
    async with open_web(model) as web, web.serve() as url, official(web, url=url) as client:
        stream = await client.chat.completions.create(
            model="denizen", messages=HI, stream=True, stream_options={"include_usage": True}
        )
        text, chunks = await read(stream)
        [turn] = await web.turns()
    assert text == "Hello there, friend."
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [*[None] * (len(chunks) - 2), "stop"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 15
    assert {chunk.id for chunk in chunks} == {f"chatcmpl-{turn.id}"}
    assert len(chunks) > 4, "it came in pieces"


async def test_a_stream_without_usage_asked_for_has_none() -> None:
    async with open_web(ScriptedModel(ScriptedReply("Hello."))) as web, official(web) as client:
        _, chunks = await read(await client.chat.completions.create(model="denizen", messages=HI, stream=True))
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)


async def test_the_official_synchronous_client_works_too() -> None:
    def ask(url: str) -> tuple[str, str]:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0) as client:
            whole = client.chat.completions.create(model="denizen", messages=HI)
            stream = client.chat.completions.create(model="denizen", messages=HI, stream=True)
            pieces = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
            return whole.choices[0].message.content or "", pieces

    async with open_web(ScriptedModel(ScriptedReply("Hello."), ScriptedReply("Again."))) as web, web.serve() as url:
        assert await anyio.to_thread.run_sync(ask, url) == ("Hello.", "Again.")


async def test_agents_are_models() -> None:
    async with open_web() as web, official(web) as client:
        assert [model.id async for model in client.models.list()] == ["denizen", "scribe"]
        assert (await client.models.retrieve("scribe")).id == "scribe"
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("nobody")


async def test_the_model_names_the_agent_and_default_is_the_default_one() -> None:
    async with open_web(make_hello_model()) as web, official(web) as client:
        for name in ("scribe", "default", ""):
            await client.chat.completions.create(model=name, messages=HI)
        assert [turn.agent for turn in await web.turns()] == ["scribe", "denizen", "denizen"]


async def test_limits_sampling_and_instructions_reach_the_model() -> None:
    messages: Any = [{"role": "system", "content": "Speak like a pirate."}, *HI]
    async with open_web(ScriptedModel(ScriptedReply("Ahoy."))) as web, official(web) as client:
        await client.chat.completions.create(model="denizen", messages=messages, max_tokens=77, temperature=0.25)
        [request] = web.model.requests
    assert (request.max_output_tokens, request.sampling.temperature) == (77, 0.25)
    assert any("Speak like a pirate." in segment.text for segment in request.segments)


async def test_pictures_reach_a_model_that_sees() -> None:
    from denizen.ports.model import Capabilities

    url = "data:image/png;base64,iVBORw0KGgo="
    content: Any = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": url}}]
    model = ScriptedModel(ScriptedReply("A pixel."), capabilities=Capabilities(images=True))
    async with open_web(model) as web, official(web) as client:
        await client.chat.completions.create(model="denizen", messages=[{"role": "user", "content": content}])
    assert model.requests[0].messages[-1].parts == (TextPart("What?"), ImagePart(url, "image/png"))


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_was_cut_off_says_length(*, stream: bool) -> None:
    cut = ScriptedReply("Once upon", usage=Usage(input_tokens=5, output_tokens=9, requests=1), finish_reason="length")
    async with open_web(ScriptedModel(cut)) as web, official(web) as client:
        if stream:
            answer = await client.chat.completions.create(model="denizen", messages=HI, max_tokens=9, stream=True)
            reason = (await read(answer))[1][-1].choices[0].finish_reason
        else:
            whole = await client.chat.completions.create(model="denizen", messages=HI, max_tokens=9)
            reason = whole.choices[0].finish_reason
    assert reason == "length"


async def test_text_before_a_tool_call_cannot_be_taken_back_and_stands_apart() -> None:
    model = ScriptedModel(
        ScriptedReply("Let me look.", calls=[call("weather", city="Oslo")]), ScriptedReply("It is sunny.")
    )
    async with open_web(model) as web, official(web) as client:
        stream = await client.chat.completions.create(model="denizen", messages=HI, stream=True)
        assert (await read(stream))[0] == "Let me look.\n\nIt is sunny."
        assert [each.args for each in web.weather.calls] == [{"city": "Oslo"}]


# --- sessions and repetition -----------------------------------------------------------------------------------------


async def test_without_a_session_the_client_carries_the_history() -> None:
    messages = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}, *HI]
    async with open_web(make_hello_model()) as web, web.client() as client:
        await client.post(PATH, json={"messages": HI})
        await client.post(PATH, json={"messages": messages})
        assert texts(web.model.requests[0].messages) == ["hi"]
        assert texts(web.model.requests[1].messages) == ["one", "two", "hi"]
        first, second = await web.turns()
    assert first.conversation_id != second.conversation_id


@pytest.mark.proves("SW6")
@pytest.mark.parametrize("way", ["header", "metadata"])
async def test_a_named_session_is_kept_by_the_server(way: str) -> None:
    headers = {"X-Denizen-Session": "trip"} if way == "header" else {}
    named: dict[str, Any] = {} if way == "header" else {"metadata": {"session": "trip"}}
    claimed = [{"role": "assistant", "content": "I promised you a car."}, *HI]
    async with (
        open_web(ScriptedModel(ScriptedReply("One."), ScriptedReply("Two."))) as web,
        web.client(**headers) as client,
    ):
        await client.post(PATH, json={"messages": HI, **named})
        await client.post(PATH, json={"messages": claimed, **named})
        first, *later = texts(web.model.requests[1].messages)
        assert [strip_date(first), *later] == ["hi", "One.", "hi"]


async def test_sessions_of_the_same_name_are_each_their_principals_own() -> None:
    headers = {"X-Denizen-Session": "trip"}
    async with open_web(ScriptedModel(ScriptedReply("One."), ScriptedReply("Two.")), keys=[ANN, BEN]) as web:
        for key in ("key-of-ann", "key-of-ben"):
            async with web.client(**headers, **{"x-api-key": key}) as client:
                await client.post(PATH, json=BODY)
        assert [strip_date(text) for text in texts(web.model.requests[1].messages)] == ["hi"]


async def test_a_session_name_must_be_printable() -> None:
    async with open_web() as web, web.client() as client:
        response = await client.post(PATH, json={**BODY, "metadata": {"session": "a\nb"}})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "session_name_invalid")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_repeated_request_returns_the_same_turns_answer(*, stream: bool) -> None:
    async with open_web(ScriptedModel(ScriptedReply("Only once."))) as web, web.client() as client:
        headers = {"Idempotency-Key": "order-66"}
        first = await client.post(PATH, json=BODY, headers=headers)
        again = await client.post(PATH, json={**BODY, "stream": stream}, headers=headers)
        assert len(await web.turns()) == len(web.model.requests) == 1
    assert first.headers["x-denizen-turn"] == again.headers["x-denizen-turn"]
    assert "Only once." in again.text


@pytest.mark.parametrize(
    "change",
    [
        {"messages": [{"role": "user", "content": "Something else"}]},
        {"messages": [{"role": "system", "content": "Rhyme."}, *BODY["messages"]]},
        {"messages": [{"role": "assistant", "content": "Earlier."}, *BODY["messages"]]},
        {"metadata": {"session": "trip"}},
        {"messages": [{"role": "user", "content": "Something else"}], "stream": True},
    ],
)
async def test_a_key_that_is_used_for_another_message_is_refused(change: dict[str, Any]) -> None:
    async with open_web(ScriptedModel(ScriptedReply("Only once."))) as web:
        async with web.client(**{"idempotency-key": "order-66"}) as client:
            first = await client.post(PATH, json=BODY)
            other = await client.post(PATH, json={**BODY, **change})
            again = await client.post(PATH, json={**BODY, "temperature": 0.1})
        assert len(await web.turns()) == len(web.model.requests) == 1
    assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_conflict")
    assert other.headers["x-should-retry"] == "false"
    assert (first.status_code, again.status_code) == (200, 200)


async def test_the_same_key_of_another_principal_is_another_request() -> None:
    async with open_web(ScriptedModel(ScriptedReply("One."), ScriptedReply("Two.")), keys=[ANN, BEN]) as web:
        for key in ("key-of-ann", "key-of-ben"):
            async with web.client(**{"idempotency-key": "1", "x-api-key": key}) as client:
                await client.post(PATH, json=BODY)
        assert len(await web.turns()) == 2


async def test_a_repetition_while_the_turn_runs_gets_the_whole_answer() -> None:
    halfway = ReplyGate()
    answers: list[str] = []

    async def ask(client: httpx2.AsyncClient) -> None:
        answers.append((await client.post(PATH, json={**BODY, "stream": True})).text)

    model = ScriptedModel(ScriptedReply("Hello there, my friend.", halfway=halfway))
    headers = {"idempotency-key": "1"}
    async with open_web(model) as web, web.client(**headers) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, client)
        await halfway.reached.wait()
        tasks.start_soon(ask, client)
        await anyio.wait_all_tasks_blocked()
        halfway.open.set()
    assert any("Hello there, my friend." in answer for answer in answers), "the late one gets it in one piece"
    assert len(model.requests) == 1


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error", "code", "word"),
    [
        ({"model": "denizn"}, openai.NotFoundError, "model_not_found", "Did you mean 'denizen'?"),
        ({"tools": [{"type": "custom", "custom": {"name": "f"}}]}, openai.BadRequestError, "tools_unsupported", ""),
        ({"n": 2}, openai.BadRequestError, "n_unsupported", ""),
        ({"messages": []}, openai.BadRequestError, "field_invalid", "messages"),
    ],
)
async def test_the_official_client_raises_its_own_errors(
    asked: dict[str, Any], error: type[openai.APIStatusError], code: str, word: str
) -> None:
    parameters: dict[str, Any] = {"model": "denizen", "messages": HI, **asked}
    async with open_web() as web, official(web) as client:
        with pytest.raises(error) as caught:
            await client.chat.completions.create(**parameters)
    assert caught.value.code == code
    assert word in caught.value.message


async def test_a_wrong_key_is_an_authentication_error() -> None:
    async with open_web(keys=[ANN]) as web, official(web, key="nope") as client:
        with pytest.raises(openai.AuthenticationError):
            await client.chat.completions.create(model="denizen", messages=HI)


FAILURES: list[tuple[DenizenError, int]] = [
    (Unavailable("The provider is overloaded.", code="overloaded"), 503),
    (NeedsAttention("The provider refused the key.", code="key_refused", fix="Run `denizen setup`."), 500),
]


@pytest.mark.parametrize(("failure", "status"), FAILURES)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_fails_before_its_first_word_has_the_status_of_its_family(
    *, failure: DenizenError, status: int, stream: bool
) -> None:
    async with open_web(ScriptedModel(failure)) as web, official(web) as client:
        with pytest.raises(openai.InternalServerError) as caught:
            await client.chat.completions.create(model="denizen", messages=HI, stream=stream)
    assert (caught.value.status_code, caught.value.code) == (status, failure.code)
    assert failure.message in caught.value.message
    assert failure.fix in caught.value.message


@pytest.mark.proves("S-http-errors")
async def test_a_turn_that_fails_in_the_middle_ends_the_stream_with_an_error() -> None:
    error = Unavailable("The line broke.", code="line", why="a mole bit it", fix="Ask again.")
    broken = ScriptedReply("Hello there,", error=error)
    async with open_web(ScriptedModel(otherwise=broken)) as web, official(web) as client:
        stream = await client.chat.completions.create(model="denizen", messages=HI, stream=True)
        with pytest.raises(openai.APIError, match=r"The line broke\. \(a mole bit it\) Ask again\."):
            await read(stream)
        text = (await web.client().post(PATH, json={**BODY, "stream": True})).text
    assert text.endswith("data: [DONE]\n\n")


async def test_a_turn_that_was_stopped_by_somebody_else_is_a_conflict() -> None:
    before = ReplyGate()
    statuses: list[int] = []

    async def ask(client: httpx2.AsyncClient) -> None:
        statuses.append((await client.post(PATH, json=BODY)).status_code)

    model = ScriptedModel(ScriptedReply("Hello.", before=before))
    async with open_web(model) as web, web.client() as client, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, client)
        await before.reached.wait()
        [turn] = await web.turns()
        assert (await client.post(f"/api/turns/{turn.id}/cancel")).json() == {"cancelled": True}
    assert statuses == [409]


# --- slow answers, and clients that leave ----------------------------------------------------------------------------


async def test_a_slow_stream_has_keep_alives_and_notices_as_comments() -> None:
    before = ReplyGate()
    model = ScriptedModel(ScriptedReply("Hello.", before=before, notices=["Loading the model"]))
    async with (
        open_web(model, timing=WebTiming(keep_alive_s=0.001)) as web,
        web.serve() as url,
        httpx2.AsyncClient(base_url=url, timeout=HANG_LIMIT_S) as client,
        client.stream("POST", PATH, json={**BODY, "stream": True}) as response,
    ):
        lines = response.aiter_lines()
        assert await anext(lines) == ": keep-alive"
        before.open.set()
        rest = [line async for line in lines]
    assert ": Loading the model" in rest
    assert rest[-2] == "data: [DONE]"


async def leave_when_reached(
    url: str, gate: ReplyGate, body: dict[str, Any], headers: dict[str, str], *, path: str = PATH
) -> None:
    """Sends the request and closes the connection while the model is at the gate."""
    async with (
        httpx2.AsyncClient(base_url=url, headers=headers, timeout=HANG_LIMIT_S) as client,
        anyio.create_task_group() as tasks,
    ):

        async def ask() -> None:
            async with client.stream("POST", path, json=body) as response:
                async for _ in response.aiter_bytes():
                    pass

        tasks.start_soon(ask)
        await gate.reached.wait()
        tasks.cancel_scope.cancel()


@pytest.mark.proves("S15")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("place", ["before", "halfway"])
async def test_a_client_that_leaves_stops_its_turn(*, stream: bool, place: str) -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("Hello there, friend.", **{place: gate}))  # pyright: ignore[reportArgumentType]
    async with open_web(model) as web, web.serve() as url:
        await leave_when_reached(url, gate, {**BODY, "stream": stream}, {})
        turn = await web.ended(TurnStatus.CANCELLED)
    assert turn.result.reply == ""


@pytest.mark.proves("S15")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("headers", [{"Idempotency-Key": "1"}, {"X-Denizen-Session": "trip"}])
async def test_a_turn_that_matters_beyond_the_connection_goes_on(*, stream: bool, headers: dict[str, str]) -> None:
    gate = ReplyGate()
    async with open_web(ScriptedModel(ScriptedReply("Hello.", before=gate))) as web, web.serve() as url:
        await leave_when_reached(url, gate, {**BODY, "stream": stream}, headers)
        gate.open.set()
        turn = await web.ended(TurnStatus.DONE)
        async with web.client(**headers) as client:
            if "Idempotency-Key" in headers:
                later = await client.post(PATH, json=BODY)
            else:
                later = await client.get(f"/api/turns/{turn.id}")
        assert "Hello." in later.text
        assert len(web.model.requests) == 1
    assert turn.result.reply == "Hello."

"""When a request is tried again, and when it ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anyio
import httpx2
import pytest

from denizen.adapters.models.failures import FailureContext, ModelFailure, classify_transport
from denizen.adapters.models.model import OUTPUT_BEGAN, RetryPolicy
from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded, NeedsAttention, Unavailable
from denizen.ports.model import ModelEvent, ModelNotice, TextDelta
from denizen.testing.model_server import (
    BrokenAnswer,
    DelayedAnswer,
    FailedAnswer,
    HangingAnswer,
    ModelAnswer,
    ModelCall,
    ModelServer,
    RawAnswer,
    StreamErrorAnswer,
)
from tests.adapters.models.wire_fixture import (
    ANTHROPIC,
    COMPATIBLE,
    LOOK,
    OPENAI,
    OPENROUTER,
    RESPONSES,
    SECRET,
    WIRES,
    BuildCatalog,
    RecordingSleep,
    SingleAttempt,
    Wire,
    make_request,
    read_stream,
)
from tests.timing import HANG_LIMIT_S, LoopClock, controlled_clock

pytestmark = pytest.mark.anyio

SILENCE_S = 0.2
DISTINCT = (ANTHROPIC, OPENAI, RESPONSES, OPENROUTER, COMPATIBLE)


def each_wire(*wires: Wire) -> pytest.MarkDecorator:
    """By default one wire for each way to talk; the others differ in nothing that matters here."""
    return pytest.mark.parametrize("wire", wires or DISTINCT, ids=lambda wire: wire.kind)


async def listen(build: BuildCatalog, wire: Wire, heard: list[ModelEvent], **more: Any) -> None:
    """Collects events as they come, so that those before an error are kept."""
    async for event in build(wire, **more).get(wire.name).stream(make_request("hi")):
        heard.append(event)  # noqa: PERF401 - one at a time, on purpose


async def fail(build: BuildCatalog, wire: Wire, **more: Any) -> DenizenError:
    with pytest.raises(DenizenError) as caught:
        await read_stream(build(wire, **more).get(wire.name), make_request("hi"))
    return caught.value


@each_wire(*WIRES)
@pytest.mark.proves("V13", "TW16", "X-retry", "T18")
async def test_two_passing_failures_are_overcome(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    for first, second in ((408, 409), (429, 500), (502, 503), (529, 529)):
        pauses = RecordingSleep()
        server.script(FailedAnswer(first), FailedAnswer(second), ModelAnswer(text="at last"))
        heard = await read_stream(build(wire, pauses=pauses).get(wire.name), make_request("hi"))
        assert heard.text == "at last"
        assert pauses.slept == [0.5, 1.0]
        assert len([event for event in heard.events if isinstance(event, ModelNotice)]) == 2
        assert server.bodies[-1] == server.bodies[-3]
    assert len(server.requests) == 12


@each_wire()
@pytest.mark.proves("V13", "X-retry")
async def test_the_third_failure_is_the_last(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    server.script(*[FailedAnswer(529, "Overloaded", "overloaded_error")] * 3, ModelAnswer(text="too late"))
    error = await fail(build, wire)
    assert isinstance(error, Unavailable)
    assert error.code == "model_overloaded"
    assert server.left == 1


@each_wire()
@pytest.mark.proves("TW16", "X-retry")
async def test_the_pause_that_the_provider_asks_for_is_kept(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    pauses = RecordingSleep()
    server.script(
        FailedAnswer(429, headers={"retry-after": "7"}),
        FailedAnswer(529, headers={"Retry-After": "9"}),
        ModelAnswer(text="ok"),
    )
    assert (await read_stream(build(wire, pauses=pauses).get(wire.name), make_request("hi"))).text == "ok"
    assert pauses.slept == [7.0, 9.0]


@each_wire(ANTHROPIC, OPENAI, COMPATIBLE)
@pytest.mark.proves("TW16", "X-retry")
async def test_the_pause_may_be_a_date(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    pauses = RecordingSleep()
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    server.script(FailedAnswer(503, headers={"retry-after": later}), ModelAnswer(text="ok"))
    await read_stream(build(wire, pauses=pauses).get(wire.name), make_request("hi"))
    assert len(pauses.slept) == 1
    assert 20 < pauses.slept[0] <= 30


@each_wire(ANTHROPIC, OPENAI)
async def test_a_pause_that_is_too_long_is_the_callers_business(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    pauses = RecordingSleep()
    server.script(FailedAnswer(429, headers={"retry-after": "3600"}), ModelAnswer(text="ok"))
    error = await fail(build, wire, pauses=pauses)
    assert isinstance(error, Unavailable)
    assert error.retry_after_s == 3600
    assert pauses.slept == []
    assert len(server.requests) == 1


FINAL: list[tuple[int, type[DenizenError], str]] = [
    (400, InvalidInput, "model_rejected"),
    (401, NeedsAttention, "model_key_refused"),
    (402, LimitExceeded, "model_quota"),
    (403, NeedsAttention, "model_key_refused"),
    (404, NeedsAttention, "model_unknown"),
    (413, InvalidInput, "context_too_long"),
    (422, InvalidInput, "model_rejected"),
]


@each_wire()
@pytest.mark.proves("TW16", "X-retry")
async def test_what_would_fail_again_is_not_repeated(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    for status, family, code in FINAL:
        server.script(FailedAnswer(status, "No, said the provider."))
        error = await fail(build, wire)
        assert isinstance(error, family)
        assert error.code == code
    assert len(server.requests) == len(FINAL)


@pytest.mark.parametrize(
    ("wire", "entry"),
    [
        (
            OPENAI,
            FailedAnswer(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
        ),
        (ANTHROPIC, FailedAnswer(400, "prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error")),
        (COMPATIBLE, FailedAnswer(400, "the request exceeds the available context size", "exceed_context_size_error")),
    ],
)
async def test_a_conversation_that_is_too_long_is_told_apart(
    server: ModelServer, build: BuildCatalog, wire: Wire, entry: FailedAnswer
) -> None:
    server.script(entry)
    assert (await fail(build, wire)).code == "context_too_long"


@pytest.mark.parametrize(
    ("wire", "entry"),
    [
        (OPENAI, FailedAnswer(429, "You exceeded your current quota.", "insufficient_quota", "insufficient_quota")),
        (ANTHROPIC, FailedAnswer(400, "Your credit balance is too low to access the API.", "invalid_request_error")),
    ],
)
async def test_a_used_up_account_is_not_asked_again(
    server: ModelServer, build: BuildCatalog, wire: Wire, entry: FailedAnswer
) -> None:
    server.script(entry, ModelAnswer(text="ok"))
    assert isinstance(await fail(build, wire), LimitExceeded)
    assert len(server.requests) == 1


@pytest.mark.proves("L-llm-settings")
@each_wire()
async def test_a_provider_that_falls_silent_ends_in_time(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    server.script(HangingAnswer())
    with anyio.fail_after(HANG_LIMIT_S):
        error = await fail(build, wire, idle_timeout_s=SILENCE_S)
    assert isinstance(error, Unavailable)
    assert error.code == "model_timeout"


@each_wire()
async def test_silence_in_the_middle_ends_in_time(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    server.script(HangingAnswer(ModelAnswer(text="one two three four five six"), after_frames=6))
    heard: list[ModelEvent] = []

    async def let_time_pass(clock: LoopClock) -> None:
        """Lets the time for silence pass, once the answer has begun."""
        while not any(isinstance(event, TextDelta) for event in heard):
            await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        clock.advance(HANG_LIMIT_S)

    with controlled_clock() as clock:
        async with anyio.create_task_group() as group:
            group.start_soon(let_time_pass, clock)
            with pytest.raises(Unavailable) as caught:
                await listen(build, wire, heard, idle_timeout_s=HANG_LIMIT_S)
            assert caught.value.code == "model_timeout"
    assert any(isinstance(event, TextDelta) for event in heard)


@each_wire(ANTHROPIC, OPENAI, RESPONSES)
async def test_a_request_has_an_end_however_slowly_it_goes(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    server.script(HangingAnswer(ModelAnswer(text="one two three four"), after_frames=5))
    with anyio.fail_after(HANG_LIMIT_S):
        error = await fail(build, wire, total_timeout_s=SILENCE_S)
    assert error.code == "model_timeout"


async def test_pauses_that_do_not_fit_into_the_time_are_not_begun(server: ModelServer, build: BuildCatalog) -> None:
    pauses = RecordingSleep()
    server.script(FailedAnswer(529, headers={"retry-after": "3600"}), ModelAnswer(text="ok"))
    error = await fail(build, OPENAI, pauses=pauses, total_timeout_s=HANG_LIMIT_S)
    assert isinstance(error, Unavailable)
    assert pauses.slept == []


@each_wire()
@pytest.mark.proves("X-retry")
async def test_a_server_that_is_not_there_is_tried_three_times(
    server: ModelServer, build: BuildCatalog, wire: Wire, unused_port: int
) -> None:
    pauses = RecordingSleep()
    error = await fail(build, wire, pauses=pauses, base_url=f"http://me:hidden@127.0.0.1:{unused_port}?key=hidden")
    assert isinstance(error, Unavailable)
    assert error.code == "model_unreachable"
    assert error.why.startswith(f"There is no connection to http://127.0.0.1:{unused_port}: ")
    assert "hidden" not in error.explain()
    assert len(pauses.slept) == 2


@each_wire()
@pytest.mark.proves("X-retry")
async def test_a_connection_that_breaks_before_any_output_is_made_again(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    server.script(BrokenAnswer(ModelAnswer(text="x"), after_frames=0), ModelAnswer(text="second"))
    assert (await read_stream(build(wire).get(wire.name), make_request("hi"))).text == "second"


@each_wire()
@pytest.mark.proves("TW16")
async def test_nothing_is_repeated_once_output_began(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    server.script(
        BrokenAnswer(ModelAnswer(text="one two three four five six"), after_frames=6), ModelAnswer(text="again")
    )
    heard: list[ModelEvent] = []
    with pytest.raises(Unavailable) as caught:
        await listen(build, wire, heard)
    assert "".join(event.text for event in heard if isinstance(event, TextDelta)).startswith("one")
    assert caught.value.context[OUTPUT_BEGAN] is True
    assert server.left == 1


@each_wire(ANTHROPIC, OPENAI, OPENROUTER, RESPONSES)
async def test_a_stream_that_ends_without_an_end_was_cut(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    server.script(BrokenAnswer(ModelAnswer(text="one two three four five six"), after_frames=4, cleanly=True))
    error = await fail(build, wire)
    assert isinstance(error, Unavailable)
    assert error.code == "model_cut_off"


@each_wire(ANTHROPIC, OPENAI, OPENROUTER, COMPATIBLE, RESPONSES)
async def test_an_overload_told_within_the_stream_is_tried_again(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    fault = StreamErrorAnswer(ModelAnswer(), 0, "Overloaded", "overloaded_error", "overloaded")
    server.script(fault, fault, ModelAnswer(text="ok"))
    assert (await read_stream(build(wire).get(wire.name), make_request("hi"))).text == "ok"


@each_wire(ANTHROPIC, OPENAI, OPENROUTER, COMPATIBLE, RESPONSES)
async def test_an_error_in_the_middle_of_the_answer_is_final(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    server.script(
        StreamErrorAnswer(ModelAnswer(text="one two three"), 5, "Overloaded", "overloaded_error"),
        ModelAnswer(text="no"),
    )
    assert isinstance(await fail(build, wire), Unavailable)
    assert server.left == 1


@each_wire()
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
async def test_an_answer_that_cannot_be_read_is_the_providers_fault(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    for entry in (
        RawAnswer(b"<html>Welcome to the proxy</html>"),
        RawAnswer(b"data: {not json}\n\n", "text/event-stream"),
        RawAnswer(b'data: {"choices": "what?", "type": "message_start", "message": 7}\n\n', "text/event-stream"),
        RawAnswer(b"data: [1, 2]\n\n", "text/event-stream"),
        RawAnswer(b"", "text/event-stream"),
        RawAnswer(b"\xff\xfe\x00", "application/json"),
        RawAnswer(b"", "text/plain", 204),
    ):
        server.script(entry)
        error = await fail(build, wire, pauses=SingleAttempt())
        assert isinstance(error, Unavailable)
        assert error.code in {"model_bad_reply", "model_cut_off"}, entry


@each_wire()
async def test_a_cancelled_request_lets_the_server_go(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    wait = DelayedAnswer(ModelAnswer(text="one two three"), until=anyio.Event(), reached=anyio.Event(), after_frames=1)
    server.script(wait, ModelAnswer(text="next"))
    models = build(wire)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_stream, models.get(wire.name), make_request("hi"))
        await wait.reached.wait()
        tasks.cancel_scope.cancel()
    wait.until.set()
    assert (await read_stream(models.get(wire.name), make_request("hi"))).text == "next"


@each_wire()
async def test_no_error_shows_the_key(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    message = f"Bad key {SECRET}; Authorization: Bearer {SECRET}; also sk-proj-abcdefghijklmnop and x-header-value"
    for status in (400, 401, 403, 404, 429, 500):
        server.script(FailedAnswer(status, message, headers={"x-key": SECRET}))
        error = await fail(build, wire, headers={"x-team": "x-header-value"}, pauses=SingleAttempt())
        text = f"{error} {error.explain()} {error.context} {error!r}"
        assert SECRET not in text
        assert "abcdefghijklmnop" not in text
        assert "x-header-value" not in text
        assert error.__cause__ is None
        assert error.__context__ is None


@each_wire(ANTHROPIC, OPENAI)
async def test_a_refused_key_names_where_it_comes_from(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    server.script(FailedAnswer(401, "invalid x-api-key", "authentication_error"))
    error = await fail(build, wire, key_name="MY_PROVIDER_KEY")
    assert "MY_PROVIDER_KEY" in error.fix


@each_wire(ANTHROPIC, OPENAI)
async def test_long_words_of_the_provider_are_shortened(server: ModelServer, build: BuildCatalog, wire: Wire) -> None:
    server.script(FailedAnswer(400, "tools.0.custom: " + "very wrong " * 200, "invalid_request_error"))
    error = await fail(build, wire)
    assert "tools.0.custom" in error.why
    assert len(error.why) < 400


async def test_a_tool_schema_that_is_none_is_the_callers_fault(server: ModelServer, build: BuildCatalog) -> None:
    broken = type(LOOK)("look", "Looks.", {"type": "object", "properties": {"at": {"anyOf": "what"}}})
    with pytest.raises(InvalidInput):
        await read_stream(build(OPENAI).get(OPENAI.name), make_request("hi", tools=(broken,)))


async def test_a_call_that_breaks_off_half_way_is_not_made(server: ModelServer, build: BuildCatalog) -> None:
    server.script(
        BrokenAnswer(ModelAnswer(calls=[ModelCall("look", {"at": "a long way from here"})]), after_frames=4),
        ModelAnswer(text="no"),
    )
    with pytest.raises(Unavailable) as caught:
        await read_stream(build(OPENAI).get(OPENAI.name), make_request("hi", tools=(LOOK,)))
    assert caught.value.context[OUTPUT_BEGAN] is True


@pytest.mark.proves("X-retry")
def test_a_connection_that_takes_too_long_is_tried_again_and_silence_is_not() -> None:
    context = FailureContext("lab/tiny", "lab", "http://lab", "LAB_KEY", ())
    slow, silent = httpx2.ConnectTimeout("It took too long."), httpx2.ReadTimeout("It said nothing.")
    assert classify_transport(slow, context).retryable and not classify_transport(silent, context).retryable


@pytest.mark.proves("X-retry")
def test_pauses_grow_vary_and_end() -> None:
    failed = ModelFailure(Unavailable("x"), retryable=True)
    longest, shortest = RetryPolicy(chance=lambda: 1.0), RetryPolicy(chance=lambda: 0.0)
    assert [longest.plan_pause_s(failed, attempt, 100) for attempt in (1, 2, 3)] == [0.5, 1.0, None]
    assert [shortest.plan_pause_s(failed, attempt, 100) for attempt in (1, 2)] == [0.25, 0.5]
    assert longest.plan_pause_s(failed, 1, 0.1) is None
    assert longest.plan_pause_s(ModelFailure(Unavailable("x")), 1, 100) is None
    assert longest.plan_pause_s(ModelFailure(Unavailable("x"), retryable=True, retry_after_s=61), 1, 100) is None
    assert longest.plan_pause_s(ModelFailure(Unavailable("x"), retryable=True, retry_after_s=0.1), 1, 100) == 0.5

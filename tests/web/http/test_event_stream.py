"""How a stream of events begins, waits, fails and ends."""

from collections.abc import AsyncGenerator

import anyio
import anyio.lowlevel
import pytest
from starlette.types import Message

from denizen.domain.errors import DenizenError, Unavailable
from denizen.web.http.event_stream import Chunks, EventStream, SseComment, StreamOptions
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

FOR_EVER_S = 3600.0
AT_ONCE_S = 0.0


class ResponseReader:
    """The other side of a response. `leave` closes the connection."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.heard = anyio.Event()
        self.leave = anyio.Event()
        self.gone = False

    async def receive(self) -> Message:
        await self.leave.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.messages.append(message)
        self.heard.set()

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.messages).decode()

    async def read(
        self, chunks: Chunks, *, start_after_s: float = FOR_EVER_S, keep_alive_s: float = FOR_EVER_S
    ) -> None:
        def on_gone() -> None:
            self.gone = True

        def on_error(error: DenizenError) -> bytes:
            return f"error: {error}".encode()

        conduct = StreamOptions(on_error, on_gone, start_after_s, keep_alive_s)
        with anyio.fail_after(HANG_LIMIT_S):
            await EventStream(chunks, conduct, {"X-Denizen-Turn": "turn_1"})({"type": "http"}, self.receive, self.send)


async def yield_items(*items: bytes | SseComment | DenizenError) -> AsyncGenerator[bytes | SseComment]:
    for item in items:
        if isinstance(item, DenizenError):
            raise item
        yield item


async def test_chunks_are_sent_as_they_are_with_headers_that_forbid_buffering() -> None:
    reader = ResponseReader()
    await reader.read(yield_items(b"one\n\n", b"two\n\n"))
    assert reader.text == "one\n\ntwo\n\n"
    headers = dict(reader.messages[0]["headers"])
    assert headers[b"content-type"].startswith(b"text/event-stream")
    assert headers[b"cache-control"] == b"no-store"
    assert headers[b"x-accel-buffering"] == b"no"
    assert headers[b"x-denizen-turn"] == b"turn_1"
    assert [message.get("more_body") for message in reader.messages[1:]] == [True, True, False]
    assert not reader.gone


async def test_an_error_before_anything_was_sent_is_raised_so_that_it_gets_its_status() -> None:
    reader = ResponseReader()
    with pytest.raises(Unavailable):
        await reader.read(yield_items(SseComment("loading"), Unavailable("Later.")))
    assert reader.messages == []


async def test_an_error_after_the_beginning_is_the_last_of_the_stream() -> None:
    reader = ResponseReader()
    await reader.read(yield_items(b"one\n\n", Unavailable("Later.")))
    assert reader.text == "one\n\nerror: Later."
    assert reader.messages[-1]["more_body"] is False


async def test_comments_wait_for_the_beginning_and_fit_on_one_line() -> None:
    reader = ResponseReader()
    await reader.read(yield_items(SseComment("loading\n\nthe model"), b"one\n\n", SseComment("x")))
    assert reader.text == ": loading the model\n\none\n\n: x\n\n"


async def test_a_slow_answer_begins_with_a_keep_alive_and_later_errors_come_in_the_stream() -> None:
    reader = ResponseReader()

    async def slow() -> AsyncGenerator[bytes | SseComment]:
        yield SseComment("loading")
        await reader.heard.wait()
        raise Unavailable("Later.")

    await reader.read(slow(), start_after_s=AT_ONCE_S)
    assert reader.text == ": loading\n\n: keep-alive\n\nerror: Later."


async def test_a_silent_stream_has_keep_alives() -> None:
    reader = ResponseReader()

    async def silent() -> AsyncGenerator[bytes | SseComment]:
        yield b"one\n\n"
        while reader.text.count("keep-alive") < 3:
            await anyio.lowlevel.checkpoint()
        yield b"two\n\n"

    await reader.read(silent(), keep_alive_s=0.001)
    assert reader.text.startswith("one\n\n: keep-alive\n\n")
    assert reader.text.endswith("two\n\n")


async def test_a_reader_that_leaves_ends_the_stream_and_is_told_of() -> None:
    reader = ResponseReader()
    closed = anyio.Event()

    async def endless() -> AsyncGenerator[bytes | SseComment]:
        try:
            yield b"one\n\n"
            reader.leave.set()
            await anyio.sleep_forever()
        finally:
            closed.set()

    await reader.read(endless())
    assert reader.gone
    assert closed.is_set()


async def test_a_reader_that_leaves_after_the_end_is_nothing_to_tell() -> None:
    reader = ResponseReader()

    async def closing(message: Message) -> None:
        await ResponseReader.send(reader, message)
        if message.get("more_body") is False:
            reader.leave.set()
            await anyio.lowlevel.checkpoint()

    reader.send = closing
    await reader.read(yield_items(b"one\n\n"))
    assert not reader.gone

"""A response of server-sent events that notices when its reader leaves and sends comments while it waits.

It holds the headers back until there is something to send, so that an early failure still gets its HTTP status. After
`start_after_s` at the latest the stream begins with a comment. Earlier comments wait with the headers.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from denizen.domain.errors import DenizenError
from denizen.domain.record import record

KEEP_ALIVE = b": keep-alive\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@record
class SseComment:
    """A comment, which clients skip. It does not begin the stream."""

    text: str

    def encode(self) -> bytes:
        return f": {' '.join(self.text.split())}\n\n".encode()


Chunks = AsyncGenerator[bytes | SseComment]


def encode_sse(event: str, row: Mapping[str, Any]) -> bytes:
    """Returns one named event with a JSON object."""
    return f"event: {event}\ndata: {json.dumps(row, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


@record
class StreamOptions:
    """The options of a stream. `on_error` turns a late error into the stream's last bytes; `on_gone` is called if the
    reader leaves before the end.
    """

    on_error: Callable[[DenizenError], bytes]
    on_gone: Callable[[], None]
    start_after_s: float
    keep_alive_s: float


class EventStream(Response):
    """Sends the chunks. Raises a DenizenError that comes before the first byte, for the boundary to answer."""

    media_type = "text/event-stream"

    def __init__(self, chunks: Chunks, conduct: StreamOptions, headers: Mapping[str, str]) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({**HEADERS, **headers})
        self._chunks = chunks
        self._conduct = conduct
        self._is_started = False
        self._is_done = False
        self._waiting: list[bytes] = []
        self._sent_at_s = 0.0
        self._lock = anyio.Lock(fast_acquire=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._sent_at_s = anyio.current_time()
        early: DenizenError | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, receive, tasks.cancel_scope)
            tasks.start_soon(self._keep_alive, send)
            early = await self._pump(send)
            tasks.cancel_scope.cancel()
        if early is not None:
            raise early

    async def _pump(self, send: Send) -> DenizenError | None:
        try:
            async with aclosing(self._chunks):
                async for chunk in self._chunks:
                    if isinstance(chunk, SseComment) and not self._is_started:
                        self._waiting.append(chunk.encode())
                    else:
                        await self._write(send, chunk.encode() if isinstance(chunk, SseComment) else chunk)
        except DenizenError as error:
            if not self._is_started:
                return error
            await self._write(send, self._conduct.on_error(error))
        self._is_done = True
        await self._write(send, b"", more=False)
        return None

    async def _write(self, send: Send, chunk: bytes, *, more: bool = True) -> None:
        async with self._lock:
            if not self._is_started:
                self._is_started = True
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                chunk = b"".join([*self._waiting, chunk])
            await send({"type": "http.response.body", "body": chunk, "more_body": more})
            self._sent_at_s = anyio.current_time()

    async def _keep_alive(self, send: Send) -> None:
        while True:
            pause_s = self._conduct.keep_alive_s if self._is_started else self._conduct.start_after_s
            due_s = self._sent_at_s + pause_s
            if anyio.current_time() >= due_s:
                await self._write(send, KEEP_ALIVE)
            else:
                await anyio.sleep_until(due_s)

    async def _watch(self, receive: Receive, scope: anyio.CancelScope) -> None:
        await wait_for_disconnect(receive)
        if not self._is_done:
            self._conduct.on_gone()
        scope.cancel()


async def wait_for_disconnect(receive: Receive) -> None:
    """Waits until the client has closed the connection. The request's body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass

"""A model that answers in no time: OpenAI's chat completions over HTTP, in a process of its own.

    python -m benchmarks.model PORT [SECONDS]

With seconds it waits so long before it answers. Else an answer costs a fraction of a millisecond. It keeps the time
that it took for each request, and the last request as it came; `GET /stats` tells both and begins anew. For whole
scripted behaviour there is `denizen.testing.model_server`; this one has to be too cheap to be noticed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

WORDS = ("Good", " morning", ".", " The", " door", " is", " open", ".")
USAGE = {"prompt_tokens": 900, "completion_tokens": len(WORDS), "total_tokens": 900 + len(WORDS)}
_HEAD = {"id": "chatcmpl-0", "created": 1, "model": "instant"}


def _event(choice: dict[str, Any] | None, **more: object) -> bytes:
    choices = [] if choice is None else [{"index": 0, "finish_reason": None, **choice}]
    body = {**_HEAD, "object": "chat.completion.chunk", "choices": choices, **more}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def _streamed() -> bytes:
    """The whole answer, each event in a chunk of its own."""
    events = [_event({"delta": {"role": "assistant", "content": ""}})]
    events += [_event({"delta": {"content": word}}) for word in WORDS]
    events += [_event({"delta": {}, "finish_reason": "stop"}), _event(None, usage=USAGE), b"data: [DONE]\n\n"]
    body = b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events) + b"0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n" + body


def _plain(body: object) -> bytes:
    content = json.dumps(body).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(content)
    return head + content


STREAMED = _streamed()
WHOLE = _plain(
    {
        **_HEAD,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "".join(WORDS)}, "finish_reason": "stop"}],
        "usage": USAGE,
    }
)


class Records:
    """The requests that the server has seen since it was last asked."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.last = ""

    def tell(self) -> bytes:
        answer = _plain({"seconds": self.seconds, "last": self.last})
        self.seconds, self.last = [], ""
        return answer


class Exchange(asyncio.Protocol):
    """One connection, kept open for as many requests as the client likes."""

    def __init__(self, records: Records, delay_s: float) -> None:
        self._records = records
        self._delay_s = delay_s
        self._transport: asyncio.WriteTransport | None = None
        self._received = bytearray()
        self._began_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._received:
            self._began_s = time.perf_counter()
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._received[:end]).lower()
        _, _, rest = head.partition(b"content-length:")
        size = int(rest.partition(b"\r\n")[0] or b"0")
        if len(self._received) < end + 4 + size:
            return
        body = bytes(self._received[end + 4 :])
        self._received.clear()
        self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        assert self._transport is not None
        if head.startswith(b"get /stats"):
            self._transport.write(self._records.tell())
            return
        answer = STREAMED if b'"stream":true' in body or b'"stream": true' in body else WHOLE
        if self._delay_s:
            asyncio.get_running_loop().call_later(self._delay_s, self._transport.write, answer)
        else:
            self._transport.write(answer)
        self._records.seconds.append(time.perf_counter() - self._began_s)
        self._records.last = body.decode()


async def serve(port: int, delay_s: float = 0.0) -> None:
    records = Records()
    server = await asyncio.get_running_loop().create_server(lambda: Exchange(records, delay_s), "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), *map(float, sys.argv[2:])))

"""The way back from Google's page of consent to this machine: a server on loopback that takes one answer.
https://developers.google.com/identity/protocols/oauth2/native-app
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.stapled import MultiListener

from denizen.domain.errors import InvalidInput, NotAllowed

READ_S = 10.0
MAX_REQUEST_BYTES = 16_384
_PAGE = "Denizen has the answer. You can close this page and go back to the terminal."


def read_code(address: str, state: str) -> str:
    """Returns the code in the address that Google leads the browser to. Raises InvalidInput for the address of another
    journey, NotAllowed where the person said no.
    """
    query = {name: values[0] for name, values in parse_qs(urlsplit(address.strip()).query).items()}
    if not hmac.compare_digest(query.get("state", "").encode(), state.encode()):
        raise InvalidInput(
            "This is not the address that Google leads back to.",
            code="google_address",
            fix="Open the link again, and give the whole address of the page at its end, with code and state.",
        )
    if not query.get("code"):
        raise NotAllowed("Google gave no consent.", code="google_refused", why=query.get("error", "")[:100])
    return query["code"]


class LoopbackReceiver:
    """Waits for a browser that Google leads back. `redirect_uri` is where it comes."""

    def __init__(self, listener: MultiListener[SocketStream]) -> None:
        self._listener = listener
        self.redirect_uri = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"  # noqa: S610

    async def wait_for_code(self, state: str) -> str:
        """Returns the code of the answer with this state; other requests are refused. Raises as `read_code`."""
        found: list[str | NotAllowed] = []
        async with anyio.create_task_group() as tasks:

            async def take(stream: SocketStream) -> None:
                async with stream:
                    target = await _read_target(stream)
                    try:
                        found.append(read_code(target, state))
                    except InvalidInput:
                        await _answer(stream, "404 Not Found", "There is nothing here.")
                        return
                    except NotAllowed as error:
                        found.append(error)
                    await _answer(stream, "200 OK", _PAGE)
                tasks.cancel_scope.cancel()

            await self._listener.serve(take, tasks)
        answer = found[0]
        if isinstance(answer, NotAllowed):
            raise answer
        return answer


@asynccontextmanager
async def open_loopback() -> AsyncGenerator[LoopbackReceiver]:
    """Opens a port of this machine that only this machine reaches."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    async with listener:
        yield LoopbackReceiver(listener)


async def _read_target(stream: SocketStream) -> str:
    """Returns the path and query that are asked for; empty for what is no request."""
    data = b""
    with anyio.move_on_after(READ_S), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while b"\r\n\r\n" not in data and len(data) < MAX_REQUEST_BYTES:
            data += await stream.receive()
    words = data.partition(b"\r\n")[0].split(b" ")
    return words[1].decode("ascii", "replace") if len(words) == 3 and words[0] == b"GET" else ""


async def _answer(stream: SocketStream, status: str, text: str) -> None:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await stream.send(head.encode() + body)

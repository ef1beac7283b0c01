"""Bounds on connections, and deadlines for clients that are slow: with real connections, and seconds that the test
counts.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_network

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketStream
from starlette.types import Message, Receive, Scope, Send

from denizen.app.http_server import (
    BODY_BYTES_PER_S,
    BODY_GRACE_S,
    HEADERS_S,
    MAX_CONNECTIONS,
    UNREAD_S,
    ConnectionCounter,
    ConnectionLimits,
    HttpServer,
    LimitedProtocol,
    choose_limits,
)
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

LIMITS = ConnectionLimits(total=40, per_address=2, per_proxy=20)
HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n"
SLOW, FULL = b"HTTP/1.1 408 ", b"HTTP/1.1 503 "
CHUNK = bytes(64 * 1024)


class Application:
    """Answers with the size of the body; `/unread` waits first, `/events` and `/large` answer without an end."""

    def __init__(self) -> None:
        self.received_bytes = 0
        self.gone = 0
        self.goes_on = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/unread":
            await self.goes_on.wait()
        if scope["path"] in ("/events", "/large"):
            await self._stream(CHUNK if scope["path"] == "/large" else b"", receive, send)
            return
        while (message := await receive()).get("more_body"):
            self.received_bytes += len(message["body"])
        if message["type"] == "http.disconnect":
            self.gone += 1
            return
        await send(_start())
        await send({"type": "http.response.body", "body": b"all of it"})

    async def _stream(self, chunk: bytes, receive: Receive, send: Send) -> None:
        await send(_start())
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        async with anyio.create_task_group() as group:

            async def write() -> None:
                while chunk:
                    await anyio.lowlevel.checkpoint()
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})

            group.start_soon(write)
            while (await receive())["type"] != "http.disconnect":
                pass
            self.gone += 1
            group.cancel_scope.cancel()


def _start() -> Message:
    return {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}


@dataclass(slots=True)
class ServerFixture:
    """A server whose seconds are counted by `pass_seconds`."""

    app: Application
    server: HttpServer
    port: int

    @asynccontextmanager
    async def connect(self, data: bytes = b"") -> AsyncGenerator[SocketStream]:
        """A connection over which that was sent, and read as far as the server reads now."""
        known = set(self.connections)
        async with await anyio.connect_tcp("127.0.0.1", self.port) as client:
            await until(lambda: len(self.connections) > len(known))
            [connection] = set(self.connections) - known
            await client.send(data)
            await until(lambda: connection._received_bytes >= len(data) or connection.flow.read_paused)
            yield client

    @property
    def connections(self) -> list[LimitedProtocol]:
        return [each for each in self.server.server_state.connections if isinstance(each, LimitedProtocol)]

    def pass_seconds(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.server.check_deadlines()


async def until(is_true: Callable[[], bool]) -> None:
    with anyio.fail_after(HANG_LIMIT_S):
        while not is_true():
            await anyio.lowlevel.checkpoint()


async def read_all(client: SocketStream) -> bytes:
    """What comes until the server closes the connection."""
    found = b""
    with anyio.fail_after(HANG_LIMIT_S):
        try:
            async for data in client:
                found += data
        except anyio.BrokenResourceError:
            pass
    return found


async def read_until(client: SocketStream, ending: bytes) -> bytes:
    found = b""
    with anyio.fail_after(HANG_LIMIT_S):
        while ending not in found:
            found += await client.receive()
    return found


@asynccontextmanager
async def serve(limits: ConnectionLimits = LIMITS) -> AsyncGenerator[ServerFixture]:
    app, ready = Application(), anyio.Event()
    server = HttpServer(app, limits, ready.set)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listener])
            await ready.wait()
            yield ServerFixture(app, server, listener.getsockname()[1])
            server.should_exit = server.force_exit = True


# --- deadlines -------------------------------------------------------------------------------------------------------


async def test_headers_that_do_not_become_complete_end_the_connection() -> None:
    async with serve() as fixture, fixture.connect(b"GET / HTTP/1.1\r\nX-Slow: ") as client:
        for _ in range(HEADERS_S + 1):
            await client.send(b"x")
            fixture.pass_seconds(1)
        assert (await read_all(client)).startswith(SLOW)
        await until(lambda: not fixture.connections)


async def test_a_connection_over_which_nothing_comes_is_closed_without_an_answer() -> None:
    async with serve() as fixture, fixture.connect() as client:
        fixture.pass_seconds(HEADERS_S + 1)
        assert await read_all(client) == b""


async def test_a_connection_is_kept_between_requests_and_its_next_headers_have_a_deadline_too() -> None:
    async with serve() as fixture, fixture.connect(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") as client:
        await read_until(client, b"all of it\r\n0\r\n\r\n")
        fixture.pass_seconds(5 * HEADERS_S)
        await client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await read_until(client, b"all of it\r\n0\r\n\r\n")
        await client.send(b"GET / HTTP/1.1\r\nX-Slow: ")
        [connection] = fixture.connections
        await until(lambda: connection.timeout_keep_alive_task is None)
        fixture.pass_seconds(HEADERS_S + 1)
        assert (await read_all(client)).startswith(SLOW)


async def test_a_body_that_does_not_come_ends_the_request() -> None:
    async with serve() as fixture, fixture.connect(HEAD + b"\r\n") as client:
        fixture.pass_seconds(BODY_GRACE_S + 1)
        assert (await read_all(client)).startswith(SLOW)
        await until(lambda: fixture.app.gone == 1)


async def test_a_body_may_take_long_while_it_comes_fast_enough() -> None:
    async with serve() as fixture, fixture.connect(HEAD + b"\r\n") as client:
        fixture.pass_seconds(1)
        for second in range(1, 100):
            await client.send(bytes(2 * BODY_BYTES_PER_S))
            await until(lambda sent=second: fixture.app.received_bytes >= sent * 2 * BODY_BYTES_PER_S)
            fixture.pass_seconds(1)
        await client.send(bytes(1_000_000 - 99 * 2 * BODY_BYTES_PER_S))
        await read_until(client, b"all of it")


async def test_a_body_that_comes_too_slowly_ends_the_request() -> None:
    async with serve() as fixture, fixture.connect(HEAD + b"\r\n") as client:
        for second in range(1, 3 * BODY_GRACE_S):
            if not fixture.connections:
                break
            await client.send(bytes(BODY_BYTES_PER_S // 4))
            await until(lambda sent=second: fixture.app.received_bytes >= sent * BODY_BYTES_PER_S // 4)
            fixture.pass_seconds(1)
            await anyio.lowlevel.checkpoint()
        assert (await read_all(client)).startswith(SLOW)


@pytest.mark.parametrize("head", [HEAD + b"Expect: 100-continue\r\n\r\n", HEAD + b"\r\n" + CHUNK * 2])
async def test_a_client_that_the_server_keeps_waiting_has_all_the_time(head: bytes) -> None:
    async with serve() as fixture, fixture.connect(head.replace(b"POST /", b"POST /unread")) as client:
        fixture.pass_seconds(10 * BODY_GRACE_S)
        fixture.app.goes_on.set()
        await client.send(bytes(1_000_000 - len(head.partition(b"\r\n\r\n")[2])))
        await read_until(client, b"all of it")


async def test_an_answer_that_is_under_way_has_no_deadline() -> None:
    async with serve() as fixture, fixture.connect(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n") as client:
        await read_until(client, b"first")
        fixture.pass_seconds(10_000)
        await anyio.wait_all_tasks_blocked()
        assert (len(fixture.connections), fixture.app.gone) == (1, 0)


async def test_a_slow_reader_is_waited_for_and_one_that_takes_nothing_is_left() -> None:
    async with serve() as fixture, fixture.connect(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n") as client:
        [connection] = fixture.connections
        for _ in range(3):
            await until(lambda: connection.flow.write_paused)
            unread_bytes = connection.transport.get_write_buffer_size()
            fixture.pass_seconds(UNREAD_S)
            while connection.transport.get_write_buffer_size() == unread_bytes:
                await client.receive()
            fixture.pass_seconds(1)
        assert fixture.connections == [connection]
        await until(lambda: connection.flow.write_paused)
        fixture.pass_seconds(UNREAD_S + 2)
        await until(lambda: fixture.app.gone == 1)
        assert fixture.connections == []


# --- bounds ----------------------------------------------------------------------------------------------------------


async def test_connections_beyond_the_bound_are_refused_until_others_go(caplog: pytest.LogCaptureFixture) -> None:
    async with serve() as fixture, AsyncExitStack() as held:
        clients = [await held.enter_async_context(fixture.connect(HEAD)) for _ in range(LIMITS.per_proxy)]
        for _ in range(50):
            async with await anyio.connect_tcp("127.0.0.1", fixture.port) as client:
                assert (await read_all(client)).startswith(FULL)
        assert len(fixture.connections) == LIMITS.per_proxy
        await clients[0].aclose()
        await until(lambda: len(fixture.connections) < LIMITS.per_proxy)
        async with fixture.connect(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") as client:
            await read_until(client, b"all of it")
    assert [each.message for each in caplog.records if each.name == "denizen.server"] == [
        "connections refused: there are too many"
    ]


def test_each_address_has_its_bound_and_a_proxy_more() -> None:
    counter = ConnectionCounter(
        ConnectionLimits(total=12, per_address=2, per_proxy=4, proxies=[ip_network("10.1.0.0/16")])
    )

    def add(*hosts: str) -> list[bool]:
        return [counter.add(host) for host in hosts]

    assert add("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1") == [True, True, False]
    assert add("2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1") == [True, True, False, True]
    assert add(*["10.1.2.3"] * 5) == [True] * 4 + [False]
    assert add("127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1") == [True, True, True, False], "twelve in all"
    counter.remove("2001:db8::2")
    assert add("2001:db8::9", "2001:db8::9") == [True, False]
    counter.remove("192.0.2.1")
    assert add("an address of another kind", "192.0.2.1") == [True, False]


@pytest.mark.parametrize("descriptors", [64, 256, 1024, 65_536])
def test_connections_leave_half_of_the_open_files_to_everything_else(descriptors: int) -> None:
    limits = choose_limits(descriptors)
    assert 0 < limits.per_address < limits.per_proxy < limits.total <= min(MAX_CONNECTIONS, descriptors // 2)

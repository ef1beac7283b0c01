"""Connecting to WebSockets of a real server on loopback."""

from __future__ import annotations

from dataclasses import replace

import pytest
from aiohttp import web

from denizen.adapters.event_sources import WebSocketConnector
from denizen.adapters.event_sources.websocket import MAX_MESSAGE_BYTES
from denizen.adapters.fetch import WebFetcher
from denizen.domain.errors import DenizenError, NotAllowed, Unavailable
from denizen.domain.event_source import WebSocketSource
from denizen.domain.json import Json
from tests.socket_server import serve_socket

pytestmark = pytest.mark.anyio

CONNECTOR = WebSocketConnector(lambda hosts: WebFetcher(allow_private=hosts))


def source_at(port: int, path: str = "/stream", *, host: str = "127.0.0.1", is_private: bool = True) -> WebSocketSource:
    return WebSocketSource(
        name="market",
        url=f"ws://{host}:{port}{path}",
        headers={"Authorization": "Bearer secret"},
        messages=('{"op": "subscribe"}', "hello"),
        is_private=is_private,
    )


async def read_until_lost(source: WebSocketSource) -> tuple[list[Json], DenizenError]:
    read = list[Json]()

    async def listen() -> None:
        async with CONNECTOR.connect(source) as messages:
            async for message in messages:
                read.append(message)

    with pytest.raises(DenizenError) as caught:
        await listen()
    return read, caught.value


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_messages_are_sent_when_it_is_connected_and_what_comes_is_read_until_it_closes(host: str) -> None:
    heard = list[str]()

    async def talk(opened: web.WebSocketResponse, request: web.Request) -> None:
        heard.append(request.headers["Authorization"])
        heard.extend([await opened.receive_str(), await opened.receive_str()])
        await opened.send_str('{"price": 3}')
        await opened.send_bytes(b"left out")
        await opened.send_str("plain")

    async with serve_socket(talk) as port:
        read, error = await read_until_lost(source_at(port, host=host))
    assert heard == ["Bearer secret", '{"op": "subscribe"}', "hello"]
    assert read == [{"price": 3}, "plain"]
    assert isinstance(error, Unavailable) and error.code == "websocket_lost"


async def test_a_server_that_is_gone_before_it_was_sent_everything_is_away() -> None:
    async def talk(opened: web.WebSocketResponse, request: web.Request) -> None:
        await opened.receive_str()
        assert request.transport is not None
        request.transport.abort()

    async with serve_socket(talk) as port:
        _, error = await read_until_lost(replace(source_at(port), messages=("x" * 100_000,) * 200))
    assert isinstance(error, Unavailable) and error.code == "websocket_fault"


async def test_a_message_that_is_too_large_ends_the_connection() -> None:
    async def talk(opened: web.WebSocketResponse, request: web.Request) -> None:
        del request
        await opened.send_str("x" * (MAX_MESSAGE_BYTES + 1))
        await opened.receive()

    async with serve_socket(talk) as port:
        read, error = await read_until_lost(source_at(port))
    assert (read, error.code) == ([], "websocket_lost") and "256 kB" in error.fix


@pytest.mark.proves("VW5")
async def test_private_addresses_redirects_and_servers_that_are_away_are_refused() -> None:
    asked = list[str]()

    async def talk(opened: web.WebSocketResponse, request: web.Request) -> None:
        del opened
        asked.append(request.path)

    async with serve_socket(talk) as port:
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]"):
            _, private = await read_until_lost(source_at(port, host=host, is_private=False))
            assert isinstance(private, NotAllowed)
        assert (await read_until_lost(source_at(port, "/moved")))[1].code == "websocket_redirect"
        refused = (await read_until_lost(source_at(port, "/nothing")))[1]
        assert (refused.code, refused.why) == ("websocket_fault", "it answered 404")
    assert not asked
    away = (await read_until_lost(source_at(port)))[1]
    assert away.code == "websocket_fault" and "secret" not in away.explain()

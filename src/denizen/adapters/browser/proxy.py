"""The proxy of one browser: everything that a page loads passes it, whatever asks for it.

Chromium sends all its connections here: of addresses that are typed, redirects, scripts, frames and web sockets. The
proxy knows the host before anybody has resolved it, checks it against the origins, and connects to the address that was
checked, so that no name can lead elsewhere at its second lookup.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

import anyio
import h11

from denizen.domain.errors import DenizenError
from denizen.domain.web_origin import PORTS, WebOrigin
from denizen.ports.fetch import HostCheck

CONNECT_TIMEOUT_S = 10.0
MAX_BLOCKED = 20
_CHUNK = 65_536


class OriginProxy:
    """Listens on loopback from `start` to `aclose`. `blocked` are the hosts that were refused, in order."""

    def __init__(self, origins: Sequence[WebOrigin], check: HostCheck) -> None:
        self._origins = origins
        self._check = check
        self._server: asyncio.Server | None = None
        self.blocked: dict[str, None] = {}

    async def start(self) -> str:
        """Returns the proxy's address."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
            close_clients = getattr(self._server, "close_clients", None)
            if close_clients is not None:  # since Python 3.13; before, the browser that has gone closes them
                close_clients()

    def admits(self, host: str, port: int) -> bool:
        return any(origin.admits(host, port) for origin in self._origins)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._relay(reader, writer)
        except (OSError, h11.RemoteProtocolError, h11.LocalProtocolError, ValueError):
            pass  # one of both has gone, or the browser speaks something else
        finally:
            writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        browser = h11.Connection(h11.SERVER)
        request = await _next(browser, reader)
        if not isinstance(request, h11.Request):
            return
        target = request.target.decode("ascii")
        is_tunnel = request.method == b"CONNECT"
        parts = urlsplit(f"//{target}" if is_tunnel else target)
        host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
        upstream = await self._connect(host, port)
        if upstream is None:
            status = "403 Forbidden" if f"{host[:200]}:{port}" in self.blocked else "502 Bad Gateway"
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
            return
        up_reader, up_writer = upstream
        try:
            if is_tunnel:
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
                await writer.drain()
                await _both(_copy(reader, up_writer), _copy(up_reader, writer))
            else:
                await _both(_send_request(browser, request, reader, up_writer), _copy(up_reader, writer))
        finally:
            up_writer.close()

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Returns a connection to the host, or None for one that may not be reached or does not answer."""
        if not host or not self.admits(host, port):
            self._note(host, port)
            return None
        try:
            addresses = await self._check.check(host, port)
        except DenizenError:
            self._note(host, port)
            return None
        for address in addresses:
            with suppress(OSError, TimeoutError):
                reader, writer = await asyncio.wait_for(asyncio.open_connection(address, port), CONNECT_TIMEOUT_S)
                if self._check.leads_back(writer.get_extra_info("sockname")[:2], host, port, address):
                    writer.close()
                    self._note(host, port)
                    return None
                return reader, writer
        return None

    def _note(self, host: str, port: int) -> None:
        if len(self.blocked) < MAX_BLOCKED:
            self.blocked[f"{host[:200]}:{port}"] = None


async def _next(browser: h11.Connection, reader: asyncio.StreamReader) -> object:
    while True:
        event = browser.next_event()
        if event is not h11.NEED_DATA:
            return event
        browser.receive_data(await reader.read(_CHUNK))


async def _send_request(
    browser: h11.Connection, request: h11.Request, reader: asyncio.StreamReader, upstream: asyncio.StreamWriter
) -> None:
    """Sends one request on, and no other one that comes on the same connection: that may be for another host."""
    server = h11.Connection(h11.CLIENT)
    parts = urlsplit(request.target.decode("ascii"))
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    wanted = [(name, value) for name, value in request.headers if name not in (b"connection", b"proxy-connection")]
    is_upgrade = any(name == b"upgrade" for name, _ in wanted)
    wanted.append((b"connection", b"Upgrade" if is_upgrade else b"close"))
    head = h11.Request(method=request.method, target=path.encode("ascii"), headers=wanted)
    upstream.write(server.send(head) or b"")
    while isinstance(event := await _next(browser, reader), h11.Data):
        upstream.write(server.send(event) or b"")
        await upstream.drain()
    if isinstance(event, h11.EndOfMessage):
        upstream.write(server.send(event) or b"")
    await upstream.drain()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    writer.close()


async def _both(one: Awaitable[None], other: Awaitable[None]) -> None:
    """Runs both to their end. An error of one ends the other too."""
    async with anyio.create_task_group() as group:
        group.start_soon(_run, one)
        group.start_soon(_run, other)


async def _run(work: Awaitable[None]) -> None:
    with suppress(OSError):  # one of both has gone, which the other sees
        await work

"""`WebSocketConnector`: connects to WebSockets, at addresses that were checked.

aiohttp connects only to addresses that its resolver returns, and the one here returns checked ones. No redirect is
followed, so that headers reach no other server.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from denizen.domain.cloud_event import read_json
from denizen.domain.errors import InvalidInput, NotAllowed, Unavailable
from denizen.domain.event_source import WebSocketSource
from denizen.domain.json import Json
from denizen.ports.fetch import HostCheck

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver, ResolveResult
    from aiohttp.client_middlewares import ClientHandlerType

CONNECT_TIMEOUT_S = 20.0
PING_EVERY_S = 30.0
"""How often one looks whether the other side is still there: it has half the time for its answer."""
MAX_MESSAGE_BYTES = 256_000
_FIRST_REDIRECT, _FIRST_FAULT = 300, 400


class WebSocketConnector:
    """Implements `ports.event_sources.SocketConnector`. `open_check` makes what checks addresses, by the `host:port`
    pairs of the own network that it may reach.
    """

    def __init__(self, open_check: Callable[[Sequence[str]], HostCheck]) -> None:
        self._open_check = open_check

    @asynccontextmanager
    async def connect(self, source: WebSocketSource) -> AsyncGenerator[AsyncIterator[Json]]:
        """Implements the port."""
        import aiohttp

        check = self._open_check(source.private_hosts)
        parts = urlsplit(source.url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "wss" else 80)
        await check.check(host, port)  # an address in place of a name is not asked of the resolver
        connector = aiohttp.TCPConnector(resolver=_make_resolver(check), use_dns_cache=False, limit=1)
        async with aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, middlewares=(_refuse_redirect,)
        ) as session:
            try:
                with anyio.fail_after(CONNECT_TIMEOUT_S):
                    opened = await session.ws_connect(
                        source.url, headers=source.headers, heartbeat=PING_EVERY_S, max_msg_size=MAX_MESSAGE_BYTES
                    )
            except (aiohttp.ClientError, OSError) as error:  # a TimeoutError is an OSError
                raise Unavailable(
                    f"{host} could not be reached", code="websocket_fault", why=_explain(error)
                ) from error
            async with opened:
                own, other = opened.get_extra_info("sockname"), opened.get_extra_info("peername")
                if other is None or check.leads_back(own and own[:2], host, port, other[0]):
                    raise NotAllowed(f"{host} leads back to this machine", code="private_address")
                try:
                    with anyio.fail_after(CONNECT_TIMEOUT_S):
                        for message in source.messages:
                            await opened.send_str(message)
                except (aiohttp.ClientError, OSError) as error:
                    raise Unavailable(
                        f"{host} did not take what is sent first", code="websocket_fault", why=_explain(error)
                    ) from error
                async with aclosing(_read(opened)) as messages:
                    yield messages


async def _read(opened: aiohttp.ClientWebSocketResponse) -> AsyncGenerator[Json]:
    import aiohttp

    async for message in opened:
        if message.type is aiohttp.WSMsgType.TEXT:
            yield _parse(message.data)
        elif message.type is aiohttp.WSMsgType.ERROR:
            break
    why = f"it was closed with code {opened.close_code}" if opened.close_code else "the connection broke"
    fix = f"Messages may have {MAX_MESSAGE_BYTES // 1000} kB." if opened.close_code == _TOO_BIG else ""
    raise Unavailable("The websocket was closed.", code="websocket_lost", why=why, fix=fix)


_TOO_BIG = 1009


def _parse(text: str) -> Json:
    """Returns the value of a message, or its text where it is no JSON that can be kept."""
    try:
        return read_json(text)
    except (ValueError, InvalidInput):
        return text.encode(errors="replace").decode()


async def _refuse_redirect(request: aiohttp.ClientRequest, handler: ClientHandlerType) -> aiohttp.ClientResponse:
    answer = await handler(request)
    if _FIRST_REDIRECT <= answer.status < _FIRST_FAULT:
        answer.close()
        raise Unavailable(
            "The server leads to another address.",
            code="websocket_redirect",
            fix="Write the address to which it leads, if you trust it.",
        )
    return answer


def _explain(error: Exception) -> str:
    """Returns the reason, without the address: it may hold a secret."""
    import aiohttp

    if isinstance(error, aiohttp.WSServerHandshakeError):
        return f"it answered {error.status}"
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.strerror:
        return error.os_error.strerror
    return "there was no answer in time" if isinstance(error, TimeoutError) else type(error).__name__


def _make_resolver(check: HostCheck) -> AbstractResolver:
    from aiohttp.abc import AbstractResolver

    class CheckedResolver(AbstractResolver):
        """Returns addresses that may be reached."""

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            del family
            return [
                {
                    "hostname": host,
                    "host": address,
                    "port": port,
                    "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                    "proto": 0,
                    "flags": socket.AI_NUMERICHOST,
                }
                for address in await check.check(host, port)
            ]

        async def close(self) -> None:
            """Does nothing: it holds nothing open."""

    return CheckedResolver()

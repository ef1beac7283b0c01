"""The HTTP server: uvicorn with bounds on connections, and deadlines for what clients send and take.

Anybody who reaches the port may open connections, and uvicorn itself counts only complete requests. So a protocol of
our own counts connections before it reads from them, and ends those whose headers or body come too slowly, or whose
reader takes nothing. An answer that is under way, such as a stream of events, has no deadline while it is taken.
"""

from __future__ import annotations

import logging
import resource
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from denizen.domain.record import record
from denizen.web.http.auth import find_client_network

if TYPE_CHECKING:
    import asyncio
    import socket

    from starlette.types import ASGIApp
    from uvicorn.server import ServerState

MAX_DESCRIPTORS = 65_536
"""The limit of open files is raised to this at most: children inherit it, and some programs walk through all of it."""
MAX_CONNECTIONS = 1000
IDLE_CONNECTION_S = 75
"""Longer than clients and proxies keep an idle connection (5 to 60 s), so that no request meets a closing one."""
WARNING_PAUSE_S = 60.0
"""The pause between two warnings about refused connections."""

HEADERS_S = 10
"""The time in which the headers of a request must be complete, from the first byte or from the connection on."""
BODY_GRACE_S = 10
BODY_BYTES_PER_S = 1000
"""A body may take its grace and a second for each so many bytes that came, while the server waits for more."""
UNREAD_S = 60
"""The time after which a reader is left who takes nothing of an answer."""

_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_SLOW = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

_DESCRIPTORS = resource.RLIMIT_NOFILE

_log = logging.getLogger("denizen.server")

Network: TypeAlias = IPv4Network | IPv6Network


@record(kw_only=True)
class ConnectionLimits:
    """Bounds on open connections: in `total`, and of one address. `per_proxy` is for an address behind which there are
    many clients: this machine, and those in `proxies`.
    """

    total: int
    per_address: int
    per_proxy: int
    proxies: Sequence[Network] = ()


def choose_limits(descriptors: int, proxies: Sequence[Network] = ()) -> ConnectionLimits:
    """Returns the limits for a process that may open so many files, half of which are left to its other work."""
    total = min(MAX_CONNECTIONS, descriptors // 2)
    return ConnectionLimits(total=total, per_address=min(100, total // 4), per_proxy=total * 3 // 4, proxies=proxies)


def raise_descriptor_limit() -> int:
    """Raises the limit of open files as far as this process may, and returns it."""
    soft, hard = (
        MAX_DESCRIPTORS if each == resource.RLIM_INFINITY else each for each in resource.getrlimit(_DESCRIPTORS)
    )
    wanted = min(hard, MAX_DESCRIPTORS)
    if soft < wanted:
        with suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(_DESCRIPTORS, (wanted, resource.getrlimit(_DESCRIPTORS)[1]))
            return wanted
    return soft


class ConnectionCounter:
    """Counts the open connections of each client."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._open = Counter[str]()

    def add(self, host: str) -> bool:
        """Counts a connection. Returns False, and counts nothing, when there is no room for it."""
        limits, (key, is_proxy) = self._limits, self._classify(host)
        bound = limits.per_proxy if is_proxy else limits.per_address
        if self._open.total() >= limits.total or self._open[key] >= bound:
            return False
        self._open[key] += 1
        return True

    def remove(self, host: str) -> None:
        key, _ = self._classify(host)
        self._open[key] -= 1
        if not self._open[key]:
            del self._open[key]

    def _classify(self, host: str) -> tuple[str, bool]:
        """Returns the name under which an address counts, and whether it may be a proxy's."""
        try:
            address = ip_address(host)
        except ValueError:
            return host, False
        address = getattr(address, "ipv4_mapped", None) or address
        is_proxy = address.is_loopback or any(address in network for network in self._limits.proxies)
        return (str(address), True) if is_proxy else (find_client_network(host), False)


class LimitedProtocol(H11Protocol):
    """A connection that `counter` has room for, with deadlines. `on_refused` is told the address of another one."""

    def __init__(
        self,
        counter: ConnectionCounter,
        on_refused: Callable[[str], None],
        *,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._counter = counter
        self._on_refused = on_refused
        self._counted: str | None = None
        """The address under which the connection counts, while it does."""
        self._phase: object = None
        self._waited_s = 0
        self._received_bytes = 0
        self._unread_s = 0
        self._unread_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        host = str((transport.get_extra_info("peername") or ("",))[0])
        if self._counter.add(host):
            self._counted = host
            super().connection_made(transport)
        else:
            transport.write(_FULL)
            transport.close()
            self._on_refused(host)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._counted is not None:
            self._counter.remove(self._counted)
            self._counted = None
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received_bytes += len(data)
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._phase = None
        super().on_response_complete()

    def check_deadlines(self) -> None:
        """Ends the connection when its client is too slow. To be called once a second: a second counts when the whole
        server had time, so that what waits in the system's buffers is not held against the client.
        """
        self._check_reader()
        phase = cast("object", self.conn.their_state)
        if phase is not self._phase:
            self._phase, self._waited_s, self._received_bytes = phase, 0, 0
        if phase is h11.IDLE:
            if self.timeout_keep_alive_task is not None:  # idle between two requests, which uvicorn ends
                self._waited_s = 0
            elif self._is_late(HEADERS_S):
                self._end(answer=bool(self.conn.trailing_data[0]))
        elif phase is h11.SEND_BODY:
            is_held_up = self.flow.read_paused or self.cycle.waiting_for_100_continue
            if not is_held_up and self._is_late(BODY_GRACE_S + self._received_bytes / BODY_BYTES_PER_S):
                self._end(answer=not self.cycle.response_started)

    def _is_late(self, allowed_s: float) -> bool:
        self._waited_s += 1
        return self._waited_s > allowed_s

    def _check_reader(self) -> None:
        unread_bytes = self.transport.get_write_buffer_size()
        is_stuck = self.flow.write_paused and unread_bytes == self._unread_bytes
        self._unread_s, self._unread_bytes = self._unread_s + 1 if is_stuck else 0, unread_bytes
        if self._unread_s > UNREAD_S:
            self.transport.abort()

    def _end(self, *, answer: bool) -> None:
        if not answer or self.transport.get_write_buffer_size():
            self.transport.abort()
            return
        self.transport.write(_SLOW)
        self.transport.close()


class HttpServer(uvicorn.Server):
    """Serves the application within the limits. It says when it answers, and leaves signals to its caller."""

    def __init__(self, app: ASGIApp, limits: ConnectionLimits, on_ready: Callable[[], None]) -> None:
        self._on_ready = on_ready
        self._refused = 0
        self._warned_s = -WARNING_PAUSE_S
        protocol = partial(LimitedProtocol, ConnectionCounter(limits), self._warn)
        config = uvicorn.Config(
            app,
            http=cast("type[asyncio.Protocol]", protocol),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=5,
            timeout_keep_alive=IDLE_CONNECTION_S,
            server_header=False,
            forwarded_allow_ips=["127.0.0.1", "::1", *map(str, limits.proxies)],
        )
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # uvicorn ticks ten times a second
            self.check_deadlines()
        return await super().on_tick(counter)

    def check_deadlines(self) -> None:
        """Ends the connections whose clients are too slow. It counts as a second."""
        for connection in list(self.server_state.connections):
            cast("LimitedProtocol", connection).check_deadlines()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    def _warn(self, host: str) -> None:
        self._refused += 1
        now_s = time.monotonic()
        if now_s - self._warned_s >= WARNING_PAUSE_S:
            about = {"latest": host, "refused": self._refused, "open": len(self.server_state.connections)}
            _log.warning("connections refused: there are too many", extra=about)
            self._warned_s, self._refused = now_s, 0

"""One connection to one MCP server: how it is configured, opened, watched and closed.

A connection is opened and closed in the same task, by `server.py`: the vendor's client fails when another task closes
it. When a connection ends, that client raises groups of many kinds of errors; `find_reason` makes one sentence of them.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from shutil import which
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

import anyio

from denizen import __version__
from denizen.domain.clock import Clock
from denizen.domain.json import Json
from denizen.domain.record import record

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.shared.dispatcher import ProgressFnT
    from mcp.shared.message import SessionMessage
    from mcp_types import CallToolResult, Tool


START_TIMEOUT_S = 30.0


@record
class StdioTransport:
    """A server that is started here and spoken to over its standard input and output.

    `env` is all that it sees beside HOME, LOGNAME, PATH, SHELL, TERM and USER.
    """

    command: str
    args: tuple[str, ...]
    cwd: Path
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@record
class HttpTransport:
    """A server that runs elsewhere and is spoken to over streamable HTTP."""

    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@record
class McpServerSpec:
    """The configuration that a connection depends on. A server whose spec stays the same keeps running when the
    configuration changes.

    `start_timeout_s` limits starting it, shaking hands and listing its tools.
    """

    name: str
    transport: StdioTransport | HttpTransport
    start_timeout_s: float = START_TIMEOUT_S


SILENCE_S = 660.0
"""How long an HTTP server may keep a response open without sending anything: longer than any call may take."""
MAX_PAGES = 50
"""The limit for the pages of a list of tools."""
LISTEN_AGAIN_S = 5.0
LAST_LINES = 5
KEPT_LINES = 200
MAX_LINE_CHARS = 500

_log = logging.getLogger("denizen.mcp")


@dataclass(slots=True)
class StderrTail:
    """The last lines that a program wrote to its standard error: they often say why it ended. `lines` are those of this
    start, `kept` those of earlier ones too, with their times.
    """

    server: str
    clock: Clock
    lines: deque[str] = field(default_factory=lambda: deque[str](maxlen=LAST_LINES))
    kept: deque[tuple[datetime, str]] = field(default_factory=lambda: deque[tuple[datetime, str]](maxlen=KEPT_LINES))
    _rest: bytes = b""

    def take(self, chunk: bytes) -> None:
        """Adds a chunk of output."""
        # A program may write for ever without a line break.
        *lines, self._rest = (self._rest + chunk)[-65_536:].split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace").strip()[:MAX_LINE_CHARS]
            if text:
                self.lines.append(text)
                self.kept.append((self.clock.now(), text))
                _log.debug("an MCP server writes", extra={"server": self.server, "line": text})


@dataclass(slots=True)
class McpConnection:
    """An open connection. `ended` is set when nothing will come over it any more. `statuses` holds the status of the
    last HTTP request that failed, which the vendor's errors do not contain.
    """

    client: Client
    ended: anyio.Event
    changed: anyio.Event
    statuses: deque[int]

    @property
    def about(self) -> str:
        """The name and version that the server gives."""
        info = self.client.server_info
        return f"{info.name} {info.version}"[:100] if info else ""

    async def list_tools(self) -> list[Tool]:
        """Returns the tools of all pages."""
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            # refresh: the client would answer from its cache, and a change would never be seen.
            page = await self.client.list_tools(cursor=cursor, cache_mode="refresh")
            tools += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        return tools

    async def call_tool(self, tool: str, args: Mapping[str, Json], progress: ProgressFnT) -> CallToolResult:
        """Runs a tool on the server."""
        return await self.client.call_tool(tool, dict(args), progress_callback=progress)

    async def follow_changes(self) -> None:
        """Sets `changed` for servers of the newest protocol, which tell only those who subscribe; older servers notify
        anyway.

        Ends when the server has nothing to subscribe to. After a lost subscription `changed` is set too, since a change
        may have been missed.
        """
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
        from mcp.shared.exceptions import MCPError

        capabilities = self.client.server_capabilities.tools
        if capabilities is None or not capabilities.list_changed:
            return
        while True:
            try:
                async with self.client.listen(tools_list_changed=True) as subscription:
                    async for _ in subscription:
                        self.changed.set()
            except SubscriptionLost as error:
                _log.info("the subscription to an MCP server's changes was lost", extra={"why": str(error)})
            except (ListenNotSupportedError, MCPError, TimeoutError):
                return
            await anyio.sleep(LISTEN_AGAIN_S)
            self.changed.set()


@asynccontextmanager
async def open_connection(spec: McpServerSpec, stderr: StderrTail) -> AsyncGenerator[McpConnection]:
    """Starts or reaches the server and shakes hands. Raises what the vendor and the system raise, often in groups."""
    from mcp import Client
    from mcp_types import Implementation, ToolListChangedNotification

    ended, changed, statuses = anyio.Event(), anyio.Event(), deque[int](maxlen=1)

    async def handle_message(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            connection.changed.set()
        await anyio.lowlevel.checkpoint()

    transport = spec.transport
    streams = _watched(
        _open_stdio(transport, stderr) if isinstance(transport, StdioTransport) else _open_http(transport, statuses),
        ended,
    )
    client = Client(
        streams,
        message_handler=handle_message,
        client_info=Implementation(name="denizen", version=__version__),
        cache=None,
    )
    connection = McpConnection(client, ended, changed, statuses)
    async with client:
        yield connection


@asynccontextmanager
async def _open_stdio(transport: StdioTransport, stderr: StderrTail) -> AsyncGenerator[TransportStreams]:
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    env = dict(transport.env)
    beside = str(Path(sys.executable).parent)
    parameters = StdioServerParameters(
        command=which(transport.command, path=env.get("PATH"))
        or which(transport.command, path=beside)
        or transport.command,
        args=list(transport.args),
        env=env,
        cwd=transport.cwd,
        encoding_error_handler="replace",
    )
    reading, writing = os.pipe()
    try:
        # wait_readable may wake up without data, and a blocking read would then stop the event loop.
        os.set_blocking(reading, False)
        with os.fdopen(writing, "w") as errors:
            async with anyio.create_task_group() as group:
                group.start_soon(_follow_stderr, reading, stderr)
                async with stdio_client(parameters, errors) as streams:
                    yield streams
                _read_available(reading, stderr)
                group.cancel_scope.cancel()
    finally:
        _read_available(reading, stderr)
        os.close(reading)


async def _follow_stderr(reading: int, stderr: StderrTail) -> None:
    while True:
        await anyio.wait_readable(reading)
        if not _read_available(reading, stderr):
            return


def _read_available(reading: int, stderr: StderrTail) -> bool:
    """Reads what is there now. Returns whether there may be more later."""
    while True:
        try:
            chunk = os.read(reading, 65_536)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        stderr.take(chunk)


@asynccontextmanager
async def _open_http(transport: HttpTransport, statuses: deque[int]) -> AsyncGenerator[TransportStreams]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def look(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            statuses.append(response.status_code)

    # Reading has a long time-out of its own: a server answers a long call over an open stream.
    timeout = httpx2.Timeout(30.0, read=SILENCE_S)
    async with (
        httpx2.AsyncClient(headers=dict(transport.headers), timeout=timeout, event_hooks={"response": [look]}) as http,
        streamable_http_client(transport.url, http_client=http) as streams,
    ):
        yield streams


@asynccontextmanager
async def _watched(
    transport: AbstractAsyncContextManager[TransportStreams], ended: anyio.Event
) -> AsyncGenerator[TransportStreams]:
    async with transport as (read, write):
        yield _WatchedStream(read, ended), write


class _WatchedStream:
    """A stream that sets an event when it ends: else the death of an idle server would show at the next call only."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], ended: anyio.Event) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> Context | None:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended.set()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> _WatchedStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)


def is_unreachable(error: BaseException) -> bool:
    """Returns whether nobody accepted the connection, so that nothing can have happened."""
    import httpx2

    causes = list(_leaves(error))
    return bool(causes) and all(isinstance(each, httpx2.ConnectError | httpx2.ConnectTimeout) for each in causes)


def find_reason(error: BaseException, transport: StdioTransport | HttpTransport) -> str:
    """Returns the first thing that went wrong, in one line."""
    found = next(_leaves(error), error)
    if isinstance(found, FileNotFoundError):
        if found.filename is None and isinstance(transport, StdioTransport):  # uvloop does not tell which
            return f"there is no program '{transport.command}', or no folder '{transport.cwd}' to run it in"
        return f"there is no program or folder '{found.filename}'"
    text = " ".join(str(found).split())[:MAX_LINE_CHARS]
    return text or type(found).__name__


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(each)
    else:
        yield error

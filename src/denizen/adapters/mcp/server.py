"""Keeps one MCP server connected, in a task of its own.

The task opens the connection, takes calls from a queue and closes the connection. A server that has ended is reached
again after a growing pause, or at once when somebody calls it. A fault of one server affects no other.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from denizen.adapters.mcp.connection import (
    McpConnection,
    McpServerSpec,
    StderrTail,
    find_reason,
    is_unreachable,
    open_connection,
)
from denizen.adapters.mcp.tools import read_progress
from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, InvalidInput, Unavailable
from denizen.domain.json import Json
from denizen.domain.record import record

if TYPE_CHECKING:
    from mcp import MCPError
    from mcp_types import CallToolResult, Tool

FIRST_PAUSE_S = 1.0
MAX_PAUSE_S = 300.0
LIST_PAUSE_S = 1.0
"""The pause between two listings, however often a server says that its tools have changed."""
STEADY_S = 60.0
"""After a connection that lived this long, pauses begin short again."""

DOWN = "mcp_down"
"""Error code: the server could not be reached, so nothing was sent."""
UNSENT = "mcp_unsent"
"""Error code: the connection was gone before the server took the call, so the call may be repeated."""
LOST = "mcp_lost"
"""Error code: the connection was lost while the server had the call, so its outcome is unknown."""
REFUSED = "mcp_refused"
HTTP_FAILED = ("Server returned an error response", "Session terminated", "Session not found")
"""The messages that the vendor's client raises for HTTP statuses from 400 on."""
SESSION_GONE = (400, 404)
"""The statuses of a restarted server for a session that it does not know. It did not take the call."""
STOPPED = "It was stopped."
RESTARTED = "It was restarted by hand."

_log = logging.getLogger("denizen.mcp")


class McpServerPhase(StrEnum):
    """The phases in the life of a server."""

    IDLE = "idle"
    """Nobody has needed the server so far."""
    STARTING = "starting"
    UP = "up"
    DOWN = "down"


@record
class McpServerState:
    """The state of a server. `why` explains one that is down; `starts` counts the connections that were made. `failure`
    is why it was down last, which stays when it is up again.
    """

    phase: McpServerPhase = McpServerPhase.IDLE
    why: str = ""
    about: str = ""
    since: datetime | None = None
    starts: int = 0
    failure: str = ""
    failed_at: datetime | None = None


@dataclass(slots=True, eq=False)
class _PendingCall:
    """A call in the queue. The task that runs it leaves its scope; the caller cancels the scope."""

    tool: str
    args: Mapping[str, Json]
    report: Callable[[str], None]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    result: CallToolResult | None = None
    error: DenizenError | None = None

    def fail(self, error: DenizenError) -> None:
        self.error = error
        self.done.set()


class McpServer:
    """One server. `run` is its only task; whoever needs the server first calls `start`, from any task."""

    def __init__(self, spec: McpServerSpec, clock: Clock, begin: Callable[[McpServer], None]) -> None:
        self.spec = spec
        self.state = McpServerState()
        self.tools: Sequence[Tool] = ()
        """As it listed them last; they stay while it is away, so that the next call can bring it back."""
        self.version = 0
        """Rises with each listing."""
        self._clock = clock
        self._begin = begin
        self._began_s = clock.monotonic_s()
        self._scope = anyio.CancelScope()
        self._tried = anyio.Event()
        self._wanted = anyio.Event()
        self._waiting: deque[_PendingCall] = deque()
        self._in_flight: list[_PendingCall] = []
        self._stderr = StderrTail(spec.name, clock)
        self._connection = anyio.CancelScope()
        self._is_restarting = False

    def start(self) -> None:
        """Starts the server unless it was started before."""
        if self.state.phase is McpServerPhase.IDLE and not self._scope.cancel_called:
            self._enter(McpServerPhase.STARTING)
            self._began_s = self._clock.monotonic_s()
            self._begin(self)

    @property
    def output(self) -> Sequence[tuple[datetime, str]]:
        """The last lines that its program wrote to its standard error, with their times."""
        return tuple(self._stderr.kept)

    def restart(self) -> None:
        """Ends its connection, and with it the program, and makes another one at once. Calls that run are lost."""
        self.start()
        if self.state.phase is not McpServerPhase.IDLE:
            self._is_restarting = True
            self._connection.cancel()
            self._wanted.set()

    def stop(self) -> None:
        """Ends its task, which ends the program. Waiting callers get an error."""
        self._scope.cancel()

    async def wait_first_attempt(self, timeout_s: float) -> None:
        """Waits until the first attempt to reach it ended, or `timeout_s` has passed since that began."""
        self.start()
        with anyio.move_on_after(self._began_s + timeout_s - self._clock.monotonic_s()):
            await self._tried.wait()

    async def call_tool(self, tool: str, args: Mapping[str, Json], report: Callable[[str], None]) -> CallToolResult:
        """Runs one of its tools, by the server's own name. Cancelling this cancels the call on the server.

        Raises Unavailable (DOWN, UNSENT, LOST) and InvalidInput (REFUSED), which repeats what the server said.
        """
        self.start()
        request = _PendingCall(tool, args, report)
        if self._scope.cancel_called:
            raise self._down()
        self._waiting.append(request)
        self._wanted.set()
        try:
            await request.done.wait()
        finally:
            request.scope.cancel()
            if request in self._waiting:
                self._waiting.remove(request)
        if request.result is None:
            raise request.error or self._lost()
        return request.result

    async def run(self) -> None:
        """Keeps the server connected until `stop`."""
        pause_s, told = FIRST_PAUSE_S, ""
        try:
            # Cancelled by stop(), from any task.
            with self._scope:
                while True:
                    began_s = self._clock.monotonic_s()
                    starts = self.state.starts
                    why = await self._run_connection()
                    self._enter(McpServerPhase.DOWN, why)
                    self._tried.set()
                    if self.state.starts == starts:
                        self._fail_waiting()
                        _log.log(
                            logging.INFO if why == told else logging.WARNING,  # once is enough for who reads the log
                            "an MCP server cannot be reached",
                            extra={"server": self.spec.name, "why": why, "wait_s": pause_s},
                        )
                        told = why
                    else:
                        _log.warning("an MCP server has ended", extra={"server": self.spec.name, "why": why})
                    # A server that fails right after each start must not be started again and again without a pause.
                    if self._clock.monotonic_s() - began_s > STEADY_S:
                        pause_s = FIRST_PAUSE_S
                    if not self._is_restarting:
                        with anyio.move_on_after(pause_s):
                            await self._wait_wanted()
                    pause_s = min(2 * pause_s, MAX_PAUSE_S)
        finally:
            self._scope.cancel()  # however it ends: nobody is to wait for it from now on
            self._enter(McpServerPhase.DOWN, STOPPED)
            self._tried.set()
            self._fail_waiting()

    async def _run_connection(self) -> str:
        """Runs one connection to its end and returns why it ended. A fault in the vendor's client ends nothing else."""
        self._enter(McpServerPhase.STARTING)
        self._stderr.lines.clear()
        self._is_restarting = False
        ending: BaseException | None = None
        opening = self._connection = anyio.CancelScope(deadline=anyio.current_time() + self.spec.start_timeout_s)
        try:
            with opening:
                async with open_connection(self.spec, self._stderr) as connection:
                    self._take_tools(await connection.list_tools())
                    # The limit is for starting only; from here on the connection may live for ever.
                    opening.deadline = float("inf")
                    self._enter(McpServerPhase.UP, about=connection.about, starts=self.state.starts + 1)
                    self._tried.set()
                    _log.info("an MCP server is connected", extra={"server": self.spec.name, "tools": len(self.tools)})
                    await self._serve(connection)
        except Exception as error:  # noqa: BLE001 - the boundary of a server
            ending = error
        finally:
            self._fail_in_flight(ending)
        if self._is_restarting:
            return RESTARTED
        if opening.cancelled_caught:
            return self._with_stderr(f"It did not answer within {self.spec.start_timeout_s:g} s.")
        told = find_reason(ending, self.spec.transport) if ending is not None else ""
        return self._with_stderr(told if told and told != "Connection closed" else "It closed the connection.")

    async def _serve(self, connection: McpConnection) -> None:
        """Takes calls until the connection ends."""
        async with anyio.create_task_group() as group:
            group.start_soon(connection.follow_changes)
            group.start_soon(self._follow_listing, connection)
            group.start_soon(self._take_calls, connection, group)
            await connection.ended.wait()
            group.cancel_scope.cancel()

    async def _take_calls(self, connection: McpConnection, group: TaskGroup) -> None:
        while True:
            await self._wait_wanted()
            while self._waiting:
                group.start_soon(self._answer, connection, self._waiting.popleft())

    async def _wait_wanted(self) -> None:
        if not self._waiting:
            self._wanted = anyio.Event()
            await self._wanted.wait()

    async def _follow_listing(self, connection: McpConnection) -> None:
        """Lists the tools again whenever the server says that they have changed."""
        from mcp import MCPError

        while True:
            await connection.changed.wait()
            connection.changed = anyio.Event()
            try:
                self._take_tools(await connection.list_tools())
            except MCPError as error:
                _log.warning("tools could not be listed anew", extra={"server": self.spec.name, "why": error.message})
            await anyio.sleep(LIST_PAUSE_S)

    async def _answer(self, connection: McpConnection, request: _PendingCall) -> None:
        from mcp import MCPError
        from pydantic import ValidationError

        async def report(progress: float, total: float | None, message: str | None) -> None:
            request.report(read_progress(progress, total, message))

        # Stays there while the outcome is unknown: only the end of the connection tells what happened to it.
        self._in_flight.append(request)
        try:
            with request.scope:
                request.result = await connection.call_tool(request.tool, request.args, report)
        except MCPError as error:
            request.error = self._read_error(error, connection)
        except (ValidationError, RuntimeError, ValueError) as error:
            request.error = self._refused(f"Its answer cannot be read: {error}")
        if request.result is not None or request.error is not None or request.scope.cancel_called:
            self._in_flight.remove(request)
            request.done.set()

    def _read_error(self, error: MCPError, connection: McpConnection) -> DenizenError | None:
        """Returns the error for the caller; None when the connection has ended, whose reason decides about the call."""
        from mcp_types import CONNECTION_CLOSED

        if error.code == CONNECTION_CLOSED or error.message.startswith("SSE stream"):
            connection.ended.set()
            return None
        if connection.statuses and error.message in HTTP_FAILED:
            connection.ended.set()  # a new session may help the next call
            if connection.statuses[-1] in SESSION_GONE:
                return self._unsent()
            return self._refused(f"It answered with the HTTP status {connection.statuses[-1]}.")
        return self._refused(error.message)

    def _fail_in_flight(self, ending: BaseException | None) -> None:
        """Fails the calls that the end of the connection left without an answer."""
        is_unsent = ending is not None and len(self._in_flight) == 1 and is_unreachable(ending)
        for request in self._in_flight:
            request.fail(self._unsent() if is_unsent else self._lost())
        self._in_flight.clear()

    def _fail_waiting(self) -> None:
        while self._waiting:
            self._waiting.popleft().fail(self._down())

    def _take_tools(self, tools: Sequence[Tool]) -> None:
        self.tools = tools
        self.version += 1

    def _enter(self, phase: McpServerPhase, why: str = "", **more: str | int) -> None:
        now, state = self._clock.now(), self.state
        if phase is McpServerPhase.DOWN and why not in (STOPPED, RESTARTED):
            state = replace(state, failure=why, failed_at=now)
        self.state = replace(state, phase=phase, why=why, since=now, **more)

    def _with_stderr(self, why: str) -> str:
        last = " / ".join(self._stderr.lines)
        return f"{why} It wrote: {last}" if last else why

    # What these say is read by models and by whoever asked. The reason may hold secrets, so it is in the log and in
    # `denizen mcp test` only.

    def _down(self) -> Unavailable:
        return Unavailable(
            f"The MCP server '{self.spec.name}' cannot be reached.",
            code=DOWN,
            fix=f"Whoever runs this server sees why with: denizen mcp test {self.spec.name}",
        )

    def _unsent(self) -> Unavailable:
        return Unavailable(f"The MCP server '{self.spec.name}' did not take the call.", code=UNSENT)

    def _lost(self) -> Unavailable:
        return Unavailable(
            f"The connection to the MCP server '{self.spec.name}' was lost during the call: its outcome is unknown.",
            code=LOST,
            fix="Check whether it was done before you repeat it.",
        )

    def _refused(self, why: str) -> InvalidInput:
        return InvalidInput(f"The MCP server '{self.spec.name}' refused the call.", code=REFUSED, why=why[:2000])

"""The toolsets of MCP servers (`ports/toolset`), and the pool of all servers of this process.

A toolset is made for each generation of the configuration; the server behind it may be older and outlive it. The pool
starts each server once, however many generations use it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Self

import anyio

from denizen.adapters.mcp.connection import McpServerSpec
from denizen.adapters.mcp.server import LOST, UNSENT, McpServer
from denizen.adapters.mcp.tools import McpToolList, McpToolPolicy, build_tool_list, to_result
from denizen.domain.clock import Clock
from denizen.domain.errors import Unavailable
from denizen.domain.tool import ToolCall, ToolResult, ToolSpec
from denizen.ports.toolset import CallScope

PATIENCE_S = 10.0
"""How long a list of tools waits for a server that is being reached for the first time. Without it, the first turn
after a start would miss tools; with more of it, one slow server would hold everybody up.
"""


class McpToolset:
    """The tools of one server. `wake` starts this server and the other configured ones, so that they are waited for
    together. `release` is called once, when no turn uses this toolset any more.
    """

    def __init__(
        self, server: McpServer, offer: McpToolPolicy, wake: Callable[[], None], release: Callable[[], None]
    ) -> None:
        self.server = server
        self.offer = offer
        self._wake = wake
        self._release = release
        self._is_open = True
        self._listing = McpToolList()
        self._version = -1

    @property
    def name(self) -> str:
        return f"mcp:{self.server.spec.name}"

    @property
    def listing(self) -> McpToolList:
        """The tools that the server has listed so far."""
        if self._version != self.server.version:
            self._listing = build_tool_list(self.server.tools, self.offer, self.name)
            self._version = self.server.version
        return self._listing

    async def list_tools(self) -> Sequence[ToolSpec]:
        """Returns the tools as the server listed them last; none for a server that never answered."""
        self._wake()
        await self.server.wait_first_attempt(PATIENCE_S)
        return self.listing.specs

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        """Runs the tool on the server. A call that the server never got is repeated once; a call that was lost with the
        connection only if repeating does no harm.

        Raises Unavailable, and InvalidInput with what the server says.
        """
        await self.server.wait_first_attempt(PATIENCE_S)
        own_name = self.listing.own_names.get(call.tool)
        if own_name is None:
            return ToolResult(f"The MCP server '{self.server.spec.name}' has no tool '{call.tool}' now.", is_error=True)
        spec = next(spec for spec in self.listing.specs if spec.name == call.tool)
        try:
            result = await self.server.call_tool(own_name, call.args, scope.options.report)
        except Unavailable as error:
            if error.code != UNSENT and not (error.code == LOST and spec.idempotent):
                raise
            result = await self.server.call_tool(own_name, call.args, scope.options.report)
        return to_result(result)

    async def aclose(self) -> None:
        """Releases the server, which goes on while another generation uses it."""
        if self._is_open:
            self._is_open = False
            self._release()


class McpPool:
    """All servers of this process. Use it with `async with`: leaving ends all servers. Errors from within the block
    pass through unchanged.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._servers: dict[McpServerSpec, McpServer] = {}
        self._users: Counter[McpServerSpec] = Counter()
        self._is_eager = False
        self._group = anyio.create_task_group()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Servers are children of this group: cancelling it ends their programs.
        self._group.cancel_scope.cancel()
        if isinstance(error, anyio.get_cancelled_exc_class()):
            await self._group.__aexit__(kind, error, trace)
        else:  # the group would wrap an error, and this one is nothing to it
            await self._group.__aexit__(None, None, None)

    def start(self) -> None:
        """Starts servers when they are configured from now on, not only when they are needed."""
        self._is_eager = True
        for server in self._servers.values():
            server.start()

    def open(self, servers: Mapping[McpServerSpec, McpToolPolicy]) -> tuple[McpToolset, ...]:
        """Returns a toolset for each server; servers that run already are shared. The caller closes each toolset."""
        return tuple(self._open(spec, offer) for spec, offer in servers.items())

    def _open(self, spec: McpServerSpec, offer: McpToolPolicy) -> McpToolset:
        server = self._servers.get(spec)
        if server is None:
            server = self._servers[spec] = McpServer(spec, self._clock, self._begin)
        self._users[spec] += 1
        if self._is_eager:
            server.start()
        return McpToolset(server, offer, self.start, partial(self._release, spec))

    def _begin(self, server: McpServer) -> None:
        self._group.start_soon(server.run, name=f"mcp {server.spec.name}")

    def _release(self, spec: McpServerSpec) -> None:
        self._users[spec] -= 1
        if self._users[spec] <= 0:
            del self._users[spec]
            self._servers.pop(spec).stop()

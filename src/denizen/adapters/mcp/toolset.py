"""One server's tools as a source of tools (`ports/toolset`). Made for each generation of the configuration; the server
behind it may be older and outlive it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from denizen.adapters.mcp.results import to_result
from denizen.adapters.mcp.server import LOST, UNSENT, McpServer
from denizen.adapters.mcp.spec import McpToolPolicy
from denizen.adapters.mcp.tools import McpToolList, build_tool_list
from denizen.domain.errors import Unavailable
from denizen.domain.tool import ToolCall, ToolResult, ToolSpec
from denizen.ports.toolset import CallScope

PATIENCE_S = 10.0
"""How long a list of tools waits for a server that is being reached for the first time. Without it the first turn after
a start would miss tools; with more of it, one slow server would hold everybody up (inventory LW5)."""


class McpToolset:
    """`wake` starts this server and those beside it, so that they are waited for together. `release` is called once,
    when no turn uses this toolset any more.
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
        """What the server has listed so far."""
        if self._version != self.server.version:
            self._listing = build_tool_list(self.server.tools, self.offer, self.name)
            self._version = self.server.version
        return self._listing

    async def list_tools(self) -> Sequence[ToolSpec]:
        """The tools as the server listed them last; none of a server that never answered."""
        self._wake()
        await self.server.wait_first_attempt(PATIENCE_S)
        return self.listing.specs

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        """Runs the tool on the server. A call that the server never got is repeated once; one that was lost with the
        connection only if that does no harm. Raises Unavailable, and InvalidInput with what the server says.
        """
        await self.server.wait_first_attempt(PATIENCE_S)
        own_name = self.listing.own_names.get(call.tool)
        if own_name is None:
            return ToolResult(f"The MCP server '{self.server.spec.name}' has no tool '{call.tool}' now.", is_error=True)
        spec = next(spec for spec in self.listing.specs if spec.name == call.tool)
        try:
            result = await self.server.ask(own_name, call.args, scope.report)
        except Unavailable as error:
            if error.code != UNSENT and not (error.code == LOST and spec.idempotent):
                raise
            result = await self.server.ask(own_name, call.args, scope.report)
        return to_result(result)

    async def aclose(self) -> None:
        """The server itself goes on while another generation has it too."""
        if self._is_open:
            self._is_open = False
            self._release()

"""`POST /mcp`: Denizen as an MCP server (streamable HTTP); `/mcp/NAME` is the server of the agent NAME.

It offers `ask`, which runs a turn of the agent, and those of the agent's tools that search: `bash`, `bash_batch` and
`search_docs`, as far as a call may succeed. It keeps no sessions of the protocol: every request stands for
itself, in the old versions of the protocol too.
"""

# Importing the vendor's server takes half a second and much memory, and most servers are never asked. So nothing of it
# is loaded before the first request.

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from starlette.types import Receive, Scope, Send

from denizen.domain.errors import Unavailable
from denizen.ports.external import ExternalAccess

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

LOAD_DEADLINE_S = 30.0
"""How long the first request waits for the server to load."""


class McpEndpoint:
    """An ASGI application that answers while `run` runs. It trusts the principal in the request's state."""

    def __init__(self, outside: ExternalAccess, version: str) -> None:
        self._outside = outside
        self._version = version
        self._requested, self._ready = anyio.Event(), anyio.Event()
        self._manager: StreamableHTTPSessionManager | None = None

    async def run(self) -> None:
        """Waits for the first request, loads the server, and serves until it is cancelled. May be called again after a
        fault.
        """
        await self._requested.wait()
        manager = await to_thread.run_sync(self._make)
        try:
            async with manager.run():
                self._manager = manager
                self._ready.set()
                await anyio.sleep_forever()
        finally:
            self._manager = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._requested.set()
        with anyio.move_on_after(LOAD_DEADLINE_S):
            await self._ready.wait()
        if self._manager is None:
            raise Unavailable("The MCP server is not ready.", code="mcp_starting", fix="Try again.")
        await self._manager.handle_request(scope, receive, send)

    def _make(self) -> StreamableHTTPSessionManager:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from denizen.adapters.mcp_server.server import build_server

        return StreamableHTTPSessionManager(build_server(self._outside, self._version), stateless=True)

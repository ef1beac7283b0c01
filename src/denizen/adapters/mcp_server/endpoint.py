"""`POST /mcp`: Denizen as an MCP server (streamable HTTP); `/mcp/NAME` is that of the agent NAME.

It offers `ask`, which is a turn of the agent, and of the agent's own tools those that look things up: `bash`,
`bash_batch`, `search_docs`, `search_archive`. Sessions of the protocol are not kept: every request stands for itself,
in the old versions of the protocol too.
"""

# To import the vendor's server takes half a second and much memory, and most servers are never asked: nothing of it is
# loaded before the first request.

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from starlette.types import Receive, Scope, Send

from denizen.domain.errors import Unavailable
from denizen.ports.external import ExternalAccess

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATIENCE_S = 30.0
"""How long the first request waits for everything to be loaded."""


class McpEndpoint:
    """Answers while `run` runs. Whoever mounts it has let the caller in and left them in the request's state."""

    def __init__(self, outside: ExternalAccess, version: str) -> None:
        self._outside = outside
        self._version = version
        self._wanted, self._ready = anyio.Event(), anyio.Event()
        self._manager: StreamableHTTPSessionManager | None = None

    async def run(self) -> None:
        """Loads everything at the first request, and serves until it is cancelled."""
        await self._wanted.wait()
        manager = await to_thread.run_sync(self._make)
        async with manager.run():
            self._manager = manager
            self._ready.set()
            await anyio.sleep_forever()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._wanted.set()
        with anyio.move_on_after(PATIENCE_S):
            await self._ready.wait()
        if self._manager is None:
            raise Unavailable("The MCP server is not ready.", code="mcp_starting", fix="Try again.")
        await self._manager.handle_request(scope, receive, send)

    def _make(self) -> StreamableHTTPSessionManager:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from denizen.adapters.mcp_server.server import build_server

        return StreamableHTTPSessionManager(build_server(self._outside, self._version), stateless=True)

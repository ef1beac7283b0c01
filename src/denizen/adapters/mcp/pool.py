"""All MCP servers of this process, each started once however many generations of the configuration have it
(inventory LW3). Opened and closed by the composition root.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Self

import anyio

from denizen.adapters.mcp.server import McpServer
from denizen.adapters.mcp.spec import McpServerSpec, McpToolPolicy
from denizen.adapters.mcp.toolset import McpToolset
from denizen.domain.clock import Clock


class McpPool:
    """Use it with `async with`: leaving ends all servers. Errors from within the block pass through as they are."""

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
        self._group.cancel_scope.cancel()
        if isinstance(error, anyio.get_cancelled_exc_class()):
            await self._group.__aexit__(kind, error, trace)
        else:  # the group would wrap an error, and this one is nothing to it
            await self._group.__aexit__(None, None, None)

    def start(self) -> None:
        """From now on servers are started when they are configured, not only when they are needed."""
        self._is_eager = True
        for server in self._servers.values():
            server.start()

    def open(self, servers: Mapping[McpServerSpec, McpToolPolicy]) -> tuple[McpToolset, ...]:
        """A toolset for each; servers that run already are shared. Each toolset is to be closed."""
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

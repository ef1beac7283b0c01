"""What programs may ask of Denizen in a protocol of their own, such as MCP: a turn, or one call of a tool.

Implemented by `engine/outside`, used by `adapters/mcp_server`. Whoever uses it has found out who asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal
from denizen.domain.tool import ToolResult, ToolSpec

ReportLine = Callable[[str], None]
"""Takes one line on how far it is. It must not wait."""


@dataclass(frozen=True, slots=True)
class ExternalCaller:
    """On whose behalf, and of which agent; the default one where `agent` is empty."""

    principal: Principal
    agent: str = ""


class ExternalAccess(Protocol):
    """Raises DenizenErrors that may be shown to the caller."""

    async def list_tools(self, agent: str) -> Sequence[ToolSpec]:
        """Those of the agent that programs may call. Raises NotFound for an unknown agent."""
        ...

    async def use(self, caller: ExternalCaller, tool: str, args: JsonObject, tell: ReportLine) -> ToolResult:
        """Through the gate. Raises NotFound for any other tool, and what the gate refuses."""
        ...

    async def ask(self, caller: ExternalCaller, question: str, session: str, tell: ReportLine) -> ToolResult:
        """One turn in a session of the caller's own; its answer, or as an error why there is none. A caller who leaves
        stops it.
        """
        ...

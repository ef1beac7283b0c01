"""Access for external programs in a protocol of their own, such as MCP: a turn, or one tool call.

`engine/external` implements it, `adapters/mcp_server` uses it. The user of this port has authenticated the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.tool import ToolResult, ToolSpec

ReportLine = Callable[[str], None]
"""Takes one line about how far it is. It must not wait."""


@record
class ExternalCaller:
    """Who calls, and for which agent; the default agent where `agent` is empty."""

    principal: Principal
    agent: str = ""


class ExternalAccess(Protocol):
    """Access for external programs. Raises DenizenErrors that may be shown to the caller."""

    async def list_tools(self, caller: ExternalCaller) -> Sequence[ToolSpec]:
        """Returns the tools of the agent that the caller may call without a person's decision. Raises NotFound for an
        unknown agent.
        """
        ...

    async def use(self, caller: ExternalCaller, tool: str, args: JsonObject, tell: ReportLine) -> ToolResult:
        """Calls a tool through the gate. Raises NotFound for a tool that programs may not call, and what the gate
        refuses.
        """
        ...

    async def ask(self, caller: ExternalCaller, question: str, session: str, tell: ReportLine) -> ToolResult:
        """Runs one turn in a session of the caller's own. Returns its answer, or as an error why there is none.
        Cancelling this stops the turn.
        """
        ...

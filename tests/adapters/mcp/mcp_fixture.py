"""MCP servers for tests: a pool, a scope for calls, and the small server as a program."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio

from denizen.adapters.mcp import HttpTransport, McpPool, McpServerSpec, McpToolPolicy, McpToolset, StdioTransport
from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId
from denizen.domain.json import Json
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import ToolCall, ToolResult
from denizen.ports.toolset import CallOptions, CallScope
from tests.timing import HANG_LIMIT_S

HERE = Path(__file__).parent
ANA = Principal(PrincipalKind.LOCAL, "ana", "Ana")
SCOPE = CallScope(
    agent=AgentName("ada"), principal=ANA, place=Place("terminal", "t"), session_id=SessionId("s"), turn_id=TurnId("t")
)
TRUSTED = McpToolPolicy("small", trusted=True)


def small(home: Path, name: str = "small", script: str = "quick_server.py", **env: str) -> McpServerSpec:
    """A small server, written by hand; it notes its starts in `starts.txt`."""
    (home / "starts.txt").touch()
    variables = {"STARTS": str(home / "starts.txt"), **env}
    return McpServerSpec(
        name, StdioTransport(sys.executable, (str(HERE / script),), home, tuple(sorted(variables.items())))
    )


def made_with_sdk(home: Path) -> McpServerSpec:
    """The same on the vendor's library, of the newest protocol."""
    return small(home, script="small_server.py")


def old(home: Path) -> McpServerSpec:
    return McpServerSpec("old", StdioTransport(sys.executable, (str(HERE / "old_server.py"),), home))


def module(home: Path, name: str, *args: str) -> McpServerSpec:
    """A server that is a module of this environment."""
    return McpServerSpec(name, StdioTransport(sys.executable, ("-m", f"mcp_server_{name}", *args), home))


def starts(home: Path) -> list[str]:
    """What the small servers of this folder noted."""
    return (home / "starts.txt").read_text().split()


@asynccontextmanager
async def open_toolset(spec: McpServerSpec, offer: McpToolPolicy = TRUSTED) -> AsyncGenerator[McpToolset]:
    """One server; what a test waits for comes within `HANG_LIMIT_S`."""
    with anyio.fail_after(HANG_LIMIT_S):
        async with McpPool(SystemClock()) as pool:
            (toolset,) = pool.open({spec: offer})
            yield toolset


async def call(
    toolset: McpToolset, tool: str, args: Mapping[str, Json] | None = None, report: Callable[[str], None] = print
) -> ToolResult:
    return await toolset.call(
        ToolCall(CallId("c"), tool, dict(args or {})), replace(SCOPE, options=CallOptions(report=report))
    )


async def names(toolset: McpToolset) -> list[str]:
    return [spec.name for spec in await toolset.list_tools()]


def site(url: str, **headers: str) -> McpServerSpec:
    return McpServerSpec("small", HttpTransport(url, tuple(headers.items())))

"""MCP servers as sources of tools: programs on this machine, and servers behind a web address.

`connection.py` opens one connection, `server.py` keeps one server connected in a task of its own, `tools.py` translates
a server's tools and results, and `toolset.py` offers them to the engine and holds all servers for the life of the
process. Made by the composition root.
"""

from denizen.adapters.mcp.connection import HttpTransport, McpServerSpec, StdioTransport
from denizen.adapters.mcp.server import McpServer, McpServerPhase, McpServerState
from denizen.adapters.mcp.tools import McpDataFlow, McpToolPolicy
from denizen.adapters.mcp.toolset import McpPool, McpToolset

__all__ = [
    "HttpTransport",
    "McpDataFlow",
    "McpPool",
    "McpServer",
    "McpServerPhase",
    "McpServerSpec",
    "McpServerState",
    "McpToolPolicy",
    "McpToolset",
    "StdioTransport",
]

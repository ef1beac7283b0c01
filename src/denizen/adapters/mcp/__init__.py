"""MCP servers as sources of tools (inventory 5.1, 5.2): programs on this machine and servers behind a web address.

`spec.py` says what a server is, `connection.py` opens one connection, `server.py` keeps one server connected in a task
of its own, `pool.py` holds all servers for the life of the process, and `toolset.py` offers their tools to the engine
(`naming.py`, `tools.py`, `results.py`: from the server's words to ours). Made by the composition root.
"""

from denizen.adapters.mcp.toolset import McpPool
from denizen.adapters.mcp.server import McpServer, McpServerPhase, McpServerState
from denizen.adapters.mcp.connection import HttpTransport, McpServerSpec, McpToolPolicy, StdioTransport
from denizen.adapters.mcp.toolset import McpToolset

__all__ = [
    "HttpTransport",
    "McpPool",
    "McpServer",
    "McpServerPhase",
    "McpServerSpec",
    "McpServerState",
    "McpToolPolicy",
    "McpToolset",
    "StdioTransport",
]

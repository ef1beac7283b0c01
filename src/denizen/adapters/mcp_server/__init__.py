"""Denizen as an MCP server: an agent that can be asked, and what it may look up. The other side is `adapters/mcp`.

`endpoint.py` is what the web mounts; `server.py` says in MCP's words what there is.
"""

from denizen.adapters.mcp_server.endpoint import McpEndpoint

__all__ = ["McpEndpoint"]

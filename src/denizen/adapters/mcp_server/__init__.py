"""Denizen as an MCP server, which offers an agent and its search tools. The MCP client is `adapters/mcp`.

The web mounts `endpoint.py`; `server.py` implements the protocol.
"""

from denizen.adapters.mcp_server.endpoint import McpEndpoint

__all__ = ["McpEndpoint"]

"""Requests of programs that bring a protocol of their own, such as MCP: a turn, or one call of a tool."""

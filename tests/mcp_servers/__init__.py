"""The MCP servers that come with Denizen."""

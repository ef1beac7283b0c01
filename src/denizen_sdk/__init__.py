"""Talk to a Denizen server: wire types and a thin client. Never imports the server."""

"""The gateway: sessions that survive their connections, and the websocket connections themselves."""

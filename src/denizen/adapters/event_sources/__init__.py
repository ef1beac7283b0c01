"""WebSockets and REST resources of others as sources of events (`ports/event_sources`)."""

from denizen.adapters.event_sources.rest import WebResourceReader
from denizen.adapters.event_sources.websocket import WebSocketConnector

__all__ = ["WebResourceReader", "WebSocketConnector"]

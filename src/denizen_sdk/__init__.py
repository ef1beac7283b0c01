"""Talk to a Denizen server: wire types and a thin client. Never imports the server.

The client is imported when it is asked for, so that the server can use the wire types without the HTTP library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from denizen_sdk.errors import ApiError, ClientError, NetworkError
from denizen_sdk.wire import ChatRequest

if TYPE_CHECKING:
    from denizen_sdk.client import DenizenClient
    from denizen_sdk.tools import ShellTools

__all__ = ["ApiError", "ChatRequest", "ClientError", "DenizenClient", "NetworkError", "ShellTools"]


def __getattr__(name: str) -> type[DenizenClient | ShellTools]:
    if name == "DenizenClient":
        from denizen_sdk.client import DenizenClient

        return DenizenClient
    if name == "ShellTools":
        from denizen_sdk.tools import ShellTools

        return ShellTools
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

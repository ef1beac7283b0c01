"""The client of a Denizen server, and the records that travel between the two. It never imports the server.

The client is imported on first use: the server imports the records, and must not load the HTTP library for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from denizen_sdk.errors import ApiError, ClientError, NetworkError
from denizen_sdk.shell import ShellTools
from denizen_sdk.turns import ChatRequest

if TYPE_CHECKING:
    from denizen_sdk.client import DenizenClient

__all__ = ["ApiError", "ChatRequest", "ClientError", "DenizenClient", "NetworkError", "ShellTools"]


def __getattr__(name: str) -> type[DenizenClient]:
    if name == "DenizenClient":
        from denizen_sdk.client import DenizenClient

        return DenizenClient

    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

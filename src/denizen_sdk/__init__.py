"""The client of a Denizen server, and the records that travel between the two. It never imports the server.

What is named here is imported on first use: the server imports single modules, and must not load the rest for them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from denizen_sdk.client import DenizenClient
    from denizen_sdk.errors import ApiError, ClientError, NetworkError
    from denizen_sdk.shell import ShellTools
    from denizen_sdk.turns import ChatRequest

__all__ = ["ApiError", "ChatRequest", "ClientError", "DenizenClient", "NetworkError", "ShellTools"]

_MODULES = {
    "ApiError": "errors",
    "ChatRequest": "turns",
    "ClientError": "errors",
    "DenizenClient": "client",
    "NetworkError": "errors",
    "ShellTools": "shell",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the classes above
    if name in _MODULES:
        return getattr(import_module(f"denizen_sdk.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

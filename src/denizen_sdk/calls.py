"""The base of the client's calls. The calls of each topic stand beside the topic's records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from denizen_sdk.records import Record, from_json

if TYPE_CHECKING:  # servers import the records beside the calls, and must not pay for the HTTP library
    from denizen_sdk.connection import ServerConnection


class ClientCalls:
    """Calls on one connection. `DenizenClient` inherits the calls of all topics and sets the connection."""

    _connection: ServerConnection

    async def _get(self, kind: type[Record], path: str, **params: str | int) -> Record:
        return from_json(kind, await self._connection.request("GET", path, params=_without_empty(params)))

    async def _list(self, kind: type[Record], path: str, **params: str | int) -> list[Record]:
        rows = await self._connection.request("GET", path, params=_without_empty(params))
        return [from_json(kind, row) for row in rows]


def quote_segment(name: str) -> str:
    """Returns a name as one segment of a path: a slash in it is escaped too."""
    return quote(name, safe="")


def idempotency_headers(key: str) -> Mapping[str, str]:
    """Returns the header that makes a repeated request count once; none without a key."""
    return {"Idempotency-Key": key} if key else {}


def _without_empty(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in params.items() if value != ""}

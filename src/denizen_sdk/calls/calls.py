"""What the calls of every subject share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from denizen_sdk.connection import ServerConnection
from denizen_sdk.wire import Record, from_json


class ClientCalls:
    """Calls on one connection, which whoever puts them together sets."""

    _connection: ServerConnection

    async def _get(self, kind: type[Record], path: str, **params: str | int) -> Record:
        return from_json(kind, await self._connection.request("GET", path, params=_given(params)))

    async def _list(self, kind: type[Record], path: str, **params: str | int) -> list[Record]:
        rows = await self._connection.request("GET", path, params=_given(params))
        return [from_json(kind, row) for row in rows]


def quote_segment(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


def _given(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in params.items() if value != ""}

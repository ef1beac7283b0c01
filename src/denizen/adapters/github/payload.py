"""Fields of GitHub's JSON, whatever is there: what comes from outside may lack anything. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

Payload = Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING: Payload = {}


def part_of(payload: Payload, key: str) -> Payload:
    """An object; an empty one where there is none."""
    value = payload.get(key)
    return cast("Payload", value) if isinstance(value, dict) else _NOTHING


def parts_of(payload: Payload, key: str) -> list[Payload]:
    """The objects of a list."""
    rows: Any = payload.get(key)
    if not isinstance(rows, list):
        return []
    return [cast("Payload", row) for row in cast("list[Any]", rows) if isinstance(row, dict)]


def text_of(payload: Payload, key: str) -> str:
    """Line ends as everywhere: forms of browsers send others."""
    value = payload.get(key)
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""


def number_of(payload: Payload, key: str) -> int:
    value = payload.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def flag_of(payload: Payload, key: str) -> bool:
    return payload.get(key) is True


def time_of(payload: Payload, key: str) -> datetime:
    """The epoch for what is no time."""
    try:
        return datetime.fromisoformat(text_of(payload, key)).astimezone(UTC)
    except ValueError:
        return _EPOCH

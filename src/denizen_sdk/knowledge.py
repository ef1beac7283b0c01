"""What `/api/sources` and `/api/sandbox/snapshot` answer, as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from denizen_sdk.wire import from_json


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A source of knowledge. `folder` is where it lies in the shell; `synced_at` is ISO 8601 in UTC, None before its
    first reading.
    """

    id: str
    kind: str
    label: str = ""
    folder: str = ""
    files: int = 0
    documents: int = 0
    synced_at: str | None = None


@dataclass(frozen=True, slots=True)
class SnapshotStarted:
    """`status` is "started"; `run` is the id of what makes the snapshot, where the server tells it."""

    status: str
    run: str = ""


def sources_from(row: Mapping[str, Any]) -> list[SourceInfo]:
    """All of them, by kind in the server's order."""
    found: list[SourceInfo] = []
    for name, kind in row.items():
        if isinstance(kind, Mapping):
            listed = cast("Mapping[str, Any]", kind).get("sources", [])
            found += [from_json(SourceInfo, {"kind": name, **each}) for each in listed]
    return found

"""Answers with records of the SDK, written as JSON."""

from __future__ import annotations

import dataclasses
import json
from functools import cache

from starlette.responses import JSONResponse


class RecordResponse(JSONResponse):
    """The JSON of records: the bytes of `JSONResponse(asdict(record))`, without copying each of their fields first."""

    def render(self, content: object) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_read_fields)
        return text.encode()


def _read_fields(record: object) -> dict[str, object]:
    return {name: getattr(record, name) for name in _list_field_names(type(record))}


@cache
def _list_field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))

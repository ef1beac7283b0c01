"""Records as JSON between processes of the same version, by their type hints.

No library fits: pydantic and cattrs cannot resolve the recursive `Json` of the domain in the modules that use it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from denizen.domain.errors import (
    Conflict,
    DenizenError,
    InvalidInput,
    LimitExceeded,
    NeedsApproval,
    NeedsAttention,
    NotAllowed,
    NotFound,
    Unavailable,
)
from denizen.domain.json import Json, JsonObject

_KIND = "$kind"
"""The key that tells which record of a union it is."""
_FAMILIES = {
    each.__name__: each
    for each in (
        DenizenError,
        InvalidInput,
        NotFound,
        Conflict,
        NotAllowed,
        NeedsApproval,
        NeedsAttention,
        LimitExceeded,
    )
}


def to_json(value: object) -> Json:
    """Returns a value of records, collections and plain values as JSON. Raises TypeError for anything else."""
    if is_dataclass(value) and not isinstance(value, type):
        row: dict[str, Json] = {each.name: to_json(getattr(value, each.name)) for each in fields(value) if each.init}
        return {_KIND: type(value).__name__, **row}
    match value:
        case Enum():
            return cast("Json", value.value)
        case None | str() | bool() | int() | float():
            return value
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case datetime():
            return value.isoformat()
        case Decimal():
            return str(value)
        case Mapping():
            return {str(key): to_json(each) for key, each in cast("Mapping[object, object]", value).items()}
        case frozenset() | set():
            return sorted((to_json(each) for each in cast("frozenset[object]", value)), key=repr)
        case Sequence():
            return [to_json(each) for each in cast("Sequence[object]", value)]
        case _:
            raise TypeError(f"{type(value).__name__} is not written as JSON")


def from_json(kind: Any, value: Any) -> Any:  # noqa: ANN401 - any type, any JSON value
    """Returns the value of that type which `to_json` wrote. Raises TypeError, ValueError or KeyError for what does not
    fit.
    """
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _list_hints(kind)
        return kind(**{name: from_json(hints[name], each) for name, each in value.items() if name in hints})
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _read_union(inner, value)
    if origin is tuple:
        if (len(inner) == 2 and inner[1] is not Ellipsis) or len(inner) != 2:
            return tuple(from_json(each, part) for each, part in zip(inner, value, strict=True))
        return tuple(from_json(inner[0], each) for each in value)
    if origin in (frozenset, set):
        return frozenset(from_json(inner[0], each) for each in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: from_json(inner[1], each) for key, each in value.items()}
    if isinstance(origin, type) and issubclass(origin, Collection):
        return [from_json(inner[0], each) for each in value]
    read = _PLAIN.get(kind)
    if read is not None:
        return read(value)
    return cast("Any", kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value)


_PLAIN: Mapping[Any, Callable[[Any], Any]] = {
    bytes: base64.b64decode,
    datetime: datetime.fromisoformat,
    Decimal: Decimal,
}


def _read_union(inner: Sequence[Any], value: Any) -> Any:  # noqa: ANN401 - as `from_json`
    if value is None and NoneType in inner:
        return None
    others = [each for each in inner if each is not NoneType]
    if isinstance(value, dict) and _KIND in value:
        kind = cast("dict[str, Any]", value)[_KIND]
        return from_json(next(each for each in others if getattr(each, "__name__", "") == kind), value)
    return cast("Any", from_json(others[0], value) if len(others) == 1 else value)


@cache
def _list_hints(kind: type[Any]) -> Mapping[str, Any]:
    # `Json` names itself, and most modules that use it do not know it.
    hints = get_type_hints(kind, localns={"Json": object})
    return {each.name: hints[each.name] for each in fields(kind) if each.init}


def write_error(error: DenizenError) -> JsonObject:
    """Returns what a caller sees of the error; its context stays in the log of the process that raised it."""
    told: JsonObject = {name: str(getattr(error, name)) for name in ("family", "code", "message", "why", "fix")}
    return {**told, "retry_after_s": error.retry_after_s} if isinstance(error, Unavailable) else told


def read_error(row: Mapping[str, Any]) -> DenizenError:
    words = {name: str(row.get(name, "")) for name in ("code", "why", "fix")}
    message = str(row.get("message", ""))
    if row.get("family") == Unavailable.__name__:
        return Unavailable(message, retry_after_s=row.get("retry_after_s"), **words)
    return _FAMILIES.get(str(row.get("family")), DenizenError)(message, **words)

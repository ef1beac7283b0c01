"""JSON and the records that stand for it: plain dataclasses, which cost a server that imports them nothing.

Clients decode with `from_json`, which leaves out fields that it does not know: an older client can read a newer server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Protocol, TypeVar, get_args, get_origin, get_type_hints

Json = dict[str, Any]


class _IsDataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Record = TypeVar("Record", bound=_IsDataclass)


def from_json(kind: type[Record], row: Mapping[str, Any]) -> Record:
    """Returns a record of that class from a JSON object, without what the class has no field for.

    Raises TypeError when a field that has no default is missing.
    """
    return kind(**{name: _read_value(hint, row[name]) for name, hint in _field_types(kind).items() if name in row})


@cache
def _field_types(kind: type[Any]) -> Mapping[str, Any]:
    # Resolving annotations takes far longer than reading a row, and a stream has many rows of few classes.
    return {name: hint for name, hint in get_type_hints(kind).items() if name in kind.__dataclass_fields__}


def _read_value(hint: Any, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Returns the value as a field with that annotation holds it."""
    if value is None:
        return None
    inner = get_args(hint)
    if get_origin(hint) is UnionType:
        return _read_value(next(each for each in inner if each is not NoneType), value)
    if get_origin(hint) is tuple:
        return tuple(_read_value(inner[0], each) for each in value)
    if get_origin(hint) is dict:
        return {key: _read_value(inner[1], each) for key, each in value.items()}
    return from_json(hint, value) if is_dataclass(hint) and isinstance(hint, type) else value

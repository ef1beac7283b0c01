"""The column types and shared columns: how texts, payloads, times and money are stored in either database.

What goes in comes out unchanged, character for character. Postgres refuses NUL and both databases refuse half a
surrogate pair, so `EscapedText` writes those characters (and its own mark) as a mark and a code.

Rules for all tables: rows that are ordered by arrival have a `position`, since two times of the clock may be equal. No
column of a unique key may be NULL, since NULLs never equal each other: "no thread" is an empty text, and the key of
open sessions is a partial index.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any, Protocol, overload

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

MARK = "\ufdd0"
"""A noncharacter, which Unicode reserves for marks of programs."""

USD_DIGITS = 12
"""Money is stored in whole units of 1e-12 dollars: finer than the price of any token, exact to add, never a float."""

ID_DIGITS = 3
"""The number of digits for the length in front of an id."""

_REFUSED = re.compile("[\x00\ud800-\udfff\ufdd0]")
_ESCAPED = re.compile("\ufdd0([0-9a-f]{4})")
_HALF = re.compile("[\ud800-\udfff]")


class ValueProcessor(Protocol):
    """The function that SQLAlchemy calls for every value on its way in or out."""

    def __call__(self, value: Any) -> Any: ...  # noqa: ANN401 - the type of the column decides


class EscapedText(TypeDecorator[str]):
    """Text from outside, with any character at all."""

    impl = sa.Text
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> ValueProcessor:
        return escape

    def result_processor(self, dialect: Dialect, coltype: object) -> ValueProcessor:
        return unescape


class PlatformId(TypeDecorator[str]):
    """The id of a post, stored behind its length so that it sorts like `is_newer`: 99 before 100."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Sorts by code points in either database, whatever the language of the server."""
        return dialect.type_descriptor(sa.Text() if dialect.name == "sqlite" else sa.Text(collation="C"))

    def bind_processor(self, dialect: Dialect) -> ValueProcessor:
        return write_id

    def result_processor(self, dialect: Dialect, coltype: object) -> ValueProcessor:
        return _read_id


class JsonText(TypeDecorator[Any]):
    """A JSON value as text, since `jsonb` would refuse a NUL in a string. Mappings and frozen sets may be in it."""

    impl = sa.Text
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> ValueProcessor:
        return _dump

    def result_processor(self, dialect: Dialect, coltype: object) -> ValueProcessor:
        return _load


class JsonTuple(JsonText):
    """A JSON array that is returned as a tuple."""

    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> ValueProcessor:
        return lambda value: tuple(json.loads(value))


class EnumValue(TypeDecorator[Any]):
    """A member of an enum as its value, a text or a number."""

    impl = sa.Text
    cache_ok = True

    def __init__(self, kind: type[StrEnum | IntEnum]) -> None:
        super().__init__()
        self.kind = kind

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(sa.Integer() if issubclass(self.kind, int) else sa.Text())

    def bind_processor(self, dialect: Dialect) -> ValueProcessor:
        return lambda value: value if value is None else self.kind(value).value

    def result_processor(self, dialect: Dialect, coltype: object) -> ValueProcessor:
        return lambda value: value if value is None else self.kind(value)


class UtcTime(TypeDecorator[datetime]):
    """An aware time, stored in UTC to the microsecond and returned aware in UTC. A naive time is refused."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Uses text of one length in SQLite, which sorts, and `timestamptz` in Postgres."""
        return dialect.type_descriptor(sa.Text() if dialect.name == "sqlite" else sa.DateTime(timezone=True))

    def bind_processor(self, dialect: Dialect) -> ValueProcessor:
        return _write_time if dialect.name == "sqlite" else _check_time

    def result_processor(self, dialect: Dialect, coltype: object) -> ValueProcessor:
        return _read_time if dialect.name == "sqlite" else _to_utc


class Usd(TypeDecorator[Decimal]):
    """Dollars as a whole number of 1e-12 dollars, rounded to the nearest; up to nine million dollars."""

    impl = sa.BigInteger
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> ValueProcessor:
        return _to_units

    def result_processor(self, dialect: Dialect, coltype: object) -> ValueProcessor:
        return _to_usd


@overload
def escape(value: str) -> str: ...
@overload
def escape(value: str | None) -> str | None: ...
def escape(value: str | None) -> str | None:
    """Returns the text without the characters that a database refuses. `unescape` is the inverse."""
    if value is None or (value.isascii() and "\x00" not in value):
        return value
    return _REFUSED.sub(lambda match: f"{MARK}{ord(match.group()):04x}", value)


def unescape(value: str | None) -> str | None:
    """Returns the text that `escape` was given."""
    if value is None or MARK not in value:
        return value
    return _ESCAPED.sub(lambda match: chr(int(match.group(1), 16)), value)


def write_id(value: str) -> str:
    """Returns the stored form of a `PlatformId`. Raises ValueError for an id of a thousand characters or more."""
    if len(value) >= 10**ID_DIGITS:
        raise ValueError(f"an id of {len(value)} characters")
    return f"{len(value):0{ID_DIGITS}d}{escape(value)}"


def _read_id(value: str | None) -> str | None:
    return unescape(value and value[ID_DIGITS:])


def _dump(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_to_plain)
    # Half a surrogate pair cannot be encoded; the ASCII form writes it as an escape.
    if _HALF.search(text):
        return json.dumps(value, separators=(",", ":"), allow_nan=False, default=_to_plain)
    return text


def _to_plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - checked by json
    if isinstance(value, frozenset):
        return sorted(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - texts
    raise TypeError(f"{type(value).__name__} is not JSON")


def _load(value: str) -> object:
    return {} if value == "{}" else json.loads(value)  # the most common value, without the cost of parsing


def _check_time(value: datetime | None) -> datetime | None:
    if value is not None and value.tzinfo is None:
        raise ValueError(f"a time without a time zone: {value.isoformat()}")
    return value


def _write_time(value: datetime | None) -> str | None:
    checked = _check_time(value)
    return None if checked is None else checked.astimezone(UTC).isoformat(" ", "microseconds")[:26]


def _read_time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value + "+00:00")


def _to_utc(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC)


def _to_units(value: Decimal | None) -> int | None:
    return None if value is None else int(value.scaleb(USD_DIGITS).to_integral_value())


def _to_usd(value: int | Decimal | None) -> Decimal | None:
    """Returns dollars without trailing zeros. Postgres returns the sum of integers as a decimal."""
    if value is None:
        return None
    usd = Decimal(int(value)).scaleb(-USD_DIGITS).normalize()
    return usd.quantize(Decimal(1)) if usd == usd.to_integral_value() else usd


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

PositionType = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)
"""Time bounds that exclude nothing, a day inside what can be stored, so that any time zone can show them."""


def position_column() -> sa.Column[int]:
    """Returns the primary key that numbers rows in the order of arrival."""
    return sa.Column("position", PositionType, primary_key=True)


def id_columns() -> list[sa.Column[Any]]:
    """Returns the position and the id of rows that are ordered by arrival and found by their id."""
    return [position_column(), sa.Column("id", sa.Text(), nullable=False, unique=True)]


def text_keys(*names: str) -> list[sa.Column[str]]:
    """Returns texts from outside that are parts of the primary key."""
    return [sa.Column(name, EscapedText(), primary_key=True) for name in names]


def texts(*names: str) -> list[sa.Column[str]]:
    """Returns texts from outside, none of them NULL."""
    return [sa.Column(name, EscapedText(), nullable=False) for name in names]


def times(*names: str) -> list[sa.Column[datetime]]:
    return [sa.Column(name, UtcTime(), nullable=False) for name in names]

"""The statements that sum up usage, by any of five keys. Called by `statistics`.

Three kinds of records are used: steps of turns, requests beside them, and reports. A message is counted with the first
recorded step of its turn, and a report as one, so that the sums by any key come to the same total.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.dialect import Dialect
from denizen.adapters.store.tables.talk import conversations
from denizen.adapters.store.tables.statistics import side_requests, usage_computed, usage_days, usage_hours, usage_reports
from denizen.adapters.store.tables.turns import steps, turns
from denizen.domain.statistics import EVERYBODY

DAY, HOUR, USER, SOURCE, MODEL = "day", "hour", "principal", "source", "model"

SUMS = tuple(column.name for column in usage_days.c if not column.primary_key)
"""What is summed: messages, time, tokens, money."""

COMPUTED = sa.select(usage_computed.c.day).where(
    usage_computed.c.day >= sa.bindparam("first"), usage_computed.c.day <= sa.bindparam("last")
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """By which columns, and whether a parameter (`user`, `which_source`, `which_model`) chooses among them."""

    keys: tuple[str, ...]
    of_user: bool = False
    of_source: bool = False
    of_model: bool = False


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of records, and what they say in their own way."""

    table: sa.Table
    rows: sa.FromClause
    source: sa.ColumnElement[str]
    messages: sa.ColumnElement[int]
    duration_ms: sa.ColumnElement[int]


def _kinds() -> list[_Kind]:
    other = steps.alias("other")
    first = sa.select(sa.func.min(other.c.number)).where(other.c.turn_id == steps.c.turn_id).scalar_subquery()
    one, none = sa.literal_column("1", sa.BigInteger()), sa.literal_column("0", sa.BigInteger())
    of_turns = steps.join(turns, turns.c.id == steps.c.turn_id)
    placed = of_turns.join(conversations, conversations.c.id == turns.c.conversation_id)
    is_first = sa.case((steps.c.number == first, one), else_=none)
    sides, reports = side_requests, usage_reports
    return [
        _Kind(steps, placed, conversations.c.platform, is_first, steps.c.duration_ms),
        _Kind(sides, sides, sides.c.source, none, none),
        _Kind(reports, reports, reports.c.source, one, reports.c.duration_ms),
    ]


@cache
def sum_usage(dialect: Dialect, wanted: Wanted, *, with_records: bool) -> sa.Select[Any]:
    """Of the days `first` to `last`: from what was computed, and those days that are not from their records."""
    parts = [_of_computed(wanted)]
    if with_records:
        is_open = [kind.table.c.day.not_in(COMPUTED) for kind in _kinds()]
        parts += [_of_kind(dialect, wanted, *each) for each in zip(_kinds(), is_open, strict=True)]
    return _grouped(wanted.keys, parts)


@cache
def sum_records(dialect: Dialect, *keys: str) -> sa.Select[Any]:
    """From `starts_at` until `ends_at`, whether the days are computed or not."""
    wanted = Wanted(keys)
    return _grouped(keys, [_of_kind(dialect, wanted, kind, sa.true()) for kind in _kinds()])


@cache
def sum_everybody() -> sa.Select[Any]:
    """What was just computed for each user on the day `first`, with EVERYBODY in the user's place."""
    cells = usage_days.c
    return (
        sa.select(
            cells.day, sa.literal(EVERYBODY, sa.Text()).label(USER), cells.source, cells.model,
            *(_total(cells[name]) for name in SUMS),
        )
        .where(cells.day == sa.bindparam("first"), cells.principal != EVERYBODY)
        .group_by(cells.day, cells.source, cells.model)
    )  # fmt: skip


def _of_computed(wanted: Wanted) -> sa.Select[Any]:
    cells = (usage_hours if HOUR in wanted.keys else usage_days).c
    found = sa.select(*(cells[name] for name in (*wanted.keys, *SUMS))).where(cells.day.in_(COMPUTED))
    if HOUR not in wanted.keys:
        whose = sa.bindparam("user", type_=cells.principal.type)
        of_each = USER in wanted.keys and not wanted.of_user
        found = found.where(cells.principal != EVERYBODY if of_each else cells.principal == whose)
    return _narrowed(found, wanted, cells.source, cells.model)


def _of_kind(dialect: Dialect, wanted: Wanted, kind: _Kind, is_open: sa.ColumnElement[bool]) -> sa.Select[Any]:
    cells = kind.table.c
    values: dict[str, sa.ColumnElement[Any]] = {name: cells[name] for name in (DAY, USER, MODEL, *SUMS[2:])}
    values |= {SOURCE: kind.source, "messages": kind.messages, "duration_ms": kind.duration_ms}
    if HOUR in wanted.keys:
        values[HOUR] = dialect.hour_of(cells.created_at)
    found = (
        sa.select(*(values[name].label(name) for name in (*wanted.keys, *SUMS)))
        .select_from(kind.rows)
        .where(cells.created_at >= sa.bindparam("starts_at"), cells.created_at < sa.bindparam("ends_at"), is_open)
    )
    if wanted.of_user:
        found = found.where(cells.principal == sa.bindparam("user"))
    # An expression, so that no database takes the index of places, and looks at every turn that there ever was.
    return _narrowed(found, wanted, sa.func.coalesce(kind.source, sa.literal_column("''")), cells.model)


def _narrowed(
    found: sa.Select[Any], wanted: Wanted, source: sa.ColumnElement[str], model: sa.ColumnElement[str]
) -> sa.Select[Any]:
    if wanted.of_source:
        found = found.where(source == sa.bindparam("which_source"))
    if wanted.of_model:
        found = found.where(model == sa.bindparam("which_model"))
    return found


def _grouped(keys: Sequence[str], parts: Sequence[sa.Select[Any]]) -> sa.Select[Any]:
    cells = sa.union_all(*parts).subquery("cells").c
    by = [cells[key] for key in keys]
    return sa.select(*by, *(_total(cells[name]) for name in SUMS)).group_by(*by)


def _total(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.func.sum(column, type_=column.type).label(column.name)

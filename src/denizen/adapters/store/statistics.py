"""Usage statistics: reports of other programs, requests outside of turns, and sums over days.

There are three kinds of records: steps of turns, requests beside them, and reports. A message is counted with the first
recorded step of its turn, and a report counts as one message, so the sums by any key have the same total. Computed days
are read from their sums, all other days from the records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import JsonText, id_columns, metadata, position_column, text_keys, texts, times
from denizen.adapters.store.conversations import conversations
from denizen.adapters.store.dialect import InsertInto, SqlDialect
from denizen.adapters.store.repository import Row, SqlRepository, insert_row, read_record, upsert, write_record
from denizen.adapters.store.turns import steps, turns
from denizen.adapters.store.usage import parse_usage, reopen_day, usage_columns, usage_computed
from denizen.domain.budget import utc_day
from denizen.domain.record import record
from denizen.domain.statistics import (
    EVERYBODY,
    FORGOTTEN,
    DayRange,
    SideRequest,
    UsageFilter,
    UsageGrouping,
    UsageReport,
    UsageTotals,
)


def _sums() -> list[sa.Column[Any]]:
    counts = ("messages", "duration_ms")
    return [*(sa.Column(name, sa.BigInteger(), nullable=False) for name in counts), *usage_columns()]


usage_reports = sa.Table(
    "usage_reports",
    metadata,
    *id_columns(),
    *texts("principal", "source", "source_id", "model"),
    *usage_columns(),
    sa.Column("duration_ms", sa.BigInteger(), nullable=False),
    sa.Column("metadata", JsonText(), nullable=False),
    *times("created_at"),
    sa.Column("day", sa.Text(), nullable=False),
    sa.Index("ix_usage_reports_created_at", "created_at"),
    sa.Index("ix_usage_reports_principal_created_at", "principal", "created_at"),
)

side_requests = sa.Table(
    "side_requests",
    metadata,
    position_column(),
    *texts("agent", "principal", "source", "model"),
    *usage_columns(),
    *times("created_at"),
    sa.Column("day", sa.Text(), nullable=False),
    sa.Index("ix_side_requests_created_at", "created_at"),
    sa.Index("ix_side_requests_principal_created_at", "principal", "created_at"),
)
"""Requests of the observer, summaries, skills' requests, and requests that were broken off."""

usage_days = sa.Table(
    "usage_days",
    metadata,
    sa.Column("day", sa.Text(), primary_key=True),
    *text_keys("principal", "source", "model"),
    *_sums(),
    sa.Index("ix_usage_days_principal_day", "principal", "day"),
)
"""The sums for each user. No part of the key may be NULL: everybody is an empty principal."""

usage_hours = sa.Table(
    "usage_hours",
    metadata,
    sa.Column("day", sa.Text(), primary_key=True),
    sa.Column("hour", sa.Text(), primary_key=True),
    *text_keys("source", "model"),
    *_sums(),
)
"""The sums of everybody."""


DAY, HOUR, USER, SOURCE, MODEL = "day", "hour", "principal", "source", "model"

SUMS = tuple(column.name for column in usage_days.c if not column.primary_key)
"""The summed columns: messages, time, tokens and money."""

COMPUTED = sa.select(usage_computed.c.day).where(
    usage_computed.c.day >= sa.bindparam("first"), usage_computed.c.day <= sa.bindparam("last")
)


@record
class UsageQuery:
    """The columns to group by, and whether the parameters `user`, `which_source` and `which_model` filter."""

    keys: tuple[str, ...]
    of_user: bool = False
    of_source: bool = False
    of_model: bool = False


@record
class _Kind:
    """One kind of records, with its own source, count of messages, and duration."""

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
def sum_usage(dialect: SqlDialect, wanted: UsageQuery, *, with_records: bool) -> sa.Select[Any]:
    """Sums the days `first` to `last`: computed days from their sums, the others from their records."""
    parts = [_sum_computed(wanted)]
    if with_records:
        is_open = [kind.table.c.day.not_in(COMPUTED) for kind in _kinds()]
        parts += [_sum_kind(dialect, wanted, *each) for each in zip(_kinds(), is_open, strict=True)]
    return _grouped(wanted.keys, parts)


@cache
def sum_records(dialect: SqlDialect, *keys: str) -> sa.Select[Any]:
    """Sums the records from `starts_at` until `ends_at`, whether the days are computed or not."""
    wanted = UsageQuery(keys)
    return _grouped(keys, [_sum_kind(dialect, wanted, kind, sa.true()) for kind in _kinds()])


@cache
def sum_everybody() -> sa.Select[Any]:
    """Sums the users of the day `first`, which were just computed, with EVERYBODY in the user's place."""
    cells = usage_days.c
    return (
        sa.select(
            cells.day,
            sa.literal(EVERYBODY, sa.Text()).label(USER),
            cells.source,
            cells.model,
            *(_total(cells[name]) for name in SUMS),
        )
        .where(cells.day == sa.bindparam("first"), cells.principal != EVERYBODY)
        .group_by(cells.day, cells.source, cells.model)
    )


def _sum_computed(wanted: UsageQuery) -> sa.Select[Any]:
    cells = (usage_hours if HOUR in wanted.keys else usage_days).c
    found = sa.select(*(cells[name] for name in (*wanted.keys, *SUMS))).where(cells.day.in_(COMPUTED))
    if HOUR not in wanted.keys:
        whose = sa.bindparam("user", type_=cells.principal.type)
        of_each = USER in wanted.keys and not wanted.of_user
        found = found.where(cells.principal != EVERYBODY if of_each else cells.principal == whose)
    return _narrowed(found, wanted, cells.source, cells.model)


def _sum_kind(dialect: SqlDialect, wanted: UsageQuery, kind: _Kind, is_open: sa.ColumnElement[bool]) -> sa.Select[Any]:
    cells = kind.table.c
    values: dict[str, sa.ColumnElement[Any]] = {name: cells[name] for name in (DAY, USER, MODEL, *SUMS[2:])}
    values |= {SOURCE: kind.source, "messages": kind.messages, "duration_ms": kind.duration_ms}
    if HOUR in wanted.keys:
        values[HOUR] = dialect.utc_hour_text(cells.created_at)
    found = (
        sa.select(*(values[name].label(name) for name in (*wanted.keys, *SUMS)))
        .select_from(kind.rows)
        .where(cells.created_at >= sa.bindparam("starts_at"), cells.created_at < sa.bindparam("ends_at"), is_open)
    )
    if wanted.of_user:
        found = found.where(cells.principal == sa.bindparam("user"))
    # An expression, so that no database starts from the index of places and reads every turn.
    return _narrowed(found, wanted, sa.func.coalesce(kind.source, sa.literal_column("''")), cells.model)


def _narrowed(
    found: sa.Select[Any], wanted: UsageQuery, source: sa.ColumnElement[str], model: sa.ColumnElement[str]
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


_COLUMN = {UsageGrouping.DAY: DAY, UsageGrouping.USER: USER, UsageGrouping.SOURCE: SOURCE, UsageGrouping.MODEL: MODEL}
_OF_DAY = (DAY, USER, SOURCE, MODEL)
_OF_HOUR = (DAY, HOUR, SOURCE, MODEL)

_ADD_SIDE = sa.insert(side_requests).inline()
_BY_ID = sa.select(usage_reports).where(usage_reports.c.id == sa.bindparam("which"))
_RECORDS = (steps, side_requests, usage_reports)
_FIRST = [sa.select(sa.func.min(table.c.created_at)) for table in _RECORDS]
_CLEAR = [sa.delete(table).where(table.c.day == sa.bindparam("first")) for table in (usage_days, usage_hours)]
_ROWS = sa.select(sa.func.count()).select_from(usage_days).where(usage_days.c.day == sa.bindparam("first"))
_NAME = (
    sa.select(turns.c.principal_name)
    .join(steps, steps.c.turn_id == turns.c.id)
    .where(steps.c.principal == sa.bindparam("whose"))
    .order_by(steps.c.created_at.desc())
    .limit(1)
)
_DISOWN = [
    sa.update(table).where(table.c.principal == sa.bindparam("whose")).values(principal=FORGOTTEN) for table in _RECORDS
]
_REMOVE = sa.delete(usage_days).where(usage_days.c.principal == sa.bindparam("whose"))


@cache
def _merge(insert: InsertInto) -> sa.Executable:
    """Adds the days of a user to those of FORGOTTEN."""
    cells = usage_days.c
    theirs = sa.select(
        *(sa.literal(FORGOTTEN, sa.Text()) if name == USER else cells[name] for name in (*_OF_DAY, *SUMS))
    ).where(cells.principal == sa.bindparam("whose"))
    statement = insert(usage_days).from_select([*_OF_DAY, *SUMS], theirs)
    new = statement.excluded
    sums: dict[str, Any] = {name: cells[name] + new[name] for name in SUMS}
    sums["cost_usd"] = sa.func.coalesce(cells.cost_usd + new.cost_usd, cells.cost_usd, new.cost_usd)
    return statement.on_conflict_do_update(index_elements=list(_OF_DAY), set_=sums).inline()


class SqlStatistics(SqlRepository):
    """Implements `denizen.ports.usage.StatisticsRepository`."""

    async def add_report(self, report: UsageReport) -> bool:
        add, day = insert_row(self._dialect.insert, usage_reports), utc_day(report.reported_at)
        row = write_record(report, "reporter", "reported_at")
        row |= {"principal": report.reporter, "created_at": report.reported_at, "day": day}

        def job(connection: sa.Connection) -> bool:
            is_new = connection.execute(add, row).first() is not None
            if is_new:
                reopen_day(connection, day)
            return is_new

        return await self._transaction.write(job)

    async def find_report(self, report_id: str) -> UsageReport | None:
        return await self._find(_read_report, _BY_ID, {"which": report_id})

    async def add_side_request(self, request: SideRequest) -> None:
        day = utc_day(request.asked_at)
        row = write_record(request, "user", "asked_at")
        row |= {"principal": request.user, "created_at": request.asked_at, "day": day}

        def job(connection: sa.Connection) -> None:
            connection.execute(_ADD_SIDE, row)
            reopen_day(connection, day)

        await self._transaction.write(job)

    async def compute(self, day: date, *, now: datetime) -> int:
        dialect, bounds = self._dialect, _bounds(DayRange(day, day))
        marked = {"day": day.isoformat(), "computed_at": now}

        def job(connection: sa.Connection) -> int:
            # First, since it locks the day: of two processes that compute it, the second sees what the first wrote.
            connection.execute(upsert(dialect.insert, usage_computed), marked)
            for clear in _CLEAR:
                connection.execute(clear, bounds)
            names = [*_OF_DAY, *SUMS]
            connection.execute(usage_days.insert().from_select(names, sum_records(dialect, *_OF_DAY)), bounds)
            connection.execute(usage_days.insert().from_select(names, sum_everybody()), bounds)
            hours = sum_records(dialect, *_OF_HOUR)
            connection.execute(usage_hours.insert().from_select([*_OF_HOUR, *SUMS], hours), bounds)
            return connection.execute(_ROWS, bounds).scalar_one()

        return await self._transaction.write(job)

    async def list_due(self, *, before: date) -> Sequence[date]:
        span = DayRange(date.min, before - timedelta(days=1))
        return await self._transaction.read(lambda connection: _list_open(connection, span))

    async def sum_up(
        self, span: DayRange, by: Sequence[UsageGrouping], chosen: UsageFilter
    ) -> Mapping[tuple[str, ...], UsageTotals]:
        keys = tuple(_COLUMN[each] for each in by)
        return await self._sum_up(span, keys, chosen)

    async def sum_hours(self, span: DayRange, *, source: str = "", model: str = "") -> Mapping[str, UsageTotals]:
        found = await self._sum_up(span, (HOUR,), UsageFilter(source=source, model=model))
        return {key: used for (key,), used in found.items()}

    async def _sum_up(
        self, span: DayRange, keys: tuple[str, ...], chosen: UsageFilter
    ) -> Mapping[tuple[str, ...], UsageTotals]:
        wanted = UsageQuery(keys, of_user=bool(chosen.user), of_source=bool(chosen.source), of_model=bool(chosen.model))
        given = {"user": chosen.user, "which_source": chosen.source, "which_model": chosen.model}

        def job(connection: sa.Connection) -> dict[tuple[str, ...], UsageTotals]:
            days = _list_open(connection, span)
            bounds = _bounds(span) | given
            if days:
                bounds |= {
                    "starts_at": DayRange(days[0], days[0]).starts_at,
                    "ends_at": DayRange(days[-1], days[-1]).ends_at,
                }
            rows = connection.execute(sum_usage(self._dialect, wanted, with_records=bool(days)), bounds)
            return {tuple(row[: len(keys)]): _used(row) for row in rows}

        return await self._transaction.read(job)

    async def find_names(self, users: Collection[str]) -> Mapping[str, str]:
        def job(connection: sa.Connection) -> dict[str, str]:
            found = {user: connection.execute(_NAME, {"whose": user}).scalar() for user in users if user != FORGOTTEN}
            return {user: name for user, name in found.items() if name}

        return await self._transaction.read(job)

    async def forget_user(self, user: str) -> None:
        merge, bounds = _merge(self._dialect.insert), {"whose": user}
        if user == FORGOTTEN:
            return

        def job(connection: sa.Connection) -> None:
            for statement in (*_DISOWN, merge, _REMOVE):
                connection.execute(statement, bounds)

        await self._transaction.write(job)


def _list_open(connection: sa.Connection, span: DayRange) -> list[date]:
    """Returns the days from the first record on that are not computed."""
    starts = [moment for moment in (connection.execute(first).scalar() for first in _FIRST) if moment is not None]
    first = max(span.first, min(starts).date()) if starts else None
    if first is None or first > span.last:
        return []
    there = DayRange(first, span.last)
    done = set(connection.execute(COMPUTED, _bounds(there)).scalars())
    return [date.fromisoformat(day) for day in there.days if day not in done]


def _bounds(span: DayRange) -> dict[str, Any]:
    return {
        "first": span.first.isoformat(),
        "last": span.last.isoformat(),
        "starts_at": span.starts_at,
        "ends_at": span.ends_at,
    }


def _used(row: sa.Row[Any]) -> UsageTotals:
    return UsageTotals(int(row.messages), parse_usage(row), int(row.duration_ms))


def _read_report(row: Row) -> UsageReport:
    return read_record(UsageReport, row, reporter=row.principal, reported_at=row.created_at)

"""Usage reported, and sums of usage: of computed days from what was computed, of others from the records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.tables.statistics import side_requests, usage_computed, usage_days, usage_hours, usage_reports
from denizen.adapters.store.tables.turns import steps, turns
from denizen.adapters.store.unit import Unit
from denizen.adapters.store.usage import reopen_day, usage_of, usage_values
from denizen.adapters.store.usage_sums import (
    COMPUTED,
    DAY,
    HOUR,
    MODEL,
    SOURCE,
    SUMS,
    USER,
    Wanted,
    sum_everybody,
    sum_records,
    sum_usage,
)
from denizen.domain.budget import utc_day
from denizen.domain.statistics import FORGOTTEN, By, Chosen, Report, SideRequest, Span, Used

_COLUMN = {By.DAY: DAY, By.USER: USER, By.SOURCE: SOURCE, By.MODEL: MODEL}
_OF_DAY = (DAY, USER, SOURCE, MODEL)
_OF_HOUR = (DAY, HOUR, SOURCE, MODEL)

_ADD_SIDE = sa.insert(side_requests).inline()
_BY_ID = sa.select(usage_reports).where(usage_reports.c.id == sa.bindparam("which"))
_COUNT = sa.select(sa.func.count()).where(
    usage_reports.c.principal == sa.bindparam("whose"), usage_reports.c.created_at >= sa.bindparam("since")
)
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
def _add(insert: InsertInto) -> sa.Executable:
    return insert(usage_reports).on_conflict_do_nothing(index_elements=["id"]).returning(usage_reports.c.position)


@cache
def _mark(insert: InsertInto) -> sa.Executable:
    statement = insert(usage_computed)
    changed = {"computed_at": statement.excluded.computed_at}
    return statement.on_conflict_do_update(index_elements=["day"], set_=changed).inline()


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


class SqlStatistics:
    """`denizen.ports.statistics.Statistics`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add_report(self, report: Report) -> bool:
        add, row = _add(self._unit.dialect.insert), _row(report)

        def job(connection: sa.Connection) -> bool:
            is_new = connection.execute(add, row).first() is not None
            if is_new:
                reopen_day(connection, row["day"])
            return is_new

        return await self._unit.write(job)

    async def find_report(self, report_id: str) -> Report | None:
        row = await self._unit.read(lambda connection: connection.execute(_BY_ID, {"which": report_id}).first())
        return None if row is None else _report(row)

    async def count_reports(self, reporter: str, *, since: datetime) -> int:
        bounds = {"whose": reporter, "since": since}
        return await self._unit.read(lambda connection: connection.execute(_COUNT, bounds).scalar_one())

    async def add_side_request(self, request: SideRequest) -> None:
        day = utc_day(request.asked_at)
        row = {
            "agent": request.agent,
            "principal": request.user,
            "source": request.source,
            "model": request.model,
            **usage_values(request.usage),
            "created_at": request.asked_at,
            "day": day,
        }

        def job(connection: sa.Connection) -> None:
            connection.execute(_ADD_SIDE, row)
            reopen_day(connection, day)

        await self._unit.write(job)

    async def compute(self, day: date, *, now: datetime) -> int:
        dialect, bounds = self._unit.dialect, _bounds(Span(day, day))
        marked = {"day": day.isoformat(), "computed_at": now}

        def job(connection: sa.Connection) -> int:
            # First of all, so that of two who compute the same day the second sees what the first has written.
            connection.execute(_mark(dialect.insert), marked)
            for clear in _CLEAR:
                connection.execute(clear, bounds)
            names = [*_OF_DAY, *SUMS]
            connection.execute(usage_days.insert().from_select(names, sum_records(dialect, *_OF_DAY)), bounds)
            connection.execute(usage_days.insert().from_select(names, sum_everybody()), bounds)
            hours = sum_records(dialect, *_OF_HOUR)
            connection.execute(usage_hours.insert().from_select([*_OF_HOUR, *SUMS], hours), bounds)
            return connection.execute(_ROWS, bounds).scalar_one()

        return await self._unit.write(job)

    async def list_due(self, *, before: date) -> Sequence[date]:
        span = Span(date.min, before - timedelta(days=1))
        return await self._unit.read(lambda connection: _list_open(connection, span))

    async def sum_up(self, span: Span, by: Sequence[By], chosen: Chosen) -> Mapping[tuple[str, ...], Used]:
        keys = tuple(_COLUMN[each] for each in by)
        return await self._sum_up(span, keys, chosen)

    async def sum_hours(self, span: Span, *, source: str = "", model: str = "") -> Mapping[str, Used]:
        found = await self._sum_up(span, (HOUR,), Chosen(source=source, model=model))
        return {key: used for (key,), used in found.items()}

    async def _sum_up(self, span: Span, keys: tuple[str, ...], chosen: Chosen) -> Mapping[tuple[str, ...], Used]:
        wanted = Wanted(
            keys, of_user=bool(chosen.user), of_source=bool(chosen.source), of_model=bool(chosen.model)
        )  # fmt: skip
        dialect = self._unit.dialect
        given = {"user": chosen.user, "which_source": chosen.source, "which_model": chosen.model}

        def job(connection: sa.Connection) -> dict[tuple[str, ...], Used]:
            days = _list_open(connection, span)
            bounds = _bounds(span) | given
            if days:
                bounds |= {"starts_at": Span(days[0], days[0]).starts_at, "ends_at": Span(days[-1], days[-1]).ends_at}
            rows = connection.execute(sum_usage(dialect, wanted, with_records=bool(days)), bounds)
            return {tuple(row[: len(keys)]): _used(row) for row in rows}

        return await self._unit.read(job)

    async def find_names(self, users: Collection[str]) -> Mapping[str, str]:
        def job(connection: sa.Connection) -> dict[str, str]:
            found = {user: connection.execute(_NAME, {"whose": user}).scalar() for user in users if user != FORGOTTEN}
            return {user: name for user, name in found.items() if name}

        return await self._unit.read(job)

    async def forget_user(self, user: str) -> None:
        merge, bounds = _merge(self._unit.dialect.insert), {"whose": user}
        if user == FORGOTTEN:
            return

        def job(connection: sa.Connection) -> None:
            for statement in (*_DISOWN, merge, _REMOVE):
                connection.execute(statement, bounds)

        await self._unit.write(job)


def _list_open(connection: sa.Connection, span: Span) -> list[date]:
    """Days from the first record on that are not computed."""
    starts = [moment for moment in (connection.execute(first).scalar() for first in _FIRST) if moment is not None]
    first = max(span.first, min(starts).date()) if starts else None
    if first is None or first > span.last:
        return []
    there = Span(first, span.last)
    done = set(connection.execute(COMPUTED, _bounds(there)).scalars())
    return [date.fromisoformat(day) for day in there.days if day not in done]


def _bounds(span: Span) -> dict[str, Any]:
    return {
        "first": span.first.isoformat(), "last": span.last.isoformat(),
        "starts_at": span.starts_at, "ends_at": span.ends_at,
    }  # fmt: skip


def _used(row: sa.Row[Any]) -> Used:
    return Used(int(row.messages), usage_of(row), int(row.duration_ms))


def _row(report: Report) -> dict[str, Any]:
    return {
        "id": report.id,
        "principal": report.reporter,
        "source": report.source,
        "source_id": report.source_id,
        "model": report.model,
        **usage_values(report.usage),
        "duration_ms": report.duration_ms,
        "metadata": dict(report.metadata),
        "created_at": report.reported_at,
        "day": utc_day(report.reported_at),
    }


def _report(row: sa.Row[Any]) -> Report:
    return Report(
        id=row.id,
        reporter=row.principal,
        source=row.source,
        source_id=row.source_id,
        model=row.model,
        usage=usage_of(row),
        duration_ms=row.duration_ms,
        metadata=row.metadata,
        reported_at=row.created_at,
    )

"""Money that was spent or reserved, by scope, and the ledger of usage."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from denizen.adapters.store.columns import Usd, metadata, text_keys, texts, times
from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.repository import Row, SqlRepository, insert_rows, upsert, write_record
from denizen.adapters.store.statistics import side_requests
from denizen.adapters.store.turns import steps
from denizen.adapters.store.usage import COUNTS, parse_usage, usage_columns
from denizen.domain.budget import BudgetScope, BudgetScopeKind, BudgetStatus, month_start, utc_day
from denizen.domain.statistics import FORGOTTEN
from denizen.domain.usage import Usage
from denizen.ports.store import UsageRow
from denizen.ports.usage import Reservation, SpendRow

spend = sa.Table(
    "spend",
    metadata,
    sa.Column("kind", sa.Text(), primary_key=True),
    *text_keys("key"),
    sa.Column("day", sa.Text(), primary_key=True),
    *usage_columns(),
    sa.Index("ix_spend_kind_day", "kind", "day"),
)

reservations = sa.Table(
    "reservations",
    metadata,
    sa.Column("id", sa.Text(), primary_key=True),
    sa.Column("usd", Usd(), nullable=False),
    *times("expires_at"),
    *texts("guild", "channel", "user", "agent"),
    sa.Index("ix_reservations_expires_at", "expires_at"),
)
"""One row for each reservation, so that releasing one and removing expired ones cannot deadlock."""

budget_scopes = sa.Table(
    "budget_scopes",
    metadata,
    sa.Column("kind", sa.Text(), primary_key=True),
    *text_keys("key"),
    sa.Column("warned_on", sa.Text(), nullable=False),
)
"""The row that a decision about the scope locks, whatever the day."""


if TYPE_CHECKING:
    from denizen.adapters.store.dialect import Insert

_KINDS = (BudgetScopeKind.GUILD, BudgetScopeKind.CHANNEL, BudgetScopeKind.USER, BudgetScopeKind.AGENT)
"""The kinds of scopes with a column in `reservations`; the server's scope is in every reservation."""

_SUMMED = (*COUNTS, "cost_usd")


def _is(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    return table.c.kind == sa.bindparam("what"), table.c.key == sa.bindparam("whose")


_LOCK = sa.select(budget_scopes.c.key).where(*_is(budget_scopes)).with_for_update()
_WARN = (
    sa.update(budget_scopes)
    .where(*_is(budget_scopes), budget_scopes.c.warned_on != sa.bindparam("today"))
    .values(warned_on=sa.bindparam("today"))
)
_SPENT = sa.select(spend.c.day, spend.c.cost_usd, spend.c.requests).where(
    *_is(spend), spend.c.day >= sa.bindparam("first")
)
_RESERVED = sa.select(reservations).where(
    reservations.c.expires_at > sa.bindparam("now"), reservations.c.id != sa.bindparam("besides")
)
_CLEAR = sa.delete(reservations).where(
    reservations.c.id.in_(
        sa.select(reservations.c.id)
        .where(reservations.c.expires_at <= sa.bindparam("now"))
        .with_for_update(skip_locked=True)
    )
)
_RELEASE = sa.delete(reservations).where(reservations.c.id == sa.bindparam("which"))
_LEAVING = "forgotten"
"""Stored in place of a kind of scope: a forgotten user, with the day on which they were forgotten."""

_IS_LEAVING = budget_scopes.c.kind == _LEAVING
_GONE = sa.and_(
    spend.c.kind == BudgetScopeKind.USER.value,
    spend.c.day < sa.bindparam("first"),
    sa.exists().where(_IS_LEAVING, budget_scopes.c.key == spend.c.key, spend.c.day <= budget_scopes.c.warned_on),
)
_REMOVE_GONE = sa.delete(spend).where(_GONE)
_HAVE_LEFT = sa.delete(budget_scopes).where(_IS_LEAVING, budget_scopes.c.warned_on < sa.bindparam("first"))
_LIST = (
    sa.select(spend)
    .where(spend.c.kind == sa.bindparam("what"), spend.c.day >= sa.bindparam("first"))
    .order_by(spend.c.day.desc(), spend.c.key)
)


@cache
def _add(insert: InsertInto) -> sa.Executable:
    return _adding(insert(spend))


@cache
def _merge_gone(insert: InsertInto) -> sa.Executable:
    """Adds up the spending of forgotten users, one sum for each day."""
    sums = [sa.func.sum(spend.c[name], type_=spend.c[name].type).label(name) for name in _SUMMED]
    user, forgotten = sa.literal(BudgetScopeKind.USER.value, sa.Text()), sa.literal(FORGOTTEN, sa.Text())
    theirs = sa.select(user, forgotten, spend.c.day, *sums).where(_GONE).group_by(spend.c.day)
    return _adding(insert(spend).from_select(["kind", "key", "day", *_SUMMED], theirs))


def _adding(statement: Insert) -> sa.Executable:
    """Adds the new values to the stored ones."""
    old, new = spend.c, statement.excluded
    sums: dict[str, Any] = {name: old[name] + new[name] for name in COUNTS}
    sums["cost_usd"] = sa.func.coalesce(old.cost_usd + new.cost_usd, old.cost_usd, new.cost_usd)
    return statement.on_conflict_do_update(index_elements=list(spend.primary_key), set_=sums).inline()


class SqlSpending(SqlRepository):
    """Implements `denizen.ports.usage.SpendingRepository`."""

    async def lock(self, scopes: Collection[BudgetScope]) -> None:
        # Sorted, so that two processes that lock the same scopes cannot deadlock.
        ordered = sorted(scopes)
        rows = [{"kind": scope.kind.value, "key": scope.key, "warned_on": ""} for scope in ordered]

        def job(connection: sa.Connection) -> None:
            connection.execute(insert_rows(self._dialect.insert, budget_scopes), rows)
            if self._dialect.locks_rows:
                for scope in ordered:
                    connection.execute(_LOCK, _which(scope))

        if rows:
            await self._transaction.write(job)

    async def read(
        self, scopes: Collection[BudgetScope], *, now: datetime, besides: str = ""
    ) -> Mapping[BudgetScope, BudgetStatus]:
        first, today = month_start(now), utc_day(now)

        def job(connection: sa.Connection) -> dict[BudgetScope, BudgetStatus]:
            reserved = connection.execute(_RESERVED, {"now": now, "besides": besides}).all()
            found: dict[BudgetScope, BudgetStatus] = {}
            for scope in scopes:
                rows = connection.execute(_SPENT, _which(scope) | {"first": first}).all()
                todays = [row for row in rows if row.day == today]
                found[scope] = BudgetStatus(
                    sum((row.cost_usd or Decimal(0) for row in todays), Decimal(0)),
                    sum((row.cost_usd or Decimal(0) for row in rows), Decimal(0)),
                    sum((row.usd for row in reserved if _counts(row, scope)), Decimal(0)),
                    sum(row.requests for row in todays),
                    sum(row.requests for row in rows),
                )
            return found

        return await self._transaction.read(job)

    async def reserve(self, reservation: Reservation, *, now: datetime) -> None:
        keys = {scope.kind: scope.key for scope in reservation.scopes}
        row = {kind.value: keys.get(kind, "") for kind in _KINDS}
        row |= {"id": reservation.id, "usd": reservation.usd, "expires_at": reservation.expires_at}
        insert = self._dialect.insert

        def job(connection: sa.Connection) -> None:
            connection.execute(_CLEAR, {"now": now})
            connection.execute(upsert(insert, reservations), row)

        await self._transaction.write(job)

    async def release(self, reservation_id: str) -> None:
        await self._execute(_RELEASE, {"which": reservation_id})

    async def add(self, scopes: Collection[BudgetScope], usage: Usage, *, at: datetime) -> None:
        statement, values = _add(self._dialect.insert), write_record(usage) | {"day": utc_day(at)}
        rows = [{"kind": scope.kind.value, "key": scope.key, **values} for scope in sorted(scopes)]
        await self._execute(statement, rows)

    async def note_warning(self, scope: BudgetScope, *, day: str) -> bool:
        know = insert_rows(self._dialect.insert, budget_scopes)

        def job(connection: sa.Connection) -> bool:
            connection.execute(know, {"kind": scope.kind.value, "key": scope.key, "warned_on": ""})
            return connection.execute(_WARN, _which(scope) | {"today": day}).rowcount > 0

        return await self._transaction.write(job)

    async def forget_users(self, *users: str, now: datetime) -> None:
        insert, bounds = self._dialect.insert, {"first": month_start(now)}
        rows = [{"kind": _LEAVING, "key": user, "warned_on": utc_day(now)} for user in users if user != FORGOTTEN]

        def job(connection: sa.Connection) -> None:
            if rows:
                connection.execute(upsert(insert, budget_scopes), rows)
            for statement in (_merge_gone(insert), _REMOVE_GONE, _HAVE_LEFT):
                connection.execute(statement, bounds)

        await self._transaction.write(job)

    async def list_spend(self, kind: BudgetScopeKind, *, since: datetime) -> Sequence[SpendRow]:
        def parse(row: Row) -> SpendRow:
            return SpendRow(row.day, BudgetScope(kind, row.key), parse_usage(row))

        return await self._list(parse, _LIST, {"what": kind.value, "first": utc_day(since)})


def _which(scope: BudgetScope) -> dict[str, str]:
    return {"what": scope.kind.value, "whose": scope.key}


def _counts(row: sa.Row[Any], scope: BudgetScope) -> bool:
    """A job makes one request at a time, so nothing but that one is reserved of its budget."""
    match scope.kind:
        case BudgetScopeKind.SERVER:
            return True
        case BudgetScopeKind.RUN:
            return row.id.startswith(f"{scope.key}:")
        case BudgetScopeKind.JOB:
            return False
        case _:
            return getattr(row, scope.kind.value) == scope.key


_LEDGER_KEYS = ("day", "agent", "model")


@cache
def _sum_usage(*, of_agent: bool, of_principal: bool) -> sa.Select[Any]:
    parts = [_sum_records(table, of_agent=of_agent, of_principal=of_principal) for table in (steps, side_requests)]
    cells = sa.union_all(*parts).subquery("cells").c
    keys = [cells[name] for name in _LEDGER_KEYS]
    sums = [sa.func.sum(cells[name], type_=cells[name].type).label(name) for name in _SUMMED]
    return sa.select(*keys, *sums).group_by(*keys).order_by(cells.day.desc(), cells.agent, cells.model)


def _sum_records(table: sa.Table, *, of_agent: bool, of_principal: bool) -> sa.Select[Any]:
    """Sums one table before the union, so that the database need not hold the records of a long time."""
    keys = [table.c[name] for name in _LEDGER_KEYS]
    sums = [sa.func.sum(table.c[name], type_=table.c[name].type).label(name) for name in _SUMMED]
    statement = sa.select(*keys, *sums).where(table.c.created_at >= sa.bindparam("since"))
    if of_agent:
        statement = statement.where(table.c.agent == sa.bindparam("whose"))
    if of_principal:
        statement = statement.where(table.c.principal == sa.bindparam("asker"))
    return statement.group_by(*keys)


class SqlLedger(SqlRepository):
    """Implements `denizen.ports.store.UsageLedger`."""

    async def list_usage(self, *, since: datetime, agent: str = "", principal: str = "") -> Sequence[UsageRow]:
        statement = _sum_usage(of_agent=agent != "", of_principal=principal != "")
        wanted = {"since": since} | ({"whose": agent} if agent else {}) | ({"asker": principal} if principal else {})
        return await self._list(_read_usage, statement, wanted)


def _read_usage(row: Row) -> UsageRow:
    return UsageRow(row.day, row.agent, row.model, parse_usage(row))

"""Money that was spent and money that is reserved, in the memory store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from denizen.domain.budget import SERVER, Scope, ScopeKind, Standing, first_of_month, utc_day
from denizen.domain.statistics import FORGOTTEN
from denizen.domain.usage import Usage
from denizen.ports.usage import Reservation, SpendRow
from denizen.testing.memory_unit import Unit, in_utc


class MemorySpending:
    """`denizen.ports.usage.SpendingRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def lock(self, scopes: Collection[Scope]) -> None:
        """One unit of work runs at a time."""
        self._unit.check_writes()

    async def read(self, scopes: Collection[Scope], *, now: datetime, besides: str = "") -> Mapping[Scope, Standing]:
        return {scope: self._standing(scope, now, besides) for scope in scopes}

    def _standing(self, scope: Scope, now: datetime, besides: str) -> Standing:
        tables, first, today = self._unit.tables, first_of_month(now), utc_day(now)
        used = {day: used for (whose, day), used in tables.spend.items() if whose == scope and day >= first}
        month, day = sum(used.values(), Usage()), used.get(today, Usage())
        reserved = (
            each.usd
            for each in tables.reservations.values()
            if each.expires_at > now and each.id != besides and scope in {SERVER, *each.scopes}
        )
        return Standing(
            day.cost_usd or Decimal(0),
            month.cost_usd or Decimal(0),
            sum(reserved, Decimal(0)),
            day.requests,
            month.requests,
        )

    async def reserve(self, reservation: Reservation, *, now: datetime) -> None:
        self._unit.check_writes()
        table = self._unit.tables.reservations
        self._unit.remove(table, *[key for key, each in table.items() if each.expires_at <= now])
        stored = replace(reservation, expires_at=in_utc(reservation.expires_at))
        self._unit.put(table, reservation.id, stored)

    async def release(self, reservation_id: str) -> None:
        self._unit.check_writes()
        self._unit.remove(self._unit.tables.reservations, reservation_id)

    async def add(self, scopes: Collection[Scope], usage: Usage, *, at: datetime) -> None:
        self._unit.check_writes()
        table, day = self._unit.tables.spend, utc_day(at)
        for scope in scopes:
            self._unit.put(table, (scope, day), table.get((scope, day), Usage()) + usage)

    async def note_warning(self, scope: Scope, *, day: str) -> bool:
        self._unit.check_writes()
        table = self._unit.tables.warnings
        if table.get(scope) == day:
            return False
        self._unit.put(table, scope, day)
        return True

    async def forget_users(self, *users: str, now: datetime) -> None:
        self._unit.check_writes()
        tables, first = self._unit.tables, first_of_month(now)
        for user in users:
            self._unit.put(tables.leaving, user, utc_day(now))
        for (scope, day), used in list(tables.spend.items()):
            until = tables.leaving.get(scope.key, "") if scope.kind is ScopeKind.USER else ""
            if day < first and day <= until and scope.key != FORGOTTEN:
                self._unit.remove(tables.spend, (scope, day))
                nobodys = (Scope(ScopeKind.USER, FORGOTTEN), day)
                self._unit.put(tables.spend, nobodys, tables.spend.get(nobodys, Usage()) + used)
        self._unit.remove(tables.leaving, *[user for user, day in tables.leaving.items() if day < first])

    async def list_spend(self, kind: ScopeKind, *, since: datetime) -> Sequence[SpendRow]:
        first = utc_day(since)
        rows = [
            SpendRow(day, scope, used)
            for (scope, day), used in self._unit.tables.spend.items()
            if scope.kind is kind and day >= first
        ]
        return sorted(sorted(rows, key=lambda row: row.scope.key), key=lambda row: row.day, reverse=True)

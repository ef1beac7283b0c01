"""Pending reminders, in the memory store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from denizen.domain.ids import AgentName
from denizen.domain.reminder import Reminder
from denizen.testing.memory_unit import Unit, in_utc


class MemoryReminders:
    """`denizen.ports.store.Reminders`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, reminder: Reminder) -> bool:
        self._unit.check_writes()
        rows = self._unit.tables.reminders
        if reminder.id in rows:
            return False
        times = {"due_at": in_utc(reminder.due_at), "created_at": in_utc(reminder.created_at)}
        self._unit.put(rows, reminder.id, replace(reminder, **times))
        return True

    async def list_for(self, asker: str, *, limit: int = 100) -> Sequence[Reminder]:
        return [row for row in self._in_order() if row.asker == asker][: max(limit, 0)]

    async def list_due(
        self, account: AgentName, platform: str, *, now: datetime, limit: int = 100
    ) -> Sequence[Reminder]:
        mine = [row for row in self._in_order() if (row.account, row.place.platform) == (account, platform)]
        return [row for row in mine if row.due_at <= now][: max(limit, 0)]

    async def find_next_due(self, *, after: datetime) -> datetime | None:
        return next((row.due_at for row in self._in_order() if row.due_at > after), None)

    async def remove(self, reminder_id: str, *, asker: str | None = None) -> bool:
        self._unit.check_writes()
        rows = self._unit.tables.reminders
        row = rows.get(reminder_id)
        return row is not None and asker in {None, row.asker} and self._unit.remove(rows, reminder_id)

    async def forget_asker(self, asker: str) -> int:
        self._unit.check_writes()
        rows = self._unit.tables.reminders
        gone = [row.id for row in rows.values() if row.asker == asker]
        self._unit.remove(rows, *gone)
        return len(gone)

    def _in_order(self) -> list[Reminder]:
        return sorted(self._unit.tables.reminders.values(), key=lambda row: row.due_at)

"""Pending reminders."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime, id_columns, metadata, texts, times
from denizen.adapters.store.repository import SqlRepository, read_record, write_record
from denizen.domain.ids import AgentName
from denizen.domain.reminder import Reminder

reminders = sa.Table(
    "reminders",
    metadata,
    *id_columns(),
    *texts("account", "asker", "platform", "channel", "thread", "text"),
    *times("due_at", "created_at"),
    sa.Index("ix_reminders_asker", "asker"),
    sa.Index("ix_reminders_due_at", "due_at"),
)
"""Only pending reminders; a due one is removed when it is delivered."""


_IN_ORDER = sa.select(reminders).order_by(reminders.c.due_at, reminders.c.position).limit(sa.bindparam("most"))
_OF_ASKER = _IN_ORDER.where(reminders.c.asker == sa.bindparam("whose"))
_DUE = _IN_ORDER.where(
    reminders.c.account == sa.bindparam("of_account"),
    reminders.c.platform == sa.bindparam("where"),
    reminders.c.due_at <= sa.bindparam("now", type_=UtcTime()),
)
_NEXT = sa.select(sa.func.min(reminders.c.due_at, type_=UtcTime())).where(
    reminders.c.due_at > sa.bindparam("after", type_=UtcTime())
)
_REMOVE = sa.delete(reminders).where(reminders.c.id == sa.bindparam("which"))
_REMOVE_OWN = _REMOVE.where(reminders.c.asker == sa.bindparam("whose", type_=EscapedText()))
_FORGET = sa.delete(reminders).where(reminders.c.asker == sa.bindparam("whose", type_=EscapedText()))


_read_reminder = partial(read_record, Reminder)


class SqlReminders(SqlRepository):
    """Implements `denizen.ports.store.ReminderRepository`."""

    async def add(self, reminder: Reminder) -> bool:
        return await self._add(reminders, write_record(reminder))

    async def list_for(self, asker: str, *, limit: int = 100) -> Sequence[Reminder]:
        return await self._list(_read_reminder, _OF_ASKER, {"whose": asker, "most": max(limit, 0)})

    async def list_due(
        self, account: AgentName, platform: str, *, now: datetime, limit: int = 100
    ) -> Sequence[Reminder]:
        bounds = {"of_account": account, "where": platform, "now": now, "most": max(limit, 0)}
        return await self._list(_read_reminder, _DUE, bounds)

    async def find_next_due(self, *, after: datetime) -> datetime | None:
        return await self._transaction.read(lambda connection: connection.execute(_NEXT, {"after": after}).scalar())

    async def remove(self, reminder_id: str, *, asker: str | None = None) -> bool:
        statement, bounds = _REMOVE, {"which": reminder_id}
        if asker is not None:
            statement, bounds = _REMOVE_OWN, bounds | {"whose": asker}
        return await self._change(statement, bounds) == 1

    async def forget_asker(self, asker: str) -> int:
        return await self._change(_FORGET, {"whose": asker})

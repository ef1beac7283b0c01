"""Pending reminders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime, metadata, position_column
from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.transaction import Transaction
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName
from denizen.domain.reminder import Reminder

reminders = sa.Table(
    "reminders",
    metadata,
    position_column(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("account", EscapedText(), nullable=False),
    sa.Column("asker", EscapedText(), nullable=False),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("channel", EscapedText(), nullable=False),
    sa.Column("thread", EscapedText(), nullable=False),
    sa.Column("text", EscapedText(), nullable=False),
    sa.Column("due_at", UtcTime(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
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


@cache
def _add(insert: InsertInto) -> sa.Executable:
    given: dict[str, Any] = {c.name: sa.bindparam(c.name) for c in reminders.c if c.name != "position"}
    return insert(reminders).values(given).on_conflict_do_nothing().returning(reminders.c.position)


class SqlReminders:
    """Implements `denizen.ports.store.ReminderRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def add(self, reminder: Reminder) -> bool:
        add, row = _add(self._transaction.dialect.insert), _row(reminder)
        return await self._transaction.write(lambda connection: connection.execute(add, row).scalar() is not None)

    async def list_for(self, asker: str, *, limit: int = 100) -> Sequence[Reminder]:
        return await self._list(_OF_ASKER, {"whose": asker, "most": max(limit, 0)})

    async def list_due(
        self, account: AgentName, platform: str, *, now: datetime, limit: int = 100
    ) -> Sequence[Reminder]:
        return await self._list(_DUE, {"of_account": account, "where": platform, "now": now, "most": max(limit, 0)})

    async def find_next_due(self, *, after: datetime) -> datetime | None:
        return await self._transaction.read(lambda connection: connection.execute(_NEXT, {"after": after}).scalar())

    async def remove(self, reminder_id: str, *, asker: str | None = None) -> bool:
        statement, bounds = _REMOVE, {"which": reminder_id}
        if asker is not None:
            statement, bounds = _REMOVE_OWN, bounds | {"whose": asker}
        return await self._transaction.write(lambda connection: connection.execute(statement, bounds).rowcount == 1)

    async def forget_asker(self, asker: str) -> int:
        return await self._transaction.write(lambda connection: connection.execute(_FORGET, {"whose": asker}).rowcount)

    async def _list(self, statement: sa.Select[Any], bounds: Mapping[str, Any]) -> list[Reminder]:
        return await self._transaction.read(
            lambda connection: [_reminder(row) for row in connection.execute(statement, bounds)]
        )


def _row(reminder: Reminder) -> dict[str, Any]:
    return {
        "id": reminder.id,
        "account": reminder.account,
        "asker": reminder.asker,
        "platform": reminder.place.platform,
        "channel": reminder.place.channel,
        "thread": reminder.place.thread,
        "text": reminder.text,
        "due_at": reminder.due_at,
        "created_at": reminder.created_at,
    }


def _reminder(row: sa.Row[Any]) -> Reminder:
    return Reminder(
        id=row.id,
        account=row.account,
        asker=row.asker,
        place=Place(row.platform, row.channel, row.thread),
        text=row.text,
        due_at=row.due_at,
        created_at=row.created_at,
    )

"""The uses that rate limits count, one row for each key, which expires with the longest window it was taken for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import JsonText, metadata, times
from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.repository import SqlRepository
from denizen.domain.rate_limit import RateLimit, RateLimitWait, find_wait

rates = sa.Table(
    "rates",
    metadata,
    sa.Column("key", sa.Text(), primary_key=True),
    sa.Column("uses", JsonText(), nullable=False),
    *times("expires_at"),
    sa.Index("ix_rates_expires_at", "expires_at"),
)
"""`uses` are the times as seconds since 1970, oldest first."""

_THIS = rates.c.key == sa.bindparam("which")
_LOCK = sa.select(rates.c.uses).where(_THIS).with_for_update()
_USES = sa.select(rates.c.uses).where(_THIS)
_SET = sa.update(rates).where(_THIS).values(uses=sa.bindparam("new", type_=JsonText()))
_CLEAR = sa.delete(rates).where(
    rates.c.key.in_(
        sa.select(rates.c.key).where(rates.c.expires_at <= sa.bindparam("now")).with_for_update(skip_locked=True)
    )
)


@cache
def _open(insert: InsertInto) -> sa.Executable:
    """Creates or extends the row, locks it until the unit of work ends, and returns its uses."""
    statement = insert(rates)
    until = {"expires_at": statement.excluded.expires_at}
    return statement.on_conflict_do_update(index_elements=[rates.c.key], set_=until).returning(rates.c.uses)


class SqlRates(SqlRepository):
    """Implements `denizen.ports.usage.RateRepository`."""

    async def take(self, key: str, limits: Sequence[RateLimit], *, now: datetime) -> RateLimitWait | None:
        longest_s, most = max(limit.window_s for limit in limits), max(limit.calls for limit in limits)
        row: dict[str, Any] = {"key": key, "uses": [], "expires_at": now + timedelta(seconds=longest_s)}
        now_s = now.timestamp()

        def job(connection: sa.Connection) -> RateLimitWait | None:
            connection.execute(_CLEAR, {"now": now})
            uses = connection.execute(_open(self._dialect.insert), row).scalar_one()
            wait = find_wait(uses, limits, now_s=now_s)
            if wait is None:
                connection.execute(_SET, {"which": key, "new": [*uses, now_s][-most:]})
            return wait

        return await self._transaction.write(job)

    async def give_back(self, key: str) -> None:
        def job(connection: sa.Connection) -> None:
            uses = connection.execute(_LOCK, {"which": key}).scalar()
            if uses:
                connection.execute(_SET, {"which": key, "new": uses[:-1]})

        await self._transaction.write(job)

    async def list_uses(self, key: str) -> Sequence[float]:
        return await self._transaction.read(lambda connection: connection.execute(_USES, {"which": key}).scalar() or ())

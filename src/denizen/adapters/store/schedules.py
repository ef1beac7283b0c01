"""The states of schedules, and their runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from denizen.adapters.store.columns import EnumValue, UtcTime, id_columns, metadata, texts, times
from denizen.adapters.store.repository import SqlRepository, read_record, upsert, write_record
from denizen.domain.ids import TurnId
from denizen.domain.schedule import WITH_TURN, RunStatus, ScheduleRun, ScheduleState

MAX_RUNS = 500
"""So many runs of a schedule are kept."""

schedules = sa.Table(
    "schedules",
    metadata,
    sa.Column("name", sa.Text(), primary_key=True),
    *texts("definition"),
    *times("looked_until"),
    sa.Column("last_run_at", UtcTime()),
)
schedule_runs = sa.Table(
    "schedule_runs",
    metadata,
    *id_columns(),
    sa.Column("schedule", sa.Text(), nullable=False),
    sa.Column("status", EnumValue(RunStatus), nullable=False),
    *texts("asked_by", "note"),
    sa.Column("turn_id", sa.Text()),
    *times("planned_at", "seen_at"),
    sa.Index("ix_schedule_runs_schedule", "schedule"),
    sa.Index("ix_schedule_runs_status", "status"),
)

_STATES = sa.select(schedules).order_by(schedules.c.name)
_STATE = schedules.c.name == sa.bindparam("of_name")
_REMOVE = sa.delete(schedules).where(_STATE)
_ADVANCE = (
    sa.update(schedules)
    .where(_STATE, schedules.c.looked_until == sa.bindparam("known_until", type_=UtcTime()))
    .values(looked_until=sa.bindparam("new_until", type_=UtcTime()))
)
_RAN = sa.update(schedules).where(_STATE).values(last_run_at=sa.bindparam("ran_at", type_=UtcTime()))
_RUN = sa.update(schedule_runs).where(schedule_runs.c.id == sa.bindparam("of_run"))
_NEWEST = sa.select(schedule_runs).order_by(schedule_runs.c.position.desc()).limit(sa.bindparam("most"))
_NEWEST_OF = _NEWEST.where(schedule_runs.c.schedule == sa.bindparam("of_name"))
_BEGUN = _NEWEST_OF.where(schedule_runs.c.status.in_([RunStatus.WAITING, *WITH_TURN]))
_NEWEST_OF_EACH = sa.select(schedule_runs).where(
    schedule_runs.c.position.in_(sa.select(sa.func.max(schedule_runs.c.position)).group_by(schedule_runs.c.schedule))
)
_IN_STATE = (
    sa.select(schedule_runs)
    .where(schedule_runs.c.status == sa.bindparam("state", type_=EnumValue(RunStatus)))
    .order_by(schedule_runs.c.position)
)

_TRIM = sa.delete(schedule_runs).where(
    schedule_runs.c.schedule == sa.bindparam("of_name"),
    schedule_runs.c.position
    <= sa.select(schedule_runs.c.position)
    .where(schedule_runs.c.schedule == sa.bindparam("of_name"))
    .order_by(schedule_runs.c.position.desc())
    .offset(MAX_RUNS)
    .limit(1)
    .scalar_subquery(),
)

_read_run = partial(read_record, ScheduleRun)


class SqlSchedules(SqlRepository):
    """Implements `denizen.ports.schedules.ScheduleRepository`."""

    async def list_states(self) -> Sequence[ScheduleState]:
        return await self._list(partial(read_record, ScheduleState), _STATES)

    async def put(self, state: ScheduleState) -> None:
        await self._execute(upsert(self._dialect.insert, schedules), write_record(state))

    async def remove(self, name: str) -> None:
        await self._change(_REMOVE, {"of_name": name})

    async def advance(self, name: str, *, before: datetime, until: datetime) -> bool:
        bounds = {"of_name": name, "known_until": before, "new_until": until}
        return await self._change(_ADVANCE, bounds) == 1

    async def set_last_run(self, name: str, at: datetime) -> None:
        await self._change(_RAN, {"of_name": name, "ran_at": at})

    async def add_run(self, run: ScheduleRun) -> bool:
        is_new = await self._add(schedule_runs, write_record(run))
        if is_new:
            await self._change(_TRIM, {"of_name": run.schedule})
        return is_new

    async def set_status(
        self, run_id: str, status: RunStatus, *, turn_id: TurnId | None = None, note: str | None = None
    ) -> None:
        values = {"status": status, "turn_id": turn_id} | ({} if note is None else {"note": note})
        await self._change(_RUN.values(values), {"of_run": run_id})

    async def list_begun(self, name: str, *, limit: int) -> Sequence[ScheduleRun]:
        return await self._list(_read_run, _BEGUN, {"of_name": name, "most": limit})

    async def list_runs(self, name: str = "", *, limit: int = 20) -> Sequence[ScheduleRun]:
        bounds = {"most": max(limit, 0)}
        if not name:
            return await self._list(_read_run, _NEWEST, bounds)
        return await self._list(_read_run, _NEWEST_OF, bounds | {"of_name": name})

    async def list_newest(self) -> Sequence[ScheduleRun]:
        return await self._list(_read_run, _NEWEST_OF_EACH)

    async def list_waiting(self) -> Sequence[ScheduleRun]:
        return await self._list(_read_run, _IN_STATE, {"state": RunStatus.WAITING})

    async def list_owed(self) -> Sequence[ScheduleRun]:
        return await self._list(_read_run, _IN_STATE, {"state": RunStatus.OWED})

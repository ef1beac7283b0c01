"""What is kept of schedules, and their runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from denizen.adapters.store.columns import UtcTime, id_columns, metadata, texts, times
from denizen.adapters.store.repository import SqlRepository, read_record, write_record
from denizen.domain.ids import TurnId
from denizen.domain.schedule import RunStatus, ScheduleRun, ScheduleState

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
    *texts("schedule", "status", "asked_by", "note"),
    sa.Column("turn_id", sa.Text()),
    *times("planned_at", "began_at"),
    sa.Index("ix_schedule_runs_schedule", "schedule"),
    sa.Index("ix_schedule_runs_status", "status"),
)

_RAN = (RunStatus.WAITING, RunStatus.STARTED, RunStatus.NOTED)
_FIND = sa.select(schedules).where(schedules.c.name == sa.bindparam("of_name"))
_DELETE = sa.delete(schedules).where(schedules.c.name == sa.bindparam("of_name"))
_ADVANCE = (
    sa.update(schedules)
    .where(
        schedules.c.name == sa.bindparam("of_name"),
        schedules.c.looked_until == sa.bindparam("known_until", type_=UtcTime()),
    )
    .values(looked_until=sa.bindparam("new_until", type_=UtcTime()))
)
_RAN_NOW = (
    sa.update(schedules)
    .where(schedules.c.name == sa.bindparam("of_name"))
    .values(last_run_at=sa.bindparam("ran_at", type_=UtcTime()))
)
_NEWEST = (
    sa.select(schedule_runs).order_by(schedule_runs.c.position.desc()).limit(sa.bindparam("most"))
)
_NEWEST_OF = _NEWEST.where(schedule_runs.c.schedule == sa.bindparam("of_name"))
_WAITING = (
    sa.select(schedule_runs).where(schedule_runs.c.status == RunStatus.WAITING).order_by(schedule_runs.c.position)
)
_SET = (
    sa.update(schedule_runs)
    .where(schedule_runs.c.id == sa.bindparam("of_run"))
    .values(status=sa.bindparam("new_status"), turn_id=sa.bindparam("new_turn"), note=sa.bindparam("new_note"))
)


def _read_run(row: sa.Row[tuple[object, ...]]) -> ScheduleRun:
    return read_record(ScheduleRun, row, status=RunStatus(row.status))


class SqlSchedules(SqlRepository):
    """Implements `denizen.ports.schedules.ScheduleRepository`."""

    async def find(self, name: str) -> ScheduleState | None:
        return await self._find(partial(read_record, ScheduleState), _FIND, {"of_name": name})

    async def put(self, state: ScheduleState) -> None:
        await self._execute(_DELETE, {"of_name": state.name})
        await self._add(schedules, write_record(state))

    async def advance(self, name: str, *, before: datetime, until: datetime) -> bool:
        bounds = {"of_name": name, "known_until": before, "new_until": until}
        return await self._change(_ADVANCE, bounds) == 1

    async def add_run(self, run: ScheduleRun) -> bool:
        if not await self._add(schedule_runs, write_record(run)):
            return False
        if run.status in _RAN:
            await self._execute(_RAN_NOW, {"of_name": run.schedule, "ran_at": run.began_at})
        return True

    async def set_status(self, run_id: str, status: RunStatus, *, turn_id: TurnId | None = None, note: str = "") -> None:
        await self._execute(_SET, {"of_run": run_id, "new_status": status, "new_turn": turn_id, "new_note": note})

    async def list_runs(self, name: str, *, limit: int = 20) -> Sequence[ScheduleRun]:
        bounds = {"most": max(limit, 0)}
        if not name:
            return await self._list(_read_run, _NEWEST, bounds)
        return await self._list(_read_run, _NEWEST_OF, bounds | {"of_name": name})

    async def list_waiting(self) -> Sequence[ScheduleRun]:
        return await self._list(_read_run, _WAITING)

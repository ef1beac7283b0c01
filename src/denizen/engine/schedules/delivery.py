"""Sends the answers of schedules by webhook and mail, each as a durable run: it tries again with growing pauses, and
how it went is told in the history of the schedule.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

import anyio

from denizen.domain.errors import DenizenError, NeedsAttention, NotFound, Unavailable
from denizen.domain.ids import TurnId, derive
from denizen.domain.json import Json, JsonObject
from denizen.domain.schedule import RunStatus, ScheduleRun
from denizen.domain.speaker_choice import is_silence
from denizen.domain.turn import Turn, TurnStatus
from denizen.engine.configuration.generation import Runtime
from denizen.ports.durable import DurableExecution
from denizen.ports.schedules import RunReport
from denizen.ports.store import Store

WORKFLOW = "schedule_delivery"
PAUSES_S = (0.0, 10.0, 60.0, 300.0, 1800.0)
"""The pauses before the tries."""

_log = logging.getLogger("denizen.schedules")


class RunDeliveries:
    """One of a process."""

    def __init__(
        self, runtime: Runtime, store: Store, durable: DurableExecution, *, pauses_s: Sequence[float] = PAUSES_S
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._durable = durable
        self._pauses_s = pauses_s
        durable.register(WORKFLOW, self._run)

    async def submit_owed(self) -> None:
        """Starts to send the answers whose turns have ended. Starting one twice is once."""
        async with self._store.work(write=False) as work:
            owed = await work.schedules.list_owed()
            turns = {each.id: each for each in await work.turns.find_many({run.turn_id for run in owed if run.turn_id})}
        for run in owed:
            turn = turns.get(run.turn_id) if run.turn_id else None
            if turn is None or turn.status is not TurnStatus.DONE or is_silence(turn.result.reply):
                if turn is None or turn.status.is_final:  # the turn tells why nothing is sent
                    await self._set(run, RunStatus.STARTED)
                continue
            payload: JsonObject = {"run": run.id, "schedule": run.schedule, "turn": turn.id}
            await self._durable.submit(WORKFLOW, derive("delivery", run.id), payload)

    async def _run(self, payload: JsonObject) -> Json:
        async with self._store.work(write=False) as work:
            runs = await work.schedules.list_runs(str(payload["schedule"]), limit=500)
            turns = await work.turns.find_many([TurnId(str(payload["turn"]))])
        run = next((each for each in runs if each.id == payload["run"]), None)
        if run is None or not turns:
            return {"status": "forgotten"}
        is_sent, told = False, ""
        for number, pause_s in enumerate(self._pauses_s, 1):
            await anyio.sleep(pause_s)
            row = await self._durable.step(f"try-{number}", partial(self._try, run, turns[0]))
            tried = row if isinstance(row, dict) else {}
            is_sent, told = tried.get("is_sent") is True, str(tried.get("told", ""))
            if is_sent or tried.get("is_final") is True:
                break
        await self._set(run, RunStatus.DELIVERED if is_sent else RunStatus.UNDELIVERED, told)
        if not is_sent:
            _log.error(
                "the answer of a schedule was not sent: %s", told, extra={"schedule": run.schedule, "run": run.id}
            )
        return {"status": "sent" if is_sent else "failed"}

    async def _try(self, run: ScheduleRun, turn: Turn) -> Json:
        """It must not raise: a failure is told in the history."""
        current = self._runtime.current
        schedule = next((each for each in current.schedules.values() if each.id == run.schedule), None)
        try:
            if schedule is None:
                raise NotFound(f"There is no schedule '{run.schedule_name}' any more.", code="schedule_unknown")
            if current.run_sender is None:
                raise NeedsAttention("This process sends no answers of schedules.", code="run_sender")
            report = RunReport(
                run=run.id,
                schedule=schedule.name,
                agent=schedule.agent,
                planned_at=run.planned_at,
                turn_id=turn.id,
                text=turn.result.reply,
            )
            told = await current.run_sender.send(schedule.conduct.delivery, report)
        except Unavailable as error:
            return {"is_sent": False, "told": error.explain()}
        except DenizenError as error:
            return {"is_sent": False, "told": error.explain(), "is_final": True}
        return {"is_sent": True, "told": told}

    async def _set(self, run: ScheduleRun, status: RunStatus, note: str | None = None) -> None:
        told = None if note is None else " ".join(part for part in (run.note, note) if part)
        async with self._store.work() as work:
            await work.schedules.set_status(run.id, status, turn_id=run.turn_id, note=told)

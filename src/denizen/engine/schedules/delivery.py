"""Sends the answers of schedules by webhook and mail, each as a durable run: it tries again with growing pauses, and
how it went is told in the history of the schedule.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeVar

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, NeedsAttention, NotFound, Unavailable
from denizen.domain.ids import TurnId, derive
from denizen.domain.json import Json, JsonObject
from denizen.domain.schedule import RunStatus, ScheduleRun
from denizen.domain.speaker_choice import is_silence
from denizen.domain.store_move import STORE_MOVED
from denizen.domain.turn import Turn, TurnStatus
from denizen.engine.configuration.generation import Runtime
from denizen.ports.durable import DurableExecution
from denizen.ports.schedules import RunReport
from denizen.ports.store import Store

T = TypeVar("T")

WORKFLOW = "schedule_delivery"
PAUSES_S = (0.0, 10.0, 60.0, 300.0, 1800.0)
"""The pauses before the tries."""
STORE_PAUSE_S = 5.0
"""The pause before a store that was away is asked again."""
LATE_AFTER = timedelta(days=1)
"""An answer that could not be sent for so long is not sent any more."""

_log = logging.getLogger("denizen.schedules")


class RunDeliveries:
    """One of a process."""

    def __init__(
        self,
        runtime: Runtime,
        store: Store,
        durable: DurableExecution,
        clock: Clock,
        *,
        pauses_s: Sequence[float] = PAUSES_S,
        store_pause_s: float = STORE_PAUSE_S,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._durable = durable
        self._clock = clock
        self._pauses_s = pauses_s
        self._store_pause_s = store_pause_s
        durable.register(WORKFLOW, self._run)

    async def submit_owed(self) -> None:
        """Starts to send the answers whose turns have ended. Starting one twice is once. Where sending one has ended
        with a fault, its run is undelivered.
        """
        sending: dict[str, ScheduleRun] = {}
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
            key = derive("delivery", run.id)
            await self._durable.submit(WORKFLOW, key, payload)
            sending[key] = run
        if sending:
            await self._close_faulty(sending)

    async def _close_faulty(self, sending: Mapping[str, ScheduleRun]) -> None:
        """Writes down which of these have ended without telling how it went: nobody else would."""
        pending = {*await self._durable.pending()}
        ended = {run.id for key, run in sending.items() if key not in pending}
        if not ended:
            return
        async with self._store.work(write=False) as work:
            faulty = [run for run in await work.schedules.list_owed() if run.id in ended]
        for run in faulty:
            await self._set(run, RunStatus.UNDELIVERED, "Sending it failed because of a fault; the log tells more.")
            _log.error(
                "sending the answer of a schedule ended with a fault",
                extra={"schedule": run.schedule, "run": run.id, "delivery": derive("delivery", run.id)},
            )

    async def _run(self, payload: JsonObject) -> Json:
        found = await self._await_store(partial(self._load, payload))
        if found is None:
            return {"status": "forgotten"}
        run, turn = found
        is_sent, told = False, ""
        for number, pause_s in enumerate(self._pauses_s, 1):
            await anyio.sleep(pause_s)
            row = await self._durable.step(f"try-{number}", partial(self._try, run, turn))
            tried = row if isinstance(row, dict) else {}
            is_sent, told = tried.get("is_sent") is True, str(tried.get("told", ""))
            if is_sent or tried.get("is_final") is True:
                break
        status = RunStatus.DELIVERED if is_sent else RunStatus.UNDELIVERED
        await self._await_store(partial(self._set, run, status, told))
        if not is_sent:
            _log.error(
                "the answer of a schedule was not sent: %s", told, extra={"schedule": run.schedule, "run": run.id}
            )
        return {"status": "sent" if is_sent else "failed"}

    async def _await_store(self, action: Callable[[], Awaitable[T]]) -> T:
        """Tries until the store is there: an error would end the sending, and nothing would begin it again."""
        while True:
            try:
                return await action()
            except Unavailable as error:
                if error.code == STORE_MOVED:  # it goes on where the store is
                    raise
                _log.warning("sending the answer of a schedule waits for the store: %s", error.message)
            await anyio.sleep(self._store_pause_s)

    async def _load(self, payload: JsonObject) -> tuple[ScheduleRun, Turn] | None:
        async with self._store.work(write=False) as work:
            runs = await work.schedules.list_runs(str(payload["schedule"]), limit=500)
            turns = await work.turns.find_many([TurnId(str(payload["turn"]))])
        run = next((each for each in runs if each.id == payload["run"]), None)
        return (run, turns[0]) if run is not None and turns else None

    async def _try(self, run: ScheduleRun, turn: Turn) -> Json:
        """It must not raise: a failure is told in the history."""
        if self._clock.now() - (turn.closed_at or turn.opened_at) > LATE_AFTER:
            return {"is_sent": False, "told": "It could not be sent within a day.", "is_final": True}
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

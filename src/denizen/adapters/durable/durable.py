"""Durable execution on DBOS: implements the port `DurableExecution`.

A run is executed by the process that was given it, on that process's event loop, and recorded by `log`. Whatever stops
it before its end (shutdown, kill -9, a full disk) leaves it pending, and `recovery` resumes it here or in another
process; recorded steps are not repeated. The application builds it; a process has one at a time.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

import anyio
from anyio import to_thread

from denizen.adapters.durable.run import (
    ActiveRun,
    RecordedValue,
    cancelled,
    closing,
    current_run,
    decode,
    decode_error,
    encode,
    encode_error,
    entered,
    inside_step,
    is_inside_step,
    leave,
    perform,
    refuse,
    side_by_side,
)
from denizen.adapters.durable.settings import DurableSettings
from denizen.domain.errors import Conflict, DenizenError, InvalidInput, Unavailable
from denizen.domain.json import Json, JsonObject
from denizen.domain.store_move import STORE_MOVED
from denizen.ports.durable import ANY_LANE, OnFault, RunLane, Workflow

if TYPE_CHECKING:
    from dbos import StepReservation

    from denizen.adapters.durable.log import DbosLog, RunResult
    from denizen.adapters.durable.recovery import OpenLog

_logger = logging.getLogger("denizen.durable")

_POLL_FIRST_S = 0.05
_POLL_MOST_S = 1.0
_UNWIND_S = 5.0
"""The time that stopped runs have for unwinding."""

_T = TypeVar("_T")

StepAction = Callable[[], Awaitable[Json]]


class DbosExecution:
    """Implements `denizen.ports.durable.DurableExecution`."""

    def __init__(self, settings: DurableSettings) -> None:
        self._settings = settings
        self._workflows: dict[str, Workflow] = {}
        self._on_fault: dict[str, OnFault] = {}
        self._open: OpenLog | None = None
        self._runs: dict[str, ActiveRun] = {}
        self._starting: dict[str, asyncio.Task[None]] = {}
        self.on_hand_in: Callable[[], None] = lambda: None
        """Called after a run was handed in, so that others can be told to look."""
        self.count_idle: Callable[[], int] = lambda: 0
        """Returns how many runs here only wait, for people or for other runs. Called from another thread."""
        self.on_moved: Callable[[], None] = lambda: None
        """Called when a run has left this process because the store is elsewhere now: it goes on where that is open."""

    def look(self) -> None:
        """Looks at once for runs that were handed in, in a process that takes them up."""
        if self._open is not None:
            self._open.recovery.look()

    def stop_claiming(self) -> None:
        """Takes up nothing more that was handed in, as before the end of the process."""
        if self._open is not None:
            self._open.recovery.stop_claiming()

    def count_runs(self) -> int:
        """Returns how many runs are under way here."""
        return len(self._runs)

    def count_working(self) -> int:
        """Returns how many of them do not only wait."""
        return len(self._runs) - self.count_idle()

    def register(self, name: str, workflow: Workflow, on_fault: OnFault | None = None) -> None:
        if self._open is not None or name in self._workflows:
            raise Conflict(
                "The workflow cannot be registered.",
                code="workflow_registered",
                why=f"{name} is registered already, or the durable log is open.",
                fix="Register each workflow once, before the start.",
            )
        self._workflows[name] = workflow
        if on_fault is not None:
            self._on_fault[name] = on_fault

    # --- opening and closing -----------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Opens the log and starts the recovery of runs.

        Raises Conflict when this process has a log open, Unavailable or NeedsAttention when the database is the reason.
        """
        await to_thread.run_sync(importlib.import_module, "denizen.adapters.durable.recovery")
        from denizen.adapters.durable.recovery import OpenLog

        bodies = {name: self._body(name, workflow) for name, workflow in self._workflows.items()}
        self._open = await OpenLog.open(self._settings, bodies, self)
        # Only now: a resumed run needs what was just set.
        self._open.recovery.start()

    async def aclose(self, *, grace_s: float = 0.0) -> None:
        opened = self._open
        if opened is None or opened.closing.is_set():
            return
        with anyio.CancelScope(shield=True):
            await opened.begin_closing()
            await self._settle_all(grace_s)
            self.abandon_all()
            settled = await self._settle_all(_UNWIND_S)
            if not settled:
                _logger.warning("runs that do not stop: %s", ", ".join(self._runs))
            await opened.close(settled=settled)
            self._open = None
            self._runs.clear()

    async def _settle_all(self, timeout_s: float) -> bool:
        """Waits until no run is left here. False when the time was too short."""
        with anyio.move_on_after(timeout_s):
            while self._starting or self._runs:
                for task in list(self._starting.values()):
                    await asyncio.wait({task})
                for run in list(self._runs.values()):
                    await run.settled.wait()
        return not self._runs

    def abandon_all(self) -> None:
        """Stops all runs here without ending them."""
        for run in self._runs.values():
            run.scope.cancel()

    def is_running(self, run_id: str) -> bool:
        return run_id in self._starting or run_id in self._runs

    async def _opened(self) -> OpenLog:
        """Returns the log for new work. Raises Unavailable while it is not open or closing."""
        if self._open is None or self._open.closing.is_set():
            await refuse("Durable execution was not started yet, or is shutting down.")
        return self._open

    @property
    def _log(self) -> DbosLog:
        """The log for runs, which go on while it is closing."""
        assert self._open is not None, "runs are unwound before it is closed"
        return self._open.log

    # --- runs --------------------------------------------------------------------------------------------------------

    async def submit(self, name: str, run_id: str, payload: JsonObject, *, lane: RunLane = ANY_LANE) -> None:
        """Submits a run (see the port).

        Also raises InvalidInput for an unknown name or a payload that is not JSON, Conflict when the id belongs to
        another workflow, and Unavailable or NeedsAttention when the database is the reason; in that case the run may
        start later.
        """
        opened = await self._opened()
        if name not in self._workflows:
            raise InvalidInput("There is no such workflow.", code="workflow_unknown", why=f"{name} is not registered.")
        recorded = RecordedValue(encode(payload))
        if not self._settings.execute or (self._settings.claims and lane.queue):
            # Also a process that runs it perhaps itself: in a lane, another one may be the next.
            await self._ask(lambda: opened.log.hand_in(name, run_id, recorded, lane))
            self.on_hand_in()
            self.look()
            return
        if run_id in self._runs:
            return
        starting = self._starting.get(run_id)
        if starting is None:
            # A task of its own: whoever submits may be cancelled, but a run that is recorded must also start. An empty
            # context, because a resumed run has no other.
            starting = asyncio.get_running_loop().create_task(self._begin(name, run_id, recorded), context=Context())
            self._starting[run_id] = starting
            starting.add_done_callback(lambda task: self._begun(run_id, task))
        try:
            with anyio.fail_after(self._settings.patience_s):
                await asyncio.shield(starting)
        except TimeoutError as error:
            raise _slow() from error

    async def _begin(self, name: str, run_id: str, payload: RecordedValue) -> None:
        started = await self._log.start(name, run_id, payload)
        if started and run_id not in self._runs:
            self._runs[run_id] = ActiveRun(run_id)

    def _begun(self, run_id: str, task: asyncio.Task[None]) -> None:
        del self._starting[run_id]
        # Nobody may be left to hear of it.
        if not task.cancelled():
            task.exception()

    def _body(
        self, name: str, workflow: Workflow
    ) -> Callable[[str, JsonObject | RecordedValue], Awaitable[RecordedValue]]:
        """Returns the function that DBOS runs: the workflow, in a scope that can stop it without ending it."""

        async def body(run_id: str, payload: JsonObject | RecordedValue) -> RecordedValue:
            run, task = await self._enter(run_id, name)
            given = cast("JsonObject", decode(payload.text)) if isinstance(payload, RecordedValue) else payload
            result: RecordedValue | None = None
            try:
                with run.scope, entered(run):
                    result = RecordedValue(await perform(lambda: workflow(given), run_id=run_id, name=name))
            except DenizenError as error:
                if error.code == STORE_MOVED:
                    run.error = encode_error(error)
                elif not _is_stopped(run, task):
                    raise
            # A workflow that is stopped, or whose store has moved, has not ended, whatever it makes of that: it stays
            # pending.
            if result is None or _is_stopped(run, task):
                raise asyncio.CancelledError
            return result

        return body

    async def _enter(self, run_id: str, name: str) -> tuple[ActiveRun, asyncio.Task[object]]:
        while (earlier := self._runs.get(run_id)) is not None and earlier.is_entered:
            # This process was taken for dead and has the run anew. What goes on here since before can record nothing.
            earlier.scope.cancel()
            await earlier.settled.wait()
        run = self._runs.setdefault(run_id, ActiveRun(run_id))
        run.is_entered = True
        task, opened = asyncio.current_task(), self._open
        assert task is not None
        assert opened is not None
        opened.recovery.note_begun(run_id)
        # The task ends after the outcome is recorded.
        task.add_done_callback(lambda ended: self._settle(run, ended, opened.log))
        task.add_done_callback(lambda ended: self._tell(run, ended, self._on_fault.get(name)))
        if opened.closing.is_set():
            run.scope.cancel()
        return run, task

    def _settle(self, run: ActiveRun, task: asyncio.Task[object], log: DbosLog) -> None:
        self._runs.pop(run.id, None)
        if task.cancelled():
            run.settle(error=run.error)
            return
        error = task.exception()
        if error is None:
            result = task.result()
            run.settle(value=result.text if isinstance(result, RecordedValue) else encode(result))
        elif isinstance(error, DenizenError):
            run.settle(error=encode_error(error))
        else:
            explained = log.explain(run.id, error)
            if explained.code != "run_cancelled":
                _logger.error("the end of run %s could not be recorded; it stays pending", run.id, exc_info=error)
            run.settle(error=encode_error(explained))

    def _tell(self, run: ActiveRun, task: asyncio.Task[object], on_fault: OnFault | None) -> None:
        """Tells of a run that has failed or left, after `_settle`."""
        if run.error is not None and decode_error(run.error).code == STORE_MOVED:
            self.on_moved()
        if on_fault is None:
            return
        if run.error is not None:
            on_fault(run.id, decode_error(run.error))
        elif task.cancelled() and (self._open is None or self._open.closing.is_set()):
            on_fault(run.id, closing(f"Run {run.id} has not ended."))

    async def wait(self, run_id: str) -> Json:
        """Waits for a run (see the port). Also raises NotFound for an unknown id."""
        opened = await self._opened()
        starting = self._starting.get(run_id)
        if starting is not None:
            await asyncio.wait({starting})
        poll_s = _POLL_FIRST_S
        while True:
            run = self._runs.get(run_id)
            if run is not None:
                await run.settled.wait()
                if run.ended:
                    return run.result()
            if opened.closing.is_set():
                await refuse(f"Run {run_id} has not ended.")
            ended = await self._ask(lambda: opened.log.find_result(run_id))
            if ended is not None:
                return ended.value
            with anyio.move_on_after(poll_s):
                await opened.closing.wait()
            poll_s = min(poll_s * 2, _POLL_MOST_S)

    async def _ask(self, question: Callable[[], _T]) -> _T:
        """Asks the database in a thread, which is abandoned when there is no answer in time."""
        try:
            with anyio.fail_after(self._settings.patience_s):
                return await to_thread.run_sync(question, abandon_on_cancel=True)
        except TimeoutError as error:
            raise _slow() from error

    async def cancel(self, run_id: str) -> None:
        """Cancels a run. Raises NotFound."""
        opened = await self._opened()
        await self._ask(lambda: opened.log.cancel(run_id))
        run = self._runs.get(run_id)
        if run is not None:
            run.error = encode_error(cancelled(run_id))
            run.scope.cancel()

    async def forget(self, run_ids: Sequence[str]) -> None:
        opened = await self._opened()
        await self._ask(lambda: opened.log.forget_runs(run_ids))

    async def check_write(self) -> None:
        opened = await self._opened()
        # Without a limit of its own: while the database is away, each try that is given up would leave a thread behind.
        await to_thread.run_sync(opened.check_write, abandon_on_cancel=True)

    async def pending(self) -> list[str]:
        opened = await self._opened()
        return [run.id for run in await self._ask(opened.log.list_unfinished)]

    # --- steps -------------------------------------------------------------------------------------------------------

    async def step(self, name: str, action: StepAction) -> Json:
        """Runs a step. A step inside the action of another belongs to that one and is not recorded."""
        run = current_run()
        if is_inside_step():
            return decode(await perform(action, run_id=run.id, name=name))
        return await self._record(run, name, action)

    async def gather(self, *steps: tuple[str, StepAction]) -> list[Json]:
        """Runs steps side by side. After all have ended, raises the first error in the given order."""
        run = current_run()
        if is_inside_step():
            return await side_by_side(*(partial(self.step, name, action) for name, action in steps))
        # Numbered before the first of them runs.
        places = [self._log.reserve() for _ in steps]
        return await side_by_side(
            *(
                partial(self._record, run, name, action, place)
                for (name, action), place in zip(steps, places, strict=True)
            )
        )

    async def _record(
        self, run: ActiveRun, name: str, action: StepAction, place: StepReservation | None = None
    ) -> Json:
        from denizen.adapters.durable.log import RunLostError

        opened = self._open
        result: RecordedValue | RunResult | None = None
        with anyio.CancelScope() as recording:

            async def act() -> RecordedValue:
                # This process may be taken for dead, as after it was frozen or while its database is away, and another
                # one may be doing this very step. A run that was lost is stopped in this wait.
                while opened is not None and not opened.recovery.holds_lease():  # noqa: ASYNC110 - a thread renews it
                    await anyio.sleep(_POLL_FIRST_S)
                try:
                    with inside_step():
                        done = RecordedValue(await perform(action, run_id=run.id, name=f"step {name}"))
                except DenizenError:
                    recording.shield = True
                    raise
                # What has happened is recorded, even while the run is being stopped.
                recording.shield = True
                return done

            try:
                result = await self._log.step(name, act, place)
            except RunLostError as lost:
                if lost.error is not None:
                    if lost.error.code != STORE_MOVED:
                        _logger.warning(
                            "a step of run %s could not be recorded; it stays pending: %r", run.id, lost.__cause__
                        )
                    run.error = encode_error(lost.error)
        if result is None:
            await leave(run)
        return decode(result.text) if isinstance(result, RecordedValue) else result.value


def _is_stopped(run: ActiveRun, task: asyncio.Task[object]) -> bool:
    return run.scope.cancel_called or task.cancelling() > 0


def _slow() -> Unavailable:
    return Unavailable(
        "The database takes too long.",
        code="durable_slow",
        why="The durable log did not answer in time; what was asked may still happen.",
        fix="Check whether the database is locked or overloaded, and try again.",
    )

"""The open log of a process, and the thread that resumes the runs of dead processes and forgets old ones.

Recovery is a thread because it only waits for the database, and because a process whose event loop is busy still lives.
`durable` opens and closes the log; this module imports the vendors, so it is imported then.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import anyio
from anyio import to_thread

from denizen.adapters.durable.database import FAULTS, DurableDatabase, explain
from denizen.adapters.durable.lease import Lease, open_lease
from denizen.adapters.durable.log import DbosLog, PendingRun, WorkflowBody
from denizen.adapters.durable.settings import DurableSettings
from denizen.domain.clock import tell_elapsed_s
from denizen.domain.errors import Conflict
from denizen.domain.ids import fresh
from denizen.domain.record import record

_logger = logging.getLogger("denizen.durable")

# A run that cannot be recorded, for instance on a full disk, is retried ever more rarely: each try repeats its actions.
_RETRY_FIRST_S = 10.0
_RETRY_MOST_S = 600.0
_BEGINS_WITHIN_S = 600.0
"""A run that was taken up begins in this time, or is taken up again."""
_FORGET_EVERY_S = 3600.0
# Claims take little at a time, so that several processes share what waits; whoever hands a run in tells them to look.
_CLAIM_AT_ONCE = 8
_CLAIM_EVERY_S = 2.0
_CLAIM_PAUSE_S = 0.02
"""In which others have their turn."""
_SETTLING_S = 0.5
"""A run has its place in its queue here so long after it was claimed; only then may the next of its lane follow."""
# Small pieces, so that deleting never holds the database for long.
_FORGET_AT_ONCE = 200


@record
class ExecutorContext:
    """The facts about this process that the recovery thread needs."""

    executor: str
    workflows: Collection[str]
    is_running: Callable[[str], bool]
    count_working: Callable[[], int]
    on_lost: Callable[[], object]
    """Called when another process took this one for dead."""


@dataclass(slots=True)
class _Retry:
    wait_s: float
    at_s: float


class RunRecovery:
    """Renews the lease and looks for abandoned runs, at once and then every `heartbeat_s`."""

    def __init__(self, log: DbosLog, lease: Lease, context: ExecutorContext, settings: DurableSettings) -> None:
        self._log = log
        self._lease = lease
        self._context = context
        self._settings = settings
        self._renewed_s = lease.renewed_s
        self._stop = threading.Event()
        self._may_claim = True
        self._thread = threading.Thread(target=self._run, name="denizen-durable-recovery", daemon=True)
        self._woken = threading.Event()
        self._claimed_s: dict[str, float] = {}
        """When a run of these lanes was claimed here last, as far as that is not long ago."""
        self._taken_s: dict[str, float] = {}
        """When these runs were taken up here whose workflows have not begun yet, since the event loop is busy."""
        log.on_take = self._note_taken
        self._retries: dict[str, _Retry] = {}
        self._forgot_s = time.monotonic()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stops, after the round that is under way."""
        self._stop.set()
        self._woken.set()
        self._thread.join()

    def note_begun(self, run_id: str) -> None:
        """Notes that the workflow of a run that was taken up has begun. Called on the event loop."""
        self._taken_s.pop(run_id, None)

    def _note_taken(self, run_id: str) -> None:
        self._taken_s[run_id] = time.monotonic()

    def holds_lease(self) -> bool:
        """Tells whether no other process can have taken this one for dead yet: it has renewed its lease in time."""
        sure_s = max(self._settings.expiry_s, self._settings.heartbeat_s)
        return tell_elapsed_s() - self._renewed_s < sure_s

    def look(self) -> None:
        """Looks now for runs that were handed in."""
        self._woken.set()

    def stop_claiming(self) -> None:
        """Takes up nothing more that is handed in."""
        self._may_claim = False

    def give_back(self) -> None:
        """Hands in anew what has a lane and did not end here: others need not find out that this process is gone."""
        if self._settings.claims:
            self._log.hand_back([self._context.executor])

    def _run(self) -> None:
        next_round_s = 0.0
        while not self._stop.is_set():
            self._woken.clear()
            wait_s = self._settings.heartbeat_s
            try:
                is_round = time.monotonic() >= next_round_s
                if is_round:
                    next_round_s = time.monotonic() + self._settings.heartbeat_s
                    self._round()
                # One that is alone looks for what a fleet left, lane by lane to its end: nobody hands anything in.
                if self._settings.claims or (self._settings.inherits and (is_round or self._claimed_s)):
                    wait_s = min(wait_s, self._claim())
            except FAULTS as fault:
                error = explain(fault)
                if not self._stop.is_set():
                    _logger.warning("looking for abandoned runs failed: %s", error.message, extra=error.fields)
            except Exception:
                # The boundary of a job: the next round tries again.
                if not self._stop.is_set():
                    _logger.warning("looking for abandoned runs failed", exc_info=True)
            self._woken.wait(max(min(wait_s, next_round_s - time.monotonic()), 0.0))

    def _round(self) -> None:
        if not self._lease.renew():
            _logger.warning("this process was silent for too long; other processes may have taken over its runs")
            self._context.on_lost()
        self._renewed_s = self._lease.renewed_s  # only now: what was lost is stopped first
        if not self._settings.rescue:
            return
        self._resume_abandoned(self._log.list_unfinished())
        self._forget()

    def _claim(self) -> float:
        """Takes up what was handed in, while there is room here. Returns how long to wait for the next look, in s."""
        while self._may_claim and not self._stop.is_set():
            now_s = time.monotonic()
            self._claimed_s = {lane: at_s for lane, at_s in self._claimed_s.items() if now_s - at_s < _SETTLING_S}
            room = min(self._settings.max_claimed - self._context.count_working(), _CLAIM_AT_ONCE)
            if room <= 0:
                break
            taken = self._log.claim(room, self._claimed_s.keys())
            self._claimed_s |= {run.queue: time.monotonic() for run in taken if run.queue}
            if not taken or self._stop.wait(_CLAIM_PAUSE_S):
                break
        return _SETTLING_S if self._claimed_s else _CLAIM_EVERY_S

    def _resume_abandoned(self, unfinished: Collection[PendingRun]) -> None:
        dead = self._lease.find_dead({run.executor for run in unfinished} - {self._context.executor, ""})
        if dead and self._settings.claims and self._log.hand_back(dead):
            unfinished = self._log.list_unfinished()  # what has a lane waits in it now, for whoever has the lane
        self._retries = {run.id: self._retries[run.id] for run in unfinished if run.id in self._retries}
        for run in unfinished:
            if self._stop.is_set():
                return
            if run.name not in self._context.workflows:
                continue
            if run.executor in dead:
                self._take_over(run)
            elif run.executor == self._context.executor and not self._is_here(run.id):
                self._retry(run)

    def _is_here(self, run_id: str) -> bool:
        began_s = self._taken_s.get(run_id)
        is_beginning = began_s is not None and time.monotonic() - began_s < _BEGINS_WITHIN_S
        return is_beginning or self._context.is_running(run_id)

    def _retry(self, run: PendingRun) -> None:
        """Retries a run of this process that stopped because it could not be recorded. Each time it waits longer."""
        now_s = time.monotonic()
        retry = self._retries.setdefault(run.id, _Retry(_RETRY_FIRST_S, now_s))
        if now_s >= retry.at_s:
            retry.at_s = now_s + retry.wait_s
            retry.wait_s = min(retry.wait_s * 2, _RETRY_MOST_S)
            self._take_over(run)

    def _take_over(self, run: PendingRun) -> None:
        try:
            if self._log.take_over(run):
                _logger.info("resumed run %s (%s) of %s", run.id, run.name, run.executor)
        except Exception:
            # The boundary of a job: one run that cannot be read must not keep the others waiting.
            _logger.exception("run %s (%s) cannot be resumed", run.id, run.name)

    def _forget(self) -> None:
        now_s = time.monotonic()
        if now_s - self._forgot_s < _FORGET_EVERY_S:
            return
        self._forgot_s = now_s
        before_ms = int((time.time() - self._settings.keep_days * 86_400) * 1000)
        while not self._stop.is_set() and self._log.forget(ended_before_ms=before_ms, limit=_FORGET_AT_ONCE):
            pass


_ANSWER_S = 2.0
"""The longest wait for an answer of the database while closing, each time that one is needed."""


class RunOwner(Protocol):
    """The object that runs what the log records."""

    def is_running(self, run_id: str) -> bool: ...

    def count_working(self) -> int: ...

    def abandon_all(self) -> None: ...


class _Process:
    """Notes that DBOS is in use: a process can have it once."""

    is_taken = False


class OpenLog:
    """The open log: its database, the lease of this process, and the recovery thread. See `open`."""

    def __init__(self, database: DurableDatabase, log: DbosLog, lease: Lease, recovery: RunRecovery) -> None:
        self.database = database
        self.log = log
        self.recovery = recovery
        self.closing = anyio.Event()
        self._lease = lease

    @classmethod
    async def open(cls, settings: DurableSettings, bodies: Mapping[str, WorkflowBody], owner: RunOwner) -> OpenLog:
        """Connects, migrates and takes the lease. The recovery is not started yet.

        Raises Conflict when this process has a log open.
        """
        if _Process.is_taken:
            raise Conflict(
                "Durable execution runs already in this process.",
                code="durable_open",
                why="A process can have one durable log open at a time.",
                fix="Close the other one first.",
            )
        _Process.is_taken = True
        loop = asyncio.get_running_loop()
        context = ExecutorContext(
            executor=fresh("exec"),
            workflows=frozenset(bodies),
            is_running=owner.is_running,
            count_working=owner.count_working,
            on_lost=lambda: loop.call_soon_threadsafe(owner.abandon_all),
        )
        try:
            return await to_thread.run_sync(cls._open, settings, bodies, context)
        except BaseException:
            _Process.is_taken = False
            raise

    @classmethod
    def _open(cls, settings: DurableSettings, bodies: Mapping[str, WorkflowBody], context: ExecutorContext) -> OpenLog:
        database: DurableDatabase | None = None
        try:
            database = DurableDatabase(settings)
            log = DbosLog(database, schema=settings.schema, executor=context.executor)
            log.open(bodies)
            lease = open_lease(settings, database.engine, context.executor)
            lease.acquire()
        except BaseException as error:
            DbosLog.close()
            if database is not None:
                database.close()
            if isinstance(error, FAULTS):
                raise explain(error) from error
            raise
        return cls(database, log, lease, RunRecovery(log, lease, context, settings))

    def check_write(self) -> None:
        """Raises what keeps the log from being written, explained. Waits while the database is away."""
        try:
            self.database.check_write()
        except FAULTS as error:
            raise explain(error) from error

    async def begin_closing(self) -> None:
        """Stops starting runs and taking them over."""
        self.closing.set()
        await _answered(self.recovery.stop)

    async def close(self, *, settled: bool) -> None:
        """Closes the log. With `settled` no run is left here, so other processes may resume pending ones at once."""
        if settled:
            await _answered(self._release)
        self.database.refuse()
        if not await _answered(self._end):
            _logger.warning("the durable log does not close")
        # DBOS made its own threads the loop's default ones, and they have ended.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))

    def _release(self) -> None:
        try:
            self.recovery.give_back()
            self._lease.release()
        except FAULTS as error:
            _logger.warning("runs or the lease could not be given back, which expires by itself: %s", error)

    def _end(self) -> None:
        self.log.close()
        self.database.close()
        _Process.is_taken = False


async def _answered(action: Callable[[], None]) -> bool:
    """Runs the action in a thread. False when it did not end in time; it is left to itself then."""
    with anyio.move_on_after(_ANSWER_S):
        await to_thread.run_sync(action, abandon_on_cancel=True)
        return True
    return False

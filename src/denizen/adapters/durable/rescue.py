"""Taking over the runs of processes that died, and forgetting runs that ended long ago.

A thread, because all of it is waiting for the database, and because a process whose event loop is busy still lives.
Started and stopped by `durable`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from denizen.adapters.durable.lease import Lease
from denizen.adapters.durable.log import DbosLog, PendingRun
from denizen.adapters.durable.settings import DurableSettings

_logger = logging.getLogger("denizen.durable")

_RETRY_FIRST_S = 10.0
_RETRY_MOST_S = 600.0
_FORGET_EVERY_S = 3600.0
_FORGET_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Here:
    """What the thread has to know of its process."""

    executor: str
    workflows: Collection[str]
    is_running: Callable[[str], bool]
    on_lost: Callable[[], object]
    """Another process took this one for dead."""


@dataclass(slots=True)
class _Retry:
    wait_s: float
    at_s: float


class Rescuer:
    """Renews the lease and looks around, at once and then every `heartbeat_s`."""

    def __init__(self, log: DbosLog, lease: Lease, here: Here, settings: DurableSettings) -> None:
        self._durable = log
        self._lease = lease
        self._here = here
        self._settings = settings
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="denizen-durable-rescue", daemon=True)
        self._retries: dict[str, _Retry] = {}
        self._forgot_s = time.monotonic()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Waits for the round that is under way."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._round()
            except Exception:
                # The boundary of a job: the next round tries again.
                if not self._stop.is_set():
                    _logger.warning("looking for abandoned runs failed", exc_info=True)
            self._stop.wait(self._settings.heartbeat_s)

    def _round(self) -> None:
        if not self._lease.renew():
            _logger.warning("this process was silent for too long; other processes may have taken over its runs")
            self._here.on_lost()
        if not self._settings.rescue:
            return
        self._rescue(self._durable.list_unfinished())
        self._forget()

    def _rescue(self, unfinished: Collection[PendingRun]) -> None:
        dead = self._lease.find_dead({run.executor for run in unfinished} - {self._here.executor})
        self._retries = {run.id: self._retries[run.id] for run in unfinished if run.id in self._retries}
        for run in unfinished:
            if self._stop.is_set():
                return
            if run.name not in self._here.workflows:
                continue
            if run.executor in dead:
                self._take_over(run)
            elif run.executor == self._here.executor and not self._here.is_running(run.id):
                self._retry(run)

    def _retry(self, run: PendingRun) -> None:
        """A run of this process that stopped because it could not be recorded. Each time it does, waits longer."""
        now_s = time.monotonic()
        retry = self._retries.setdefault(run.id, _Retry(_RETRY_FIRST_S, now_s))
        if now_s >= retry.at_s:
            retry.at_s = now_s + retry.wait_s
            retry.wait_s = min(retry.wait_s * 2, _RETRY_MOST_S)
            self._take_over(run)

    def _take_over(self, run: PendingRun) -> None:
        try:
            if self._durable.take_over(run):
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
        while not self._stop.is_set() and self._durable.forget(ended_before_ms=before_ms, limit=_FORGET_AT_ONCE):
            pass

"""The transaction of a unit of work: it begins with the first statement and is shielded against cancellation.

Two kinds of cancellation can reach a task, and neither may reach a driver, since a cancelled SQLAlchemy leaks
connections. A shield holds off a cancelled anyio scope. No shield stops `task.cancel()`, so it is remembered and raised
when the transaction is over. Waiting for a free connection can be cancelled, since nothing has begun then.

When the connection is lost during a commit, nobody can say whether it happened; so everything that is added may be
added again. `SqlStore.work` opens transactions; the repositories run their jobs through `read` and `write`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

import anyio
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from denizen.adapters.store.connections import ConnectionWorker
from denizen.adapters.store.dialect import SqlDialect
from denizen.domain.clock import Clock

T = TypeVar("T")

SLOW_S = 1.0
"""A slower unit of work is logged as a warning, since it keeps others from writing."""

_log = logging.getLogger(__name__)


class Transaction:
    """Runs jobs with `read` and `write` until `end`. When the connection is lost, the first job runs again."""

    def __init__(self, worker: ConnectionWorker, dialect: SqlDialect, clock: Clock, *, write: bool) -> None:
        self.dialect = dialect
        self._worker = worker
        self._clock = clock
        self._write = write
        self._begun = False
        self._over = False
        self._failure: Exception | None = None
        self._cancelled: asyncio.CancelledError | None = None
        self._started_s = clock.monotonic_s()
        self._shield = anyio.CancelScope(shield=True)
        self._shield.__enter__()

    @property
    def writes(self) -> bool:
        return self._write

    async def read(self, job: Callable[[sa.Connection], T]) -> T:
        """Runs the job and returns its result. Raises what it raises, and for faults what `Store` promises."""
        if self._over:
            raise RuntimeError("this unit of work is over")
        if self._failure is not None:
            raise self._failure
        if self._begun:
            return await self._run(job)
        self._begun = True
        begin, write = self.dialect.begin, self._write

        def first(connection: sa.Connection) -> T:
            begin(connection, write=write)
            return job(connection)

        return await self._run(first, again=True)

    async def write(self, job: Callable[[sa.Connection], T]) -> T:
        """Runs a job that changes something. Raises RuntimeError in a unit of work that only reads."""
        if not self._write:
            raise RuntimeError("this unit of work only reads: open it with write=True")
        return await self.read(job)

    async def end(self, error: BaseException | None, trace: TracebackType | None) -> None:
        """Commits, or rolls back after an error. Raises the cancellation that was held back."""
        self._over = True
        try:
            if self._begun:
                await self._finish(error)
        finally:
            self._shield.__exit__(type(error) if error else None, error, trace)
            if self._cancelled is not None:
                raise self._cancelled
        duration_s = self._clock.monotonic_s() - self._started_s
        if duration_s > SLOW_S and self._failure is None:  # a failed one has its own error
            _log.warning("a unit of work took %.1f s", duration_s, stack_info=_log.isEnabledFor(logging.DEBUG))

    async def _finish(self, error: BaseException | None) -> None:
        if not self._write or error is not None or self._failure is not None:
            self._worker.roll_back()
            if error is None and self._failure is not None:
                # The block went on after a failed statement, so nothing of it may be committed.
                raise self._failure
            return
        try:
            await self._run(_commit)
        finally:
            if self._failure is not None:
                self._worker.roll_back()

    async def _run(self, job: Callable[[sa.Connection], T], *, again: bool = False) -> T:
        try:
            return await self._outlast(self._worker.submit(job))
        except DBAPIError as error:
            if error.connection_invalidated:
                self._worker.drop()
                if again:
                    return await self._run(job)
            explained = self.dialect.explain(error)
            self._failure = explained or error
            if explained is None:
                raise
            raise explained from error

    async def _outlast(self, answer: asyncio.Future[T]) -> T:
        """Waits for the answer, however often the task is cancelled meanwhile."""
        while not answer.done():
            try:
                return await asyncio.shield(answer)
            except asyncio.CancelledError as cancelled:
                self._cancelled = cancelled
        return answer.result()


def _commit(connection: sa.Connection) -> None:
    connection.commit()

"""The threads that own the database connections, and the pool of them. Every statement of the store runs on one.

A worker gets whole jobs, so a repository call costs one change of threads however many statements it makes, and no
cancellation reaches a driver in the middle of a statement. Measured against SQLAlchemy's asyncio layer over aiosqlite,
which changes threads three or four times per statement: a quarter (reading) to a third (writing) of the processor time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

import anyio
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

T = TypeVar("T")


class ConnectionWorker:
    """One connection and its thread. It connects at its first job, and again after `drop`."""

    def __init__(self, name: str, engine: sa.Engine) -> None:
        self._engine = engine
        self._connection: sa.Connection | None = None
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # A daemon: a store that nobody closed must not keep the program from ending.
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[sa.Connection], T]) -> asyncio.Future[T]:
        """Queues the job and returns a future for its result or error. Cancelling the future stops nothing."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            try:
                result = job(self._connect())
            except BaseException as error:  # noqa: BLE001 - nothing is handled here: it is raised where it is awaited
                _tell(loop, _fail, answer, error)
            else:
                _tell(loop, _give, answer, result)

        self._jobs.put(work)
        return answer

    def roll_back(self) -> None:
        """Queues a rollback that nobody waits for. A connection that fails to roll back is dropped."""
        self._jobs.put(self._roll_back)

    def drop(self) -> None:
        """Closes a broken connection; the next job gets a new one."""
        self._jobs.put(self._disconnect)

    def close(self) -> asyncio.Future[None]:
        """Finishes the queued jobs, closes the connection and ends the thread."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()
        self._jobs.put(self._disconnect)
        self._jobs.put(lambda: _tell(loop, _give, answer, None))
        self._jobs.put(None)
        return answer

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _connect(self) -> sa.Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _roll_back(self) -> None:
        if self._connection is not None:
            try:
                self._connection.rollback()
            except SQLAlchemyError:
                self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()


def _give(answer: asyncio.Future[Any], result: object) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: asyncio.Future[Any], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)


def _tell(
    loop: asyncio.AbstractEventLoop,
    how: Callable[[asyncio.Future[Any], Any], None],
    answer: asyncio.Future[Any],
    what: object,
) -> None:
    if not loop.is_closed():  # otherwise nobody waits for the answer
        loop.call_soon_threadsafe(how, answer, what)


CLOSE_S = 30.0
"""The longest time that `aclose` waits; no statement takes longer."""


class ConnectionPool:
    """A bounded number of workers, started when needed and kept for the next unit of work.

    The task that takes a worker also gives it back.
    """

    def __init__(self, name: str, engine: sa.Engine, maximum: int) -> None:
        self._name = name
        self._engine = engine
        self._maximum = maximum
        self._limit = anyio.CapacityLimiter(maximum)
        self._idle: list[ConnectionWorker] = []
        self._opened = 0

    @property
    def in_use(self) -> int:
        return int(self._limit.borrowed_tokens)

    async def take(self) -> ConnectionWorker:
        """Waits for a free worker, first come, first served.

        A task that holds one already gets a RuntimeError instead of waiting for itself.
        """
        await self._limit.acquire()
        if self._idle:
            return self._idle.pop()
        try:
            worker = ConnectionWorker(f"{self._name}-{self._opened + 1}", self._engine)
        except RuntimeError:  # the system starts no more threads
            self._limit.release()
            raise
        self._opened += 1
        return worker

    def give_back(self, worker: ConnectionWorker) -> None:
        self._idle.append(worker)
        self._limit.release()

    async def aclose(self) -> None:
        """Waits for running units of work, at most CLOSE_S, then closes every connection."""
        with anyio.move_on_after(CLOSE_S, shield=True):
            for _ in range(self._maximum):
                await self._limit.acquire_on_behalf_of(object())
        with anyio.CancelScope(shield=True):
            while self._idle:
                await self._idle.pop().close()

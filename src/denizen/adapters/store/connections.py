"""One database connection and the thread that owns it: every statement of the store runs on a lane.

A lane is handed whole jobs, so that a repository call costs one change of threads however many statements it makes,
and so that no cancellation ever reaches a driver in the middle of one. Used by `unit` and `lanes`; a lane belongs to
one unit of work at a time. Measured: a quarter (reading) to a third (writing) of the processor time of SQLAlchemy's
asyncio layer over aiosqlite, which changes threads three or four times a statement.
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
    """Connects at its first job, and again after `drop`."""

    def __init__(self, name: str, engine: sa.Engine) -> None:
        self._engine = engine
        self._connection: sa.Connection | None = None
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # A daemon: a store that nobody closed must not keep the program from ending.
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[sa.Connection], T]) -> asyncio.Future[T]:
        """Puts the job in line; the future gives what it returns or raises. Cancelling the future stops nothing."""
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
        """Puts the end of a transaction in line, for which nobody has to wait. A connection that fails is dropped."""
        self._jobs.put(self._roll_back)

    def drop(self) -> None:
        """The next job gets a new connection, since this one is broken."""
        self._jobs.put(self._disconnect)

    def close(self) -> asyncio.Future[None]:
        """Finishes the jobs in line, closes the connection and ends the thread."""
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
    if not loop.is_closed():  # else nobody is left to hear it
        loop.call_soon_threadsafe(how, answer, what)


CLOSE_S = 30.0
"""How long `aclose` waits: no statement takes longer."""


class ConnectionPool:
    """Whoever takes a lane gives it back, from the same task."""

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
        """Waits, first come first served, until one is free. A task that has one already gets a RuntimeError instead of
        waiting for itself.
        """
        await self._limit.acquire()
        if self._idle:
            return self._idle.pop()
        try:
            lane = ConnectionWorker(f"{self._name}-{self._opened + 1}", self._engine)
        except RuntimeError:  # no thread more
            self._limit.release()
            raise
        self._opened += 1
        return lane

    def give_back(self, lane: ConnectionWorker) -> None:
        self._idle.append(lane)
        self._limit.release()

    async def aclose(self) -> None:
        """Waits for the units of work that are under way, though not for ever, then closes every connection."""
        with anyio.move_on_after(CLOSE_S, shield=True):
            for _ in range(self._maximum):
                await self._limit.acquire_on_behalf_of(object())
        with anyio.CancelScope(shield=True):
            while self._idle:
                await self._idle.pop().close()

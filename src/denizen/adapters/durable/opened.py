"""What exists while the log is open: its database, the lease of this process, the thread that rescues.

`durable` opens and closes it; it is imported then, since it imports the vendors.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import anyio
from anyio import to_thread

from denizen.adapters.durable.database import Database
from denizen.adapters.durable.faults import FAULTS, explain
from denizen.adapters.durable.lease import Lease, open_lease
from denizen.adapters.durable.log import Body, DbosLog
from denizen.adapters.durable.rescue import Here, Rescuer
from denizen.adapters.durable.settings import DurableSettings
from denizen.domain.errors import Conflict
from denizen.domain.ids import fresh

_logger = logging.getLogger("denizen.durable")

_ANSWER_S = 2.0
"""How long closing waits for an answer of the database, each time that it needs one."""


class Owner(Protocol):
    """Who runs what is recorded."""

    def is_running(self, run_id: str) -> bool: ...

    def abandon_all(self) -> None: ...


class _Process:
    """DBOS is one per process; so is what uses it."""

    is_taken = False


class OpenLog:
    """See `open`."""

    def __init__(self, database: Database, log: DbosLog, lease: Lease, rescuer: Rescuer) -> None:
        self.database = database
        self.log = log
        self.rescuer = rescuer
        self.closing = anyio.Event()
        self._lease = lease

    @classmethod
    async def open(cls, settings: DurableSettings, bodies: Mapping[str, Body], owner: Owner) -> OpenLog:
        """Connects, migrates, and takes the lease; the rescuer is not started yet. Raises Conflict when this process
        has one open.
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
        here = Here(
            executor=fresh("exec"),
            workflows=frozenset(bodies),
            is_running=owner.is_running,
            on_lost=lambda: loop.call_soon_threadsafe(owner.abandon_all),
        )
        try:
            return await to_thread.run_sync(cls._open, settings, bodies, here)
        except BaseException:
            _Process.is_taken = False
            raise

    @classmethod
    def _open(cls, settings: DurableSettings, bodies: Mapping[str, Body], here: Here) -> OpenLog:
        database: Database | None = None
        try:
            database = Database(settings)
            log = DbosLog(database, schema=settings.schema, executor=here.executor)
            log.open(bodies)
            lease = open_lease(settings, database.engine, here.executor)
            lease.acquire()
        except BaseException as error:
            DbosLog.close()
            if database is not None:
                database.close()
            if isinstance(error, FAULTS):
                raise explain(error) from error
            raise
        return cls(database, log, lease, Rescuer(log, lease, here, settings))

    async def begin_closing(self) -> None:
        """From now on nothing is started or taken over here."""
        self.closing.set()
        await _answered(self.rescuer.stop)

    async def close(self, *, settled: bool) -> None:
        """`settled`: no run is left here, so that other processes may resume what is pending at once."""
        if settled:
            await _answered(self._release)
        self.database.refuse()
        if not await _answered(self._end):
            _logger.warning("the durable log does not close")
        # DBOS made its own threads the loop's default ones, and they have ended.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))

    def _release(self) -> None:
        try:
            self._lease.release()
        except FAULTS as error:
            _logger.warning("the lease could not be given back and expires by itself: %s", error)

    def _end(self) -> None:
        self.log.close()
        self.database.close()
        _Process.is_taken = False


async def _answered(action: Callable[[], None]) -> bool:
    """Whether the action, in a thread, came to an end in time; if not, it is left to itself."""
    with anyio.move_on_after(_ANSWER_S):
        await to_thread.run_sync(action, abandon_on_cancel=True)
        return True
    return False

"""Work that runs beside the events of an account: catching up, showing turns, sending. A boundary for faults.

A fault in one piece of work is written to the log and ends that piece only: neither the account, nor the other
accounts, nor the process.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio
from anyio.abc import TaskGroup

from denizen.domain.errors import DenizenError

PAUSE_S = 5.0
"""The pause before `run_forever` starts its work again."""

_log = logging.getLogger("denizen.listener")

BackgroundWork = Callable[[], Awaitable[object]]


async def run_once(doing: str, work: BackgroundWork) -> bool:
    """Runs the work and logs what it raises. Returns whether it ended well. `doing` names it in the log."""
    try:
        await work()
    except DenizenError as error:
        _log.warning("%s ended: %s", doing, error.message, extra=error.fields)
        return False
    except Exception:  # noqa: BLE001 - the boundary of a job: a fault here must not end the account
        _log.exception("%s ended with a fault", doing)
        return False
    return True


async def run_forever(doing: str, work: BackgroundWork) -> None:
    """Runs the work, and runs it again after a pause whenever it fails. Returns when it ends well."""
    while True:
        if await run_once(doing, work):
            return
        await anyio.sleep(PAUSE_S)


class BackgroundTasks:
    """The tasks of one account. They can be started only while `open` is entered, and are cancelled with it."""

    def __init__(self) -> None:
        self._group: TaskGroup | None = None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        try:
            async with anyio.create_task_group() as self._group:
                yield
        finally:
            self._group = None

    def start(self, doing: str, work: Callable[..., Awaitable[object]], *args: object) -> None:
        """Starts `run_once`."""
        self._tasks.start_soon(run_once, doing, partial(work, *args))

    def start_forever(self, doing: str, work: Callable[..., Awaitable[object]], *args: object) -> None:
        """Starts `run_forever`."""
        self._tasks.start_soon(run_forever, doing, partial(work, *args))

    @property
    def _tasks(self) -> TaskGroup:
        if self._group is None:
            raise RuntimeError("an account takes events only while its listener runs")
        return self._group

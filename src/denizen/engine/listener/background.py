"""Work that runs beside the events of an account: catching up, showing turns, sending. A boundary for faults.

A fault in one piece of work is written to the log and ends that piece only: neither the account, nor the other
accounts, nor the process.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import cast

import anyio
from anyio.abc import TaskGroup

from denizen.domain.errors import DenizenError

PAUSE_S = 5.0
"""The pause before `run_forever` starts its work again."""
STEADY_S = 60.0
"""Work that ran for so long did not fail for the reason that it had before."""

_log = logging.getLogger("denizen.listener")

BackgroundWork = Callable[[], Awaitable[object]]


async def run_once(doing: str, work: BackgroundWork) -> bool:
    """Runs the work and logs what it raises. Returns whether it ended well. `doing` names it in the log."""
    error = await _attempt(work)
    if error is not None:
        _log_failure(doing, error)
    return error is None


async def run_forever(doing: str, work: BackgroundWork) -> None:
    """Runs the work, and runs it again after a pause whenever it fails. Returns when it ends well.

    A kind of failure is logged once, and again only when the work had run for `STEADY_S` meanwhile: without file
    descriptors or a database every try fails at once.
    """
    logged = set[str]()
    while True:
        began_s = anyio.current_time()
        error = await _attempt(work)
        if error is None:
            return
        if anyio.current_time() - began_s >= STEADY_S:
            logged.clear()
        kind = error.code if isinstance(error, DenizenError) else type(error).__name__
        if kind not in logged:
            _log_failure(doing, error)
            logged.add(kind)
        await anyio.sleep(PAUSE_S)


async def _attempt(work: BackgroundWork) -> Exception | None:
    """Returns what the work raises. Of a group of errors that tell what to do it is the first one."""
    try:
        await work()
    except Exception as raised:  # noqa: BLE001 - the boundary of a job: a fault here must not end the account
        errors = _flatten(raised)
        return errors[0] if all(isinstance(each, DenizenError) for each in errors) else raised
    return None


def _flatten(error: Exception) -> list[Exception]:
    if not isinstance(error, ExceptionGroup):
        return [error]
    return [each for inner in cast("ExceptionGroup[Exception]", error).exceptions for each in _flatten(inner)]


def _log_failure(doing: str, error: Exception) -> None:
    if isinstance(error, DenizenError):
        _log.warning("%s ended: %s", doing, error.message, extra=error.fields)
    else:
        _log.error("%s ended with a fault", doing, exc_info=error)


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

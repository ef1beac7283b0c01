"""A run while it lives in this process, and how code that it calls finds it.

Used by `durable` and by `denizen.testing.memory_durable`. What is recorded of a run is not here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn

import anyio
from anyio.lowlevel import checkpoint

from denizen.adapters.durable.outcome import decode, decode_error
from denizen.domain.errors import DenizenError, InvalidInput, Unavailable
from denizen.domain.json import Json


class Run:
    """One run in this process: how to stop it, and what its waiters get.

    It settles once: with a value, with an error, or with neither when it left this process before it ended.
    """

    def __init__(self, run_id: str) -> None:
        self.id = run_id
        self.scope = anyio.CancelScope()
        self.settled = anyio.Event()
        self.value: str | None = None
        self.error: str | None = None

    def settle(self, *, value: str | None = None, error: str | None = None) -> None:
        """Wakes the waiters. `value` and `error` are JSON text."""
        self.value = value
        self.error = error
        self.settled.set()

    @property
    def ended(self) -> bool:
        """Whether `result` says something; otherwise the record has to be asked."""
        return self.value is not None or self.error is not None

    def result(self) -> Json:
        """The value. Raises the error."""
        if self.error is not None:
            raise decode_error(self.error)
        assert self.value is not None
        return decode(self.value)


_current: ContextVar[Run | None] = ContextVar("denizen_durable_run", default=None)
_in_step: ContextVar[bool] = ContextVar("denizen_durable_in_step", default=False)


@contextmanager
def entered(run: Run) -> Generator[None]:
    """Inside, `current_run` finds the run."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)


def find_run() -> Run | None:
    """The run whose workflow is calling."""
    return _current.get()


def current_run() -> Run:
    """The run whose workflow is calling. Raises InvalidInput outside of one."""
    run = find_run()
    if run is None:
        raise InvalidInput(
            "A durable step was started outside of a run.",
            code="outside_run",
            fix="Call step and gather only from a registered workflow.",
        )
    return run


@contextmanager
def inside_step() -> Generator[None]:
    """Inside, further steps belong to the one that is running: they are not recorded on their own."""
    token = _in_step.set(True)
    try:
        yield
    finally:
        _in_step.reset(token)


def is_inside_step() -> bool:
    return _in_step.get()


async def leave(run: Run) -> NoReturn:
    """From within the run: it stops here without having ended, and is resumed some time."""
    run.scope.cancel()
    await checkpoint()
    # A workflow that shields itself gets here.
    raise asyncio.CancelledError


async def side_by_side(*jobs: Callable[[], Awaitable[Json]]) -> list[Json]:
    """Runs all jobs to their end; the results in the given order. Raises the first error in that order, if any."""
    results: dict[int, Json] = {}
    errors: dict[int, DenizenError] = {}

    async def one(index: int, job: Callable[[], Awaitable[Json]]) -> None:
        try:
            results[index] = await job()
        except DenizenError as error:
            errors[index] = error

    async with anyio.create_task_group() as tasks:
        for index, job in enumerate(jobs):
            tasks.start_soon(one, index, job)
    if errors:
        raise errors[min(errors)]
    return [results[index] for index in range(len(jobs))]


def closing(why: str) -> Unavailable:
    """What whoever waits gets while nothing is open (any more)."""
    return Unavailable(
        "Denizen is shutting down or not running yet.",
        code="durable_closed",
        why=why,
        fix="Ask again when Denizen has started; what was under way goes on then.",
    )


def cancelled(run_id: str) -> Unavailable:
    """What whoever waits for a cancelled run gets."""
    return Unavailable(
        "The work was stopped.", code="run_cancelled", why=f"Run {run_id} was cancelled.", fix="Start it anew."
    )


async def refuse(why: str) -> NoReturn:
    """Whoever asks while nothing is open (any more) gets an error; a run that asks stops, for it is not its fault.

    Raises Unavailable.
    """
    run = find_run()
    if run is not None:
        await leave(run)
    raise closing(why)

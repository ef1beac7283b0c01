"""What a run or a step ended with, as JSON text: its value, or the DenizenError that it failed with.

Pure. Used by `durable`, by the serializer that DBOS is given, and by `denizen.testing.memory_durable`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import anyio
from anyio.lowlevel import checkpoint

from denizen.domain.errors import (
    Conflict,
    DenizenError,
    Exhausted,
    InvalidInput,
    NeedsApproval,
    NeedsAttention,
    NotAllowed,
    NotFound,
    Unavailable,
)
from denizen.domain.json import Json

_logger = logging.getLogger("denizen.durable")

_FAMILIES: dict[str, type[DenizenError]] = {
    family.__name__: family
    for family in (
        DenizenError,
        InvalidInput,
        NotFound,
        Conflict,
        NotAllowed,
        NeedsApproval,
        Unavailable,
        NeedsAttention,
        Exhausted,
    )
}


@dataclass(frozen=True, slots=True)
class RecordedValue:
    """A value that is JSON text already, so that it is written once and read as often as it is asked for."""

    text: str


def encode(value: object) -> str:
    """The value as JSON text. Raises InvalidInput for what JSON cannot hold."""
    if isinstance(value, RecordedValue):
        return value.text
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"), default=_unwrap)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            "A durable value is not JSON.",
            code="not_json",
            why=str(error),
            fix="Payloads and step results are made of dicts with string keys, lists, strings, finite numbers, "
            "booleans and None.",
        ) from error


def _unwrap(value: object) -> object:
    if isinstance(value, RecordedValue):
        return json.loads(value.text)
    raise TypeError(f"{type(value).__name__} is not JSON")


def decode(text: str) -> Json:
    """The value again; every call makes a fresh one."""
    return cast("Json", json.loads(text))


def encode_error(error: DenizenError) -> str:
    """Family, code, message, why and fix. The context is for the log of the process that failed, and stays there."""
    family = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _FAMILIES)
    data: dict[str, object] = {
        "family": family,
        "code": error.code,
        "message": error.message,
        "why": error.why,
        "fix": error.fix,
    }
    if isinstance(error, Unavailable) and error.retry_after_s is not None:
        data["retry_after_s"] = error.retry_after_s
    return encode(data)


def decode_error(text: str) -> DenizenError:
    """The error again; every call makes a fresh one, so that tracebacks of several waiters do not mix."""
    data = cast("Mapping[str, Any]", json.loads(text))
    words = {"code": data["code"], "why": data["why"], "fix": data["fix"]}
    if "retry_after_s" in data:
        return Unavailable(data["message"], retry_after_s=data["retry_after_s"], **words)
    return _FAMILIES[data["family"]](data["message"], **words)


async def perform(action: Callable[[], Awaitable[object]], *, run_id: str, name: str) -> str:
    """Runs a workflow or the action of a step; its value as JSON text. Fails with a DenizenError only.

    This is the boundary of a job: any other exception is a bug. The log gets all of it; the record and whoever waits
    get an error that says where to look and nothing of the inside.
    """
    try:
        return encode(await action())
    except DenizenError:
        raise
    except Exception as error:
        _logger.exception("%s of run %s failed unexpectedly", name, run_id)
        raise DenizenError(
            "Something inside Denizen went wrong.",
            code="internal",
            why=f"{name} failed in a way that nobody expected.",
            fix=f"Look for {run_id} in the log and report what it says.",
        ) from error


class ActiveRun:
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


_current: ContextVar[ActiveRun | None] = ContextVar("denizen_durable_run", default=None)
_in_step: ContextVar[bool] = ContextVar("denizen_durable_in_step", default=False)


@contextmanager
def entered(run: ActiveRun) -> Generator[None]:
    """Inside, `current_run` finds the run."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)


def find_run() -> ActiveRun | None:
    """The run whose workflow is calling."""
    return _current.get()


def current_run() -> ActiveRun:
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


async def leave(run: ActiveRun) -> NoReturn:
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

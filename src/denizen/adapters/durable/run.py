"""A run while it lives in this process, and its values and errors as JSON text.

Used by `durable` and by the serializer that DBOS gets. `log` holds what is recorded of a run.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, cast

import anyio
from anyio.lowlevel import checkpoint

from denizen.domain.errors import (
    Conflict,
    DenizenError,
    InvalidInput,
    LimitExceeded,
    NeedsApproval,
    NeedsAttention,
    NotAllowed,
    NotFound,
    Unavailable,
)
from denizen.domain.json import Json
from denizen.domain.record import record

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
        LimitExceeded,
    )
}


@record
class RecordedValue:
    """A value that is JSON text already, so that it is encoded once however often it is read."""

    text: str


def encode(value: object) -> str:
    """Returns the value as JSON text. Raises InvalidInput for what JSON cannot hold."""
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
    """Returns the value; every call makes a fresh one."""
    return cast("Json", json.loads(text))


def encode_error(error: DenizenError) -> str:
    """Returns family, code, message, why and fix as JSON text. The context stays in the log of the failing process."""
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
    """Returns the error; every call makes a fresh one, so that tracebacks of several waiters do not mix."""
    data = cast("Mapping[str, Any]", json.loads(text))
    words = {"code": data["code"], "why": data["why"], "fix": data["fix"]}
    if "retry_after_s" in data:
        return Unavailable(data["message"], retry_after_s=data["retry_after_s"], **words)
    return _FAMILIES[data["family"]](data["message"], **words)


async def perform(action: Callable[[], Awaitable[object]], *, run_id: str, name: str) -> str:
    """Runs a workflow or the action of a step and returns its value as JSON text. Raises only DenizenError.

    This is the boundary of a job: any other exception is a bug. The log gets all of it; the record and the callers get
    an error that says where to look, and no internals.
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
        self.is_entered = False
        """Whether its workflow has begun here."""
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
        """True when `result` has an answer; otherwise ask the log."""
        return self.value is not None or self.error is not None

    def result(self) -> Json:
        """Returns the value, or raises the error."""
        if self.error is not None:
            raise decode_error(self.error)
        assert self.value is not None
        return decode(self.value)


_current: ContextVar[ActiveRun | None] = ContextVar("denizen_durable_run", default=None)
_in_step: ContextVar[bool] = ContextVar("denizen_durable_in_step", default=False)


@contextmanager
def entered(run: ActiveRun) -> Generator[None]:
    """Makes `current_run` return the run inside the block."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)


def find_run() -> ActiveRun | None:
    """Returns the run whose workflow is calling; None outside of one."""
    return _current.get()


def current_run() -> ActiveRun:
    """Returns the run whose workflow is calling. Raises InvalidInput outside of one."""
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
    """Marks the block as part of the running step: further steps inside are not recorded on their own."""
    token = _in_step.set(True)
    try:
        yield
    finally:
        _in_step.reset(token)


def is_inside_step() -> bool:
    return _in_step.get()


async def leave(run: ActiveRun) -> NoReturn:
    """Stops the calling run here without ending it; it is resumed later."""
    run.scope.cancel()
    await checkpoint()
    # A workflow that shields itself gets here.
    raise asyncio.CancelledError


async def side_by_side(*jobs: Callable[[], Awaitable[Json]]) -> list[Json]:
    """Runs all jobs to their end and returns the results in the given order. Raises the first error in that order."""
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
    """Returns the error for callers while nothing is open (any more)."""
    return Unavailable(
        "Denizen is shutting down or not running yet.",
        code="durable_closed",
        why=why,
        fix="Ask again when Denizen has started; what was under way goes on then.",
    )


def cancelled(run_id: str) -> Unavailable:
    """Returns the error for callers who wait for a cancelled run."""
    return Unavailable(
        "The work was stopped.", code="run_cancelled", why=f"Run {run_id} was cancelled.", fix="Start it again."
    )


async def refuse(why: str) -> NoReturn:
    """Raises Unavailable for a caller while nothing is open (any more).

    A run that asks is stopped instead, since it is not its fault.
    """
    run = find_run()
    if run is not None:
        await leave(run)
    raise closing(why)

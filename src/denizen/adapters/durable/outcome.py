"""What a run or a step ended with, as JSON text: its value, or the DenizenError that it failed with.

Pure. Used by `durable`, by the serializer that DBOS is given, and by `denizen.testing.memory_durable`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

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
class Recorded:
    """A value that is JSON text already, so that it is written once and read as often as it is asked for."""

    text: str


def encode(value: object) -> str:
    """The value as JSON text. Raises InvalidInput for what JSON cannot hold."""
    if isinstance(value, Recorded):
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
    if isinstance(value, Recorded):
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

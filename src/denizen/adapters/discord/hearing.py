"""Calling the listener: whatever it raises is logged here, and never ends the account. A boundary.

Used by `events`, `readiness` and `interactions` for every call. Code of others runs inside, so everything is caught.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from denizen.domain.errors import DenizenError, InvalidInput, NotFound, Unavailable
from denizen.domain.ids import fresh

_log = logging.getLogger("denizen.discord")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unheard:
    """A call that failed, in words for the one who caused it: nothing from inside, but a reference for a bug.

    `may_pass`: something outside was not available.
    """

    message: str
    may_pass: bool = False


async def hear(doing: str, call: Callable[[], Awaitable[T]]) -> T | Unheard:
    """What the call returns. `doing` names it in the log."""
    try:
        return await call()
    except DenizenError as error:
        _log.warning("%s failed: %s", doing, error.message, extra=error.fields)
        return Unheard(_say(error), may_pass=isinstance(error, Unavailable))
    except Exception:  # noqa: BLE001 - the boundary of an event: a fault here must not end the account
        reference = fresh("err")
        _log.exception("%s failed", doing, extra={"reference": reference})
        return Unheard(f"Something went wrong inside. Reference: {reference}.")


def _say(error: DenizenError) -> str:
    """A fix is for those who can apply it: who named something wrong can name it better."""
    if isinstance(error, InvalidInput | NotFound) and error.fix:
        return f"{error.message} {error.fix}"
    return error.message

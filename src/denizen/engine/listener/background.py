"""What runs beside the events of an account: catching up, showing turns, sending. A boundary.

A fault in one of these is written to the log and ends that errand only: neither the account, nor the accounts beside
it, nor the process (inventory CW10). Used by `resident` and `missed`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from denizen.domain.errors import DenizenError

PAUSE_S = 5.0
"""Before something that has to go on is begun again."""

_log = logging.getLogger("denizen.resident")

Work = Callable[[], Awaitable[object]]


async def run_once(doing: str, work: Work) -> bool:
    """Whether it ended well. `doing` names it in the log."""
    try:
        await work()
    except DenizenError as error:
        _log.warning("%s ended: %s", doing, error.message, extra=error.fields)
        return False
    except Exception:  # noqa: BLE001 - the boundary of a job: a fault here must not end the account
        _log.exception("%s ended with a fault", doing)
        return False
    return True


async def run_forever(doing: str, work: Work) -> None:
    """What has to go on as long as the account is there."""
    while True:
        if await run_once(doing, work):
            return
        await anyio.sleep(PAUSE_S)

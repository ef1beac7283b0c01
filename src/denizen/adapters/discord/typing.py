"""Shows "... is typing" while a block runs, and never longer (inventory C18, TW17).

Discord lets it fade after 10 s, so it is renewed before; the renewing runs in the account's task group and is cancelled
by the end of the block, whatever ends it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from denizen.domain.errors import DenizenError

_log = logging.getLogger("denizen.discord")

RENEWED_AFTER_S = 8.0


@asynccontextmanager
async def show_typing(
    tasks: TaskGroup, show: Callable[[], Awaitable[None]], *, renewed_after_s: float = RENEWED_AFTER_S
) -> AsyncGenerator[None]:
    """`show` tells Discord once. A fault in it does not disturb the block, and is logged once."""
    scope = anyio.CancelScope()
    tasks.start_soon(_renew, scope, show, renewed_after_s)
    try:
        yield
    finally:
        scope.cancel()


async def _renew(scope: anyio.CancelScope, show: Callable[[], Awaitable[None]], renewed_after_s: float) -> None:
    failed = False
    with scope:
        while True:
            try:
                await show()
            except DenizenError as error:
                if not failed:
                    _log.warning("typing cannot be shown: %s", error.message, extra={"code": error.code})
                failed = True
            await anyio.sleep(renewed_after_s)

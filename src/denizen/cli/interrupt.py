"""Ctrl-C while an answer is under way stops the answer; everywhere else it ends the command."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from denizen.domain.errors import DenizenError

T = TypeVar("T")


async def stoppable(work: Callable[[], Awaitable[T]], stop: Callable[[], object]) -> T:
    """What `work` returns or raises. Ctrl-C meanwhile calls `stop`, by which it should come to its end; a second one
    does not wait for that and raises KeyboardInterrupt.
    """
    done: list[T] = []
    failure: DenizenError | None = None
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        async with anyio.create_task_group() as group:

            async def listen() -> None:
                async for _ in signals:
                    stop()
                    break
                async for _ in signals:
                    break
                group.cancel_scope.cancel()

            group.start_soon(listen)
            try:
                done.append(await work())
            except DenizenError as error:
                failure = error  # raised here, it would leave in a group
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if not done:
        raise KeyboardInterrupt
    return done[0]

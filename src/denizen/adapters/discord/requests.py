"""REST requests that may be cancelled without harm to later ones.

discord.py cleans up after a request by awaiting, which works when a task is cancelled once; anyio cancels again at each
await. A request cancelled so leaves its rate limit taken for half a minute, or, while a limit of the whole account
lasts, all requests waiting for ever. So each runs in a task of its own, and is told once when nobody waits for it any
more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup
from discord.http import HTTPClient, Route


class Requests(HTTPClient):
    """discord.py's client for REST. Its requests live in `tasks`, which has to end after it is closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tasks: TaskGroup, *, longest_rate_limit_s: float) -> None:
        super().__init__(loop, max_ratelimit_timeout=longest_rate_limit_s)
        self._tasks = tasks

    async def request(self, route: Route, **given: Any) -> Any:  # noqa: ANN401 - as discord.py has it
        errand = _Errand(lambda: super(Requests, self).request(route, **given))
        self._tasks.start_soon(errand.run)
        try:
            await errand.done.wait()
        except asyncio.CancelledError:
            errand.call_off()
            # Had it waited out the limit of the whole account, others would wait for it to say that this is over.
            # At worst they are told again to wait.
            self._global_over.set()
            raise
        if errand.error is not None:
            raise errand.error
        return errand.answer


class _Errand:
    """One request. `done` is set when `answer` or `error` is."""

    def __init__(self, work: Callable[[], Awaitable[Any]]) -> None:
        self._work = work
        self._task: asyncio.Task[Any] | None = None
        self._is_off = False
        self.done = anyio.Event()
        self.answer: Any = None
        self.error: Exception | None = None

    async def run(self) -> None:
        if self._is_off:
            return
        self._task = asyncio.current_task()
        try:
            self.answer = await self._work()
        except asyncio.CancelledError:
            if not self._is_off:
                raise
        except Exception as error:  # noqa: BLE001 - raised again in the task that waits for it
            self.error = error
        self.done.set()

    def call_off(self) -> None:
        self._is_off = True
        if self._task is not None and not self.done.is_set():
            self._task.cancel()

"""The HTTP side of discord.py: the server that it talks to, and requests that can be cancelled safely.

discord.py keeps the addresses in class attributes, so one process uses one pair at a time. `account` and `check` do
everything inside `use_endpoints`. discord.py's `http._set_api_version` would overwrite the REST address; nothing
here calls it, and the version is part of the address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import aiohttp
import anyio
import discord
import yarl
from anyio.abc import TaskGroup
from discord.gateway import DiscordWebSocket
from discord.http import HTTPClient, Route

from denizen.adapters.discord.client.settings import DiscordEndpoints
from denizen.domain.errors import InvalidInput, Unavailable

# discord.py's own addresses, restored when Discord itself is used again.
_GATEWAY = DiscordWebSocket.DEFAULT_GATEWAY
_ASSETS = discord.Asset.BASE


class _EndpointsInUse:
    """The endpoints in use, and the number of their users."""

    def __init__(self) -> None:
        self.endpoints = DiscordEndpoints()
        self.holders = 0


_use = _EndpointsInUse()


@contextmanager
def use_endpoints(endpoints: DiscordEndpoints) -> Generator[None]:
    """Points discord.py at a server for the duration of the block. Raises InvalidInput while another pair is in use."""
    if _use.holders and _use.endpoints != endpoints:
        raise InvalidInput(
            "Accounts on two different Discord servers cannot run in one process.",
            code="discord_two_servers",
            why=f"{_use.endpoints.api_url} is in use, and {endpoints.api_url} was asked for.",
            fix="Stop the other accounts first, or start a second process.",
        )
    if not _use.holders:
        _use.endpoints = endpoints
        Route.BASE = endpoints.api_url.rstrip("/")
        DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(endpoints.gateway_url) if endpoints.gateway_url else _GATEWAY
        assets = str(yarl.URL(endpoints.api_url).origin()) if endpoints.are_own else _ASSETS
        discord.Asset.BASE = assets  # pyright: ignore[reportAttributeAccessIssue] - typed as the one value that it has
    _use.holders += 1
    try:
        yield
    finally:
        _use.holders -= 1


def set_gateway(url: str) -> None:
    """Sets the websocket address that the REST side named, for a server of one's own without a configured one.

    discord.py asks for it only at the first login, and falls back to its own address after a lost connection.
    """
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(url)


class ChangeAttempted(Exception):  # noqa: N818 - it reports no error
    """A request inside `changing_nothing` would have changed something on Discord. It was not sent."""


_changes_nothing = ContextVar("changes_nothing", default=False)


@contextmanager
def changing_nothing() -> Generator[None]:
    """Within the block this task sends requests that read only; any other one raises ChangeAttempted instead."""
    token = _changes_nothing.set(True)
    try:
        yield
    finally:
        _changes_nothing.reset(token)


def begin_change() -> None:
    """Raises ChangeAttempted inside `changing_nothing`. For changes that are made by no request."""
    if _changes_nothing.get():
        raise ChangeAttempted


class CancellableHTTPClient(HTTPClient):
    """discord.py's REST client, whose requests run in `tasks` so that a cancelled caller does not harm later requests.

    The task group has to end after the client is closed. A request that it ends, and one that comes later, raises
    Unavailable.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, tasks: TaskGroup, *, longest_rate_limit_s: float) -> None:
        super().__init__(loop, max_ratelimit_timeout=longest_rate_limit_s)
        self._tasks = tasks

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        """Connects to a websocket. A server of one's own without TLS has none for its voice channels either."""
        if url.startswith("wss://") and _use.endpoints.are_own and _use.endpoints.api_url.startswith("http://"):
            url = f"ws://{url.removeprefix('wss://')}"
        return await super().ws_connect(url, compress=compress)

    async def request(self, route: Route, **given: Any) -> Any:  # noqa: ANN401 - as discord.py has it
        if _changes_nothing.get() and route.method != "GET":
            raise ChangeAttempted
        errand = _PendingRequest(lambda: super(CancellableHTTPClient, self).request(route, **given))
        try:
            self._tasks.start_soon(errand.run)
        except RuntimeError as error:  # what anyio says of a group that has ended
            raise _ended() from error
        try:
            await errand.done.wait()
        except asyncio.CancelledError:
            errand.call_off()
            # A request that waits out the global rate limit has to tell the others when it is over. A cancelled one
            # never would, so they are woken here. At worst Discord tells them again to wait.
            self._global_over.set()
            raise
        if errand.error is not None:
            raise errand.error
        return errand.answer


def _ended() -> Unavailable:
    return Unavailable(
        "The connection of the account to Discord has just ended.",
        code="discord_closed",
        why="The account is reconnected, or another process has it now. What was being asked for may have happened.",
        fix="Try again in a moment.",
    )


class _PendingRequest:
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
            if not self._is_off:  # the account ends, and whoever waits here may not
                self.error = _ended()
                self.done.set()
                raise
        except Exception as error:  # noqa: BLE001 - raised again in the task that waits for it
            self.error = error
        self.done.set()

    def call_off(self) -> None:
        self._is_off = True
        if self._task is not None and not self.done.is_set():
            self._task.cancel()

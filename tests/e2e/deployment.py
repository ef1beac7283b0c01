"""What the deployments on simulated platforms share: `denizen run` processes, their model, and waiting for them."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import anyio
from anyio import to_thread

from denizen.testing.discord.rest.request_log import RequestFault
from denizen.testing.model_server import ModelAnswer, ScriptEntry
from tests.e2e.home import Home, Server
from tests.e2e.process import ProcessResult
from tests.e2e.provider import Provider, RecordedRequests
from tests.timing import HANG_LIMIT_S

SETTLED = "That was all."


class Simulator(Protocol):
    """A simulated platform."""

    async def until(self, predicate: Callable[[], object], timeout_s: float = ...) -> None: ...


@dataclass(slots=True)
class Denizen:
    """One `denizen run`."""

    server: Server

    @property
    def log(self) -> str:
        return self.server.running.err.text

    def lines(self, *words: str) -> list[str]:
        """The lines of the log with all of these words."""
        return [line for line in self.log.splitlines() if all(word in line for word in words)]

    async def kill(self) -> None:
        """`kill -9`; nothing when it has ended."""
        await self._wait(self.server.running.kill)

    async def stop(self) -> ProcessResult:
        """As a service manager would."""
        return await self._wait(partial(self.server.running.stop, signal.SIGTERM))

    def signal(self, number: signal.Signals) -> None:
        self.server.running.signal(number)

    async def finish(self) -> ProcessResult:
        """Waits for its end."""
        return await self._wait(self.server.running.finish)

    async def _wait(self, end: Callable[[], ProcessResult]) -> ProcessResult:
        """In a thread: the simulated platform goes on meanwhile."""
        return await to_thread.run_sync(end)


class Deployment:
    """The base of deployments: a home folder, a scripted model, and the processes that ran there."""

    provider: Provider
    home: Home
    denizens: list[Denizen]

    @property
    def simulator(self) -> Simulator:
        raise NotImplementedError

    def script(self, *entries: ScriptEntry | str) -> None:
        """Scripts the next answers of the model; a text is an answer."""
        self.provider.script(*(ModelAnswer(text=each) if isinstance(each, str) else each for each in entries))

    @property
    def requests(self) -> RecordedRequests:
        """The requests to the model."""
        return self.provider.requests

    async def until(self, predicate: Callable[[], object]) -> None:
        """Waits for it. Raises TimeoutError, with what everybody said."""
        try:
            await self.simulator.until(predicate, HANG_LIMIT_S)
        except TimeoutError as error:
            for denizen in self.denizens:
                error.add_note(denizen.log)
            raise

    def rows(self, query: str, home: Home | None = None) -> list[Any]:
        """Of the store's file, while a process works on it."""
        database = (home or self.home).folder / "denizen.db"
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()


async def wait_until_reached(fault: RequestFault) -> None:
    with anyio.fail_after(HANG_LIMIT_S):
        await fault.wait_reached()

"""Whether this process can do its work now: `GET /ready` asks for it.

Each check runs in a task of its own, one at a time, whoever asks: a unit of work cannot be cancelled, so a database
that hangs would otherwise hold up more and more requests. The answer does not wait for it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from denizen.domain.errors import DenizenError
from denizen.ports.store import Store

ANSWER_S = 3.0
"""How long an answer waits for a check."""
PAUSE_S = 1.0
"""How long the result of a check is told again before it is made anew. Anybody may ask, and the checks write."""
DISK_PROBE_BYTES = 64 * 1024

Check = Callable[[], Awaitable[None]]
"""Raises DenizenError or OSError when a part is not ready."""


class ReadinessMonitor:
    """Checks the parts of a process by name, while `run` runs and somebody asks."""

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._parts = {name: _Part(check) for name, check in checks.items()}

    @property
    def parts(self) -> Sequence[str]:
        return tuple(self._parts)

    async def run(self) -> None:
        """Checks whenever somebody asks, until it is cancelled."""
        async with anyio.create_task_group() as group:
            for part in self._parts.values():
                group.start_soon(part.run)

    async def find_problems(self) -> Mapping[str, str]:
        """Returns the parts that are not ready, each with the reason."""
        problems = dict.fromkeys(self._parts, f"no answer within {ANSWER_S:g} s")

        async def ask(name: str, part: _Part) -> None:
            problems[name] = await part.find_problem()

        with anyio.move_on_after(ANSWER_S):
            async with anyio.create_task_group() as group:
                for name, part in self._parts.items():
                    group.start_soon(ask, name, part)
        return {name: problem for name, problem in problems.items() if problem}


class _Part:
    def __init__(self, check: Check) -> None:
        self._check = check
        self._wanted = anyio.Event()
        self._done = anyio.Event()
        self._problem = ""
        self._rests = False

    async def find_problem(self) -> str:
        if self._rests:
            return self._problem
        done = self._done
        self._wanted.set()
        await done.wait()
        return self._problem

    async def run(self) -> None:
        while True:
            await self._wanted.wait()
            try:
                await self._check()
                self._problem = ""
            except DenizenError as error:
                self._problem = error.explain()
            except OSError as error:
                self._problem = error.strerror or type(error).__name__
            self._wanted, done, self._done = anyio.Event(), self._done, anyio.Event()
            done.set()
            self._rests = True
            await anyio.sleep(PAUSE_S)
            self._rests = False


async def check_store(store: Store) -> None:
    """Raises what keeps the store from being written."""
    async with store.work() as work:
        await work.generations.rewrite_newest()


async def check_disk(folder: Path) -> None:
    """Raises OSError when a small file cannot be written there. A database may have room left in files that it has."""
    await to_thread.run_sync(partial(_write_probe, folder), abandon_on_cancel=True)


def _write_probe(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(os.urandom(DISK_PROBE_BYTES))
        probe.flush()

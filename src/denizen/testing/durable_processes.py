"""What the tests of the durable contract are written with: processes on one log, and an action that waits.

Used by the modules of `durable_contract` and by tests of single implementations.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

import anyio

from denizen.domain.errors import DenizenError
from denizen.domain.json import Json
from denizen.ports.durable import DurableExecution, Workflow


class Processes(Protocol):
    """Processes that share one log, one after the other."""

    def create(self) -> DurableExecution:
        """A new process on the log; not started yet."""
        ...

    async def kill(self, durable: DurableExecution) -> None:
        """Ends it at once, whatever it is doing."""
        ...


async def returning(value: Json) -> Json:
    """The plainest action."""
    return value


class Hold:
    """An action that holds its run up until `go`, and says when it is there."""

    def __init__(self) -> None:
        self.count = 0
        self._reached = anyio.Event()
        self._go = anyio.Event()

    async def __call__(self) -> Json:
        self.count += 1
        self._reached.set()
        await self._go.wait()
        return self.count

    async def reached(self) -> None:
        with anyio.fail_after(20):
            await self._reached.wait()

    def go(self) -> None:
        self._go.set()


async def started(processes: Processes, workflow: Workflow, name: str = "work") -> DurableExecution:
    """A process that knows the workflow."""
    durable = processes.create()
    durable.register(name, workflow)
    await durable.start()
    return durable


async def result(durable: DurableExecution, run_id: str) -> Json:
    """`wait` with a bound, so that a run that never ends fails the test."""
    with anyio.fail_after(20):
        return await durable.wait(run_id)


async def failure(awaitable: Awaitable[object]) -> DenizenError:
    """The error that it raises."""
    try:
        with anyio.fail_after(20):
            value = await awaitable
    except DenizenError as error:
        return error
    raise AssertionError(f"no error, but {value!r}")

"""Helpers of the durable contract: processes on one log, and an action that waits."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

import anyio

from denizen.domain.errors import DenizenError
from denizen.domain.json import Json
from denizen.ports.durable import DurableExecution, Workflow
from tests.timing import HANG_LIMIT_S


class Processes(Protocol):
    """Makes and kills processes that share one log."""

    def create(self) -> DurableExecution:
        """Returns a new process on the log, not started yet."""
        ...

    async def kill(self, durable: DurableExecution) -> None:
        """Ends the process at once, whatever it is doing."""
        ...


async def return_value(value: Json) -> Json:
    """Returns the value: the simplest action."""
    return value


class BlockingAction:
    """An action that blocks its run until `go`, and tells when the run has reached it."""

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
        with anyio.fail_after(HANG_LIMIT_S):
            await self._reached.wait()

    def go(self) -> None:
        self._go.set()


async def start_process(processes: Processes, workflow: Workflow, name: str = "work") -> DurableExecution:
    """Starts a process that knows the workflow."""
    durable = processes.create()
    durable.register(name, workflow)
    await durable.start()
    return durable


async def wait_for_result(durable: DurableExecution, run_id: str) -> Json:
    """Waits for the run, with a limit, so that a run that never ends fails the test."""
    with anyio.fail_after(HANG_LIMIT_S):
        return await durable.wait(run_id)


async def get_failure(awaitable: Awaitable[object]) -> DenizenError:
    """Returns the error that the awaitable raises."""
    try:
        with anyio.fail_after(HANG_LIMIT_S):
            value = await awaitable
    except DenizenError as error:
        return error
    raise AssertionError(f"no error, but {value!r}")

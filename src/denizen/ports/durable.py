"""Durable execution: work that survives the process.

Implemented by `adapters/durable` (DBOS on SQLite or Postgres). Payloads and step results are JSON. A workflow function
is deterministic between its steps: it may read and write the store by derived ids, and does everything that must not
happen twice inside `step`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from denizen.domain.errors import DenizenError
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record

Workflow = Callable[[JsonObject], Awaitable[Json]]
OnFault = Callable[[str, DenizenError], None]
"""A callback that gets the id of a run and its error."""


@record
class RunLane:
    """Where a run stands in a fleet: runs of one `queue` begin in the order in which they were handed in, and go to the
    process that has one of them. Queues in which nobody waits (no run `is_urgent`) come last.
    """

    queue: str = ""
    is_urgent: bool = True


ANY_LANE = RunLane()


class StepRunner(Protocol):
    """Runs the actions of a workflow that must not happen twice."""

    async def step(self, name: str, action: Callable[[], Awaitable[Json]]) -> Json:
        """Runs `action` once inside a workflow and records its result; after a restart the record is returned.

        An interrupted action runs again (at least once), so calls to the outside carry an idempotency key. A
        DenizenError that the action raises is recorded, and raised again on replay.
        """
        ...

    async def gather(self, *steps: tuple[str, Callable[[], Awaitable[Json]]]) -> list[Json]:
        """Runs several steps side by side and returns their results in order.

        The steps are numbered in the given order so that a replay finds them. They must not raise: turn an expected
        failure into a JSON value first.
        """
        ...


class DurableExecution(StepRunner, Protocol):
    """Registered workflows, started by id: starting the same id twice makes one run."""

    def register(self, name: str, workflow: Workflow, on_fault: OnFault | None = None) -> None:
        """Registers a workflow, before `start` only. `name` is stored with each run and must not change.

        `on_fault` is called on the event loop for each run of this process that ended with an error, or that stopped
        before its end because its record cannot be written or because everything closes. A stopped run goes on later.
        """
        ...

    async def start(self) -> None:
        """Opens the log and starts to resume the runs of processes that died."""
        ...

    async def aclose(self, *, grace_s: float = 0.0) -> None:
        """Stops. Runs that do not end within `grace_s` stay pending; the next process resumes them."""
        ...

    async def submit(self, name: str, run_id: str, payload: JsonObject, *, lane: RunLane = ANY_LANE) -> None:
        """Starts the run in this process and returns at once. A known id is not started again. In a fleet a run with a
        `lane` is left to whichever process is the next to take from it, and so is any run by a process that runs none.
        """
        ...

    async def wait(self, run_id: str) -> Json:
        """Returns the run's result, wherever it runs.

        Raises the run's DenizenError, Unavailable if the run was cancelled or this process closes first, and NotFound
        for an unknown id.
        """
        ...

    async def cancel(self, run_id: str) -> None:
        """Ends a run: here at once, in another process at its next step. Raises NotFound."""
        ...

    async def forget(self, run_ids: Sequence[str]) -> None:
        """Removes the records of those of these runs that have ended, with all results of their steps. Others stay as
        they are, and unknown ids do not matter.
        """
        ...

    async def check_write(self) -> None:
        """Raises Unavailable or NeedsAttention when no run can be recorded now."""
        ...

    async def pending(self) -> list[str]:
        """Returns the ids of runs that have not ended, oldest first."""
        ...

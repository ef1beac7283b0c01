"""Durable execution: work that survives the process.

Implemented by `adapters/durable` (DBOS on SQLite or Postgres) and `denizen.testing.memory_durable`. Payloads and step
results are JSON. A workflow function is deterministic between its steps: it may read and write the store by derived
ids, and does everything that must not happen twice inside `step`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from denizen.domain.errors import DenizenError
from denizen.domain.json import Json, JsonObject

Workflow = Callable[[JsonObject], Awaitable[Json]]
OnFault = Callable[[str, DenizenError], None]
"""Gets the id of a run and what went wrong with it."""


class StepRunner(Protocol):
    """What a workflow does that must not happen twice."""

    async def step(self, name: str, action: Callable[[], Awaitable[Json]]) -> Json:
        """Inside a workflow: runs `action` once and records its result; after a restart the record is returned.

        An action that was interrupted runs again (at least once), so calls to the outside carry an idempotency key.
        A DenizenError that the action raises is recorded and raised again on replay.
        """
        ...

    async def gather(self, *steps: tuple[str, Callable[[], Awaitable[Json]]]) -> list[Json]:
        """Several steps side by side, numbered in the given order so that a replay finds them; results in order.

        The steps must not raise: turn an expected failure into a JSON value first.
        """
        ...


class DurableExecution(StepRunner, Protocol):
    """Registered workflows, started by id: the same id twice is one run."""

    def register(self, name: str, workflow: Workflow, on_fault: OnFault | None = None) -> None:
        """Before `start` only. `name` is stored with each run and must not change.

        `on_fault` hears, on the event loop, of each run in this process that ended with an error, or that stops before
        its end: because its record cannot be written, or because everything closes. What only stopped goes on later.
        """
        ...

    async def start(self) -> None:
        """Opens the log and begins to rescue runs of processes that died."""
        ...

    async def aclose(self, *, grace_s: float = 0.0) -> None:
        """Stops; runs that do not end within `grace_s` stay pending and are resumed by the next process."""
        ...

    async def submit(self, name: str, run_id: str, payload: JsonObject) -> None:
        """Starts the run in this process and returns at once; an id that is known already is not started again."""
        ...

    async def wait(self, run_id: str) -> Json:
        """The run's result, wherever it runs. Raises the run's DenizenError, Unavailable if it was cancelled or this
        process closes first, NotFound for an id that nobody submitted.
        """
        ...

    async def cancel(self, run_id: str) -> None:
        """Ends a run that has not ended: here at once, in another process at its next step. Raises NotFound."""
        ...

    async def pending(self) -> list[str]:
        """Ids of runs that have not ended, oldest first."""
        ...

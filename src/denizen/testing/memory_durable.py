"""Durable execution in memory: a real implementation of `denizen.ports.durable` for tests.

The log is an object. To simulate a restart, give the log of one instance to another: it resumes the runs that have not
ended and does not repeat recorded steps. Several instances on one log behave as several processes. It passes the same
contract suite as the adapter on a database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import anyio
from anyio.lowlevel import checkpoint

from denizen.adapters.durable.run import (
    ActiveRun,
    cancelled,
    closing,
    current_run,
    decode,
    decode_error,
    encode,
    encode_error,
    entered,
    inside_step,
    is_inside_step,
    leave,
    perform,
    refuse,
    side_by_side,
)
from denizen.domain.errors import Conflict, DenizenError, InvalidInput, NotFound
from denizen.domain.json import Json, JsonObject
from denizen.ports.durable import ANY_LANE, OnFault, RunLane, Workflow

Action = Callable[[], Awaitable[Json]]


@dataclass(frozen=True, slots=True)
class LoggedStep:
    """The recorded end of a step, as JSON text."""

    name: str
    value: str | None = None
    error: str | None = None


@dataclass(slots=True)
class LoggedRun:
    """A run in the log, which outlives a process: its payload, steps and end."""

    id: str
    name: str
    payload: str
    owner: MemoryDurable | None
    steps: dict[int, LoggedStep] = field(default_factory=dict[int, LoggedStep])
    value: str | None = None
    error: str | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)

    def end(self, *, value: str | None = None, error: str | None = None) -> None:
        self.value = value
        self.error = error
        self.owner = None
        self.ended.set()


class MemoryLog:
    """The runs, oldest first, and the instances that share them."""

    def __init__(self) -> None:
        self.runs: dict[str, LoggedRun] = {}
        self.members: list[MemoryDurable] = []


class _LiveRun(ActiveRun):
    """A run of this instance and its position among the recorded steps."""

    def __init__(self, logged: LoggedRun) -> None:
        super().__init__(logged.id)
        self.logged = logged
        self.position = 0


class MemoryDurable:
    """See `denizen.ports.durable.DurableExecution`."""

    def __init__(self, log: MemoryLog | None = None, *, execute: bool = True) -> None:
        """With `execute` off it runs nothing itself: others of its log do."""
        self.log = log or MemoryLog()
        self._execute_here = execute
        self._workflows: dict[str, Workflow] = {}
        self._on_fault: dict[str, OnFault] = {}
        self.live: dict[str, _LiveRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing: anyio.Event | None = None

    def register(self, name: str, workflow: Workflow, on_fault: OnFault | None = None) -> None:
        if self._closing is not None or name in self._workflows:
            raise Conflict("The workflow cannot be registered.", code="workflow_registered")
        self._workflows[name] = workflow
        if on_fault is not None:
            self._on_fault[name] = on_fault

    async def start(self) -> None:
        self._closing = anyio.Event()
        self.log.members.append(self)
        self.rescue()

    async def aclose(self, *, grace_s: float = 0.0) -> None:
        if self._closing is None or self._closing.is_set():
            return
        self._closing.set()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(grace_s):
                await self._join()
            for run in self.live.values():
                run.scope.cancel()
            await self._join()
        self._leave()

    async def crash(self) -> None:
        """Ends like a killed process: nothing that its tasks still do is recorded, and its runs stay as they are."""
        (await self._opened()).set()
        self._on_fault.clear()
        self._leave()
        for task in self._tasks:
            task.cancel()
        with anyio.CancelScope(shield=True):
            await self._join()

    async def _join(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _leave(self) -> None:
        self.log.members.remove(self)
        for run in self.log.runs.values():
            if run.owner is self:
                run.owner = None
        for member in self.log.members:
            member.rescue()

    def rescue(self) -> None:
        """Resumes the runs that no living instance owns."""
        if not self._execute_here:
            return
        for logged in self.log.runs.values():
            if logged.owner is None and not logged.ended.is_set() and logged.name in self._workflows:
                self._launch(logged)

    async def _opened(self) -> anyio.Event:
        """Returns the event that is set when this instance closes. Raises Unavailable before `start` and after it."""
        if self._closing is None or self._closing.is_set():
            await refuse("Durable execution was not started yet, or is shutting down.")
        return self._closing

    # --- runs --------------------------------------------------------------------------------------------------------

    async def submit(self, name: str, run_id: str, payload: JsonObject, *, lane: RunLane = ANY_LANE) -> None:
        del lane
        await self._opened()
        if name not in self._workflows:
            raise InvalidInput("There is no such workflow.", code="workflow_unknown", why=f"{name} is not registered.")
        text = encode(payload)
        known = self.log.runs.get(run_id)
        if known is None:
            self.log.runs[run_id] = known = LoggedRun(run_id, name, text, owner=None)
            if self._execute_here:
                self._launch(known)
            for member in self.log.members:
                member.rescue()
        elif known.name != name:
            raise Conflict("This id belongs to other work.", code="run_id_taken")
        await checkpoint()

    def _launch(self, logged: LoggedRun) -> None:
        logged.owner = self
        live = self.live[logged.id] = _LiveRun(logged)
        # As in the real one a run outlives the call that started it and inherits nothing from it. `aclose` waits.
        task = asyncio.get_running_loop().create_task(self._execute(live), context=Context())
        self._tasks.add(task)
        task.add_done_callback(lambda ended: self._done(live, ended))

    def _done(self, live: _LiveRun, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.live.pop(live.id, None)
        live.settled.set()
        logged, on_fault = live.logged, self._on_fault.get(live.logged.name)
        if on_fault is None:
            return
        if logged.error is not None:
            on_fault(live.id, decode_error(logged.error))
        elif not logged.ended.is_set() and self._closing is not None and self._closing.is_set():
            on_fault(live.id, closing(f"Run {live.id} has not ended."))

    async def _execute(self, live: _LiveRun) -> None:
        logged = live.logged
        workflow, payload = self._workflows[logged.name], cast("JsonObject", decode(logged.payload))
        value = error = None
        with live.scope, entered(live):
            try:
                value = await perform(lambda: workflow(payload), run_id=live.id, name=logged.name)
            except DenizenError as failure:
                error = encode_error(failure)
        # A workflow that was stopped has not ended, whatever it returns; and only the owner of a run may end it.
        if not live.scope.cancel_called and logged.owner is self:
            logged.end(value=value, error=error)

    async def wait(self, run_id: str) -> Json:
        closes = await self._opened()
        logged = self._logged(run_id)
        async with anyio.create_task_group() as tasks:

            async def stop_waiting() -> None:
                await closes.wait()
                live = self.live.get(run_id)
                if live is not None:
                    await live.settled.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(stop_waiting)
            await logged.ended.wait()
            tasks.cancel_scope.cancel()
        if not logged.ended.is_set():
            await refuse(f"Run {run_id} has not ended.")
        if logged.error is not None:
            raise decode_error(logged.error)
        assert logged.value is not None
        return decode(logged.value)

    async def cancel(self, run_id: str) -> None:
        await self._opened()
        logged = self._logged(run_id)
        if not logged.ended.is_set():
            owner = logged.owner
            logged.end(error=encode_error(cancelled(run_id)))
            live = owner.live.get(run_id) if owner is not None else None
            if live is not None:
                live.scope.cancel()
        await checkpoint()

    async def forget(self, run_ids: Sequence[str]) -> None:
        await self._opened()
        for run_id in run_ids:
            if (logged := self.log.runs.get(run_id)) is not None and logged.ended.is_set():
                del self.log.runs[run_id]
        await checkpoint()

    async def check_write(self) -> None:
        await self._opened()

    async def pending(self) -> list[str]:
        await self._opened()
        await checkpoint()
        return [run.id for run in self.log.runs.values() if not run.ended.is_set()]

    def _logged(self, run_id: str) -> LoggedRun:
        if run_id not in self.log.runs:
            raise NotFound("There is no such run.", code="run_unknown", why=f"No run has the id {run_id}.")
        return self.log.runs[run_id]

    # --- steps -------------------------------------------------------------------------------------------------------

    async def step(self, name: str, action: Action) -> Json:
        live = cast("_LiveRun", current_run())
        if is_inside_step():
            return decode(await perform(action, run_id=live.id, name=name))
        live.position += 1
        return await self._record(live, live.position, name, action)

    async def gather(self, *steps: tuple[str, Action]) -> list[Json]:
        live = cast("_LiveRun", current_run())
        if is_inside_step():
            return await side_by_side(*(partial(self.step, name, action) for name, action in steps))
        first = live.position + 1
        live.position += len(steps)
        return await side_by_side(
            *(partial(self._record, live, first + index, *step) for index, step in enumerate(steps))
        )

    async def _record(self, live: _LiveRun, position: int, name: str, action: Action) -> Json:
        recorded = live.logged.steps.get(position)
        if recorded is None:
            try:
                with inside_step():
                    recorded = LoggedStep(name, value=await perform(action, run_id=live.id, name=f"step {name}"))
            except DenizenError as error:
                recorded = LoggedStep(name, error=encode_error(error))
            if live.logged.owner is not self:
                await leave(live)
            live.logged.steps[position] = recorded
        elif recorded.name != name:
            raise Conflict(
                "This work was begun by another version of Denizen and cannot be continued.", code="run_changed"
            )
        await checkpoint()
        if recorded.error is not None:
            raise decode_error(recorded.error)
        assert recorded.value is not None
        return decode(recorded.value)

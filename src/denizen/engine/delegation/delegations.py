"""Tasks that agents hand to other agents: each is an ordinary turn, in a session of its own.

The turn's id derives from the call that hands the task on, so a call that runs again after a restart finds the same
turn. It is opened on behalf of the one who asked, at the place where they asked: their rights, their budget, the rules
and approvals there hold for it. It hands nothing on, so delegation is one deep.

Background tasks have no record of their own besides who asked for them: what became of one is what became of its turn.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace

import anyio

from denizen.domain.approval import AskerReach
from denizen.domain.delegation import (
    LISTED_FOR,
    MAX_FINISHED,
    MAX_RUNNING,
    BackgroundTask,
    Delegation,
    ParentTurn,
    TaskState,
    delegated_place,
    task_id,
)
from denizen.domain.errors import Conflict, LimitExceeded, NotAllowed, NotFound
from denizen.domain.events import ApprovalDecided, ApprovalRequested, Notice, ToolStarted, TurnFinished
from denizen.domain.handover import MAX_PASSES, is_own_session, plan_handover
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.json import Json
from denizen.domain.message import Author, TextPart
from denizen.domain.record import record
from denizen.domain.taint import find_message_taint
from denizen.domain.tool import Taint, ToolResult
from denizen.domain.turn import Sender, Turn, TurnRequest, TurnStatus
from denizen.engine.configuration.generation import Runtime
from denizen.engine.intake.opening import OpenTurn, end_unwanted, load_turn, request_turn_id
from denizen.engine.loop.services import EngineServices
from denizen.engine.turn import TurnRunner
from denizen.ports.store import UnitOfWork
from denizen.ports.toolset import CallScope
from denizen.skill import quote_untrusted

LISTED_OF_ALL = 1000
READ_LIMIT = 500
"""So many messages of a delegated session are looked at for what was read in it."""


@record
class DelegatedTask:
    """A task as an agent words it: whom it is for, and what to do."""

    agent: AgentName
    task: str
    is_background: bool = False


class Delegations:
    """One for a process, or several: all that it knows is in the store."""

    def __init__(self, runtime: Runtime, services: EngineServices, turns: TurnRunner) -> None:
        self._runtime = runtime
        self._services = services
        self._turns = turns

    # --- handing on --------------------------------------------------------------------------------------------------

    async def run(self, scope: CallScope, wanted: DelegatedTask) -> ToolResult:
        """Hands the task on and returns its result; a failure is an error result. Once the call's own turn is stopped,
        the delegated one is, too.

        Raises what `submit` raises.
        """
        request = await self._request(scope, wanted)
        pause = self._services.approvals.pauses.find(scope.turn_id)
        async with self._stopped_with(scope.turn_id, request):
            if pause is None:
                end = await self._wait(scope, request)
            else:  # its own time stands still, and others may ask meanwhile
                async with pause.away():
                    end = await self._wait(scope, request)
        taint = await self._read_taint(end.turn_id)
        scope.trail.taint |= taint
        return _to_result(wanted.agent, end, taint)

    async def submit(self, scope: CallScope, wanted: DelegatedTask) -> str:
        """Hands the task on without waiting for it. Returns its id.

        Raises NotAllowed for an agent that this one may not give tasks to, and in a delegated turn; LimitExceeded when
        as many tasks of the asker run as may.
        """
        request = await self._request(scope, wanted)
        assert request.parent is not None
        tasks = await self.list_tasks(scope.principal.key)
        running = [each.id for each in tasks if each.state is TaskState.RUNNING]
        if len(running) >= MAX_RUNNING and request.parent.task_id not in running:
            raise LimitExceeded(
                f"{MAX_RUNNING} background tasks are running, which is as many as one person may have.",
                code="tasks_full",
                fix="Wait for one, or stop one.",
            )
        await self._turns.submit(request)
        return request.parent.task_id

    async def hand_over(self, scope: CallScope, agent: AgentName, *, minutes: int, messages: int) -> None:
        """Lets another agent answer in the room of the call for a while. Raises what `submit` raises about agents;
        NotAllowed where no room is handed over, and where agents have handed it on as often as they may.
        """
        await self._check_may_hand(scope, agent)
        services, place = self._services, scope.place
        account = await services.handovers.get_account(place, scope.account, scope.agent)
        current = await services.handovers.find(account, place)
        passes = 0 if current is None else current.passes + 1
        if passes > MAX_PASSES:
            raise NotAllowed(
                "This room was handed on already.",
                code="handover_passes",
                why="agents that hand it on and on would never answer anybody",
                fix="Answer yourself, or ask a person for `/handover`.",
            )
        handover = plan_handover(agent, services.clock.now(), minutes=minutes, messages=messages, passes=passes)
        said = await services.handovers.begin(account, place, handover, key=scope.options.idempotency_key)
        if is_own_session(place):
            services.live.publish(scope.turn_id, Notice(said))

    async def _check_may_hand(self, scope: CallScope, agent: AgentName) -> OpenTurn:
        """Returns the turn of the call, which may give tasks and rooms to that agent. Raises NotAllowed."""
        allowed = self._runtime.current.agent(scope.agent).tool_access.delegates_to
        try:
            asked = await load_turn(self._services.store, scope.turn_id)
        except NotFound as error:
            raise NotAllowed("Tasks are handed on in turns only.", code="delegation_place") from error
        if asked.turn.parent is not None:
            raise NotAllowed(
                "A task that was handed on is not handed on again.",
                code="delegation_depth",
                fix="Do it yourself, or say that it cannot be done.",
            )
        if agent not in allowed:
            raise NotAllowed(
                f"{scope.agent} may not give tasks to '{agent}'.",
                code="delegation_agent",
                fix=f"It may to: {', '.join(allowed) or 'nobody'}. The owner lists them under `delegates_to`.",
            )
        return asked

    async def _request(self, scope: CallScope, wanted: DelegatedTask) -> TurnRequest:
        asked = await self._check_may_hand(scope, wanted.agent)
        key, asker = scope.options.idempotency_key, scope.principal
        place, owed = delegated_place(asker.key, scope.turn_id, key), asked.owed
        reach = AskerReach(str(asked.turn.options.get("reach", "")))
        if wanted.is_background and reach is AskerReach.WATCHER:  # they watch its parent, which does not wait
            reach = AskerReach.NOBODY
        if owed is not None:
            owed = replace(owed, ticket="", answers=(), supersedes=None, may_be_silent=False)
        parent = ParentTurn(
            id=scope.turn_id,
            agent=scope.agent,
            place=asked.place,
            task_id=task_id(key),
            taint=scope.taint | scope.trail.taint,
            is_background=wanted.is_background,
        )
        return TurnRequest(
            agent=self._runtime.current.agent(wanted.agent).name,
            place=place,
            sender=Sender(Author("", scope.agent, is_bot=True), asked.turn.principal, reach),
            parts=(TextPart(wanted.task),),
            platform_id=place.thread,
            owed=owed,
            parent=parent,
        )

    async def _wait(self, scope: CallScope, request: TurnRequest) -> TurnFinished:
        """Whoever watches the parent is told what the delegated turn does, and asked what it needs people for."""
        async with aclosing(self._turns.stream(request)) as events:
            async for event in events:
                match event:
                    case ToolStarted():
                        scope.options.report(f"{request.agent} uses `{event.tool}`")
                    case ApprovalRequested() | ApprovalDecided():
                        self._services.live.publish(scope.turn_id, event)
                    case TurnFinished():
                        return event
                    case _:
                        pass
        raise AssertionError("a stream of events ends with TurnFinished")

    @asynccontextmanager
    async def _stopped_with(self, parent: TurnId, request: TurnRequest) -> AsyncGenerator[None]:
        """Stops the delegated turn when its parent was stopped, but not when the parent only leaves this process, to go
        on in the next.
        """
        try:
            yield
        except anyio.get_cancelled_exc_class():
            if self._turns.here.is_stopped(parent):
                with anyio.CancelScope(shield=True):
                    await self._stop(request_turn_id(self._runtime.current.agent(request.agent), request))
            raise

    async def _stop(self, key: TurnId) -> None:
        """Stops a turn, in whatever process it runs."""
        if self._turns.cancel(key):
            return
        async with self._services.store.work() as work:
            turn = await work.turns.find(key)
            if turn is None or turn.status.is_final:
                return
            await end_unwanted(work, key, now=self._services.clock.now())
            await self._services.approvals.end_turn(work, turn)
        with suppress(NotFound):
            await self._services.durable.cancel(key)

    async def _read_taint(self, key: TurnId) -> frozenset[Taint]:
        async with self._services.store.work(write=False) as work:
            turn = await work.turns.get(key)
            messages = await work.messages.list_tail(turn.session_id, limit=READ_LIMIT)
        return frozenset(label for message in messages for label in find_message_taint(message))

    # --- background tasks --------------------------------------------------------------------------------------------

    async def list_tasks(self, asker: str | None = None) -> Sequence[BackgroundTask]:
        """Returns the background tasks of a principal key, or everybody's, newest first: those that run, and those that
        ended lately.
        """
        ended_after = self._services.clock.now() - LISTED_FOR
        most = LISTED_OF_ALL if asker is None else MAX_FINISHED + MAX_RUNNING
        async with self._services.store.work(write=False) as work:
            rows = await work.delegations.list_background(asker=asker, ended_after=ended_after, limit=most)
            turns = {turn.id: turn for turn in await work.turns.find_many([row.turn_id for row in rows])}
            found = [(row, turn, turn.parent) for row in rows if (turn := turns.get(row.turn_id))]
            # A chat that was deleted takes what its tasks were about with it.
            tasks = [await _read_task(work, row, turn, parent) for row, turn, parent in found if parent]
        finished = [task.id for task in tasks if task.state is not TaskState.RUNNING]
        gone = frozenset(finished[MAX_FINISHED:]) if asker is not None else frozenset[str]()
        return [task for task in tasks if task.id not in gone]

    async def get_task(self, key: str, asker: str | None = None) -> BackgroundTask:
        """Returns a task of that principal key, or of anybody. Raises NotFound."""
        found = next((task for task in await self.list_tasks(asker) if task.id == key.strip()), None)
        if found is None:
            raise no_such_task(key)
        return found

    async def read_result_taint(self, task: BackgroundTask) -> frozenset[Taint]:
        """Returns the kinds of foreign text that the task's turn has read."""
        return await self._read_taint(task.turn_id)

    async def cancel(self, key: str, asker: str | None = None) -> BackgroundTask:
        """Stops a task that runs. Raises NotFound, and Conflict when it has ended."""
        task = await self.get_task(key, asker)
        if task.state is not TaskState.RUNNING:
            raise Conflict(f"{task.id} has ended already: it is {task.state.value}.", code="task_ended")
        await self._stop(task.turn_id)
        return task


def no_such_task(key: str) -> NotFound:
    """For an id that is nobody's, and for one that is somebody else's."""
    return NotFound(
        f"There is no background task '{key[:40]}'.",
        code="task_not_found",
        why="tasks that have ended leave the list after an hour",
        fix="List them to see their ids.",
    )


async def _read_task(work: UnitOfWork, row: Delegation, turn: Turn, parent: ParentTurn) -> BackgroundTask:
    try:
        said = (await work.messages.get(turn.trigger_id)).text
    except NotFound:  # its session keeps fewer messages
        said = ""
    failure = turn.result.failure
    return BackgroundTask(
        id=row.task_id,
        turn_id=turn.id,
        parent=parent,
        asker=row.asker,
        agent=turn.agent,
        task=said,
        state=_find_state(turn.status),
        result=turn.result.reply or (failure.message if failure else ""),
        created_at=row.created_at,
        finished_at=turn.closed_at,
    )


def _find_state(status: TurnStatus) -> TaskState:
    match status:
        case TurnStatus.OPEN:
            return TaskState.RUNNING
        case TurnStatus.DONE | TurnStatus.SKIPPED:
            return TaskState.COMPLETED
        case _:
            return TaskState.FAILED


def _to_result(agent: AgentName, end: TurnFinished, taint: frozenset[Taint]) -> ToolResult:
    match end.status:
        case TurnStatus.DONE:
            text = "\n\n".join(filter(None, (end.reply, end.cards))) or f"{agent} is done and has nothing to say."
            images: list[Json] = [{"url": url} for url in end.images]
            shown = quote_untrusted(text, source=f"agent:{agent}") if taint else text
            return ToolResult(shown, data={"images": images} if images else {})
        case TurnStatus.SKIPPED:
            return ToolResult(f"{agent} had nothing to do: the task was skipped.")
        case _:
            failure = end.failure
            why = failure.message if failure else "It ended without an answer."
            fix = f"\nfix: {failure.fix}" if failure and failure.fix else ""
            return ToolResult(f"{agent} did not finish the task. {why}{fix}", is_error=True)

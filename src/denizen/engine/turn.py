"""The life of one message, from its arrival to the delivered reply. Read this file first.

    1 admit    which agent; is there room
    2 open     message and turn, in one transaction, if the rate is kept (`intake/opening.py`)
    3 hooks    the owner's own tool calls; one may find that there is nothing to do: then 8 follows (`hooks/runner.py`)
    4 route    which model and how many steps, for agents whose model is chosen for each question (`loop/routing.py`)
    5 prompt   from the agent as configured now, its history within the budget, notes (`prompt/context.py`)
    6 loop     what the documents say (`loop/look_up.py`), then model and tools until there is an answer or a limit
               (`loop/loop.py`, `loop/planning.py`); for a run of a workflow, its graph instead (`workflows/runner.py`)
    7 render   what people see: citations proved, as they were in the stream already (`knowledge/proof.py`), and the
               text without the data and addresses of pictures beside it (`domain/attachments.py`)
    8 record   messages, steps, calls, usage, the outcome and what is owed to a platform, in one transaction
    9 deliver  the outbox sends what is owed, each piece once (`outbox/outbox.py`); watchers get the end of the turn
   10 hooks    those that follow an answer, in a durable run of their own, which nobody waits for

Steps 1 and 2 happen where the message arrives (`TurnRunner.submit`). The others are a durable run: killed at any point,
it is taken up again and repeats no finished model request or tool call. The turn's id, which is also the run's, derives
from the message, so the same message twice is one turn.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

import anyio

from denizen.domain.attachments import extract_attachments, omit_addresses
from denizen.domain.delivery import Delivery
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, Unavailable
from denizen.domain.events import ApprovalRequested, Notice, TurnEvent, TurnFinished, TurnStarted
from denizen.domain.ids import AgentName, ConversationId, TurnId, derive, fresh
from denizen.domain.json import Json, JsonObject
from denizen.domain.prompt import PromptMessage
from denizen.domain.store_move import STORE_MOVED
from denizen.domain.turn import Turn, TurnFailure, TurnRequest, TurnResult, TurnStatus
from denizen.domain.workflow_run import STARTED
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.events.live_events import Sign, Watch
from denizen.engine.hooks.runner import HookRunner
from denizen.engine.intake.opening import (
    OpenTurn,
    load_turn,
    open_turn,
    queue_key,
    request_queue_key,
    request_turn_id,
    turn_queue_key,
)
from denizen.engine.intake.resumed_turns import ResumedTurns
from denizen.engine.intake.stops import StopRequests
from denizen.engine.intake.turn_queue import QueueSlot, TurnPause, TurnQueues
from denizen.engine.intake.turns_elsewhere import TurnsElsewhere
from denizen.engine.knowledge.proof import ProvedAnswer, TurnProofs
from denizen.engine.loop.look_up import look_up
from denizen.engine.loop.loop import run_loop
from denizen.engine.loop.outcome import (
    TurnOutcome,
    describe_failure,
    finished_event,
    hold_to_sources,
    keep_answer,
    log_turn,
    open_proofs,
)
from denizen.engine.loop.planning import plan_then_act
from denizen.engine.loop.routing import ModelRouter
from denizen.engine.loop.services import EngineServices
from denizen.engine.loop.step_record import ReplyExtras, load_reply_extras
from denizen.engine.loop.steps import TurnSteps
from denizen.engine.prompt.context import TurnContext, build_context
from denizen.engine.prompt.pictures import load_uploads
from denizen.engine.prompt.room_transcript import BlockTextCache
from denizen.engine.summaries.background import BackgroundSummaries
from denizen.engine.workflows.runner import WorkflowRunner
from denizen.ports.durable import RunLane
from denizen.ports.telemetry import TurnSpan

WATCH_INTERVAL_S = 5.0
"""A watcher that hears nothing for so long looks at the record: the turn may run in another process."""

RESUME_LIMIT = 10_000
"""How many open turns a restart takes up at once."""

CLOSE_PATIENCE_S = 60.0
"""How long the end of a turn waits for a store that is locked or away: its answer has been paid for."""
CLOSE_PAUSE_S = 0.5

MAX_OPENED = 1000
"""Turns that are kept in memory until their run begins; others are loaded from the store."""

WORKFLOW = "turn"
"""The durable run's name. It is stored; changing it would orphan turns that are under way."""

OnOpen = Callable[[Turn], Awaitable[None]]

_log = logging.getLogger("denizen.turn")


class _TurnSkipped(Exception):  # noqa: N818 - nothing is wrong
    """A hook found that there is nothing to do."""


@dataclass
class _RunningTurn:
    """A turn that runs in this process: what stops it, its steps once it has begun them, and whether it is closed."""

    scope: anyio.CancelScope
    steps: TurnSteps | None = None
    is_closing: bool = False


class TurnRunner:
    """Takes messages in (`submit`, `stream`, `ask`) and sees their turns through."""

    def __init__(
        self,
        runtime: Runtime,
        services: EngineServices,
        queues: TurnQueues | None = None,
        *,
        workflows: WorkflowRunner | None = None,
    ) -> None:
        self._runtime = runtime
        self._services = services
        self._workflows = workflows
        self._queues = queues or TurnQueues()
        self._elsewhere = None if services.relay is None else TurnsElsewhere(services.store)
        self._resumed = ResumedTurns(self._is_over)
        self.left_open: frozenset[TurnId] = frozenset()
        """Turns that were open when this process began: whoever showed them then is gone."""
        self.approvals = services.approvals
        self.questions = services.questions
        self._opened: dict[TurnId, OpenTurn] = {}
        """Turns that were opened here and do not run yet, so that their run need not load them. None in a fleet, where
        any process may run them.
        """
        self._running: dict[TurnId, _RunningTurn] = {}
        self._ended = anyio.Event()
        """Set when one of them ends."""
        self._queued: dict[TurnId, anyio.Event] = {}
        """Turns among the running ones that wait behind others; the event is set when the wait ends."""
        self._stopped: set[TurnId] = set()
        """Turns among the opened ones that were cancelled before they ran."""
        self.stops = StopRequests(services.store, self._running.keys, self._end_unwanted)
        self._block_texts = BlockTextCache()
        self._summaries = BackgroundSummaries(runtime, services)
        self._router = ModelRouter(services)
        self._hooks = HookRunner(runtime, services)
        services.durable.register(WORKFLOW, self._run, lambda run_id, why: services.live.publish(TurnId(run_id), why))

    @property
    def queued(self) -> frozenset[TurnId]:
        """The turns of this process that wait behind others of their queue."""
        return frozenset(self._queued)

    @property
    def running_count(self) -> int:
        """How many turns this process has begun and not ended, those that wait among them."""
        return len(self._running)

    def count_idle(self) -> int:
        """Returns how many of these wait, for people or for other turns. May be called from any thread."""
        return len(self._running) - self.approvals.pauses.count_working()

    async def wait_for_working(self) -> None:
        """Waits until none of these works, because it has ended or waits when another one ends."""
        while self.approvals.pauses.count_working():
            await self._ended.wait()

    # --- 1 admit, 2 open ---------------------------------------------------------------------------------------------

    async def submit(self, request: TurnRequest) -> Turn:
        """Opens the turn that this message deserves and starts it. The same message again gives the same turn.

        Raises NotFound for an unknown agent, NotAllowed for one that is switched off, InvalidInput for an empty
        message, LimitExceeded when too many wait or the sender has asked too often, Conflict when the sender gave the
        id of this message to another before.
        """
        agent = self._runtime.current.agent(request.agent)
        if not agent.enabled:
            raise NotAllowed(
                f"{agent.name} is switched off.",
                code="agent_off",
                fix="Ask another agent, or the owner to switch it on.",
            )
        if not request.parts:
            raise InvalidInput("The message is empty.", code="message_empty", fix="Write something to answer.")
        if self._elsewhere is None:
            self._queues.check_not_full(request_queue_key(agent.name, request), request.sender.principal.key)
        else:
            await self._elsewhere.check_not_full(agent.name, (request.session.place or request.place).conversation_id)
        generation = self._runtime.current
        set_up = (await self._services.configured(generation, agent.name)).agent(agent.name)
        sender = request.sender.principal
        # What is delegated was not sent by the asker, whose message has been counted.
        limits = () if request.parent else generation.policy.rate_limits.of(sender)
        # What is read in a chat about the administration must not leave it.
        is_hooked = not (request.options.is_administration or request.options.workflow) and bool(
            generation.find_hooks(agent.name, sender, is_delegated=request.parent is not None)
        )
        now = self._services.clock.now()
        opened, is_new = await open_turn(
            self._services.store, set_up, request, limits=limits, is_hooked=is_hooked, now=now
        )
        turn = opened.turn
        if is_new and self._services.relay is None:
            self._opened[turn.id] = opened
            if len(self._opened) > MAX_OPENED:  # another process may win a run, which then takes nothing from here
                oldest = next(iter(self._opened))
                del self._opened[oldest]
                self._stopped.discard(oldest)
        if not turn.status.is_final:
            await self._hand_in(turn)
        return turn

    async def _hand_in(self, turn: Turn) -> None:
        lane = RunLane(derive("lane", turn_queue_key(turn)), is_urgent=turn.principal.kind.asks)
        await self._services.durable.submit(WORKFLOW, turn.id, {"turn_id": turn.id}, lane=lane)

    # --- the durable run: 3 to 10 ------------------------------------------------------------------------------------

    async def _run(self, payload: JsonObject) -> Json:
        """Waits until the turn is next in its conversation, then runs it with the configuration of that moment."""
        key, began_s = TurnId(str(payload["turn_id"])), self._services.clock.monotonic_s()
        opened = self._opened.pop(key, None) or await load_turn(self._services.store, key)
        if opened.turn.status.is_final:
            await self._hooks.submit_after(opened.turn)  # an earlier process may have died before it did
            return {"status": opened.turn.status}
        span = TurnSpan(turn_id=key, agent=opened.turn.agent)
        with self._runtime.telemetry.measure(span):
            closed = await self._run_opened(opened, began_s)
            span.outcome = closed.status.value
            span.failure = closed.result.failure.code if closed.result.failure else ""
        return {"status": closed.status}

    async def _run_opened(self, opened: OpenTurn, began_s: float) -> Turn:
        key = opened.turn.id
        running = self._running[key] = _RunningTurn(anyio.CancelScope())
        with running.scope as scope:
            if key in self._stopped or opened.turn.is_stop_asked:
                self._stopped.discard(key)
                scope.cancel()
            try:
                async with self._next_in_queue(opened.turn) as slot, self._runtime.lease() as generation:
                    with self.approvals.pauses.open(key, slot) as pause:
                        return await self._run_steps(opened, generation, pause)
            finally:
                del self._running[key]
                ended, self._ended = self._ended, anyio.Event()
                ended.set()
                await self._services.free_turn(key)
        if running.steps is not None:
            running.steps.keep_said()
        stopped = TurnOutcome(TurnStatus.CANCELLED, failure=TurnFailure("Stopped."))
        closed = await self._close(opened, stopped, running.steps)
        log_turn(closed, running.steps, round((self._services.clock.monotonic_s() - began_s) * 1000))
        return closed

    @asynccontextmanager
    async def _next_in_queue(self, turn: Turn) -> AsyncGenerator[QueueSlot]:
        queue = turn_queue_key(turn)
        self._queued[turn.id] = anyio.Event()
        try:
            await self._resumed.wait_behind(queue, turn.id)
            async with self._queues.turn(queue, turn.principal.key) as slot:
                self._queued.pop(turn.id).set()
                yield slot
        finally:
            if turn.id in self._queued:
                self._queued.pop(turn.id).set()

    async def _run_steps(self, opened: OpenTurn, generation: Generation, pause: TurnPause) -> Turn:
        """Whatever happens in steps 3 to 7 becomes an outcome, so that the others follow. Only a cancelled turn stops
        at once: the caller closes it.
        """
        services, started_s = self._services, self._services.clock.monotonic_s()
        steps: TurnSteps | None = None
        context: TurnContext | None = None
        try:
            generation = await services.configured(generation, opened.turn.agent)
            if opened.owed is not None:  # where it was asked, on a platform
                place = opened.place.platform, opened.owed.guild
                generation = await services.guilds.apply(generation, opened.turn.agent, *place)
            # 3 hooks
            before = await self._hooks.run_before(opened, generation)
            opened = before.opened
            if before.is_skipped:
                raise _TurnSkipped
            # 4 route
            routed = await self._router.find_route(opened, generation)
            spent = TurnResult(usage=opened.turn.result.usage + routed.usage)
            opened = replace(opened, turn=replace(opened.turn, route=routed.route, result=spent))
            # 5 prompt
            context, history = await build_context(
                services.store,
                opened,
                generation,
                texts=self._block_texts,
                keeper=services.memories,
                preface=before.preface,
            )
            if context.model.capabilities.images:
                history = await load_uploads(history, services.load_upload)
            proofs = open_proofs(services.prover, context, history)
            steps = self._running[opened.turn.id].steps = TurnSteps(context, services, proofs=proofs)
            steps.usage += before.opened.turn.result.usage
            if routed.asked:
                steps.count(routed.asked)
            services.live.publish(context.turn.id, TurnStarted(context.turn.id, context.turn.agent, context.model.name))
            # 6 loop
            with anyio.fail_after(context.agent.limits.turn_timeout_s) as limit, pause.limited(limit):
                if STARTED in opened.turn.options:
                    text = await self._run_workflow(context, steps)
                else:
                    text = await find_answer(context, steps, history)
            # 7 render
            answer, reply = await render_answer(context, steps, proofs, text)
            outcome = TurnOutcome(TurnStatus.DONE, reply=reply, answer=answer)
        except _TurnSkipped:
            outcome = TurnOutcome(TurnStatus.SKIPPED)
        except (DenizenError, TimeoutError) as error:
            outcome = describe_failure(error)
        except anyio.get_cancelled_exc_class():
            await _settle(opened.turn, steps)
            raise
        except Exception:  # noqa: BLE001 - the boundary of a turn
            reference = fresh("err")
            _log.exception("turn fault", extra={"turn": opened.turn.id, "reference": reference})
            failure = TurnFailure(f"Something went wrong inside. Reference: {reference}.", "bug")
            outcome = TurnOutcome(TurnStatus.FAILED, failure=failure)
        # 8 record, 9 deliver
        closed = await self._close_somehow(opened, outcome, steps)
        log_turn(closed, steps, round((services.clock.monotonic_s() - started_s) * 1000), outcome.error)
        if context is not None and context.overdue:
            await self._summaries.submit(opened, context.agent, context.overdue)
        # 10 hooks
        await self._hooks.submit_after(closed)
        return closed

    async def _run_workflow(self, context: TurnContext, steps: TurnSteps) -> str:
        """Runs the graph that takes the place of the model. Raises the error of the node that failed."""
        if self._workflows is None:
            raise NotAllowed("Workflows do not run here.", code="workflows_off", fix="Run them with `denizen run`.")
        return await self._workflows.run(context, steps)

    async def _close_somehow(self, opened: OpenTurn, outcome: TurnOutcome, steps: TurnSteps | None) -> Turn:
        """Closes the turn, even when what happened in it cannot be written down."""
        self._running[opened.turn.id].is_closing = True
        try:
            return await self._close(opened, outcome, steps)
        except DenizenError:
            raise
        except Exception:  # noqa: BLE001 - the boundary of a turn
            _log.exception("turn could not be recorded", extra={"turn": opened.turn.id})
            lost = TurnOutcome(TurnStatus.FAILED, failure=TurnFailure("What happened could not be recorded.", "bug"))
            return await self._close(opened, lost, None)

    async def _close(self, opened: OpenTurn, outcome: TurnOutcome, steps: TurnSteps | None) -> Turn:
        closed = replace(
            opened.turn,
            status=outcome.status,
            closed_at=self._services.clock.now(),
            result=TurnResult(
                reply=outcome.reply,
                failure=outcome.failure,
                model=steps.answered_by if steps else "",
                usage=steps.usage if steps else opened.turn.result.usage,
            ),
        )
        extras = steps.extras if steps else ReplyExtras()
        owed = await self._services.outbox.plan(replace(opened, turn=closed), extras.rows)
        await self._write_end(closed, steps, owed, outcome.answer)
        if opened.owed:
            self._services.outbox.wake(opened.place.platform, opened.owed.account)
        self._services.live.publish(closed.id, finished_event(closed, extras))
        return closed

    async def _write_end(
        self, closed: Turn, steps: TurnSteps | None, owed: Sequence[Delivery], answer: ProvedAnswer | None
    ) -> None:
        clock = self._services.clock
        until_s = clock.monotonic_s() + CLOSE_PATIENCE_S
        while True:
            try:
                async with self._services.store.work() as work:
                    if steps:
                        await steps.write(work)
                    is_wanted = not (await work.turns.get(closed.id)).status.is_final
                    await work.turns.close(closed)
                    if steps and answer:
                        await keep_answer(work, closed, steps.context, steps.evidence, answer)
                    is_workflow = STARTED in closed.options  # which may end while people are asked on another way
                    if closed.status is not TurnStatus.DONE or is_workflow:
                        await self.approvals.end_turn(work, closed)
                    if is_workflow:
                        await self.questions.end_turn(work, closed)
                    if owed and is_wanted:  # else it ended meanwhile: its question was asked anew, or deleted
                        await work.outbox.add(owed)
                    if steps:
                        await steps.audit(work)
            except Unavailable as error:
                if clock.monotonic_s() >= until_s or error.code == STORE_MOVED:
                    raise
                self._services.live.publish(closed.id, Notice(f"{error.message} Trying again."))
            else:
                return
            await anyio.sleep(CLOSE_PAUSE_S)

    # --- watching and stopping ---------------------------------------------------------------------------------------

    async def stream(self, request: TurnRequest, *, on_open: OnOpen | None = None) -> AsyncGenerator[TurnEvent]:
        """Submits the message and yields what happens; the last event is `TurnFinished`. `on_open` is called when the
        message was taken. Raises what keeps the turn from ending here: a database that cannot be written, or Denizen
        shutting down.
        """
        key = request_turn_id(self._runtime.current.agent(request.agent), request)
        with self._services.live.watch(key) as events:
            turn = await self.submit(request)
            if on_open is not None:
                await on_open(turn)
            async with aclosing(self._follow(turn, events)) as signs:
                async for event in signs:
                    yield event

    async def watch(self, key: TurnId) -> AsyncGenerator[TurnEvent]:
        """Yields what happens in a turn that was submitted, and first what has happened so far if that is kept, or else
        the approvals that it waits for; ends and raises as `stream` does.
        """
        with self._services.live.watch(key) as events:
            turn = await self.get(key)
            if not self._services.live.is_kept(key):  # else it is among what has happened so far
                for approval in await self.approvals.list_pending(key):
                    yield ApprovalRequested(approval)
            async with aclosing(self._follow(turn, events)) as signs:
                async for event in signs:
                    yield event

    async def _follow(self, turn: Turn, events: Watch) -> AsyncGenerator[TurnEvent]:
        while not turn.status.is_final:
            event: Sign | None = None
            try:
                event = events.receive_nowait()  # of a burst only the first is waited for
            except anyio.WouldBlock:
                with anyio.move_on_after(WATCH_INTERVAL_S):
                    event = await events.receive()
            if event is None:
                turn = await self._look_after(turn.id, await self._services.durable.pending())
                continue
            if isinstance(event, DenizenError):
                raise event
            yield event
            if isinstance(event, TurnFinished):
                return
        yield finished_event(turn, await load_reply_extras(self._services.store, turn, self._runtime.current))

    async def ask(self, request: TurnRequest) -> TurnFinished:
        """Submits the message and waits for the end of its turn."""
        async with aclosing(self.stream(request)) as events:
            async for event in events:
                if isinstance(event, TurnFinished):
                    return event
        raise AssertionError("a stream of events ends with TurnFinished")

    async def get(self, key: TurnId) -> Turn:
        """Raises NotFound."""
        async with self._services.store.work(write=False) as work:
            return await work.turns.get(key)

    def is_queued(self, key: TurnId) -> bool:
        """Whether the turn waits behind others in this process."""
        return key in self._queued

    async def wait_while_queued(self, key: TurnId) -> None:
        waits = self._queued.get(key)
        if waits is not None:
            await waits.wait()

    def cancel(self, key: TurnId) -> bool:
        """Stops a turn that runs in this process, or in a fleet wherever it runs or will run; False when there is
        none.
        """
        if self.cancel_here(key):
            return True
        relay = self._services.relay
        if relay is not None:
            relay.cancel(key)
            self.stops.ask(key)
        return relay is not None

    def cancel_here(self, key: TurnId) -> bool:
        """Stops a turn that runs in this process; False when there is none."""
        running = self._running.get(key)
        if running is not None:
            running.scope.cancel()
        elif key in self._opened:
            self._stopped.add(key)
        else:
            return False
        return True

    def _end_unwanted(self, key: TurnId) -> None:
        running = self._running.get(key)
        if running is not None and not running.is_closing:
            running.scope.cancel()

    def is_stopped(self, key: TurnId) -> bool:
        """Whether a turn that runs in this process was stopped with `cancel`, and does not only leave it."""
        running = self._running.get(key)
        return running is not None and running.scope.cancel_called

    def cancel_message(self, request: TurnRequest) -> bool:
        """Stops the turn of a message that was handed in."""
        agent = self._runtime.current.agent(request.agent)
        return self.cancel(request_turn_id(agent, request))

    async def finish_hooks(self, key: TurnId) -> None:
        """Waits until the hooks after a turn have run."""
        await self._hooks.finish_after(key)

    @asynccontextmanager
    async def hold(self, agent: AgentName, conversation_id: ConversationId) -> AsyncGenerator[None]:
        """Until the block ends no turn of the agent's session there runs; it begins when those before it have ended, or
        wait for people.
        """
        if self._elsewhere is not None:
            await self._elsewhere.wait_until_idle(agent, conversation_id)
        queue = queue_key(agent, conversation_id)
        await self._resumed.wait_behind(queue)
        async with self._queues.turn(queue):
            yield

    # --- after a restart ---------------------------------------------------------------------------------------------

    async def expect_open(self) -> None:
        """Lets the turns that an earlier process left open go before new ones. Called before any run is taken up."""
        async with self._services.store.work(write=False) as work:
            turns = await work.turns.list_turns(status=TurnStatus.OPEN, limit=RESUME_LIMIT)
        self.left_open = frozenset(turn.id for turn in turns)
        self._resumed.expect((turn_queue_key(turn), turn.id) for turn in turns)

    async def _is_over(self, key: TurnId) -> bool:
        try:
            return (await self.get(key)).status.is_final
        except DenizenError:  # asked again soon
            return False

    async def resume(self) -> int:
        """Takes up turns that were opened but never started, and closes those whose run ended without being able to
        write down its end (a full disk). Returns how many were open.
        """
        async with self._services.store.work(write=False) as work:
            turns = await work.turns.list_turns(status=TurnStatus.OPEN, limit=RESUME_LIMIT)
        for turn in turns:
            await self._hand_in(turn)
        pending = set(await self._services.durable.pending()) if turns else set[str]()
        for turn in turns:
            if turn.id not in pending:
                await self._look_after(turn.id, pending)
        return len(turns)

    async def _look_after(self, key: TurnId, pending: Collection[str]) -> Turn:
        """Returns a turn as it is recorded. One that is open although its run is not pending is closed."""
        opened = await load_turn(self._services.store, key)
        if opened.turn.status.is_final or key in pending:
            return opened.turn
        outcome = await self._find_end(opened.turn)
        closed = await self._close(opened, outcome, None)
        log_turn(closed, None, 0, outcome.error)
        return closed

    async def _find_end(self, turn: Turn) -> TurnOutcome:
        """The end of a turn whose run is over, although the store has it open. A run succeeds after the store has the
        turn's end: then the store is an older copy that was put back, and the question was answered.
        """
        try:
            await self._services.durable.wait(turn.id)
        except DenizenError:
            lost = Unavailable(
                "This turn was interrupted and could not be finished.", code="turn_lost", fix="Ask again."
            )
            return describe_failure(lost)
        _log.warning("the database is older than the durable log: not answered again", extra={"turn": turn.id})
        failure = TurnFailure("This was answered before the database was put back to an older copy.", "turn_answered")
        return TurnOutcome(TurnStatus.CANCELLED, failure=failure)


async def _settle(turn: Turn, steps: TurnSteps | None) -> None:
    """Counts what a stopped turn has cost."""
    try:
        with anyio.CancelScope(shield=True):
            if steps:
                await steps.settle()
    except DenizenError as error:
        if error.code == STORE_MOVED:  # it goes on elsewhere, and is counted there
            return
        _log.warning("a stopped turn was not counted: %s", error.message, extra={"turn": turn.id, **error.fields})


async def find_answer(context: TurnContext, steps: TurnSteps, history: Sequence[PromptMessage]) -> str:
    """Step 6: asks the model, which uses tools on the way, and returns the text of its answer. Raises what the model
    raises.
    """
    found = await look_up(context, steps)
    if context.plans:
        return await plan_then_act(context, steps, history, found)
    return await run_loop(context, steps, history, found or [])


async def render_answer(
    context: TurnContext, steps: TurnSteps, proofs: TurnProofs, text: str
) -> tuple[ProvedAnswer | None, str]:
    """Step 7: returns the answer with its citations, and the reply that is made of it. Pictures and files in it go to
    the extras of the steps. Words before calls that are left to the asker are no answer, nor is what has a form, or
    what a workflow says.
    """
    demands = context.demands
    if STARTED in context.turn.options:
        return None, text
    if steps.extras.calls or demands.output is not None:  # no answer yet, or one for a program
        return None, text if demands.output is not None else (await proofs.prove(text)).text
    answer = hold_to_sources(context, steps, await proofs.prove(text))
    reply, drawn = extract_attachments(omit_addresses(answer.text, steps.extras.shown).strip(), {})
    steps.extras += ReplyExtras(shown=(drawn,) if drawn else ())
    return answer, steps.finish(reply)

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
               (`loop/closing.py`)
    9 deliver  the outbox sends what is owed, each piece once (`outbox/outbox.py`); watchers get the end of the turn
   10 hooks    those that follow an answer, in a durable run of their own, which nobody waits for

Steps 1 and 2 happen where the message arrives (`TurnRunner.submit`). The others are a durable run: killed at any point,
it is taken up again and repeats no finished model request or tool call. The turn's id, which is also the run's, derives
from the message, so the same message twice is one turn.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

import anyio

from denizen.domain.attachments import extract_attachments, omit_addresses
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed
from denizen.domain.events import ApprovalRequested, TurnEvent, TurnFinished, TurnStarted
from denizen.domain.ids import AgentName, ConversationId, TurnId, derive, fresh
from denizen.domain.json import Json, JsonObject
from denizen.domain.prompt import PromptMessage
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
from denizen.engine.intake.turn_queue import TurnPause, TurnQueues
from denizen.engine.intake.turns_elsewhere import TurnsElsewhere
from denizen.engine.intake.turns_here import TurnsHere
from denizen.engine.knowledge.proof import ProvedAnswer, TurnProofs
from denizen.engine.loop.closing import TurnCloser, settle
from denizen.engine.loop.look_up import look_up
from denizen.engine.loop.loop import run_loop
from denizen.engine.loop.outcome import (
    TurnOutcome,
    describe_failure,
    finished_event,
    hold_to_sources,
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

WORKFLOW = "turn"
"""The durable run's name. It is stored; changing it would orphan turns that are under way."""

_log = logging.getLogger("denizen.turn")


class OnOpen(Protocol):
    """Called when a message was taken. `is_new` is false for one that was sent again."""

    async def __call__(self, turn: Turn, *, is_new: bool) -> None: ...


class _TurnSkipped(Exception):  # noqa: N818 - nothing is wrong
    """A hook found that there is nothing to do."""


@dataclass
class _Progress:
    """How far the run of a turn has come: its steps, once it has begun them."""

    steps: TurnSteps | None = None


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
        self.here = TurnsHere(self._queues, self._resumed, services.approvals.pauses)
        self.stops = StopRequests(services.store, lambda: self.here.running, self.here.end_unwanted)
        self._closer = TurnCloser(services)
        self._block_texts = BlockTextCache()
        self._summaries = BackgroundSummaries(runtime, services)
        self._router = ModelRouter(services)
        self._hooks = HookRunner(runtime, services)
        services.durable.register(WORKFLOW, self._run, lambda run_id, why: services.live.publish(TurnId(run_id), why))

    # --- 1 admit, 2 open ---------------------------------------------------------------------------------------------

    async def submit(self, request: TurnRequest, *, on_open: OnOpen | None = None) -> Turn:
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
            self.here.keep(opened)
        if not turn.status.is_final:
            await self._hand_in(turn)
        if on_open is not None:
            await on_open(turn, is_new=is_new)
        return turn

    async def _hand_in(self, turn: Turn) -> None:
        lane = RunLane(derive("lane", turn_queue_key(turn)), is_urgent=turn.principal.kind.asks)
        await self._services.durable.submit(WORKFLOW, turn.id, {"turn_id": turn.id}, lane=lane)

    # --- the durable run: 3 to 10 ------------------------------------------------------------------------------------

    async def _run(self, payload: JsonObject) -> Json:
        """Waits until the turn is next in its conversation, then runs it with the configuration of that moment."""
        key, began_s = TurnId(str(payload["turn_id"])), self._services.clock.monotonic_s()
        opened = self.here.take(key) or await load_turn(self._services.store, key)
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
        key, progress = opened.turn.id, _Progress()
        try:
            with self.here.run(opened.turn):
                async with self.here.next_in_queue(opened.turn) as slot, self._runtime.lease() as generation:
                    with self.approvals.pauses.open(key, slot) as pause:
                        return await self._run_steps(opened, generation, pause, progress)
        finally:
            await self._services.free_turn(key)
        return await self._close_stopped(opened, progress, began_s)

    async def _run_steps(self, opened: OpenTurn, generation: Generation, pause: TurnPause, progress: _Progress) -> Turn:
        """Whatever happens in steps 3 to 7 becomes an outcome, so that the others follow. Only a cancelled turn stops
        at once: the caller closes it.
        """
        services, started_s = self._services, self._services.clock.monotonic_s()
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
            steps = progress.steps = TurnSteps(context, services, proofs=proofs)
            steps.usage += before.opened.turn.result.usage
            if routed.asked:
                steps.count(routed.asked)
            services.live.publish(context.turn.id, TurnStarted(context.turn.id, context.turn.agent, context.model.name))
            # 6 loop
            with anyio.fail_after(context.agent.limits.turn_timeout_s) as limit, pause.limited(limit):
                text = await find_answer(context, steps, history, self._workflows)
            # 7 render
            answer, reply = await render_answer(context, steps, proofs, text)
            outcome = TurnOutcome(TurnStatus.DONE, reply=reply, answer=answer)
        except _TurnSkipped:
            outcome = TurnOutcome(TurnStatus.SKIPPED)
        except (DenizenError, TimeoutError) as error:
            outcome = describe_failure(error)
        except anyio.get_cancelled_exc_class():
            await settle(opened.turn, progress.steps)
            raise
        except Exception:  # noqa: BLE001 - the boundary of a turn
            reference = fresh("err")
            _log.exception("turn fault", extra={"turn": opened.turn.id, "reference": reference})
            failure = TurnFailure(f"Something went wrong inside. Reference: {reference}.", "bug")
            outcome = TurnOutcome(TurnStatus.FAILED, failure=failure)
        # 8 record, 9 deliver
        self.here.close(opened.turn.id)
        closed = await self._closer.close_somehow(opened, outcome, progress.steps)
        log_turn(closed, progress.steps, round((services.clock.monotonic_s() - started_s) * 1000), outcome.error)
        if context is not None and context.overdue:
            await self._summaries.submit(opened, context.agent, context.overdue)
        # 10 hooks
        await self._hooks.submit_after(closed)
        return closed

    async def _close_stopped(self, opened: OpenTurn, progress: _Progress, began_s: float) -> Turn:
        """Closes a turn that was stopped. What it said until then stays."""
        if progress.steps is not None:
            progress.steps.keep_said()
        stopped = TurnOutcome(TurnStatus.CANCELLED, failure=TurnFailure("Stopped."))
        closed = await self._closer.close(opened, stopped, progress.steps)
        log_turn(closed, progress.steps, round((self._services.clock.monotonic_s() - began_s) * 1000))
        return closed

    # --- watching and stopping ---------------------------------------------------------------------------------------

    async def stream(self, request: TurnRequest, *, on_open: OnOpen | None = None) -> AsyncGenerator[TurnEvent]:
        """Submits the message and yields what happens; the last event is `TurnFinished`. `on_open` is called when the
        message was taken. Raises what keeps the turn from ending here: a database that cannot be written, or Denizen
        shutting down.
        """
        key = request_turn_id(self._runtime.current.agent(request.agent), request)
        with self._services.live.watch(key) as events:
            turn = await self.submit(request, on_open=on_open)
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
                turn = await self._closer.look_after(turn.id, await self._services.durable.pending())
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

    def cancel(self, key: TurnId) -> bool:
        """Stops a turn that runs in this process, or in a fleet wherever it runs or will run; False when there is
        none.
        """
        if self.here.cancel(key):
            return True
        relay = self._services.relay
        if relay is not None:
            relay.cancel(key)
            self.stops.ask(key)
        return relay is not None

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
                await self._closer.look_after(turn.id, pending)
        return len(turns)


async def find_answer(
    context: TurnContext, steps: TurnSteps, history: Sequence[PromptMessage], workflows: WorkflowRunner | None = None
) -> str:
    """Step 6: asks the model, which uses tools on the way, and returns the text of its answer; or runs the graph of a
    workflow in its place. Raises what the model raises, or the node that failed.
    """
    if STARTED in context.turn.options:
        if workflows is None:
            raise NotAllowed("Workflows do not run here.", code="workflows_off", fix="Run them with `denizen run`.")
        return await workflows.run(context, steps)
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

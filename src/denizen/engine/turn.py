"""The life of one message, from its arrival to the delivered reply. Read this file first.

    1 admit    which agent; is there room; is the rate kept
    2 open     message and turn in one transaction; the turn is a durable run whose id derives from the message, so the
               same message twice is one turn
    3 gather   the agent as configured now, its history within the budget
    4 route    which model, and how it reaches tools
    5 loop     model and tools until there is an answer or a limit (`loop.py`, `planning.py`)
    6 render   what people see
    7 record   messages, steps, calls, usage, the outcome; one line in the log
    8 deliver  who watches live gets the end of the turn; who does not reads it from the store

Steps 1 and 2 happen where the message arrives. The others are the durable run: killed at any point, it is taken up
again and repeats no finished model request or tool call (promise 1).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, cast

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from denizen.domain.agent import Agent
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, Exhausted, InvalidInput, Unavailable
from denizen.domain.events import Notice, TurnEvent, TurnFinished, TurnStarted
from denizen.domain.ids import MessageId, TurnId, derive, fresh, turn_id
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import Message, Role, parts_from_json, parts_to_json, text_of
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.prompt import PromptMessage, estimate_tokens
from denizen.domain.turn import Inbound, Turn, TurnStatus
from denizen.engine.gate.limits import SlidingWindow
from denizen.engine.gate.policy import RateLimit
from denizen.engine.inbox import Inbox
from denizen.engine.live import Sign
from denizen.engine.loop import run_loop
from denizen.engine.outcome import Outcome, failure_of, finished, report
from denizen.engine.planning import plan_then_act, uses_planning
from denizen.engine.prompt.assemble import assemble
from denizen.engine.prompt.session import from_stored, plan_window
from denizen.engine.runtime import Generation, Runtime
from denizen.engine.steps import Services, Steps, TurnContext
from denizen.ports.toolset import CallScope

WATCH_INTERVAL_S = 5.0
"""A watcher that hears nothing for so long looks at the record: the turn may run in another process."""

RESUME_LIMIT = 10_000
"""How many open turns a restart takes up at once."""

CLOSE_PATIENCE_S = 60.0
"""How long the end of a turn waits for a store that is locked or away: its answer has been paid for."""
CLOSE_PAUSE_S = 0.5

WORKFLOW = "turn"
"""The durable run's name. It is stored; changing it would orphan turns that are under way."""

_log = logging.getLogger("denizen.turn")


@dataclass(frozen=True, slots=True)
class _Opened:
    """A turn with what was written next to it, so that the run need not read it again."""

    turn: Turn
    place: Place
    trigger: Message


class Turns:
    """Takes messages in and sees them through."""

    def __init__(self, runtime: Runtime, services: Services, inbox: Inbox | None = None) -> None:
        self._runtime = runtime
        self._services = services
        self._inbox = inbox or Inbox()
        self._requests = SlidingWindow(services.clock)
        self._scopes: dict[TurnId, anyio.CancelScope] = {}
        self._opened: dict[TurnId, _Opened] = {}
        self._stopped: set[TurnId] = set()
        services.durable.register(WORKFLOW, self._run, lambda run_id, why: services.live.publish(TurnId(run_id), why))

    # --- 1 admit, 2 open ---------------------------------------------------------------------------------------------

    async def submit(self, inbound: Inbound) -> Turn:
        """Opens the turn that this message deserves and starts it. The same message again gives the same turn.

        Raises NotFound for an unknown agent, InvalidInput for an empty message, Exhausted when too many wait.
        """
        agent = self._runtime.current.agent(inbound.agent)
        if not inbound.parts:
            raise InvalidInput("The message is empty.", code="message_empty", fix="Write something to answer.")
        self._inbox.check_room(_lane(agent.name, inbound.place.conversation_id))
        self._check_rate(inbound.principal)
        opened, is_new = await self._open(agent, inbound)
        turn = opened.turn
        if is_new:
            self._opened[turn.id] = opened
        if not turn.status.is_final:
            await self._services.durable.submit(WORKFLOW, turn.id, {"turn_id": turn.id})
        return turn

    def _check_rate(self, principal: Principal) -> None:
        """People of a platform have so many requests an hour; refused ones do not count (inventory L2, LW1)."""
        limit = self._runtime.current.requests_per_hour
        if not limit or principal.kind not in (PrincipalKind.PLATFORM_USER, PrincipalKind.WEB_USER):
            return
        wait_s = self._requests.take(principal.key, RateLimit(limit, 3600.0))
        if wait_s > 0:
            raise Exhausted(
                f"You have asked {limit} times within the hour. Please come back in {wait_s / 60:.0f} min.",
                code="rate_limited",
            )

    async def _open(self, agent: Agent, inbound: Inbound) -> tuple[_Opened, bool]:
        now = self._services.clock.now()
        key = turn_id(agent.name, inbound.place.platform, inbound.platform_id)
        async with self._services.store.work() as work:
            conversation = await work.conversations.put(inbound.place, now=now)
            fresh_session = inbound.new_session and await work.turns.find(key) is None
            begin = work.sessions.renew if fresh_session else work.sessions.current
            session = await begin(conversation.id, agent.name, now=now)
            trigger = Message(
                MessageId(derive("msg", key, Role.USER)), conversation.id, Role.USER, inbound.author, inbound.parts,
                created_at=now, session_id=session.id, turn_id=key, platform_id=inbound.platform_id,
            )  # fmt: skip
            turn, is_new = await work.turns.open(
                Turn(
                    key, conversation.id, session.id, agent.name, inbound.principal, trigger.id, TurnStatus.OPEN, now,
                    options=_options(inbound),
                )
            )  # fmt: skip
            if is_new:
                trigger = await work.messages.add(trigger)
        return _Opened(turn, conversation.place, trigger), is_new

    async def resume(self) -> int:
        """After a restart: takes up turns that were opened but never started, and closes those whose run ended without
        being able to write down its end (a full disk). Returns how many were open.
        """
        async with self._services.store.work(write=False) as work:
            turns = await work.turns.list_turns(status=TurnStatus.OPEN, limit=RESUME_LIMIT)
        for turn in turns:
            await self._services.durable.submit(WORKFLOW, turn.id, {"turn_id": turn.id})
        pending = await self._services.durable.pending() if turns else []
        for turn in turns:
            await self._look_after(turn.id, pending)
        return len(turns)

    async def _look_after(self, key: TurnId, pending: Collection[str]) -> Turn:
        """A turn that was submitted, as recorded; one that is open although its run is not pending is closed."""
        turn = await self.get(key)
        if turn.status.is_final or key in pending:
            return turn
        lost = Unavailable("This turn was interrupted and could not be finished.", code="turn_lost", fix="Ask again.")
        return await self._close(turn, failure_of(lost), None)

    # --- watching and stopping ---------------------------------------------------------------------------------------

    async def stream(self, inbound: Inbound) -> AsyncGenerator[TurnEvent]:
        """Submits the message and yields what happens; the last event is `TurnFinished`. Raises what keeps the turn
        from ending here: a database that cannot be written, or Denizen shutting down.
        """
        agent = self._runtime.current.agent(inbound.agent)
        key = turn_id(agent.name, inbound.place.platform, inbound.platform_id)
        with self._services.live.watch(key) as events:
            turn = await self.submit(inbound)
            while not turn.status.is_final:
                event: Sign | None = None
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
            yield finished(turn)

    async def ask(self, inbound: Inbound) -> TurnFinished:
        """Submits the message and waits for the end of its turn."""
        async with aclosing(self.stream(inbound)) as events:
            async for event in events:
                if isinstance(event, TurnFinished):
                    return event
        raise AssertionError("a stream of events ends with TurnFinished")

    async def get(self, key: TurnId) -> Turn:
        """Raises NotFound."""
        async with self._services.store.work(write=False) as work:
            return await work.turns.get(key)

    def cancel(self, key: TurnId) -> bool:
        """Stops a turn that runs in this process; False when there is none."""
        scope = self._scopes.get(key)
        if scope is not None:
            scope.cancel()
        elif key in self._opened:
            self._stopped.add(key)
        else:
            return False
        return True

    def cancel_message(self, inbound: Inbound) -> bool:
        """Stops the turn of a message that was handed in."""
        agent = self._runtime.current.agent(inbound.agent)
        return self.cancel(turn_id(agent.name, inbound.place.platform, inbound.platform_id))

    # --- the durable run ---------------------------------------------------------------------------------------------

    async def _run(self, payload: JsonObject) -> Json:
        key = TurnId(str(payload["turn_id"]))
        opened = self._opened.pop(key, None) or await self._load(key)
        turn = opened.turn
        if turn.status.is_final:
            return {"status": turn.status}
        with anyio.CancelScope() as scope:
            self._scopes[key] = scope
            if key in self._stopped:
                self._stopped.remove(key)
                scope.cancel()
            try:
                lane = _lane(turn.agent, turn.conversation_id)
                async with self._inbox.turn(lane), self._runtime.lease() as generation:
                    return await self._live(opened, generation)
            finally:
                del self._scopes[key]
        closed = await self._close(turn, Outcome(TurnStatus.CANCELLED, failure="Stopped."), None)
        return {"status": closed.status}

    async def _load(self, key: TurnId) -> _Opened:
        async with self._services.store.work(write=False) as work:
            turn = await work.turns.get(key)
            conversation = await work.conversations.get(turn.conversation_id)
            return _Opened(turn, conversation.place, await work.messages.get(turn.trigger_id))

    async def _live(self, opened: _Opened, generation: Generation) -> Json:
        turn = opened.turn
        started = self._services.clock.monotonic_s()
        steps: Steps | None = None
        try:
            context, history = await self._gather(opened, generation)
            steps = Steps(context, self._services)
            self._services.live.publish(turn.id, TurnStarted(turn.id, turn.agent, context.model.name))
            with anyio.fail_after(context.agent.limits.turn_timeout_s):
                text = await self._answer(context, steps, history)
            outcome = Outcome(TurnStatus.DONE, reply=render(text))
        except (DenizenError, TimeoutError) as error:
            outcome = failure_of(error)
        except Exception:  # noqa: BLE001 - the boundary of a turn
            reference = fresh("err")
            _log.exception("turn fault", extra={"turn": turn.id, "reference": reference})
            text = f"Something went wrong inside. Reference: {reference}."
            outcome = Outcome(TurnStatus.FAILED, failure=text, failure_code="bug")
        closed = await self._close_somehow(turn, outcome, steps)
        report(closed, steps, round((self._services.clock.monotonic_s() - started) * 1000))
        return {"status": closed.status}

    # 3 gather, 4 route

    async def _gather(self, opened: _Opened, generation: Generation) -> tuple[TurnContext, list[PromptMessage]]:
        turn, trigger = opened.turn, opened.trigger
        agent = generation.agent(turn.agent)
        options = cast("Mapping[str, Any]", turn.options)
        model = generation.models.get(str(options.get("model") or agent.model))
        plans = uses_planning(agent.planning, model.capabilities)
        instructions = str(options.get("instructions", ""))
        segments = assemble(agent, now=turn.opened_at, tool_rules=not plans, instructions=instructions)
        most = agent.limits.max_output_tokens
        max_output = min(int(options.get("max_output_tokens") or most), most)
        room = model.capabilities.context_tokens - max_output - sum(estimate_tokens(s.text) for s in segments)
        budget = max(min(agent.limits.max_history_tokens, room), 0)
        if "supplied" in options:
            earlier = [_prompt_message(row) for row in options["supplied"]]
        else:
            earlier = from_stored(await self._list_earlier(turn, trigger, agent.limits.max_history_messages))
        history = plan_window([*earlier, *from_stored([trigger])], budget_tokens=budget)
        temperature = options.get("temperature")
        sampling = agent.sampling if temperature is None else replace(agent.sampling, temperature=float(temperature))
        scope = CallScope(agent.name, turn.principal, opened.place, turn.conversation_id, turn.session_id, turn.id)
        question = text_of(trigger.parts)
        return TurnContext(turn, generation, agent, model, scope, segments, question, max_output, sampling), history

    async def _list_earlier(self, turn: Turn, trigger: Message, limit: int) -> list[Message]:
        """What was said before: not this turn's own messages (it may have been interrupted), and no user message that
        arrived later and waits for a turn of its own.
        """
        if trigger.sequence == 1:  # the first of its session: most questions over the API
            await checkpoint_if_cancelled()
            return []
        async with self._services.store.work(write=False) as work:
            tail = await work.messages.list_tail(turn.session_id, limit=limit)
        return [m for m in tail if m.turn_id != turn.id and (m.role is not Role.USER or m.sequence < trigger.sequence)]

    # 5 loop

    async def _answer(self, context: TurnContext, steps: Steps, history: list[PromptMessage]) -> str:
        if uses_planning(context.agent.planning, context.model.capabilities):
            return await plan_then_act(context, steps, history)
        return await run_loop(context, steps, history)

    # 7 record, 8 deliver

    async def _close_somehow(self, turn: Turn, outcome: Outcome, steps: Steps | None) -> Turn:
        """A turn ends, even when what happened in it cannot be written down."""
        try:
            return await self._close(turn, outcome, steps)
        except DenizenError:
            raise
        except Exception:  # noqa: BLE001 - the boundary of a turn
            _log.exception("turn could not be recorded", extra={"turn": turn.id})
            lost = Outcome(TurnStatus.FAILED, failure="What happened could not be recorded.", failure_code="bug")
            return await self._close(turn, lost, None)

    async def _close(self, turn: Turn, outcome: Outcome, steps: Steps | None) -> Turn:
        closed = replace(
            turn, status=outcome.status, closed_at=self._services.clock.now(), reply=outcome.reply,
            failure=outcome.failure, failure_code=outcome.failure_code, failure_family=outcome.failure_family,
            failure_fix=outcome.failure_fix, model=steps.answered_by if steps else "",
            usage=steps.usage if steps else turn.usage,
        )  # fmt: skip
        await self._write_end(closed, steps)
        self._services.live.publish(turn.id, finished(closed))
        return closed

    async def _write_end(self, closed: Turn, steps: Steps | None) -> None:
        clock = self._services.clock
        until_s = clock.monotonic_s() + CLOSE_PATIENCE_S
        while True:
            try:
                async with self._services.store.work() as work:
                    if steps:
                        await steps.write(work)
                    await work.turns.close(closed)
            except Unavailable as error:
                if clock.monotonic_s() >= until_s:
                    raise
                self._services.live.publish(closed.id, Notice(f"{error.message} Trying again."))
            else:
                return
            await anyio.sleep(CLOSE_PAUSE_S)


# 6 render


def render(text: str) -> str:
    """What people see of the model's text."""
    return text.strip()


def _lane(agent: str, conversation: str) -> str:
    return f"{agent}\x00{conversation}"


def _options(inbound: Inbound) -> JsonObject:
    """What the request said beyond its message, as JSON for the turn's record."""
    options: JsonObject = {
        "model": inbound.model,
        "instructions": inbound.instructions,
        "max_output_tokens": inbound.max_output_tokens,
        "temperature": inbound.temperature,
        "supplied": [{"role": m.role, "parts": parts_to_json(m.parts)} for m in inbound.supplied],
    }
    return {name: value for name, value in options.items() if value not in (None, "", [])}


def _prompt_message(row: Mapping[str, Any]) -> PromptMessage:
    return PromptMessage(Role(row["role"]), parts_from_json(row["parts"]))

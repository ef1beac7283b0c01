"""The steps of one turn: model requests and tool calls, each durable, recorded and shown to who watches.

Both ways to reach tools use it: `loop.py` (native tool calls) and `planning.py` (plan-then-act). It decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from typing import Any, cast

from denizen.domain.audit import AuditEvent
from denizen.domain.data_uri import MarkerFilter
from denizen.domain.demands import StopFilter
from denizen.domain.errors import Unavailable
from denizen.domain.events import Notice, ReasoningAdded, TextAdded, ToolFinished, ToolStarted
from denizen.domain.evidence import READ
from denizen.domain.ids import MessageId, derive
from denizen.domain.json import Json
from denizen.domain.message import Author, Message, Part, Role, TextPart, ToolCallPart, ToolResultPart, list_calls
from denizen.domain.prompt_messages import omit_argument_payloads, omit_payloads, shorten_to_store
from denizen.domain.record import record
from denizen.domain.routing import ROUTE, route_meta
from denizen.domain.speaker_choice import is_silence
from denizen.domain.taint import META, find_call_taint, taint_from_json, taint_to_json
from denizen.domain.tool import Origin, Tier, ToolCall, ToolResult, find_call_key
from denizen.domain.trace import PromptUse
from denizen.domain.turn import CallRecord, Step
from denizen.domain.usage import Usage, usage_from_json
from denizen.domain.verdict import CallOutcome, Decision, Verdict
from denizen.engine.audit.audit_log import call_event
from denizen.engine.budget.budgets import Payer, Payment, TurnBudget
from denizen.engine.gate.decision import RATE_LIMIT
from denizen.engine.knowledge.citations import TurnEvidence
from denizen.engine.knowledge.proof import TurnProofs
from denizen.engine.loop.services import EngineServices
from denizen.engine.loop.step_record import (
    SHOWN,
    ReplyExtras,
    find_reply_extras,
    nested_calls_from_json,
    outcome_from_json,
    outcome_to_json,
    reply_from_json,
    reply_to_json,
)
from denizen.engine.prompt.caching import describe
from denizen.engine.prompt.context import TurnContext
from denizen.engine.prompt.session_history import LARGE_REQUEST_TOKENS, USED
from denizen.engine.prompt.transcript_messages import filter_impersonation
from denizen.engine.tools.arguments import ArgumentsError, check_arguments
from denizen.engine.tools.toolbox import SessionSelections, Toolbox
from denizen.ports.durable import StepRunner
from denizen.ports.model import ModelNotice, ModelReply, ModelRequest, TextDelta, ThinkingDelta
from denizen.ports.store import UnitOfWork
from denizen.ports.toolset import CallOptions, CallTrail

MAX_INNER = 1000
"""Calls from within one call that are recorded; their positions begin behind those of any step."""

_MISFIT = "arguments"
"""Who decided about a call that fits no tool."""

LIMIT_NOTE = "\n\n[I have used up my steps for this, so the answer may be incomplete.]"


class TurnSteps:
    """Makes steps, keeps count, and holds what is not written yet. One per turn."""

    def __init__(
        self,
        context: TurnContext,
        services: EngineServices,
        stepping: StepRunner | None = None,
        *,
        proofs: TurnProofs | None = None,
    ) -> None:
        self._context = context
        self._services = services
        payer = Payer.from_turn(context.turn, context.scope.place, context.generation)
        self._budgets = TurnBudget(payer, services.store, services.live, services.clock)
        self._stepping = stepping or services.durable
        self._cache: dict[str, CallOutcome] = {}
        self._messages: list[Message] = []
        self._before: list[Step] = []
        self._steps: list[Step] = []
        self._calls: list[CallRecord] = []
        self._audited: list[AuditEvent] = []
        self._prompts: list[PromptUse] = []
        self._made_of: object = None
        self._said = ""
        """The text that watchers have of an answer which is not kept yet."""
        self.number = 0
        self.call_count = 0
        self.has_acted = False
        """Whether a call that changes something went well."""
        self.is_at_limit = False
        """Whether the answer came because the steps for tools were used up."""
        self._input_tokens = 0
        self._data: dict[str, Json] = {}
        self._read: dict[str, Json] = {}
        self.usage = Usage()
        self.answered_by = ""
        self.taint = context.scope.taint
        """The kinds of foreign text that the turn has read so far."""
        self.misfits: set[str] = set()
        """Ids of calls that were not made: they name no tool, or their arguments do not fit it."""
        self.excess: frozenset[str] = frozenset()
        """Ids of the newest step's calls that were not made because their tool was used too often."""
        self.extras = ReplyExtras()
        """The parts of the reply besides its text."""
        self._proofs = proofs or TurnProofs(TurnEvidence())
        self.evidence = self._proofs.evidence

    @property
    def context(self) -> TurnContext:
        return self._context

    @property
    def selections(self) -> SessionSelections:
        return self._services.selections

    def count(self, step: Step) -> None:
        """A request that was made for the turn before its first step, and is settled."""
        self._before.append(step)
        self.usage += step.usage

    async def ask(self, request: ModelRequest, purpose: str, *, show: bool = True) -> ModelReply:
        """One model request as a durable step; `show` streams its text to the watchers.

        Raises what the model raises; a fault of the provider is recorded like a result.
        """
        self.number += 1
        self._note_prompt(request)
        stop = StopFilter(() if purpose == "plan" else self._context.demands.stop)
        recorded = await self._stepping.step(
            f"model:{self.number}", lambda: self._request(request, show=show, stop=stop)
        )
        reply, duration_ms = reply_from_json(cast("Mapping[str, Any]", recorded))
        self.extras += find_reply_extras(reply.parts, with_reasoning=show and self._context.agent.show_reasoning)
        self.usage += reply.usage
        self._input_tokens = reply.usage.input_tokens
        self.answered_by = reply.model
        self._steps.append(
            Step(
                turn_id=self._context.turn.id,
                number=self.number,
                model=self.answered_by,
                purpose=purpose,
                finish_reason=reply.finish_reason,
                usage=reply.usage,
                duration_ms=duration_ms,
                created_at=self._services.clock.now(),
            )
        )
        if self._budgets.is_limited and list_calls(reply.parts):
            await self.settle()  # tools may take longer than a reservation lasts
        return reply

    def _note_prompt(self, request: ModelRequest) -> None:
        made_of = (request.segments, [spec.name for spec in request.tools])
        if made_of != self._made_of:
            self._made_of = made_of
            use = describe(request, self._context.turn.id, self.number, self._context.model.name)
            self._prompts.append(replace(use, memories=self._context.prompt.memories))

    async def _request(self, request: ModelRequest, *, show: bool, stop: StopFilter) -> Json:
        turn_id, live = self._context.turn.id, self._services.live
        started = self._services.clock.monotonic_s()
        speakers = self._context.speakers if show else None
        guard = speakers.guard() if speakers else None
        said, proof, markers = "", self._proofs.begin(), MarkerFilter()
        async with self._paying(request) as payment, aclosing(payment.model.stream(request)) as events:
            async for event in events:
                match event:
                    case TextDelta():
                        payment.heard_chars += len(event.text)
                        text = stop.feed(guard.feed(event.text) if guard else event.text)
                        said += text
                        self._show(markers.feed(await proof.feed(text)) if show else "")
                    case ThinkingDelta():
                        payment.heard_chars += len(event.text)
                        if show and self._context.agent.show_reasoning:
                            live.publish(turn_id, ReasoningAdded(event.text))
                    case ModelNotice():
                        live.publish(turn_id, Notice(event.text))
                    case ModelReply():
                        payment.is_answered = True
                        text = stop.feed(guard.finish() if guard else "") + stop.finish()
                        said += text
                        rest = await proof.feed(text) + await proof.finish() if show else ""
                        self._show(markers.feed(rest) + markers.finish())
                        reply = filter_impersonation(event, speakers) if speakers else event
                        if stop.is_hit:
                            reply = replace(reply, parts=_text_parts(said), finish_reason="stop")
                        return reply_to_json(reply, self._since_ms(started))
                if stop.is_hit or (guard and guard.is_hit):
                    payment.is_answered = True
                    self._show(markers.feed(await proof.finish()) + markers.finish() if show else "")
                    return reply_to_json(await self._cut(payment, said), self._since_ms(started))
        raise Unavailable(
            "The model ended its answer too early.", code="model_incomplete", model=self._context.model.name
        )

    def _paying(self, request: ModelRequest) -> AbstractAsyncContextManager[Payment]:
        return self._budgets.paying(self.number, self._context.model, request)

    def _show(self, text: str) -> None:
        if text:
            self._said += text
            self._services.live.publish(self._context.turn.id, TextAdded(text))

    async def _cut(self, payment: Payment, said: str) -> ModelReply:
        """The reply that a model would have given had it stopped by itself; what it cost is estimated."""
        name = payment.model.name
        used = await self._budgets.estimate(payment)
        return ModelReply(_text_parts(said), used, "stop", name, name.partition("/")[0])

    def _since_ms(self, started_s: float) -> int:
        return round((self._services.clock.monotonic_s() - started_s) * 1000)

    def begin(self) -> None:
        """Begins a step that asks no model."""
        self.number += 1

    async def call(
        self, calls: Sequence[ToolCallPart], toolbox: Toolbox, *, is_asked: bool = True, origin: Origin = Origin.MODEL
    ) -> tuple[ToolResultPart, ...]:
        """Runs the calls of one step side by side and returns their results in the order asked. Those that no model
        asked for (`is_asked`) are not counted.

        Every call goes through the gate; what does not fit its schema, or names no tool, comes back as an error that
        teaches. Read-only tools are answered from the turn's cache when the same was asked before.
        """
        asked = [ToolCall(call.id, call.tool, call.args, origin) for call in calls]
        prepared = [self._prepare(call, toolbox, position) for position, call in enumerate(asked)]
        fresh = {p.key: p for p in reversed(prepared) if p.action is not None and p.key not in self._cache}
        waiting = [p for p in prepared if fresh.get(p.key) is p]
        named = [(f"tool:{self.number}.{p.position}", p.action) for p in waiting if p.action is not None]
        results = await self._stepping.gather(*named)
        for p, recorded in zip(waiting, results, strict=True):
            row = cast("Mapping[str, Any]", recorded)
            self._cache[p.key] = outcome_from_json(row)
            self.usage += usage_from_json(row.get("observed") or {})
            self.taint |= taint_from_json(row.get("taint"))
            kept = await self._services.keep_pictures(self._context.scope.place, row.get("data") or {})
            data = cast("Mapping[str, Json]", omit_payloads(kept))
            self._data[p.asked.id] = {key: value for key, value in data.items() if key != READ}
            self._read[p.asked.id] = self.evidence.add(self._cache[p.key].result.text, row)
            if row.get("data") and not row["is_error"]:
                self.extras += ReplyExtras(shown=(row["data"],))
            for number, nested in enumerate(nested_calls_from_json(row)[:MAX_INNER]):
                self._record((p.position + 1) * MAX_INNER + number, nested.tool_call, nested.outcome)
        outcomes = [(p, p.refused if p.refused and p.action is None else self._cache[p.key]) for p in prepared]
        self.call_count += len(outcomes) if is_asked else 0
        self.misfits |= {p.asked.id for p, outcome in outcomes if outcome.verdict.decided_by == _MISFIT}
        self.excess = frozenset(p.asked.id for p, outcome in outcomes if outcome.verdict.decided_by == RATE_LIMIT)
        for p, outcome in outcomes:
            if p.refused is not None and toolbox.find(p.asked.tool) is not None:
                # Whoever watches sees it like a call that failed; nothing ran.
                self._services.live.publish(self._context.turn.id, ToolStarted(p.asked.id, p.asked.tool, p.asked.args))
                self._tell_finished(p.asked, outcome)
            self._record(p.position, p.asked, outcome, cached=p.refused is None and fresh.get(p.key) is not p)
        self.has_acted |= any(not p.reusable and not self._cache[p.key].result.is_error for p in waiting)
        if any(not p.reusable for p in waiting):
            # Something may have changed: what was read before may be read anew.
            self._cache.clear()
        return tuple(ToolResultPart(p.asked.id, p.asked.tool, o.result.text, o.result.is_error) for p, o in outcomes)

    def _prepare(self, call: ToolCall, toolbox: Toolbox, position: int) -> _PreparedCall:
        place = f"\x00{self.number}.{position}"
        bound = toolbox.find(call.tool)
        if bound is None:
            known = ", ".join(toolbox.tools) or "none"
            return _prepare_misfit(call, position, place, f"There is no tool '{call.tool}'. Tools: {known}.")
        try:
            args = check_arguments(bound.spec, call.args)
        except ArgumentsError as problem:
            return _prepare_misfit(call, position, place, str(problem))
        key = f"{call.tool}\x00{json.dumps(args, sort_keys=True)}"
        if not bound.spec.read_only or call.origin is Origin.WORKFLOW:  # a node that is tried again asks anew
            key += place
        checked = replace(call, args=args)

        async def action() -> Json:
            turn, live = self._context.turn, self._services.live

            def tell(progress: str) -> None:
                live.publish(turn.id, Notice(progress, call.id))

            live.publish(turn.id, ToolStarted(call.id, call.tool, args))
            scope = replace(
                self._context.scope,
                taint=self.taint,
                trail=CallTrail(inner=[]),
                options=CallOptions(idempotency_key=find_call_key(call, turn.id, self.number, position), report=tell),
            )
            outcome = await self._services.gate.run(bound, checked, scope, self._context.generation.policy)
            self._tell_finished(checked, outcome)
            return outcome_to_json(outcome, find_call_taint(bound.spec, outcome), scope.trail)

        return _PreparedCall(call, position, key, action=action, reusable=bound.spec.read_only)

    def _tell_finished(self, call: ToolCall, outcome: CallOutcome) -> None:
        result = outcome.result
        finished = ToolFinished(call.id, call.tool, result.text, result.is_error, outcome.duration_ms)
        self._services.live.publish(self._context.turn.id, finished)

    def _record(self, position: int, call: ToolCall, outcome: CallOutcome, *, cached: bool = False) -> None:
        self._calls.append(
            CallRecord(
                turn_id=self._context.turn.id,
                step=self.number,
                position=position,
                tool_call=replace(call, args=omit_argument_payloads(call.args)),
                outcome=outcome,
                cached=cached,
                created_at=self._services.clock.now(),
            )
        )

    def keep(self, role: Role, parts: Sequence[Part]) -> None:
        """Remembers a message of this turn for the session. The same place in the turn has the same id always."""
        turn = self._context.turn
        author = Author("", self._context.agent.name, is_bot=True)
        self._said = ""
        self._messages.append(
            Message(
                id=MessageId(derive("msg", turn.id, role, str(self.number))),
                conversation_id=turn.conversation_id,
                role=role,
                author=author,
                parts=shorten_to_store(parts, role, self._context.agent.history.storing),
                created_at=self._services.clock.now(),
                session_id=turn.session_id,
                turn_id=turn.id,
                meta=self._describe_message(role, parts),
            )
        )

    def keep_said(self) -> None:
        """Remembers what the watchers have read of the answer of a turn that was stopped."""
        if self._said.strip():
            self.keep(Role.ASSISTANT, _text_parts(self._said))

    def _describe_message(self, role: Role, parts: Sequence[Part]) -> dict[str, Json]:
        """Returns the meta of a message: facts besides its parts that later turns and readers of the store need."""
        meta: dict[str, Json] = {META: taint_to_json(self.taint)} if self.taint else {}
        if role is Role.ASSISTANT:
            if self._input_tokens > LARGE_REQUEST_TOKENS:
                meta[USED] = self._input_tokens
            if self._context.turn.route is not None:
                meta[ROUTE] = route_meta(self._context.turn.route, self._context.prompt.keep_s)
            return meta
        results = [part.call_id for part in parts if isinstance(part, ToolResultPart)]
        if role is Role.TOOL:
            meta[READ] = {key: self._read[key] for key in results if self._read.get(key)}
        shown: dict[str, Json] = {key: self._data[key] for key in results if self._data.get(key)}
        return meta | {SHOWN: shown} if shown else meta

    async def save(self) -> None:
        """Writes what is held, in one unit of work."""
        async with self._services.store.work() as work:
            await self.write(work)
            await self.audit(work)
        self._steps, self._calls, self._messages, self._prompts = [], [], [], []

    async def write(self, work: UnitOfWork) -> None:
        """Writes what is held into a unit of work that the caller has open. It stays held until it is saved, since the
        unit may fail.
        """
        for prompt in self._prompts:
            await work.turns.add_prompt(prompt)
        self._audited = [
            call_event(record, self._context.turn) for record in self._calls if await work.turns.add_call(record)
        ]
        for message in self._messages:
            await work.messages.add(message)
        most = self._context.agent.history.storing.max_messages
        if most and self._messages:
            await work.messages.keep_newest(self._context.turn.session_id, limit=most)
        await self._write_steps(work)

    async def audit(self, work: UnitOfWork) -> None:
        """Puts the calls that `write` found to be new into the audit log: last in the unit, since others wait there."""
        audited, self._audited = self._audited, []
        if audited:
            await work.audit.add(audited)

    async def settle(self) -> None:
        """Writes what the requests so far have cost, whatever becomes of the turn. Twice is once."""
        if self._steps:
            async with self._services.store.work() as work:
                await self._write_steps(work)

    async def _write_steps(self, work: UnitOfWork) -> None:
        for step in self._before:
            await work.turns.add_step(step)
        for step in self._steps:
            if await work.turns.add_step(step):
                await self._budgets.settle(work, step)

    def finish(self, reply: str) -> str:
        """Returns the reply, and at the limit says in it, and in its stream, that there may be more."""
        if not self.is_at_limit or is_silence(reply):
            return reply
        self._show(LIMIT_NOTE)
        return reply + LIMIT_NOTE

    def leave_calls(self, calls: Sequence[ToolCallPart]) -> None:
        """Ends the turn with calls of tools that the asker runs."""
        self.extras += ReplyExtras(calls=tuple(calls))

    def say(self, text: str) -> None:
        """Streams text of our own in front of an answer."""
        self._show(text)

    def replace_answer(self, text: str) -> None:
        """Puts other words in place of the answer that was kept last, for people and for the session."""
        self.retract()
        self.say(text)
        self._messages[-1] = replace(self._messages[-1], parts=(TextPart(text),))

    def retract(self) -> None:
        """Takes back the streamed text: it was not the answer."""
        self._said = ""
        self._services.live.publish(self._context.turn.id, TextAdded("", retract=True))


def _text_parts(said: str) -> tuple[Part, ...]:
    text = said.rstrip()
    return (TextPart(text),) if text else ()


@record
class _PreparedCall:
    asked: ToolCall
    position: int
    key: str = ""
    action: Callable[[], Awaitable[Json]] | None = None
    refused: CallOutcome | None = None
    reusable: bool = False


def _prepare_misfit(call: ToolCall, position: int, place: str, why: str) -> _PreparedCall:
    """Prepares a call that never reaches the gate. Of a workflow, the refusal is a step of its own: a run that is taken
    up again has the outcome that is recorded, whatever tools there are by then.
    """
    verdict = Verdict(Decision.DENY, Tier.HARMLESS, "not a valid call", _MISFIT)
    refused = CallOutcome(verdict, ToolResult(why, is_error=True), duration_ms=0)
    if call.origin is not Origin.WORKFLOW:
        return _PreparedCall(call, position, refused=refused)

    async def action() -> Json:
        return outcome_to_json(refused, frozenset(), CallTrail())

    return _PreparedCall(call, position, place, action=action, refused=refused, reusable=True)

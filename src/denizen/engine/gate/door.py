"""The one place from which a tool runs. An architecture test holds that nothing else calls `Toolset.call`."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import dataclass, replace

import anyio

from denizen.domain.approval import Approval, ApprovalStatus, Grant, describe_deciders, describe_end, same_people
from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, Exhausted
from denizen.domain.extras import take_out
from denizen.domain.ids import fresh
from denizen.domain.tool import Origin, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.verdict import Decision, Verdict
from denizen.engine.audit import Ledger
from denizen.engine.gate.approvals import Approvals, Asked
from denizen.engine.gate.decide import Judge
from denizen.engine.gate.interim import INTERIM_AFTER_S, Interim
from denizen.engine.gate.kept import KeptResults
from denizen.engine.gate.observer import OBSERVER
from denizen.engine.gate.policy import GatePolicy
from denizen.engine.pause import Pause
from denizen.ports.toolset import CallScope, NestedCall, Toolset

MAX_RESULT_CHARS = 200_000
"""Of one result. It is recorded, shown and sent to the model, so no tool may make it as long as it likes."""

TOLD_FROM_MS = 100
"""A model is told how long a call ran from so much on (inventory T17)."""

NOBODY_TO_ASK = "nobody-to-ask"
"""Who decided about a call for which people would have to be asked where nobody can be."""

_log = logging.getLogger("denizen.gate")


@dataclass(frozen=True, slots=True)
class BoundTool:
    """A tool together with the toolset that runs it."""

    spec: ToolSpec
    toolset: Toolset


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a call. A denied call has an error result that tells the model why. The time in which people were
    waited for is not part of its duration.
    """

    verdict: Verdict
    result: ToolResult
    duration_ms: int


class Gate:
    """Decides, then runs. What it holds outlives generations of the configuration."""

    def __init__(
        self,
        clock: Clock,
        judge: Judge | None = None,
        *,
        ledger: Ledger | None = None,
        interim_after_s: float = INTERIM_AFTER_S,
    ) -> None:
        self._clock = clock
        self._ledger = ledger
        self._judge = judge or Judge(clock)
        self._kept = KeptResults(clock)
        self._interim_after_s = interim_after_s
        self._approvals: Approvals | None = None

    def attend(self, approvals: Approvals) -> None:
        """From now on people can be asked. Without this, what needs them is denied."""
        self._approvals = approvals

    async def run(
        self, tool: BoundTool, call: ToolCall, scope: CallScope, policy: GatePolicy, *, floor: Tier = Tier.HARMLESS
    ) -> Outcome:
        """Passes the call through the gate and, when approved, runs it within the tool's time limit. Never raises
        for what the tool does: the model is told, and goes on.
        """
        pause = self._approvals.pauses.find(scope.turn_id) if self._approvals else None
        if pause is None or scope.depth:
            return await self._pass(tool, call, scope, policy, floor)
        async with pause.calling():
            return await self._pass(tool, call, scope, policy, floor)

    async def _pass(
        self, tool: BoundTool, call: ToolCall, scope: CallScope, policy: GatePolicy, floor: Tier
    ) -> Outcome:
        started, word = self._clock.monotonic_s(), ""
        verdict = await self._judge.judge(tool.spec, call, scope, policy, floor=floor)
        if verdict.decision is Decision.APPROVE and verdict.decided_by.startswith(OBSERVER) and self._approvals:
            # Before the process died the observer may have wanted people to decide: then they do.
            asked = await self._approvals.find(scope)
            if asked is not None:
                verdict = replace(verdict, decision=Decision.ASK, rule=asked.rule)
        if verdict.decision is Decision.ASK:
            since = self._clock.monotonic_s()
            verdict, word = await self._ask(Asked(tool.spec, call, scope, verdict), policy, floor)
            started += self._clock.monotonic_s() - since
        if verdict.decision is Decision.APPROVE:
            verdict = await self._begin(call, scope, verdict)
        if verdict.decision is Decision.APPROVE:
            inner = replace(scope, depth=scope.depth + 1, chain=(*scope.chain, call.tool))
            result = await self._execute(tool, call, inner, policy)
        else:
            result = ToolResult(f"Denied: {verdict.reason}.", is_error=True)
        took_ms = round((self._clock.monotonic_s() - started) * 1000)
        await self._end(call, scope, Outcome(verdict, result, took_ms))
        if call.origin is Origin.MODEL:
            result = replace(result, text=result.text + _times(took_ms, word))
        return Outcome(verdict, result, took_ms)

    async def _begin(self, call: ToolCall, scope: CallScope, verdict: Verdict) -> Verdict:
        """What could do harm is written down before it is done, and not done when it cannot be written down."""
        if self._ledger is None or verdict.tier < Tier.SENSITIVE:
            return verdict
        try:
            await self._ledger.begin(call, scope, verdict)
        except DenizenError as error:
            _log.warning("a call was not run: the audit log cannot be written", extra=error.fields)
            why = "it could not be written into the audit log, and what is not written there is not done"
            return replace(verdict, decision=Decision.DENY, reason=why, decided_by="audit")
        return verdict

    async def _end(self, call: ToolCall, scope: CallScope, outcome: Outcome) -> None:
        """For the record: a turn writes down its calls itself, with those from within them."""
        result = outcome.result
        if call.origin is Origin.MODEL:
            return
        if scope.trail.inner is not None:
            inner = NestedCall(call, outcome.verdict, result.text, result.is_error, outcome.duration_ms)
            scope.trail.inner.append(inner)
        elif self._ledger is not None:
            try:
                await self._ledger.end(call, scope, outcome.verdict, result=result.text, is_error=result.is_error)
            except DenizenError as error:
                _log.error("a call is missing in the audit log", extra={"tool": call.tool, "code": error.code})

    async def _ask(self, asked: Asked, policy: GatePolicy, floor: Tier) -> tuple[Verdict, str]:
        """What people say, as the verdict that counts, and a word about it for the model. What was changed in the
        configuration while they were waited for holds for this call too.
        """
        verdict = asked.verdict
        try:
            found = await self._approvals.ask(asked) if self._approvals else None
        except Exhausted as error:
            why = f"{verdict.reason}. {error.message.removesuffix('.')}"
            return replace(verdict, decision=Decision.DENY, reason=why, decided_by="approvals-full"), ""
        if found is None:
            who = describe_deciders(asked.rule)
            why = (
                f"{verdict.reason}. It needs approval by {who}, and nobody can be asked here; "
                "a rule under gate.rules can allow it, or name others who decide"
            )
            return replace(verdict, decision=Decision.DENY, reason=why, decided_by=NOBODY_TO_ASK), ""
        if isinstance(found, Grant):
            why = f"approved for a while by {found.given_by}"
            return replace(verdict, decision=Decision.APPROVE, reason=why, decided_by="grant"), why
        if found.status is not ApprovalStatus.APPROVED:
            return replace(verdict, decision=Decision.DENY, reason=_refusal(found), decided_by="approval"), ""
        if self._approvals and (current := self._approvals.policy) != policy:
            verdict = await self._judge.judge(asked.spec, asked.wanted, asked.scope, current, floor=floor)
        if verdict.decision is Decision.DENY:
            return verdict, ""
        if verdict.decision is Decision.ASK and verdict.rule and not same_people(verdict.rule, found.rule):
            why = "others have to decide this since the configuration was changed; ask for it again"
            return replace(verdict, decision=Decision.DENY, reason=why, decided_by="approval"), ""
        word = f"{describe_end(found)}, after {_span(found.waited_s)}"
        return replace(verdict, decision=Decision.APPROVE, reason=describe_end(found), decided_by="approval"), word

    async def _execute(self, tool: BoundTool, call: ToolCall, scope: CallScope, policy: GatePolicy) -> ToolResult:
        """Runs an approved call, or answers it with a result that is kept from the same one before."""
        ttl_s = policy.keep_results_s
        kept = self._kept.find(tool.spec, tool.toolset, call, scope, ttl_s)
        if kept is not None:
            return kept
        changes, taint = self._kept.changes, scope.trail.taint
        try:
            pause = self._approvals.pauses.find(scope.turn_id) if self._approvals else None
            result = _recordable(await _run_visibly(tool, call, scope, self._interim_after_s, pause))
        finally:
            if not tool.spec.read_only:
                self._kept.note_change(tool.toolset)
        is_same = changes == self._kept.changes and taint == scope.trail.taint
        if ttl_s > 0 and is_same:
            self._kept.keep(tool.spec, tool.toolset, call, scope, result)
        return result


def _refusal(approval: Approval) -> str:
    """Why people's answer is no, for the model (T-approval-rejected)."""
    if approval.status is ApprovalStatus.DENIED and not approval.note:
        return f"{describe_end(approval)}, who gave no reason"
    return describe_end(approval)


def _times(took_ms: int, word: str) -> str:
    """How long a call ran, and how long people took to approve it (inventory T17)."""
    told = [f"took {_span(took_ms / 1000)}"] if took_ms >= TOLD_FROM_MS else []
    told += [word] if word else []
    return f"\n[{'; '.join(told)}]" if told else ""


def _span(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"


def _recordable(result: ToolResult) -> ToolResult:
    """As it may be recorded, shown and sent to a model: within the bound; without pictures and files in the text, which
    go to people instead (inventory L7); and without halves of surrogate pairs, which no model accepts, so that a page
    with such a text would end every later turn of the session.
    """
    whole, data = take_out(result.text, result.data)
    text = whole[:MAX_RESULT_CHARS].encode("utf-8", "replace").decode()
    if len(whole) > MAX_RESULT_CHARS:
        text += f"\n[cut: the result has {len(whole)} characters]"
    return replace(result, text=text, data=data)


async def _run_visibly(
    tool: BoundTool, call: ToolCall, scope: CallScope, after_s: float, pause: Pause | None
) -> ToolResult:
    """Whoever watches is told when it takes long, as long as it takes (inventory L6, LW8)."""
    if tool.spec.timeout_s <= after_s:
        return await _run_tool(tool, call, scope, pause)
    interim, ran = Interim(call.tool, scope.report), list[ToolResult]()
    async with anyio.create_task_group() as group:
        group.start_soon(interim.run, after_s)
        ran.append(await _run_tool(tool, call, replace(scope, report=interim.report), pause))
        group.cancel_scope.cancel()
    return ran[0]


async def _run_tool(tool: BoundTool, call: ToolCall, scope: CallScope, pause: Pause | None) -> ToolResult:
    try:
        with anyio.fail_after(tool.spec.timeout_s) as limit, pause.limited(limit) if pause else nullcontext():
            return await tool.toolset.call(call, scope)
    except TimeoutError:
        return ToolResult(f"'{call.tool}' did not finish within {tool.spec.timeout_s:g} s.", is_error=True)
    except DenizenError as error:
        return ToolResult(error.explain(), is_error=True)
    except Exception:  # noqa: BLE001 - the boundary of a skill call
        reference = fresh("err")
        _log.exception("tool fault", extra={"tool": call.tool, "turn": scope.turn_id, "reference": reference})
        return ToolResult(f"'{call.tool}' failed inside (reference {reference}).", is_error=True)

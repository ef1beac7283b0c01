"""The tool executor: the one place from which a tool runs. It decides first (`decision.py`) and runs the tool second.

An architecture test holds that nothing else calls `Toolset.call`. Results of read-only tools are cached for a while,
and people see one line about a call that takes longer than half a minute.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace

import anyio

from denizen.domain.approval import (
    OTHER_WAYS,
    Approval,
    ApprovalGrant,
    ApprovalStatus,
    Deciders,
    describe_deciders,
    describe_end,
    meets_rule,
)
from denizen.domain.attachments import extract_attachments
from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, LimitExceeded
from denizen.domain.ids import ConversationId, fresh
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.domain.store_move import STORE_MOVED
from denizen.domain.tool import CacheScope, Origin, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.verdict import CallOutcome, Decision, Verdict
from denizen.engine.audit.audit_log import AuditLog
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.engine.gate.approvals import ApprovalQueue, PendingCall
from denizen.engine.gate.decision import PolicyEngine
from denizen.engine.gate.observer import OBSERVER
from denizen.engine.intake.turn_queue import TurnPause
from denizen.ports.telemetry import NO_TELEMETRY, CallSpan, Telemetry
from denizen.ports.toolset import CallScope, CheckingToolset, NestedCall, PreviewingToolset, Toolset

INTERIM_AFTER_S = 30.0
EVERY_S = 3.0
"""Progress is told at most so often."""


class SlowCallNotice:
    """For one call. `tell` takes a line for people."""

    def __init__(self, tool: str, tell: Callable[[str], None]) -> None:
        self._tool = tool
        self._tell = tell
        self._progress = ""
        self._news = anyio.Event()

    def report(self, progress: str) -> None:
        """Takes a line about the tool's progress, which people see once the call has taken long."""
        if progress and progress != self._progress:
            self._progress = progress
            self._news.set()

    async def run(self, after_s: float) -> None:
        """Until it is cancelled, with the end of the call."""
        await anyio.sleep(after_s)
        while True:
            self._news = anyio.Event()
            self._tell(f"`{self._tool}` is still at work{f': {self._progress}' if self._progress else '.'}")
            await self._news.wait()
            await anyio.sleep(EVERY_S)


SWEEP_S = 300.0
MAX_CHARS = 32_000_000
"""The limit of all cached results; the oldest goes first."""


@record
class _CachedResult:
    result: ToolResult
    toolset: Toolset
    since_s: float
    chars: int
    readers: set[ConversationId]
    """The conversations in which it was read."""


class ResultCache:
    """`ttl_s` is given with each question, because it follows the configuration; 0 keeps nothing."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, _CachedResult] = {}
        self._chars = 0
        self._swept_s = clock.monotonic_s()
        self._changes = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def changes(self) -> int:
        """Rises whenever something was done that makes kept results doubtful."""
        return self._changes

    def find(
        self, spec: ToolSpec, toolset: Toolset, call: ToolCall, scope: CallScope, ttl_s: float
    ) -> ToolResult | None:
        """The kept result of the same call. A toolset that was made anew does not get what another one answered."""
        self._sweep(ttl_s)
        if spec.cache is CacheScope.NONE:
            return None
        kept = self._kept.get(_key(spec, call, scope))
        if kept is None or kept.toolset is not toolset or kept.since_s + ttl_s <= self._clock.monotonic_s():
            return None
        kept.readers.add(scope.conversation_id)
        return kept.result

    def keep(self, spec: ToolSpec, toolset: Toolset, call: ToolCall, scope: CallScope, result: ToolResult) -> None:
        """Errors are not kept."""
        if spec.cache is CacheScope.NONE or result.is_error:
            return
        chars = len(result.text) + len(json.dumps(dict(result.data)))
        key = _key(spec, call, scope)
        self._drop(key)
        readers = {scope.conversation_id}
        self._kept[key] = _CachedResult(result, toolset, self._clock.monotonic_s(), chars, readers)
        self._chars += chars
        while self._chars > MAX_CHARS:
            self._drop(next(iter(self._kept)))

    def note_change(self, toolset: Toolset, scope: CallScope) -> None:
        """Something was done through this toolset: what it answered before may be different now, and so may whatever
        was read in the same conversation. A file is written by one server, and another tells what has changed.
        """
        self._changes += 1
        here = scope.conversation_id
        for key in [key for key, kept in self._kept.items() if kept.toolset is toolset or here in kept.readers]:
            self._drop(key)

    def _sweep(self, ttl_s: float) -> None:
        now_s = self._clock.monotonic_s()
        if now_s - self._swept_s < SWEEP_S:
            return
        self._swept_s = now_s
        for key in [key for key, kept in self._kept.items() if kept.since_s + ttl_s <= now_s]:
            self._drop(key)

    def _drop(self, key: str) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._chars -= kept.chars


def _key(spec: ToolSpec, call: ToolCall, scope: CallScope) -> str:
    """Tool, arguments and agent; and who asks and where, unless the tool says that its results are the same for all.
    The community decides which documents are seen.
    """
    who = [] if spec.cache is CacheScope.EVERYONE else [scope.principal.key, scope.conversation_id, scope.guild]
    return json.dumps([call.tool, call.args, scope.agent, *who], sort_keys=True)


MAX_RESULT_CHARS = 200_000
"""The limit of one result. It is recorded, shown and sent to the model, so no tool may make it as long as it likes."""

TOLD_FROM_MS = 100
"""A model is told how long a call ran from so much on."""

RECORDED_BY_TURN = frozenset({Origin.MODEL, Origin.HOOK, Origin.WORKFLOW})
"""The calls that their turn writes down itself, with those from within them."""

NOBODY_TO_ASK = "nobody-to-ask"
"""Who decided about a call for which people would have to be asked where nobody can be."""

REFUSED = "refused"
"""Who decided about a call that would be refused whatever people say."""

CHECK_TIMEOUT_S = 10.0
"""How long a check may take before people are asked; without an answer by then they are asked."""

_log = logging.getLogger("denizen.gate")


@record
class BoundTool:
    """A tool together with the toolset that runs it."""

    spec: ToolSpec
    toolset: Toolset


class ToolExecutor:
    """Decides, then runs. What it holds outlives generations of the configuration. Without `approvals`, a call that
    needs people is denied.
    """

    def __init__(
        self,
        clock: Clock,
        policy_engine: PolicyEngine | None = None,
        *,
        approvals: ApprovalQueue | None = None,
        audit_log: AuditLog | None = None,
        interim_after_s: float = INTERIM_AFTER_S,
        telemetry: Telemetry = NO_TELEMETRY,
    ) -> None:
        self._clock = clock
        self._audit_log = audit_log
        self._policy_engine = policy_engine or PolicyEngine()
        self._kept = ResultCache(clock)
        self._interim_after_s = interim_after_s
        self._approvals = approvals
        self._telemetry = telemetry

    async def run(
        self, tool: BoundTool, call: ToolCall, scope: CallScope, policy: GatePolicy, *, floor: Tier = Tier.HARMLESS
    ) -> CallOutcome:
        """Passes the call through the gate and, when approved, runs it within the tool's time limit. Never raises
        for what the tool does: the model is told, and goes on.
        """
        pause = self._approvals.pauses.find(scope.turn_id) if self._approvals else None
        if pause is None or scope.depth:
            return await self._decide_and_run(tool, call, scope, policy, floor)
        async with pause.calling():
            return await self._decide_and_run(tool, call, scope, policy, floor)

    async def _decide_and_run(
        self, tool: BoundTool, call: ToolCall, scope: CallScope, policy: GatePolicy, floor: Tier
    ) -> CallOutcome:
        span = CallSpan(tool=call.tool)
        with self._telemetry.measure(span):
            verdict, word, started = await self._decide(tool, call, scope, policy, floor)
            if verdict.decision is Decision.APPROVE:
                verdict = await self._begin(call, scope, verdict)
            if verdict.decision is Decision.APPROVE:
                inner = replace(scope, chain=(*scope.chain, call.tool))
                result = await self._execute(tool, call, inner, policy)
            else:
                result = ToolResult(f"Denied: {verdict.reason}.", is_error=True)
            took_ms = round((self._clock.monotonic_s() - started) * 1000)
            outcome = CallOutcome(verdict, result, took_ms)
            await self._end(call, scope, outcome)
            span.tier, span.verdict, span.outcome = str(int(verdict.tier)), verdict.decision.value, outcome.state
            span.took_s = took_ms / 1000
        if call.origin is Origin.MODEL:
            outcome = replace(outcome, result=replace(result, text=result.text + _times(took_ms, word)))
        return outcome

    async def _decide(
        self, tool: BoundTool, call: ToolCall, scope: CallScope, policy: GatePolicy, floor: Tier
    ) -> tuple[Verdict, str, float]:
        """Returns the verdict, a word about people's decision, and when the call began, the time of people left out."""
        started, word = self._clock.monotonic_s(), ""
        verdict = await self._policy_engine.decide(tool.spec, call, scope, policy, floor=floor)
        if verdict.decision is Decision.APPROVE and verdict.decided_by.startswith(OBSERVER) and self._approvals:
            # Before the process died the observer may have wanted people to decide: then they do.
            asked = await self._approvals.find(scope)
            if asked is not None:
                verdict = replace(verdict, decision=Decision.ASK, rule=asked.rule)
        if verdict.decision is Decision.ASK:
            since = self._clock.monotonic_s()
            verdict, word = await self._ask(tool, PendingCall(tool.spec, call, scope, verdict), policy, floor)
            started += self._clock.monotonic_s() - since
        return verdict, word, started

    async def _begin(self, call: ToolCall, scope: CallScope, verdict: Verdict) -> Verdict:
        """Records a call that could do harm before it runs; a call that cannot be recorded does not run."""
        if self._audit_log is None or verdict.tier < Tier.SENSITIVE:
            return verdict
        try:
            await self._audit_log.begin(call, scope, verdict)
        except DenizenError as error:
            if error.code == STORE_MOVED:
                raise
            _log.warning("a call was not run: the audit log cannot be written", extra=error.fields)
            why = "it could not be written into the audit log, and what is not written there is not done"
            return replace(verdict, decision=Decision.DENY, reason=why, decided_by="audit")
        return verdict

    async def _end(self, call: ToolCall, scope: CallScope, outcome: CallOutcome) -> None:
        """For the record: a turn writes down its calls itself, with those from within them."""
        if call.origin in RECORDED_BY_TURN:
            return
        if scope.trail.inner is not None:
            scope.trail.inner.append(NestedCall(call, outcome))
        elif self._audit_log is not None:
            try:
                await self._audit_log.end(call, scope, outcome)
            except DenizenError as error:
                _log.error("a call is missing in the audit log", extra={"tool": call.tool, **error.fields})

    async def _find_refusal(self, tool: BoundTool, asked: PendingCall, mask: Callable[[str], str]) -> str:
        """Returns why the call would be refused whatever people say; empty also where the check fails. A call that
        people were asked about before, in a process that died, may have been made already.
        """
        toolset = tool.toolset
        if not isinstance(toolset, CheckingToolset):
            return ""
        if self._approvals and await self._approvals.find(asked.scope) is not None:
            return ""

        async def check(call: ToolCall, scope: CallScope) -> ToolResult:
            return ToolResult(await toolset.find_refusal(call, scope))

        with anyio.move_on_after(CHECK_TIMEOUT_S):
            found = await _run_tool(tool, asked.wanted, asked.scope, None, run=check)
            return "" if found.is_error else _recordable(found, mask).text
        return ""

    async def _preview(self, tool: BoundTool, asked: PendingCall, mask: Callable[[str], str]) -> str:
        """Returns what the call would change; empty where nobody can tell. Those who decide see the arguments then."""
        toolset = tool.toolset
        if not isinstance(toolset, PreviewingToolset):
            return ""

        async def preview(call: ToolCall, scope: CallScope) -> ToolResult:
            return ToolResult(await toolset.preview(call, scope))

        found = await _run_tool(tool, asked.wanted, asked.scope, None, run=preview)
        return "" if found.is_error else mask(found.text)

    async def _ask(self, tool: BoundTool, asked: PendingCall, policy: GatePolicy, floor: Tier) -> tuple[Verdict, str]:
        """Waits for people and returns the verdict that counts, with a word about it for the model. A configuration
        that was changed meanwhile holds for this call too.
        """
        verdict = asked.verdict
        if refusal := await self._find_refusal(tool, asked, policy.results.mask):
            why = f"{verdict.reason}. People were not asked, since it would be refused all the same: {refusal}"
            return replace(verdict, decision=Decision.DENY, reason=why.rstrip("."), decided_by=REFUSED), ""
        asked = replace(asked, change=await self._preview(tool, asked, policy.results.mask))
        # A hook of what runs by itself asks nobody: it would come again and again, and its turn would wait for days.
        may_ask = asked.wanted.origin is not Origin.HOOK or asked.scope.principal.kind.asks
        try:
            found = await self._approvals.ask(asked) if self._approvals and may_ask else None
        except LimitExceeded as error:
            why = f"{verdict.reason}. {error.message.removesuffix('.')}"
            return replace(verdict, decision=Decision.DENY, reason=why, decided_by="approvals-full"), ""
        if found is None:
            who = describe_deciders(asked.rule)
            why = (
                f"{verdict.reason}. It needs approval by {who}, and nobody can be asked here; "
                "a rule under gate.rules can allow it, or name others who decide"
            )
            return replace(verdict, decision=Decision.DENY, reason=why, decided_by=NOBODY_TO_ASK), ""
        if isinstance(found, ApprovalGrant):
            why = f"approved for a while by {found.given_by}"
            return replace(verdict, decision=Decision.APPROVE, reason=why, decided_by="grant"), why
        if found.status is not ApprovalStatus.APPROVED:
            return replace(verdict, decision=Decision.DENY, reason=_refusal(found), decided_by="approval"), ""
        if self._approvals and (current := self._approvals.policy) != policy:
            verdict = await self._policy_engine.decide(asked.spec, asked.wanted, asked.scope, current, floor=floor)
        if verdict.decision is Decision.DENY:
            return verdict, ""
        if verdict.decision is Decision.ASK and verdict.rule and not meets_rule(found.rule, verdict.rule):
            why = "others have to decide this by now; ask for it again"
            return replace(verdict, decision=Decision.DENY, reason=why, decided_by="approval"), ""
        word = f"{describe_end(found)}, after {_span(found.waited_s)}"
        return replace(verdict, decision=Decision.APPROVE, reason=describe_end(found), decided_by="approval"), word

    async def _execute(self, tool: BoundTool, call: ToolCall, scope: CallScope, policy: GatePolicy) -> ToolResult:
        """Runs an approved call, or answers it with a result that is kept from the same one before."""
        ttl_s = policy.results.keep_s
        kept = self._kept.find(tool.spec, tool.toolset, call, scope, ttl_s)
        if kept is not None:
            return kept
        changes, taint = self._kept.changes, scope.trail.taint
        try:
            pause = self._approvals.pauses.find(scope.turn_id) if self._approvals else None
            result = _recordable(
                await _run_visibly(tool, call, scope, self._interim_after_s, pause), policy.results.mask
            )
        finally:
            if not tool.spec.read_only:
                self._kept.note_change(tool.toolset, scope)
        is_same = changes == self._kept.changes and taint == scope.trail.taint
        if ttl_s > 0 and is_same:
            self._kept.keep(tool.spec, tool.toolset, call, scope, result)
        return result


def _refusal(approval: Approval) -> str:
    """Why people's answer is no, for the model."""
    if approval.status is ApprovalStatus.DENIED and not approval.decision.note:
        return f"{describe_end(approval)}, who gave no reason"
    is_late = approval.status is ApprovalStatus.EXPIRED and not approval.decision.note
    if is_late and approval.rule.deciders is not Deciders.REQUESTER:
        who = describe_deciders(approval.rule)
        return f"{describe_end(approval)}; {who} may decide, {OTHER_WAYS}, if it is asked for again"
    return describe_end(approval)


def _times(took_ms: int, word: str) -> str:
    """How long a call ran, and how long people took to approve it."""
    told = [f"took {_span(took_ms / 1000)}"] if took_ms >= TOLD_FROM_MS else []
    told += [word] if word else []
    return f"\n[{'; '.join(told)}]" if told else ""


def _span(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"


def _recordable(result: ToolResult, mask: Callable[[str], str]) -> ToolResult:
    """As it may be recorded, shown and sent to a model: within the bound; without secrets; without pictures and files
    in the text, which go to people instead; and without halves of surrogate pairs, which no model accepts, so that a
    page with such a text would end every later turn of the session.
    """
    whole, data = extract_attachments(result.text, result.data)
    whole = mask(whole)
    text = whole[:MAX_RESULT_CHARS].encode("utf-8", "replace").decode()
    if len(whole) > MAX_RESULT_CHARS:
        text += f"\n[cut: the result has {len(whole)} characters]"
    return replace(result, text=text, data={name: _mask_data(value, mask) for name, value in data.items()})


_FILE = re.compile(r"data:[^,]{0,200};base64,[A-Za-z0-9+/=]*")


def _mask_data(value: Json, mask: Callable[[str], str]) -> Json:
    """Files are left as they are: their bytes are encoded."""
    match value:
        case str():
            return value if _FILE.fullmatch(value) else mask(value)
        case list():
            return [_mask_data(each, mask) for each in value]
        case dict():
            return {mask(name): _mask_data(each, mask) for name, each in value.items()}
        case _:
            return value


async def _run_visibly(
    tool: BoundTool, call: ToolCall, scope: CallScope, after_s: float, pause: TurnPause | None
) -> ToolResult:
    """Whoever watches is told when it takes long, as long as it takes."""
    if tool.spec.timeout_s <= after_s:
        return await _run_tool(tool, call, scope, pause)
    interim, ran = SlowCallNotice(call.tool, scope.options.report), list[ToolResult]()
    reporting = replace(scope, options=replace(scope.options, report=interim.report))
    async with anyio.create_task_group() as group:
        group.start_soon(interim.run, after_s)
        ran.append(await _run_tool(tool, call, reporting, pause))
        group.cancel_scope.cancel()
    return ran[0]


async def _run_tool(
    tool: BoundTool,
    call: ToolCall,
    scope: CallScope,
    pause: TurnPause | None,
    *,
    run: Callable[[ToolCall, CallScope], Awaitable[ToolResult]] | None = None,
) -> ToolResult:
    """Calls the tool, or runs `run` in its place."""
    try:
        with anyio.fail_after(tool.spec.timeout_s) as limit, pause.limited(limit) if pause else nullcontext():
            return await (run(call, scope) if run else tool.toolset.call(call, scope))
    except TimeoutError:
        text = f"'{call.tool}' did not finish within {tool.spec.timeout_s:g} s."
        return ToolResult(text, is_error=True, is_own=True)
    except DenizenError as error:
        if error.code == STORE_MOVED:  # the call is made again where the store is
            raise
        return ToolResult(error.explain(), is_error=True)
    except Exception:  # noqa: BLE001 - the boundary of a skill call
        reference = fresh("err")
        _log.exception("tool fault", extra={"tool": call.tool, "turn": scope.turn_id, "reference": reference})
        return ToolResult(f"'{call.tool}' failed inside (reference {reference}).", is_error=True, is_own=True)

"""The calls of the past: how the gate decided about them, and how it would under another policy.

A trial decides again and does nothing else: no tool runs, nobody is asked, nothing is counted. So it leaves out rate
limits, and what a turn had read in its conversation before its own calls, which is not recorded. Where the observer
gave its opinion then, that is taken; where it did not, the trial says that it would be asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum

from denizen.domain.approval import describe_deciders
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.record import record
from denizen.domain.taint import find_call_taint
from denizen.domain.tool import Taint, ToolSpec
from denizen.domain.turn import CallRecord, Turn
from denizen.domain.verdict import Decision, Verdict
from denizen.engine.configuration.generation import Runtime
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.engine.gate.decision import GateCase, ObserverOpinion, ObserverVerdict, PolicyEngine
from denizen.engine.gate.observer import OBSERVER, Observer
from denizen.engine.intake.opening import ADMINISTRATION, find_reply_target
from denizen.engine.tools.toolbox import list_all
from denizen.ports.store import Store, UnitOfWork
from denizen.ports.toolset import CallScope

TRIED_CALLS = 500
TRIED_TIME = timedelta(days=30)
EXAMPLES = 50
JUDGES = (OBSERVER, f"{OBSERVER}-cache", f"{OBSERVER}-fault")
"""Who decided where the observer did."""
UNKNOWN = "the observer would look at it"


class TrialOutcome(StrEnum):
    """The fate of a call in a trial: it runs, the observer decides, people are asked, or it is denied."""

    ALLOWED = "allowed"
    OBSERVED = "observed"
    ASKED = "asked"
    DENIED = "denied"


@record
class PastCall:
    """A call of a turn, with the verdict of then."""

    record: CallRecord
    turn: Turn


@record
class TrialDecision:
    """`deciders` are who is asked, in words, where people are."""

    outcome: TrialOutcome
    verdict: Verdict
    deciders: str = ""


@record
class TriedCall:
    """A call about which another policy decides otherwise than the one in force."""

    call: PastCall
    now: TrialDecision
    then: TrialDecision


@record(kw_only=True)
class PolicyTrial:
    """`calls` were decided about again, and `matches` says how many each rule of the tried policy fits first, in its
    order. `changes` counts those that come out otherwise, by what becomes of them now and then; `examples` are the
    newest of them. `unknown` are the tools of calls that could not be tried, since they are not there any more.
    """

    calls: int
    matches: Sequence[int]
    changes: Mapping[tuple[TrialOutcome, TrialOutcome], int]
    examples: Sequence[TriedCall]
    unknown: Sequence[str]

    @property
    def changed(self) -> int:
        return sum(self.changes.values())


class PastCalls:
    """Reads the newest calls of the last 30 days. It shows them all: its callers check who asks."""

    def __init__(self, runtime: Runtime, store: Store, clock: Clock, observer: Observer | None) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._observer = observer

    async def is_observed(self) -> bool:
        """Whether an observer looks at calls now."""
        observer = self._observer if self._runtime.current.policy.observer.model else None
        return observer is not None and (await observer.load()).is_on

    async def list_observed(self, *, limit: int) -> Sequence[PastCall]:
        """Returns those about which the observer decided by itself, newest first."""
        async with self._store.work(write=False) as work:
            return await _list_calls(work, self._clock, judges=JUDGES, limit=limit)

    async def try_policy(self, policy: GatePolicy) -> PolicyTrial:
        """Decides about the newest calls again, under the policy in force and under this one."""
        generation = self._runtime.current
        specs = {name: tool.spec for name, tool in (await list_all(generation.toolsets)).items()}
        is_observed = await self.is_observed()
        matches, changes = [0] * len(policy.rules), Counter[tuple[TrialOutcome, TrialOutcome]]()
        examples, unknown, tried = list[TriedCall](), set[str](), 0
        async with self._store.work(write=False) as work:
            calls = await _list_calls(work, self._clock, limit=TRIED_CALLS)
            conversations = {call.turn.conversation_id for call in calls}
            places = {each: (await work.conversations.get(each)).place for each in conversations}
        for call, taint in zip(calls, _find_taints(calls, specs), strict=True):
            asked, verdict = call.record.tool_call, call.record.outcome.verdict
            spec = specs.get(asked.tool)
            if spec is None:
                unknown.add(asked.tool)
                continue
            tried += 1
            scope = _restore_scope(call.turn, places[call.turn.conversation_id], taint)
            rule = policy.find_rule(asked, scope)
            if rule is not None:
                matches[policy.rules.index(rule)] += 1
            engine = PolicyEngine(observer=_RecordedOpinion(verdict) if is_observed else None)
            now = _describe(await engine.decide(spec, asked, scope, generation.policy))
            then = _describe(await engine.decide(spec, asked, scope, policy))
            if (now.outcome, now.deciders) != (then.outcome, then.deciders):
                changes[now.outcome, then.outcome] += 1
                examples.append(TriedCall(call, now, then))
        return PolicyTrial(
            calls=tried, matches=matches, changes=changes, examples=examples[:EXAMPLES], unknown=sorted(unknown)
        )


@record
class _RecordedOpinion:
    """Stands for the observer: says what it said about the call then, and asks no model."""

    recorded: Verdict

    async def review(self, case: GateCase, policy: GatePolicy) -> ObserverOpinion | None:
        del case
        if not policy.observer.model:
            return None
        known = self.recorded
        if known.decided_by in JUDGES[:2]:
            opined = ObserverVerdict.APPROVE if known.decision is Decision.APPROVE else ObserverVerdict.DENY
            return ObserverOpinion(opined, known.reason, known.decided_by)
        return ObserverOpinion(ObserverVerdict.ESCALATE, UNKNOWN)


def _describe(verdict: Verdict) -> TrialDecision:
    match verdict.decision:
        case Decision.APPROVE:
            return TrialDecision(TrialOutcome.ALLOWED, verdict)
        case Decision.DENY:
            return TrialDecision(TrialOutcome.DENIED, verdict)
        case Decision.ASK if verdict.reason == UNKNOWN:
            return TrialDecision(TrialOutcome.OBSERVED, verdict)
        case Decision.ASK:
            return TrialDecision(TrialOutcome.ASKED, verdict, describe_deciders(verdict.rule) if verdict.rule else "")


async def _list_calls(work: UnitOfWork, clock: Clock, *, judges: Sequence[str] = (), limit: int) -> list[PastCall]:
    since = clock.now() - TRIED_TIME
    records = await work.turns.list_recent_calls(since=since, judges=judges, limit=limit)
    turns = {turn.id: turn for turn in await work.turns.find_many({each.turn_id for each in records})}
    return [PastCall(each, turns[each.turn_id]) for each in records]


def _find_taints(calls: Sequence[PastCall], specs: Mapping[str, ToolSpec]) -> list[frozenset[Taint]]:
    """Returns what the calls of the same turn before each one had read. The newest call comes first."""
    read: dict[str, frozenset[Taint]] = {}
    found: list[frozenset[Taint]] = []
    for call in reversed(calls):
        turn, spec = call.record.turn_id, specs.get(call.record.tool_call.tool)
        found.append(read.get(turn, frozenset()))
        if spec is not None:
            read[turn] = found[-1] | find_call_taint(spec, call.record.outcome)
    return found[::-1]


def _restore_scope(turn: Turn, place: Place, taint: frozenset[Taint]) -> CallScope:
    owed = find_reply_target(turn)
    return CallScope(
        agent=turn.agent,
        principal=turn.principal,
        place=place,
        session_id=turn.session_id,
        turn_id=turn.id,
        account=owed.account if owed else None,
        guild=owed.guild if owed else "",
        is_administration=ADMINISTRATION in turn.options,
        taint=taint,
    )

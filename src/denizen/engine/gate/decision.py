"""The decision about one tool call, and the cache of verdicts about calls of tier 2.

The policy engine asks these questions in order: tools of the administration elsewhere, depth of nesting, tools that a
community does without, rules that deny, roles, destinations, rate limit, rules and modes that ask people, taint, the
tier with its observer, and whether the call destroys something. The first no ends it. Whoever wants people to be asked
adds a demand, and the strictest of these says who decides, so that nothing that is added makes a verdict milder.

Cached verdicts are kept in memory: a restart forgets them, and so does a reload of the configuration, whose number is
part of the key.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import reduce
from typing import Protocol

from denizen.domain.approval import ApprovalRule, combine_rules, has_role, same_people
from denizen.domain.clock import Clock
from denizen.domain.event_listener import EVENT_KINDS
from denizen.domain.principal import Principal, RoleName
from denizen.domain.rate_limit import RateLimit
from denizen.domain.record import record
from denizen.domain.taint import describe_taint, find_risk, tells_own_fact
from denizen.domain.tool import Origin, Tier, ToolCall, ToolSpec
from denizen.domain.verdict import Decision, Verdict
from denizen.engine.accounts.members import MemberDirectory
from denizen.engine.configuration.guild_settings import GuildSettingsOverlay
from denizen.engine.configuration.tool_policy import GatePolicy, ToolMode, ToolRule
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.ports.toolset import CallScope

MAX_KEPT = 10_000


class ObserverVerdict(StrEnum):
    APPROVE = "approve"
    DENY = "deny"
    ESCALATE = "escalate"


@record
class ObserverOpinion:
    """`reason` is safe to tell the model and the asker. `decided_by` is `observer`, `observer-cache` or
    `observer-fault`.
    """

    opined: ObserverVerdict
    reason: str
    decided_by: str = "observer"


def digest(*facts: object) -> str:
    """A key for everything that a verdict depends on."""
    text = json.dumps(facts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class VerdictCache:
    """Holds what was approved and denied, never what was handed on to people, and no faults."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, ObserverOpinion]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: str, *, ttl_s: float) -> ObserverOpinion | None:
        """One that is younger than `ttl_s`."""
        since_s, opinion = self._kept.get(key, (0.0, None))
        if opinion is not None and self._clock.monotonic_s() - since_s < ttl_s:
            return opinion
        self._kept.pop(key, None)
        return None

    def keep(self, key: str, opinion: ObserverOpinion) -> None:
        if opinion.opined is ObserverVerdict.ESCALATE or opinion.decided_by != "observer":
            return
        self._kept[key] = (self._clock.monotonic_s(), opinion)
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        self._kept.clear()


MAX_DEPTH = 5
"""Skill-internal calls may nest this deep."""

OF_PROGRAMS = RateLimit(calls=1200, window_s=60.0)
"""For calls without a tier's own limit that a program makes by itself: a turn has an end, a program need not."""

RATE_LIMIT = "rate-limit"
"""Who decided about a call that came too often."""

_log = logging.getLogger("denizen.gate")


class CallObserver(Protocol):
    """Looks at one call. None when there is no observer now; then people decide."""

    async def review(self, case: GateCase, policy: GatePolicy) -> ObserverOpinion | None: ...


@record
class GateCase:
    """One call as it is decided about. `tier` is the strictest of the call's own and of those on the way to it."""

    spec: ToolSpec
    asked: ToolCall
    scope: CallScope
    tier: Tier


class PolicyEngine:
    """Holds what decisions need besides the configuration, so it outlives generations of that: the rate limiter, None
    where calls are not counted; the observer, None where there is none; the members whom people of the web have linked,
    whose roles on the platform they have here too; and which tools those who manage a community do without.
    """

    def __init__(
        self,
        limiter: RateLimiter | None = None,
        observer: CallObserver | None = None,
        members: MemberDirectory | None = None,
        guilds: GuildSettingsOverlay | None = None,
    ) -> None:
        self._limiter = limiter
        self._observer = observer
        self._members = members
        self._guilds = guilds

    async def decide(
        self, spec: ToolSpec, call: ToolCall, scope: CallScope, policy: GatePolicy, *, floor: Tier = Tier.HARMLESS
    ) -> Verdict:
        """`floor` is the strictest tier of the chain of calls that led here. Never raises: a fault denies."""
        try:
            return await self._decide(GateCase(spec, call, scope, max(policy.tier(spec), floor)), policy)
        except Exception:  # noqa: BLE001 - whatever fails in here denies
            _log.exception("gate fault", extra={"tool": call.tool, "turn": scope.turn_id})
            return Verdict(
                Decision.DENY, Tier.DANGEROUS, "the gate could not decide, so the answer is no", "gate-fault"
            )

    async def _decide(self, case: GateCase, policy: GatePolicy) -> Verdict:
        if case.spec.administration and not _may_administrate(case.scope):
            why = f"'{case.asked.tool}' is for owners and admins, in a chat about the administration"
            return _deny(case, why, "administration")
        if case.scope.depth > MAX_DEPTH:
            return _deny(case, f"tools may call each other at most {MAX_DEPTH} deep", "depth")
        if self._guilds and case.scope.guild:
            settings = await self._guilds.load(case.scope.place.platform, case.scope.guild)
            if settings.denies(case.asked.tool):
                return _deny(case, f"those who manage this server do without '{case.asked.tool}'", "guild")
        member = await self._members.find_linked(case.scope.principal) if self._members else None
        if member is not None:
            case = replace(case, scope=_with_roles(case.scope, member.roles))
        is_sure = member is None or member.is_complete
        owner = case.scope.principal.owner
        if owner is not None:
            owner, is_sure = await self._load_owner(owner)
        rule = _find_rule(case, policy, owner, is_sure=is_sure)
        if rule is not None and rule.decision is Decision.DENY:
            return _deny(case, rule.reason or "a rule of this server forbids this call", "rule")
        foreign = policy.find_foreign(case.spec, case.asked, case.scope)
        refusal = _find_refusal(case, policy, foreign) or await self._find_excess(case, policy)
        if refusal is not None:
            return refusal
        asking = [*_ask_as_configured(case, policy, rule), *_ask_after_foreign_text(case, policy, foreign)]
        judged = _approve_without_observer(case, rule) or await self._observe(case, policy)
        if judged.decision is Decision.DENY:
            return judged
        if judged.decision is Decision.ASK:
            asking.append(judged)
        if case.spec.destructive:
            although = f" ({judged.reason})" if judged.decision is Decision.APPROVE else ""
            asking.append(
                _ask(case, policy, f"'{case.asked.tool}' is never done without a person's yes{although}", "destructive")
            )
        return _combine(asking) if asking else judged

    async def _load_owner(self, owner: Principal) -> tuple[Principal, bool]:
        """Returns the owner of a schedule with the roles that they have now, and whether these are all."""
        platform, _, user_id = owner.id.partition(":")
        roles, is_sure = frozenset[str](), False
        if self._members is not None and self._members.platform == platform:
            member = await self._members.load(user_id, owner.name)
            roles, is_sure = member.roles, member.is_complete
        return replace(owner, roles=roles | {RoleName.MEMBER.value}), is_sure

    async def _find_excess(self, case: GateCase, policy: GatePolicy) -> Verdict | None:
        tool = case.asked.tool
        limits = policy.find_rate_limits(tool)
        if limits is None and case.tier is Tier.HARMLESS:
            if case.asked.origin is not Origin.API:
                return None
            limits = (OF_PROGRAMS,)
        if self._limiter is None:
            return None
        key = f"tool\x00{case.scope.principal.payer.key}\x00{tool}"
        excess = await self._limiter.take(key, limits or (policy.rate_limits.default,))
        if excess is None:
            return None
        return _deny(case, f"'{tool}' was used too often; free again in {math.ceil(excess.wait_s)} s", RATE_LIMIT)

    async def _observe(self, case: GateCase, policy: GatePolicy) -> Verdict:
        """Without an observer, and where it is not sure, the owners decide."""
        opinion = await self._observer.review(case, policy) if self._observer else None
        if opinion is None:
            tool, configured = case.asked.tool, policy.tier(case.spec)
            harm = "do what cannot be undone" if case.tier is Tier.DANGEROUS else "change what belongs to others"
            why = f"'{tool}' may {harm}, so whoever runs this server has to agree"
            if case.tier > configured:
                why = f"'{tool}' is used by a tool that may {harm}, so whoever runs this server has to agree"
            elif configured > case.spec.tier:
                why = f"the owner of this server asks for approval of '{tool}'"
            return _ask(case, policy, why, "no-observer", rule=_surely(policy.owners))
        match opinion.opined:
            case ObserverVerdict.APPROVE:
                return Verdict(Decision.APPROVE, case.tier, opinion.reason, opinion.decided_by)
            case ObserverVerdict.DENY:
                return _deny(case, opinion.reason, opinion.decided_by)
            case ObserverVerdict.ESCALATE:
                verdict = _ask(case, policy, opinion.reason, opinion.decided_by, rule=_surely(policy.owners))
                return replace(verdict, alert=True)


def _with_roles(scope: CallScope, roles: frozenset[str]) -> CallScope:
    """The scope of an asker who has these roles too."""
    asker = scope.principal
    return replace(scope, principal=replace(asker, roles=asker.roles | roles))


def _find_rule(case: GateCase, policy: GatePolicy, owner: Principal | None, *, is_sure: bool) -> ToolRule | None:
    """Returns the rule about the call. In a delegated turn those for the agent that delegates hold too, and in a run of
    somebody's schedule those for its owner: of these rules the strictest, and none where one of them is missing.
    """
    find = policy.find_rule if is_sure else policy.find_strictest
    scopes, delegator = [case.scope], case.scope.delegator
    if delegator is not None:
        scopes.append(replace(case.scope, agent=delegator.agent))
    if owner is not None:
        scopes += [replace(scope, principal=owner) for scope in scopes]
    found = [find(case.asked, scope) for scope in scopes]
    for decision in (Decision.DENY, Decision.ASK):
        if strict := next((rule for rule in found if rule is not None and rule.decision is decision), None):
            return strict
    return found[0] if None not in found else None


def _may_administrate(scope: CallScope) -> bool:
    return scope.is_administration and any(has_role(scope.principal, role) for role in (RoleName.ADMIN, RoleName.OWNER))


def _find_refusal(case: GateCase, policy: GatePolicy, foreign: str) -> Verdict | None:
    tool, asker = case.asked.tool, case.scope.principal
    demanded = policy.find_roles(tool)
    if demanded and not any(has_role(asker, role) for role in demanded):
        return _deny(case, f"'{tool}' is for {' or '.join(sorted(demanded))} only", "role")
    if foreign and policy.destinations is not None:
        return _deny(case, f"'{tool}' may not send to {foreign}", "destination")
    return None


def _approve_without_observer(case: GateCase, rule: ToolRule | None) -> Verdict | None:
    """None for a call that the observer has to look at."""
    if case.tier is Tier.HARMLESS:
        return Verdict(Decision.APPROVE, case.tier, "harmless", "tier-0")
    if case.tier is Tier.LIMITED:
        return Verdict(Decision.APPROVE, case.tier, "within its rate limit", "tier-1")
    if case.tier is Tier.SENSITIVE and rule is not None and rule.decision is Decision.APPROVE:
        return Verdict(Decision.APPROVE, case.tier, rule.reason or "a rule of this server allows this call", "rule")
    return None


def _ask_as_configured(case: GateCase, policy: GatePolicy, rule: ToolRule | None) -> Iterator[Verdict]:
    """Where a rule or a mode wants people to be asked, and for what an event wants that no rule allows. Silence is
    consent only where the owner wrote that.
    """
    tool = case.asked.tool
    if rule is not None and rule.decision is Decision.ASK:
        why = rule.reason or "a rule of this server wants people to be asked"
        yield _ask(case, policy, why, "rule", rule=rule.approval or policy.approval)
    is_allowed = rule is not None and rule.decision is Decision.APPROVE
    if case.tier >= Tier.SENSITIVE and not is_allowed and case.scope.principal.kind in EVENT_KINDS:
        why = f"'{tool}' may change what belongs to others, and an event asks for it, not a human"
        yield _ask(case, policy, why, "event", rule=_surely(policy.owners))
    if policy.mode(tool, is_allowed=is_allowed) is ToolMode.ASK:
        yield _ask(case, policy, f"people are asked about every use of '{tool}'", "mode", rule=policy.approval)


def _ask_after_foreign_text(case: GateCase, policy: GatePolicy, foreign: str) -> Iterator[Verdict]:
    """Where others could gain from the call and may have brought it about. `foreign` is an unknown destination."""
    risk, scope = find_risk(case.spec, case.tier, foreign), case.scope
    taint = (scope.taint | scope.trail.taint) - policy.trusted
    # Only a fact that the asker told is free, and nothing that would be risky beside its being written down.
    is_free = (
        not foreign
        and not scope.depth
        and case.tier <= Tier.LIMITED
        and tells_own_fact(case.spec, case.asked, taint, scope.question.own_words, scope.principal.name)
    )
    if taint and risk and not is_free:
        why = f"'{case.asked.tool}' {risk}, and this answer draws on {describe_taint(taint)}"
        yield _ask(case, policy, why, "taint")


def _ask(
    case: GateCase, policy: GatePolicy, reason: str, decided_by: str, *, rule: ApprovalRule | None = None
) -> Verdict:
    """Without a rule the asker decides, and silence is no consent. About the highest tier at least an owner decides."""
    asked = rule or _surely(policy.approval)
    if case.tier is Tier.DANGEROUS:
        asked = combine_rules(asked, _surely(policy.owners))
    return Verdict(Decision.ASK, case.tier, reason, decided_by, asked)


def _combine(asking: Sequence[Verdict]) -> Verdict:
    """Returns one verdict, with all reasons and the strictest rule about who decides."""
    strictest = reduce(combine_rules, (each.rule for each in asking if each.rule))
    first = next((each for each in asking if each.rule and same_people(each.rule, strictest)), asking[0])
    reason = "; ".join(each.reason for each in asking)
    return replace(first, reason=reason, rule=strictest, alert=any(each.alert for each in asking))


def _surely(rule: ApprovalRule) -> ApprovalRule:
    return replace(rule, grant_on_timeout=False)


def _deny(case: GateCase, reason: str, decided_by: str) -> Verdict:
    return Verdict(Decision.DENY, case.tier, reason, decided_by)

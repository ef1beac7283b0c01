"""The decision about one call. First form: rules, tiers and rate limits; the observer is a later addition.

Whatever goes wrong in here denies (inventory V20).
"""

from __future__ import annotations

import logging

from denizen.domain.tool import Tier, ToolCall, ToolSpec
from denizen.domain.verdict import Decision, Verdict
from denizen.engine.gate.limits import SlidingWindow
from denizen.engine.gate.policy import GatePolicy
from denizen.ports.toolset import CallScope

MAX_DEPTH = 5
"""Skill-internal calls may nest this deep (inventory V23)."""

_log = logging.getLogger("denizen.gate")


def decide(
    spec: ToolSpec, call: ToolCall, scope: CallScope, *, policy: GatePolicy, window: SlidingWindow, floor: Tier
) -> Verdict:
    """`floor` is the strictest tier of the chain of calls that led here (VW1). Never raises: a fault denies."""
    try:
        return _decide(spec, call, scope, policy=policy, window=window, floor=floor)
    except Exception:  # noqa: BLE001 - whatever fails in here denies
        _log.exception("gate fault", extra={"tool": call.tool, "turn": scope.turn_id})
        return Verdict(Decision.DENY, Tier.DANGEROUS, "the gate could not decide, so the answer is no", "gate-fault")


def _decide(
    spec: ToolSpec, call: ToolCall, scope: CallScope, *, policy: GatePolicy, window: SlidingWindow, floor: Tier
) -> Verdict:
    tier = max(policy.tier(spec), floor)
    if scope.depth > MAX_DEPTH:
        return Verdict(Decision.DENY, tier, f"tools may call each other at most {MAX_DEPTH} deep", "depth")
    rule = next((rule for rule in policy.rules if rule.matches(call.tool, call.args)), None)
    if rule is not None and rule.decision is Decision.DENY:
        return Verdict(Decision.DENY, tier, rule.reason or "a rule of this server forbids this call", "rule")
    limit = policy.find_rate_limit(call.tool)
    if tier is Tier.HARMLESS and limit is None:
        return Verdict(Decision.APPROVE, tier, "harmless", "tier-0")
    wait_s = window.take(f"{scope.principal.key}\x00{call.tool}", limit or policy.default_rate_limit)
    if wait_s > 0:
        return Verdict(
            Decision.DENY, tier, f"'{call.tool}' was used too often; free again in {wait_s:.0f} s", "rate-limit"
        )
    if tier <= Tier.LIMITED:
        return Verdict(Decision.APPROVE, tier, "within its rate limit", f"tier-{int(tier)}")
    if rule is not None and tier is Tier.SENSITIVE:
        return Verdict(Decision.APPROVE, tier, rule.reason or "a rule of this server allows this call", "rule")
    return Verdict(
        Decision.DENY,
        tier,
        f"'{call.tool}' is a tier {int(tier)} tool and no observer is configured yet",
        "no-observer",
    )

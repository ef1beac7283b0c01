"""What becomes of calls of a tool by the configuration, in words, for people who look before they trust. Pure.

It says what holds before a call is known: rules that fit its arguments, rates and taint may still say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from denizen.domain.tool import Effect, Tier, ToolSpec
from denizen.domain.verdict import Decision
from denizen.engine.gate.policy import GatePolicy, Mode, Rule

_EFFECTS = {
    Effect.MEMORY: "remembers",
    Effect.SCHEDULE: "plans",
    Effect.SEND: "sends",
    Effect.REVEAL: "reveals secrets",
}

_TIERS = "gate.tiers, or mcp.servers.NAME.tiers for a tool of an MCP server,"


@dataclass(frozen=True, slots=True)
class Outlook:
    """`mode` is `run`, `observer`, `observer, then people`, `people` or `never`; `why` says what it follows from."""

    mode: str
    why: str


def explain(spec: ToolSpec, policy: GatePolicy, *, is_observed: bool) -> Outlook:
    """`is_observed` says whether an observer looks at calls now."""
    why = [_tier_words(spec, policy), *_demands(spec, policy)]
    blanket = next((rule for rule in policy.rules if fnmatchcase(spec.name, rule.tool)), None)
    if blanket is not None and blanket.decision is Decision.DENY and blanket.is_blanket:
        return Outlook("never", "; ".join([*why, "a rule denies every call"]))
    mode = _mode(spec, policy, is_observed=is_observed)
    if mode.endswith("people") and spec.destructive:
        why.append("it destroys something")
    if policy.tier(spec) is Tier.DANGEROUS and any(_approves(rule, spec) for rule in policy.rules):
        why.append(f"no rule approves tier 3 by itself: a lower tier under {_TIERS} does")
    if policy.tier(spec) >= Tier.SENSITIVE and not is_observed:
        why.append("no observer looks at calls")
    return Outlook(mode, "; ".join(why))


def has_rules(spec: ToolSpec, policy: GatePolicy) -> bool:
    """Whether the owner has said anything about the tool besides its tier."""
    named = [rule.tool for rule in policy.rules]
    named += [pattern for pattern, _ in (*policy.modes, *policy.roles)]
    return any(fnmatchcase(spec.name, pattern) for pattern in named)


def _approves(rule: Rule, spec: ToolSpec) -> bool:
    return rule.decision is Decision.APPROVE and fnmatchcase(spec.name, rule.tool)


def _mode(spec: ToolSpec, policy: GatePolicy, *, is_observed: bool) -> str:
    if policy.mode(spec.name, is_ruled=False) is Mode.ASK:
        return "people"
    if policy.tier(spec) >= Tier.SENSITIVE:
        if not is_observed:
            return "people"
        return "observer, then people" if spec.destructive else "observer"
    return "people" if spec.destructive else "run"


def _tier_words(spec: ToolSpec, policy: GatePolicy) -> str:
    tier = policy.tier(spec)
    if tier is spec.tier:
        return f"declared as tier {int(tier)}"
    return f"tier {int(tier)} by gate.tiers (declared: {int(spec.tier)})"


def _demands(spec: ToolSpec, policy: GatePolicy) -> Iterator[str]:
    count = sum(fnmatchcase(spec.name, rule.tool) for rule in policy.rules)
    if count:
        yield f"{count} rule{'' if count == 1 else 's'}"
    if policy.mode(spec.name, is_ruled=False) is Mode.ASK:
        yield "gate.mode or gate.modes ask"
    roles = policy.find_roles(spec.name)
    if roles:
        yield f"for {' or '.join(sorted(roles))} only"
    if spec.effects:
        effects = ", ".join(_EFFECTS[effect] for effect in sorted(spec.effects))
        yield f"{effects}, so people are asked after foreign text"
    if spec.reads:
        yield f"reads foreign text ({', '.join(sorted(spec.reads))})"

"""The owner's policy about tools: tiers, rules, modes, roles, rate limits, destinations, taint and the observer.

Data and matching only; `explain_policy` says in words how a tool comes to run. `gate/decision.py` decides by it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TypeVar

from denizen.domain.approval import ApprovalRule, Deciders
from denizen.domain.conversation import Place
from denizen.domain.destination import list_names, split_destinations
from denizen.domain.json import Json
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.rate_limit import DAY_S, RateLimit
from denizen.domain.record import record
from denizen.domain.tool import Effect, Origin, Taint, Tier, ToolCall, ToolSpec
from denizen.domain.verdict import Decision
from denizen.ports.toolset import CallScope

ANYWHERE = "a place that the tool does not name beforehand"
"""The destination of a tool that sends and does not say which of its arguments tells where to."""

T = TypeVar("T")


class ToolMode(StrEnum):
    """How a tool that no rule decides about comes to run. None of them goes around the tiers."""

    RUN = "run"
    """As its tier demands."""
    ASK = "ask"
    """People are asked each time, whatever rules allow; only a rule that denies goes before."""
    RULES = "rules"
    """The rules decide; what none approves follows the default mode."""


@record
class ToolRule:
    """The first rule that matches a call decides. `tool` is a name or pattern. `args` are regular expressions that must
    be found in the argument's text, all of them. Of the others an empty one holds for everybody and everywhere:
    `principals` are keys or patterns of them, `channels` are channels with their threads, or single threads.
    """

    tool: str
    decision: Decision
    args: Mapping[str, str] = field(default_factory=dict[str, str])
    reason: str = ""
    roles: frozenset[str] = frozenset()
    principals: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    platforms: frozenset[str] = frozenset()
    guilds: frozenset[str] = frozenset()
    channels: frozenset[str] = frozenset()
    origins: frozenset[Origin] = frozenset()
    approval: ApprovalRule | None = None
    """For ASK: who decides, where nothing else demands more; None is as for all tools."""

    @property
    def is_blanket(self) -> bool:
        """Whether it holds for whatever arguments, askers and places."""
        limits = (self.roles, self.principals, self.agents, self.platforms, self.guilds, self.channels, self.origins)
        return not self.args and not any(limits)

    def matches(self, call: ToolCall, scope: CallScope) -> bool:
        """A missing argument and a bad pattern are no match."""
        return (not self.roles or bool(self.roles & scope.principal.roles)) and self.may_match(call, scope)

    def may_match(self, call: ToolCall, scope: CallScope) -> bool:
        """Whether it matches if the asker has the roles that it is for."""
        return fnmatchcase(call.tool, self.tool) and self._fits(call, scope) and self._finds(call.args)

    def _fits(self, call: ToolCall, scope: CallScope) -> bool:
        asker, place = scope.principal, scope.place
        return (
            (not self.principals or any(fnmatchcase(asker.key, pattern) for pattern in self.principals))
            and (not self.agents or scope.agent in self.agents)
            and (not self.platforms or place.platform in self.platforms)
            and (not self.guilds or scope.guild in self.guilds)
            and (not self.channels or bool(self.channels & {place.channel, place.thread}))
            and (not self.origins or call.origin in self.origins)
        )

    def _finds(self, args: Mapping[str, Json]) -> bool:
        try:
            return all(
                name in args and re.search(pattern, _text(args[name])) is not None
                for name, pattern in self.args.items()
            )
        except re.error:
            return False


_USUAL = RateLimit(calls=60, window_s=60.0)
DAILY_MESSAGES = 15
"""The messages that a member with an account may send in a day, unless the configuration says otherwise."""


@record(kw_only=True)
class RateLimits:
    """`by_tool` maps tool patterns; the first match counts, with all its windows. A limited tool that none matches has
    `default`.

    `per_user` bounds what one person may ask, `per_key` the same for one API key. A person with an account of the web
    has `per_member` besides, unless it is an admin or an owner, who have no limit there.
    """

    by_tool: tuple[tuple[str, tuple[RateLimit, ...]], ...] = ()
    default: RateLimit = _USUAL
    per_user: tuple[RateLimit, ...] = ()
    per_key: tuple[RateLimit, ...] = ()
    per_member: tuple[RateLimit, ...] = (RateLimit(DAILY_MESSAGES, DAY_S),)

    def of(self, principal: Principal) -> tuple[RateLimit, ...]:
        """Returns the limits on what that principal may ask, or what its payer may."""
        principal = principal.payer
        if principal.kind is PrincipalKind.PLATFORM_USER:
            return self.per_user
        if principal.kind is PrincipalKind.WEB_USER:
            return () if principal.roles & {RoleName.ADMIN, RoleName.OWNER} else (*self.per_user, *self.per_member)
        return self.per_key if principal.kind is PrincipalKind.API_KEY else ()


@record(kw_only=True)
class ResultPolicy:
    """The handling of results. `keep_s` is how long one of a tool that is declared for it answers the same call again,
    0 never. `mask` replaces the values of secrets before a result is recorded, shown or read by a model.
    """

    keep_s: float = 1800.0
    mask: Callable[[str], str] = str


@record(kw_only=True)
class ToolModes:
    """`by_tool` maps tool patterns; the first match counts."""

    by_tool: tuple[tuple[str, ToolMode], ...] = ()
    default: ToolMode = ToolMode.RUN


@record
class ObserverPolicy:
    """The model that looks at calls of tier 2 and 3. Without `model` there is none, and people are asked instead.

    A verdict about tier 2 is kept for `cache_ttl_s`. `alert_place` is where owners are told of what it hands on.
    """

    model: str = ""
    timeout_s: float = 20.0
    cache_ttl_s: float = 600.0
    alert_place: Place | None = None


@record(kw_only=True)
class GatePolicy:
    """`tiers` and `roles` map tool patterns; the first match in the given order counts.

    `roles` names the roles of which the asker must have one. `destinations` None sets no limit to where tools send;
    else they are patterns of places (`discord:123`), addresses and hosts, and the conversation itself is always among
    them. `trusted` are the kinds of foreign text that the owner does not mind. `approval` is how approvals are had;
    `owners` how where the asker is not enough. `generation` is the number of the configuration that says all this.
    """

    tiers: tuple[tuple[str, Tier], ...] = ()
    rules: tuple[ToolRule, ...] = ()
    rate_limits: RateLimits = field(default_factory=RateLimits)
    modes: ToolModes = field(default_factory=ToolModes)
    roles: tuple[tuple[str, frozenset[str]], ...] = ()
    destinations: tuple[str, ...] | None = None
    trusted: frozenset[Taint] = frozenset()
    approval: ApprovalRule = field(default_factory=ApprovalRule)
    owners: ApprovalRule = field(default_factory=lambda: ApprovalRule(Deciders.ROLE, RoleName.OWNER))
    observer: ObserverPolicy = field(default_factory=ObserverPolicy)
    generation: int = 0
    results: ResultPolicy = field(default_factory=ResultPolicy)

    def tier(self, spec: ToolSpec) -> Tier:
        """The configured tier, else the one that the tool declares."""
        found = _first(self.tiers, spec.name)
        return spec.tier if found is None else found

    def mode(self, tool: str, *, is_allowed: bool) -> ToolMode:
        """RUN or ASK. `is_allowed` when a rule approves the call: then the default mode does not hold."""
        mode = _first(self.modes.by_tool, tool) or ToolMode.RULES
        if mode is ToolMode.RULES:
            return ToolMode.RUN if is_allowed else self.modes.default
        return mode

    def find_rule(self, call: ToolCall, scope: CallScope) -> ToolRule | None:
        return next((rule for rule in self.rules if rule.matches(call, scope)), None)

    def find_strictest(self, call: ToolCall, scope: CallScope) -> ToolRule | None:
        """Returns the rule for an asker who may have more roles than are known now: one for such roles goes before the
        one that matches if it denies, or asks where that one does not deny.
        """
        sure, possible = self.find_rule(call, scope), list[ToolRule]()
        for rule in self.rules:
            if rule is sure:
                break
            if rule.decision is not Decision.APPROVE and rule.may_match(call, scope):
                possible.append(rule)
        found = [*([sure] if sure is not None else []), *possible]
        decisions = (Decision.DENY, Decision.ASK, Decision.APPROVE)
        return min(found, key=lambda rule: decisions.index(rule.decision), default=None)

    def find_roles(self, tool: str) -> frozenset[str]:
        """Returns the roles of which the asker must have one; empty for a tool that demands none."""
        return _first(self.roles, tool) or frozenset()

    def find_rate_limits(self, tool: str) -> tuple[RateLimit, ...] | None:
        """Returns those that the owner wrote, which hold for harmless tools too; they have no others."""
        return _first(self.rate_limits.by_tool, tool)

    def find_foreign(self, spec: ToolSpec, call: ToolCall, scope: CallScope) -> str:
        """The first place outside of the conversation and of the listed ones that this call would send to, in words;
        empty when there is none.
        """
        if Effect.SEND not in spec.flow.effects or "*" in (self.destinations or ()):
            return ""
        named = list(_destinations(spec, call.args))
        is_here = spec.flow.here_by_default and bool(named)
        if not is_here and not any(to.strip("<#> ") for to in named):
            return ANYWHERE
        return next((to for to in named if not self._is_near(to, scope)), "")

    def _is_near(self, to: str, scope: CallScope) -> bool:
        place, listed = scope.place, self.destinations or ()
        bare = to.strip()
        bare = (bare[1:-1] if bare.startswith("<") and bare.endswith(">") else bare).removeprefix("#").strip()
        if bare in ("", place.thread or place.channel, *listed) or f"{place.platform}:{bare}" in listed:
            return True
        if len(several := split_destinations(bare)) > 1:
            return all(self._is_near(each, scope) for each in several)
        names = list_names(bare, place.platform)
        return any(fnmatchcase(name, pattern) for name in names for pattern in listed)


def _first(table: tuple[tuple[str, T], ...], tool: str) -> T | None:
    return next((value for pattern, value in table if fnmatchcase(tool, pattern)), None)


def _destinations(spec: ToolSpec, args: Mapping[str, Json]) -> Iterator[str]:
    for name in spec.flow.destinations:
        value = args.get(name)
        for each in value if isinstance(value, list) else [value]:
            yield "" if each is None else _text(each)


def _text(value: Json) -> str:
    """An argument as patterns see it: texts as they are, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


_EFFECTS = {
    Effect.MEMORY: "remembers",
    Effect.SCHEDULE: "plans",
    Effect.SEND: "sends",
    Effect.REVEAL: "reveals secrets",
}

_TIERS = "gate.tiers, or mcp.servers.NAME.tiers for a tool of an MCP server,"


@record
class ToolOutlook:
    """`mode` is `run`, `observer`, `observer, then people`, `people` or `never`; `why` says what it follows from."""

    mode: str
    why: str


def explain_policy(spec: ToolSpec, policy: GatePolicy, *, is_observed: bool) -> ToolOutlook:
    """`is_observed` says whether an observer looks at calls now."""
    why = [_tier_words(spec, policy), *_demands(spec, policy)]
    if _find_blanket(spec, policy) is Decision.DENY:
        return ToolOutlook("never", "; ".join([*why, "a rule denies every call"]))
    mode = _mode(spec, policy, is_observed=is_observed)
    if mode.endswith("people") and spec.destructive:
        why.append("it is never done without a person's yes")
    if policy.tier(spec) is Tier.DANGEROUS and any(_approves(rule, spec) for rule in policy.rules):
        why.append(f"no rule approves tier 3 by itself: a lower tier under {_TIERS} does")
    if policy.tier(spec) >= Tier.SENSITIVE and not is_observed:
        why.append("no observer looks at calls")
    return ToolOutlook(mode, "; ".join(why))


def may_run_unasked(spec: ToolSpec, policy: GatePolicy) -> bool:
    """Whether some call of the tool may run without people being asked."""
    if spec.destructive:
        return False
    blanket = _find_blanket(spec, policy)
    if blanket is not None:
        return blanket is Decision.APPROVE and policy.tier(spec) < Tier.DANGEROUS
    is_approved = policy.tier(spec) < Tier.DANGEROUS and any(_approves(rule, spec) for rule in policy.rules)
    return is_approved or _mode(spec, policy, is_observed=bool(policy.observer.model)) in ("run", "observer")


def _find_blanket(spec: ToolSpec, policy: GatePolicy) -> Decision | None:
    """Returns the decision of the rule that is first for every call of the tool, if there is one."""
    first = next((rule for rule in policy.rules if fnmatchcase(spec.name, rule.tool)), None)
    return first.decision if first is not None and first.is_blanket else None


def has_rules(spec: ToolSpec, policy: GatePolicy) -> bool:
    """Whether the owner has said anything about the tool besides its tier."""
    named = [rule.tool for rule in policy.rules]
    named += [pattern for pattern, _ in (*policy.modes.by_tool, *policy.roles)]
    return any(fnmatchcase(spec.name, pattern) for pattern in named)


def _approves(rule: ToolRule, spec: ToolSpec) -> bool:
    return rule.decision is Decision.APPROVE and fnmatchcase(spec.name, rule.tool)


def _mode(spec: ToolSpec, policy: GatePolicy, *, is_observed: bool) -> str:
    asks = spec.destructive or policy.mode(spec.name, is_allowed=False) is ToolMode.ASK
    if policy.tier(spec) >= Tier.SENSITIVE:
        if not is_observed:
            return "people"
        return "observer, then people" if asks else "observer"
    return "people" if asks else "run"


def _tier_words(spec: ToolSpec, policy: GatePolicy) -> str:
    tier = policy.tier(spec)
    if tier is spec.tier:
        return f"declared as tier {int(tier)}"
    return f"tier {int(tier)} by gate.tiers (declared: {int(spec.tier)})"


def _demands(spec: ToolSpec, policy: GatePolicy) -> Iterator[str]:
    count = sum(fnmatchcase(spec.name, rule.tool) for rule in policy.rules)
    if count:
        yield f"{count} rule{'' if count == 1 else 's'}"
    if policy.mode(spec.name, is_allowed=False) is ToolMode.ASK:
        yield "gate.mode or gate.modes ask"
    roles = policy.find_roles(spec.name)
    if roles:
        yield f"for {' or '.join(sorted(roles))} only"
    if spec.flow.effects:
        effects = ", ".join(_EFFECTS[effect] for effect in sorted(spec.flow.effects))
        yield f"{effects}, so people are asked after foreign text"
    if spec.flow.reads:
        yield f"reads foreign text ({', '.join(sorted(spec.flow.reads))})"

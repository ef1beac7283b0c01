"""What `gate` in the configuration means for the policy, and what of it is refused."""

from __future__ import annotations

import pytest

from denizen.domain.approval import ApprovalRule, Deciders
from denizen.domain.conversation import Place
from denizen.domain.rate_limit import DAY_S, HOUR_S, RateLimit
from denizen.domain.tool import Origin, Taint, Tier
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import (
    GatePolicy,
    ObserverPolicy,
    RateLimits,
    ToolMode,
    ToolModes,
    ToolRule,
)
from tests.app.home_folder import Home

WHOLE = """\
gate:
  tiers: {"notes_*": 2}
  mode: ask
  modes: {weather: run, "mcp_*": ask, fetch_url: rules}
  roles: {"exec*": [admin]}
  rate_limits: {tool: {weather: {calls: 10, per_s: 60}}}
  destinations: ["discord:77", "*.example.org"]
  taint: {others: off, web: on}
  observer: {model: balanced, timeout_s: 9, cache_ttl_s: 0, alert_channel: 123456789012345678}
  approvals: {timeout_s: 60, people: ["platform_user:discord:9"]}
  rules:
    - {tool: fetch_url, action: approve, args: {url: "^https://example\\\\.org/"}, reason: ours}
    - tool: exec
      action: ask
      roles: [member]
      principals: ["api_key:*"]
      agents: [helper]
      platforms: [discord]
      guilds: [12345]
      channels: ["678"]
      origins: [schedule]
      role: admin
      quorum: 3
      on_timeout: approve
    - {tool: exec, action: ask}
"""


def load_policy(home: Home, text: str) -> GatePolicy:
    return home.load(text).gate.policy(7)


@pytest.mark.proves("T-approval-modes", "T-approval-rules", "T-approval-discord", "TW8")
def test_everything_under_gate_reaches_the_policy(home: Home) -> None:
    policy = load_policy(home, WHOLE + "agents: {helper: {}}\n")
    usual = ApprovalRule(people=frozenset({"platform_user:discord:9"}), timeout_s=60.0)
    assert policy.tiers == (("notes_*", Tier.SENSITIVE),)
    assert policy.modes.default is ToolMode.ASK
    assert policy.modes.by_tool == (("weather", ToolMode.RUN), ("mcp_*", ToolMode.ASK), ("fetch_url", ToolMode.RULES))
    assert policy.roles == (("exec*", frozenset({"admin"})),)
    assert policy.rate_limits.by_tool == (("weather", (RateLimit(10, 60.0),)),)
    assert policy.destinations == ("discord:77", "*.example.org")
    assert policy.trusted == {Taint.OTHERS}
    assert policy.observer == ObserverPolicy("balanced", 9.0, 0.0, Place("discord", "123456789012345678"))
    assert policy.approval == usual
    assert policy.owners.deciders is Deciders.ROLE and policy.owners.timeout_s == 60.0
    assert policy.generation == 7
    first, second, third = policy.rules
    assert first == ToolRule("fetch_url", Decision.APPROVE, {"url": r"^https://example\.org/"}, "ours")
    assert second.approval == ApprovalRule(
        Deciders.QUORUM, "admin", 3, frozenset({"platform_user:discord:9"}), 60.0, grant_on_timeout=True
    )
    assert (second.roles, second.principals, second.agents) == ({"member"}, {"api_key:*"}, {"helper"})
    assert (second.platforms, second.guilds, second.channels) == ({"discord"}, {"12345"}, {"678"})
    assert second.origins == {Origin.SCHEDULE}
    assert third.approval is None


@pytest.mark.proves("T-approval-modes", "T-approval-timeout", "T-config-custom", "TW8", "TW1", "VW3", "V20")
def test_by_default_nothing_is_trusted_and_owners_decide_about_the_worst(home: Home) -> None:
    policy = load_policy(home, "")
    assert policy == GatePolicy(rate_limits=RateLimits(per_user=(RateLimit(20, 3600),)), generation=7)
    assert policy.modes == ToolModes(default=ToolMode.RUN)
    assert (policy.observer.model, policy.observer.timeout_s, policy.observer.cache_ttl_s) == ("", 20, 600)
    assert policy.owners.deciders is Deciders.ROLE and policy.owners.role == "owner"
    assert (policy.approval.timeout_s, policy.approval.grant_on_timeout) == (300, False)


@pytest.mark.proves("T-approval-timeout")
def test_an_approval_can_wait_for_ever_and_silence_can_grant_it(home: Home) -> None:
    policy = load_policy(home, "gate: {approvals: {timeout_s: 0, on_timeout: approve}}")
    for rule in (policy.approval, policy.owners):
        assert (rule.timeout_s, rule.grant_on_timeout) == (0, True)
    [rule] = load_policy(home, "gate: {rules: [{tool: x, action: ask, on_timeout: approve, timeout_s: 0}]}").rules
    assert rule.approval == ApprovalRule(timeout_s=0, grant_on_timeout=True)


def test_an_observer_that_is_not_enabled_is_none(home: Home) -> None:
    assert load_policy(home, "gate: {observer: {enabled: false, model: balanced}}").observer.model == ""


@pytest.mark.proves("L-config-rate-limit", "V18")
def test_requests_are_limited_by_hour_and_day_and_tools_by_several_windows(home: Home) -> None:
    assert load_policy(home, "").rate_limits.per_user == (RateLimit(20, HOUR_S),)
    text = """\
gate:
  rate_limits:
    per_user_per_hour: 5
    per_user_per_day: 15
    per_key_per_day: 100
    tool: {"web_*": [{calls: 2, per_s: 1}, {calls: 90, per_s: 3600}]}
"""
    limits = load_policy(home, text).rate_limits
    assert limits.per_user == (RateLimit(5, HOUR_S), RateLimit(15, DAY_S))
    assert limits.per_key == (RateLimit(100, DAY_S),)
    assert limits.by_tool == (("web_*", (RateLimit(2, 1.0), RateLimit(90, 3600.0))),)
    assert load_policy(home, "gate: {rate_limits: {per_user_per_hour: 0}}").rate_limits.per_user == ()


@pytest.mark.parametrize("who", ["deciders: requester", ""])
def test_a_requester_never_stands_in_for_the_observer(home: Home, who: str) -> None:
    assert load_policy(home, f"gate: {{approvals: {{{who}}}}}").owners.deciders is Deciders.ROLE
    quorum = load_policy(home, "gate: {approvals: {quorum: 2, role: admin}}")
    assert quorum.owners == quorum.approval == ApprovalRule(Deciders.QUORUM, "admin", 2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gate: {rules: [{tool: x, action: approve, quorum: 2}]}", "only a rule that asks has people who decide"),
        ("gate: {rules: [{tool: x, action: ask, deciders: role, quorum: 2}]}", "a quorum is a kind of deciders"),
        ("gate: {approvals: {deciders: requester, role: admin}}", "the requester decides, so no role does"),
        ("gate: {taint: {others: maybe}}", "gate.taint.others"),
        ("gate: {taint: {stars: off}}", "gate.taint"),
        ("gate: {mode: rules}", "gate.mode"),
        ("gate: {observer: {model: nobody}}", "there is no alias 'nobody'"),
        ("gate: {rules: [{tool: x, action: ask, args: {a: '('}}]}", "this is not a regular expression"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(home: Home, text: str, says: str) -> None:
    assert says in home.refuse(text).message

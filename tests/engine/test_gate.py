"""The gate's first form: tiers, rules, rate limits, depth; any fault denies."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, CallId, ConversationId, SessionId, TurnId
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.verdict import Decision
from denizen.engine.gate.decide import MAX_DEPTH, decide
from denizen.engine.gate.door import BoundTool, Gate
from denizen.engine.gate.limits import SlidingWindow
from denizen.engine.gate.policy import GatePolicy, RateLimit, Rule
from denizen.ports.toolset import CallScope

ANA = Principal(PrincipalKind.LOCAL, "ana", "Ana")
PLACE = Place("terminal", "t")
SCOPE = CallScope(AgentName("a"), ANA, PLACE, ConversationId("c"), SessionId("s"), TurnId("t"))


@dataclass
class HandClock:
    """A clock that is moved by hand."""

    seconds: float = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic_s(self) -> float:
        return self.seconds


@dataclass
class Recorder:
    """A toolset that remembers its calls."""

    specs: list[ToolSpec]
    error: Exception | None = None
    calls: list[tuple[ToolCall, CallScope]] = field(default_factory=list)
    name: str = "recorder"

    async def list_tools(self) -> list[ToolSpec]:
        return self.specs

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        self.calls.append((call, scope))
        if self.error is not None:
            raise self.error
        return ToolResult("done")

    async def aclose(self) -> None: ...


def spec(name: str = "look", tier: Tier = Tier.HARMLESS) -> ToolSpec:
    return ToolSpec(name, "", {"type": "object"}, tier=tier)


def call(name: str = "look", args: JsonObject | None = None) -> ToolCall:
    return ToolCall(CallId("1"), name, args or {})


def verdict_of(tier: Tier, policy: GatePolicy | None = None, *, scope: CallScope = SCOPE, floor: Tier = Tier.HARMLESS):
    window = SlidingWindow(HandClock())
    return decide(spec(tier=tier), call(), scope, policy=policy or GatePolicy(), window=window, floor=floor)


def test_tier_0_is_approved_and_tiers_2_and_3_are_denied_with_the_reason_that_nobody_observes_yet() -> None:
    assert verdict_of(Tier.HARMLESS).decision is Decision.APPROVE
    assert verdict_of(Tier.LIMITED).decision is Decision.APPROVE
    for tier in (Tier.SENSITIVE, Tier.DANGEROUS):
        verdict = verdict_of(tier)
        assert verdict.decision is Decision.DENY
        assert "no observer is configured yet" in verdict.reason


def test_a_tool_that_declares_no_tier_is_dangerous() -> None:
    assert ToolSpec("new", "", {}).tier is Tier.DANGEROUS


def test_the_configured_tier_replaces_the_declared_one() -> None:
    policy = GatePolicy(tiers=(("lo*", Tier.DANGEROUS),))
    assert verdict_of(Tier.HARMLESS, policy).decision is Decision.DENY


def test_the_first_matching_rule_denies_even_a_harmless_tool_by_its_arguments() -> None:
    rule = Rule("look", Decision.DENY, {"path": r"\.ssh"}, "keys are private")
    window, policy = SlidingWindow(HandClock()), GatePolicy(rules=(rule,))

    def judge(args: JsonObject):
        return decide(spec(), call(args=args), SCOPE, policy=policy, window=window, floor=Tier.HARMLESS)

    assert judge({"path": "/home/.ssh/id"}).reason == "keys are private"
    assert judge({"path": "/tmp"}).decision is Decision.APPROVE
    assert judge({}).decision is Decision.APPROVE


def test_a_rule_may_allow_a_sensitive_tool_but_never_a_dangerous_one() -> None:
    policy = GatePolicy(rules=(Rule("look", Decision.APPROVE),))
    assert verdict_of(Tier.SENSITIVE, policy).decision is Decision.APPROVE
    assert verdict_of(Tier.DANGEROUS, policy).decision is Decision.DENY


def test_the_strictest_tier_of_the_chain_counts() -> None:
    assert verdict_of(Tier.HARMLESS, floor=Tier.DANGEROUS).decision is Decision.DENY


def test_calls_nest_at_most_five_deep() -> None:
    assert verdict_of(Tier.HARMLESS, scope=replace(SCOPE, depth=MAX_DEPTH)).decision is Decision.APPROVE
    assert verdict_of(Tier.HARMLESS, scope=replace(SCOPE, depth=MAX_DEPTH + 1)).decided_by == "depth"


def test_the_rate_limit_slides_and_refused_calls_do_not_count() -> None:
    clock = HandClock()
    window = SlidingWindow(clock)
    policy = GatePolicy(rate_limits=(("look", RateLimit(2, 60.0)),))

    def judge() -> str:
        limited = spec(tier=Tier.LIMITED)
        return decide(limited, call(), SCOPE, policy=policy, window=window, floor=Tier.HARMLESS).decided_by

    assert [judge(), judge(), judge()] == ["tier-1", "tier-1", "rate-limit"]
    clock.seconds = 59
    assert judge() == "rate-limit"
    clock.seconds = 60
    assert judge() == "tier-1"


def test_a_fault_inside_the_gate_denies() -> None:
    broken = GatePolicy(rules=(Rule("look", Decision.APPROVE, {"path": "("}),))
    window = SlidingWindow(HandClock())
    verdict = decide(spec(), call(args={"path": "x"}), SCOPE, policy=broken, window=window, floor=Tier.HARMLESS)
    assert verdict.decision is Decision.DENY
    assert verdict.decided_by == "gate-fault"


@pytest.mark.anyio
async def test_a_denied_call_never_reaches_its_tool_and_the_model_is_told_why() -> None:
    tools = Recorder([spec(tier=Tier.DANGEROUS)])
    outcome = await Gate(HandClock()).run(BoundTool(tools.specs[0], tools), call(), SCOPE, GatePolicy())
    assert tools.calls == []
    assert outcome.result.is_error and outcome.result.text.startswith("Denied: ")


@pytest.mark.anyio
async def test_a_fault_of_a_tool_becomes_a_result_with_a_reference_and_without_internals() -> None:
    tools = Recorder([spec()], error=ZeroDivisionError("secret detail"))
    outcome = await Gate(HandClock()).run(BoundTool(tools.specs[0], tools), call(), SCOPE, GatePolicy())
    assert outcome.result.is_error
    assert "err_" in outcome.result.text and "secret" not in outcome.result.text


@pytest.mark.anyio
async def test_a_tool_sees_a_scope_that_is_one_deeper_and_names_the_chain() -> None:
    tools = Recorder([spec()])
    await Gate(HandClock()).run(BoundTool(tools.specs[0], tools), call(), SCOPE, GatePolicy())
    ((_, seen),) = tools.calls
    assert (seen.depth, seen.chain) == (1, ("look",))


def test_a_rate_limit_that_the_owner_wrote_holds_for_a_harmless_tool_too() -> None:
    window, policy = SlidingWindow(HandClock()), GatePolicy(rate_limits=(("lo*", RateLimit(1, 60.0)),))

    def judge(name: str) -> str:
        judged = decide(spec(name), call(name), SCOPE, policy=policy, window=window, floor=Tier.HARMLESS)
        return judged.decided_by

    assert [judge("look"), judge("look")] == ["tier-0", "rate-limit"]
    assert {judge("other") for _ in range(200)} == {"tier-0"}

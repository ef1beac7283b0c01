"""The decision about one call: depth, rules, roles, destinations, rates, modes, taint, tiers; any fault denies."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from denizen.domain.approval import ApprovalRule, Deciders
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal, PrincipalKind, name_schedule
from denizen.domain.rate_limit import RateLimit
from denizen.domain.tool import DataFlow, Effect, Origin, Taint, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.verdict import Decision
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.accounts.members import MemberDirectory
from denizen.engine.configuration.tool_policy import GatePolicy, RateLimits, ToolMode, ToolModes, ToolRule
from denizen.engine.gate.decision import MAX_DEPTH, GateCase, ObserverOpinion, PolicyEngine
from denizen.engine.gate.executor import BoundTool, ToolExecutor
from denizen.ports.toolset import CallScope, CallTrail
from tests.clock import ManualClock
from tests.engine.gate.gate_fixture import (
    ANA,
    OWNER,
    WATCHED,
    GateFixture,
    RecordingToolset,
    call,
    scope,
    spec,
    verdict,
)
from tests.memory_channel import MemoryChannel
from tests.memory_platform import MemoryPlatform

pytestmark = pytest.mark.anyio


# --- tiers -----------------------------------------------------------------------------------------------------------


@pytest.mark.proves("V18")
async def test_tiers_0_and_1_run_without_the_observer_and_2_and_3_are_looked_at() -> None:
    gate_fixture = GateFixture([verdict("approve")])
    for tier, asked in ((Tier.HARMLESS, 0), (Tier.LIMITED, 0), (Tier.SENSITIVE, 1), (Tier.DANGEROUS, 2)):
        assert (await gate_fixture.about(spec(tier=tier))).decision is Decision.APPROVE
        assert gate_fixture.asked == asked


@pytest.mark.proves("V18")
async def test_tier_2_is_looked_at_once_for_the_same_call_and_tier_3_each_time() -> None:
    gate_fixture = GateFixture([verdict("approve")])
    verdicts = [await gate_fixture.about(spec(tier=Tier.SENSITIVE), q="x") for _ in range(3)]
    assert [each.decided_by for each in verdicts] == ["observer", "observer-cache", "observer-cache"]
    assert gate_fixture.asked == 1
    for _ in range(3):
        assert (await gate_fixture.about(spec(tier=Tier.DANGEROUS), q="x")).decided_by == "observer"
    assert gate_fixture.asked == 4


@pytest.mark.parametrize("kind", [PrincipalKind.WEBHOOK, PrincipalKind.LISTENER, PrincipalKind.TASK_WATCHER])
async def test_what_text_of_others_has_caused_is_sensitive_only_with_an_owners_yes(kind: PrincipalKind) -> None:
    gate_fixture = GateFixture([verdict("approve")])
    for tier in (Tier.SENSITIVE, Tier.DANGEROUS):
        caused = scope(Principal(kind, "tasks", "tasks"))
        told = await gate_fixture.about(spec(tier=tier), at=caused)
        assert (told.decision, told.decided_by) == (Decision.ASK, "event")
        assert told.rule is not None
        assert told.rule.role == "owner"


@pytest.mark.proves("TW8", "T-approval-discord")
async def test_without_an_observer_an_owner_is_asked_about_tiers_2_and_3() -> None:
    for tier in (Tier.SENSITIVE, Tier.DANGEROUS):
        judged = await GateFixture().about(spec(tier=tier))
        assert judged.decision is Decision.ASK
        assert judged.decided_by == "no-observer"
        assert judged.rule is not None
        assert (judged.rule.deciders, judged.rule.role) == (Deciders.ROLE, "owner")


@pytest.mark.parametrize(
    ("tool", "raised", "floor", "why"),
    [
        (spec(tier=Tier.DANGEROUS), None, Tier.HARMLESS, "'look' may do what cannot be undone, so"),
        (spec(tier=Tier.SENSITIVE), None, Tier.HARMLESS, "'look' may change what belongs to others, so"),
        (spec(), Tier.DANGEROUS, Tier.HARMLESS, "the owner of this server asks for approval of 'look'"),
        (spec(), Tier.SENSITIVE, Tier.HARMLESS, "the owner of this server asks for approval of 'look'"),
        (spec(), None, Tier.DANGEROUS, "'look' is used by a tool that may do what cannot be undone, so"),
    ],
)
async def test_people_read_whether_the_tool_is_dangerous_or_the_owner_says_so(
    tool: ToolSpec, raised: Tier | None, floor: Tier, why: str
) -> None:
    policy = GatePolicy(tiers=() if raised is None else (("look", raised),))
    assert (await GateFixture().about(tool, policy=policy, floor=floor)).reason.startswith(why)


@pytest.mark.proves("V18")
async def test_a_tool_that_declares_no_tier_is_dangerous() -> None:
    assert ToolSpec("new", "", {}).tier is Tier.DANGEROUS


@pytest.mark.proves("V18")
async def test_the_configured_tier_replaces_the_declared_one() -> None:
    policy = GatePolicy(tiers=(("lo*", Tier.DANGEROUS),))
    assert (await GateFixture().about(spec(), policy)).tier is Tier.DANGEROUS


@pytest.mark.proves("VW1")
async def test_the_strictest_tier_of_the_chain_counts() -> None:
    judged = await GateFixture().about(spec(), floor=Tier.DANGEROUS)
    assert (judged.decision, judged.tier) == (Decision.ASK, Tier.DANGEROUS)


@pytest.mark.proves("V23")
async def test_calls_nest_at_most_five_deep() -> None:
    assert (await GateFixture().about(spec(), at=scope(chain=("look",) * MAX_DEPTH))).decision is Decision.APPROVE
    deeper = await GateFixture().about(spec(), at=scope(chain=("look",) * (MAX_DEPTH + 1)))
    assert (deeper.decision, deeper.decided_by) == (Decision.DENY, "depth")


@pytest.mark.proves("V21")
async def test_a_destructive_tool_needs_a_human_even_when_the_observer_said_yes() -> None:
    for tier in Tier:
        gate_fixture = GateFixture([verdict("approve")])
        judged = await gate_fixture.about(spec(tier=tier, destructive=True))
        assert (judged.decision, judged.decided_by) == (Decision.ASK, "destructive")
        assert gate_fixture.asked == (1 if tier >= Tier.SENSITIVE else 0)
    denied = await GateFixture([verdict("deny")]).about(spec(tier=Tier.DANGEROUS, destructive=True))
    assert denied.decision is Decision.DENY


# --- rules, modes, roles ---------------------------------------------------------------------------------------------


@pytest.mark.proves("T-approval-rules", "V18")
async def test_the_first_rule_that_matches_decides_and_without_a_match_the_default_holds() -> None:
    policy = GatePolicy(
        rules=(
            ToolRule("look", Decision.DENY, {"path": r"\.ssh"}, "keys are private"),
            ToolRule("look", Decision.APPROVE, {"path": r"^/srv", "mode": "^r$"}),
            ToolRule("look", Decision.ASK, {"path": r"^/srv"}, "homes are private"),
        ),
        modes=ToolModes(default=ToolMode.ASK),
    )
    tool = spec(tier=Tier.SENSITIVE)

    async def judged(**args: str) -> tuple[Decision, str]:
        found = await GateFixture().policy_engine.decide(tool, call(args=dict(args)), scope(), policy)
        return found.decision, found.reason.partition("; ")[0]

    assert await judged(path="/srv/.ssh/id", mode="r") == (Decision.DENY, "keys are private")
    assert (await judged(path="/srv/x", mode="r"))[0] is Decision.APPROVE
    assert await judged(path="/srv/x") == (Decision.ASK, "homes are private")
    assert await judged(path="/srv/x", mode="w") == (Decision.ASK, "homes are private")
    assert await judged(path="/tmp") == (Decision.ASK, "people are asked about every use of 'look'")
    assert (await judged())[0] is Decision.ASK


@pytest.mark.proves("T-approval-rules")
async def test_a_rule_without_patterns_matches_all_and_one_with_a_bad_pattern_nothing() -> None:
    for rule, decision in (
        (ToolRule("*", Decision.DENY), Decision.DENY),
        (ToolRule("look", Decision.DENY, {"path": "("}), Decision.APPROVE),
        (ToolRule("look", Decision.DENY, {"gone": ""}), Decision.APPROVE),
        (ToolRule("other", Decision.DENY), Decision.APPROVE),
    ):
        assert (await GateFixture().about(spec(), GatePolicy(rules=(rule,)), path="(")).decision is decision


@pytest.mark.parametrize(
    ("rule", "others"),
    [
        (ToolRule("look", Decision.DENY, principals=frozenset({ANA.key})), {"at": scope(OWNER)}),
        (ToolRule("look", Decision.DENY, principals=frozenset({"*:discord:1"})), {"at": scope(OWNER)}),
        (ToolRule("look", Decision.DENY, agents=frozenset({"ada"})), {"at": scope(agent=AgentName("bob"))}),
        (ToolRule("look", Decision.DENY, platforms=frozenset({"discord"})), {"at": scope(place=Place("web", "10"))}),
        (ToolRule("look", Decision.DENY, channels=frozenset({"10"})), {"at": scope(place=Place("discord", "11"))}),
        (ToolRule("look", Decision.DENY, origins=frozenset({Origin.MODEL})), {"origin": Origin.COMMAND}),
    ],
)
async def test_a_rule_holds_for_whom_and_where_it_says(rule: ToolRule, others: dict[str, object]) -> None:
    policy = GatePolicy(rules=(rule,))
    assert (await GateFixture().about(spec(), policy)).decision is Decision.DENY
    assert (await GateFixture().about(spec(), policy, **others)).decision is Decision.APPROVE  # pyright: ignore[reportArgumentType]


async def test_a_rule_holds_for_roles_guilds_and_threads() -> None:
    members = replace(ANA, roles=frozenset({"member"}))
    policy = GatePolicy(rules=(ToolRule("look", Decision.DENY, roles=frozenset({"member"}), guilds=frozenset({"7"})),))
    assert (await GateFixture().about(spec(), policy, at=scope(members, guild="7"))).decision is Decision.DENY
    assert (await GateFixture().about(spec(), policy, at=scope(members, guild="8"))).decision is Decision.APPROVE
    assert (await GateFixture().about(spec(), policy, at=scope(guild="7"))).decision is Decision.APPROVE
    threads = GatePolicy(rules=(ToolRule("look", Decision.DENY, channels=frozenset({"55"})),))
    assert (
        await GateFixture().about(spec(), threads, at=scope(place=Place("discord", "10", "55")))
    ).decision is Decision.DENY


@pytest.mark.proves("VW3")
async def test_a_rule_spares_the_observer_for_tier_2_only() -> None:
    policy = replace(WATCHED, rules=(ToolRule("look", Decision.APPROVE),))
    gate_fixture = GateFixture([verdict("deny")])
    assert (await gate_fixture.about(spec(tier=Tier.SENSITIVE), policy)).decided_by == "rule"
    assert (await gate_fixture.about(spec(tier=Tier.DANGEROUS), policy)).decision is Decision.DENY
    assert gate_fixture.asked == 1


@pytest.mark.proves("VW3")
@pytest.mark.parametrize(
    ("policy", "decided_by"),
    [
        (replace(WATCHED, rules=(ToolRule("look", Decision.DENY),)), "rule"),
        (replace(WATCHED, roles=(("look", frozenset({"admin"})),)), "role"),
        (replace(WATCHED, destinations=()), "destination"),
        (replace(WATCHED, rate_limits=RateLimits(by_tool=(("look", (RateLimit(1, 60.0),)),))), "rate-limit"),
    ],
)
async def test_what_a_rule_denies_the_observer_is_not_asked_about(policy: GatePolicy, decided_by: str) -> None:
    flow = DataFlow(effects=frozenset({Effect.SEND}))
    for tier in (Tier.SENSITIVE, Tier.DANGEROUS):
        gate_fixture = GateFixture([verdict("approve")])
        await gate_fixture.about(spec(flow=flow), policy)  # uses up the rate limit
        judged = await gate_fixture.about(spec(tier=tier, flow=flow), policy)
        assert (judged.decision, judged.decided_by, gate_fixture.asked) == (Decision.DENY, decided_by, 0)


@pytest.mark.proves("T-approval-modes")
async def test_a_tool_runs_freely_or_asks_or_goes_by_rules_and_a_default_holds_for_the_others() -> None:
    policy = GatePolicy(
        modes=ToolModes(
            by_tool=(("free", ToolMode.RUN), ("asked", ToolMode.ASK), ("ruled", ToolMode.RULES)), default=ToolMode.ASK
        ),
        rules=(ToolRule("asked", Decision.APPROVE), ToolRule("[ro]*", Decision.APPROVE, {"q": "yes"})),
    )

    async def judged(name: str, q: str) -> Decision:
        return (await GateFixture().about(spec(name), policy, q=q)).decision

    assert await judged("free", "no") is Decision.APPROVE
    assert await judged("asked", "yes") is Decision.ASK
    assert await judged("ruled", "yes") is Decision.APPROVE
    assert await judged("ruled", "no") is Decision.ASK
    assert await judged("other", "yes") is Decision.APPROVE
    assert await judged("other", "no") is Decision.ASK
    denied = GatePolicy(modes=ToolModes(by_tool=(("look", ToolMode.ASK),)), rules=(ToolRule("look", Decision.DENY),))
    assert (await GateFixture().about(spec(), denied)).decision is Decision.DENY


@pytest.mark.proves("T-approval-timeout")
async def test_a_rule_says_who_is_asked_and_silence_never_approves_what_is_dangerous() -> None:
    approval = ApprovalRule(Deciders.QUORUM, "admin", 3, timeout_s=60.0, grant_on_timeout=True)
    policy = GatePolicy(rules=(ToolRule("look", Decision.ASK, approval=approval),))
    assert (await GateFixture().about(spec(), policy)).rule == approval
    sure = replace(approval, grant_on_timeout=False)
    assert (await GateFixture().about(spec(tier=Tier.DANGEROUS), policy)).rule == replace(sure, role="owner")
    assert (await GateFixture().about(spec(destructive=True), policy)).rule == sure
    remembering = spec(flow=DataFlow(effects=frozenset({Effect.MEMORY})))
    assert (await GateFixture().about(remembering, policy, at=scope(ANA, Taint.WEB))).rule == sure
    assert (await GateFixture().about(remembering, policy)).rule == approval


@pytest.mark.proves("T-approval-timeout")
async def test_where_silence_approves_it_approves_nothing_that_could_do_harm() -> None:
    silent = ApprovalRule(grant_on_timeout=True)
    policy = replace(
        WATCHED,
        rules=(ToolRule("look", Decision.ASK),),
        approval=silent,
        owners=replace(silent, deciders=Deciders.ROLE),
    )

    async def is_granted(tool: ToolSpec, at: CallScope | None = None, *, opinion: str = "") -> bool:
        judged = await GateFixture([verdict(opinion)] if opinion else []).about(tool, policy, at=at)
        assert judged.decision is Decision.ASK and judged.rule is not None
        return judged.rule.grant_on_timeout

    assert await is_granted(spec())
    assert not await is_granted(spec(tier=Tier.DANGEROUS), opinion="approve")
    assert not await is_granted(spec(destructive=True))
    assert not await is_granted(spec(flow=DataFlow(effects=frozenset({Effect.MEMORY}))), scope(ANA, Taint.WEB))
    assert not await is_granted(spec(tier=Tier.SENSITIVE))
    assert not await is_granted(spec(tier=Tier.SENSITIVE), opinion="escalate")


@pytest.mark.proves("TW8")
async def test_where_a_rule_asks_an_owner_decides_about_tier_3_whatever_the_observer_said() -> None:
    policy = replace(WATCHED, rules=(ToolRule("look", Decision.ASK),))
    for tier, deciders in ((Tier.SENSITIVE, Deciders.REQUESTER), (Tier.DANGEROUS, Deciders.ROLE)):
        judged = await GateFixture([verdict("approve")]).about(spec(tier=tier), policy)
        assert judged.decision is Decision.ASK and judged.rule is not None
        assert (judged.rule.deciders, judged.rule.role) == (deciders, "owner")


@pytest.mark.proves("TW8")
async def test_a_tool_may_demand_a_role_of_the_one_who_asks() -> None:
    policy = GatePolicy(roles=(("look", frozenset({"admin", "role:9"})),))
    denied = await GateFixture().about(spec(), policy)
    assert (denied.decision, denied.reason) == (Decision.DENY, "'look' is for admin or role:9 only")
    for role in ("admin", "role:9", "owner"):
        allowed = scope(replace(ANA, roles=frozenset({"member", role})))
        assert (await GateFixture().about(spec(), policy, at=allowed)).decision is Decision.APPROVE


OF_ANA = Principal(PrincipalKind.SCHEDULE, name_schedule("tea", ANA.key, "life_1"), "tea")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ((ToolRule("look", Decision.DENY, principals=frozenset({ANA.key})),), Decision.DENY),
        ((ToolRule("look", Decision.ASK, roles=frozenset({"member"})),), Decision.ASK),
        ((ToolRule("look", Decision.DENY, roles=frozenset({"role:5"})),), Decision.DENY),
        ((ToolRule("look", Decision.DENY, principals=frozenset({"platform_user:discord:2"})),), Decision.APPROVE),
        ((ToolRule("look", Decision.DENY, principals=frozenset({"schedule:tea"})),), Decision.APPROVE),
    ],
    ids=["by name", "as a member", "by a role that nobody knows of", "somebody else", "the schedule of the operator"],
)
async def test_a_rule_about_a_person_holds_for_the_runs_of_their_schedules(
    rules: tuple[ToolRule, ...], expected: Decision
) -> None:
    judged = await GateFixture().about(spec(), GatePolicy(rules=rules), at=scope(OF_ANA))
    assert judged.decision is expected


async def test_a_rule_for_schedules_allows_a_persons_schedule_nothing_that_no_rule_allows_the_person() -> None:
    every = ToolRule("look", Decision.APPROVE, principals=frozenset({"schedule:*"}))
    ana, tool = ToolRule("look", Decision.APPROVE, principals=frozenset({ANA.key})), spec(tier=Tier.SENSITIVE)
    of_operator = Principal(PrincipalKind.SCHEDULE, "tea", "tea")
    for rules, who, expected in (
        ((every,), of_operator, Decision.APPROVE),
        ((every,), OF_ANA, Decision.ASK),
        ((every, ana), OF_ANA, Decision.APPROVE),
    ):
        assert (await GateFixture().about(tool, GatePolicy(rules=rules), at=scope(who))).decision is expected


async def test_the_roles_of_the_owner_of_a_schedule_are_those_that_the_platform_tells() -> None:
    fixture, platform, accounts = GateFixture(), MemoryPlatform(), ConnectedAccounts()
    accounts.add(MemoryChannel(platform, AgentName("ada")))
    members = MemberDirectory(fixture.store, accounts, fixture.clock, "discord")
    fixture.policy_engine = PolicyEngine(members=members)
    policy = GatePolicy(rules=(ToolRule("look", Decision.DENY, roles=frozenset({"role:5"})),))
    for role, expected in (("6", Decision.APPROVE), ("5", Decision.DENY)):
        platform.add_person("1", "Ana", roles=[role])
        fixture.clock.advance(minutes=1)
        assert (await fixture.about(spec(), policy, at=scope(OF_ANA))).decision is expected


async def test_a_person_cannot_use_a_tool_oftener_by_way_of_schedules() -> None:
    fixture, policy = GateFixture(), GatePolicy(rate_limits=RateLimits(by_tool=(("look", (RateLimit(1, 60.0),)),)))
    again = replace(OF_ANA, id=name_schedule("more", ANA.key, "life_2"))
    judged = [(await fixture.about(spec(), policy, at=scope(who))).decision for who in (OF_ANA, again, ANA)]
    assert judged == [Decision.APPROVE, Decision.DENY, Decision.DENY]


# --- rates -----------------------------------------------------------------------------------------------------------


@pytest.mark.proves("V18", "X-rate-limit")
async def test_the_rate_limit_slides_and_refused_calls_do_not_count() -> None:
    gate_fixture, policy = GateFixture(), GatePolicy(rate_limits=RateLimits(by_tool=(("look", (RateLimit(2, 60.0),)),)))

    async def judged() -> str:
        return (await gate_fixture.about(spec(tier=Tier.LIMITED), policy)).decided_by

    assert [await judged(), await judged(), await judged()] == ["tier-1", "tier-1", "rate-limit"]
    gate_fixture.clock.advance(59)
    assert await judged() == "rate-limit"
    gate_fixture.clock.advance(1)
    assert await judged() == "tier-1"


@pytest.mark.proves("V18")
async def test_tier_1_goes_by_rules_and_by_60_calls_a_minute_where_no_limit_is_written() -> None:
    gate_fixture, tool = GateFixture(), spec(tier=Tier.LIMITED)
    assert [(await gate_fixture.about(tool)).decided_by for _ in range(61)] == [*["tier-1"] * 60, "rate-limit"]
    gate_fixture.clock.advance(59)
    assert (await gate_fixture.about(tool)).decided_by == "rate-limit"
    gate_fixture.clock.advance(1)
    assert (await gate_fixture.about(tool)).decided_by == "tier-1"
    ruled = GatePolicy(rules=(ToolRule("look", Decision.DENY, {"q": "no"}),))
    assert (await gate_fixture.about(tool, ruled, q="no")).decision is Decision.DENY
    assert (await gate_fixture.about(tool, ruled, q="yes")).decision is Decision.APPROVE


@pytest.mark.proves("V18")
async def test_a_rate_limit_that_the_owner_wrote_holds_for_a_harmless_tool_too() -> None:
    gate_fixture, policy = GateFixture(), GatePolicy(rate_limits=RateLimits(by_tool=(("lo*", (RateLimit(1, 60.0),)),)))

    async def judged(name: str) -> str:
        return (await gate_fixture.about(spec(name), policy)).decided_by

    assert [await judged("look"), await judged("look")] == ["tier-0", "rate-limit"]
    assert {await judged("other") for _ in range(200)} == {"tier-0"}


# --- destinations ----------------------------------------------------------------------------------------------------

SENDER = spec("send", flow=DataFlow(effects=frozenset({Effect.SEND}), destinations=("to",)))


@pytest.mark.parametrize("to", ["", None, "10", "<#10>", "77", "<#77>", "https://api.example.org/x", "ops@example.org"])
async def test_a_tool_sends_into_the_conversation_and_to_listed_places(to: str | None) -> None:
    policy = GatePolicy(destinations=("discord:77", "*.example.org", "*@example.org"))
    assert (await GateFixture().about(SENDER, policy, to=to)).decision is Decision.APPROVE
    assert (await GateFixture().about(SENDER, policy)).decision is Decision.APPROVE


@pytest.mark.parametrize(
    "to",
    [
        "78",
        "#general",
        "https://example.org.evil/x",
        "https://evil/?a.example.org",
        "https://evil\\@api.example.org/x",
        "evil\\ops@example.org",
        "ops@evil",
        ["10", "78"],
        5,
    ],
)
async def test_a_tool_sends_nowhere_else(to: object) -> None:
    policy = GatePolicy(destinations=("discord:77", "*.example.org", "*@example.org"))
    judged = await GateFixture().about(SENDER, policy, to=to)  # pyright: ignore[reportArgumentType]
    assert (judged.decision, judged.decided_by) == (Decision.DENY, "destination")


async def test_a_tool_that_does_not_say_where_it_sends_may_send_anywhere() -> None:
    blind = replace(SENDER, flow=replace(SENDER.flow, destinations=()))
    assert (await GateFixture().about(blind, GatePolicy(destinations=()))).decided_by == "destination"
    assert (await GateFixture().about(blind, GatePolicy())).decision is Decision.APPROVE
    assert (await GateFixture().about(blind, GatePolicy(), at=scope(ANA, Taint.WEB))).decided_by == "taint"


# --- taint -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", list(Taint))
@pytest.mark.parametrize(
    "tool",
    [
        spec(flow=DataFlow(effects=frozenset({Effect.MEMORY}))),
        spec(flow=DataFlow(effects=frozenset({Effect.SCHEDULE}))),
        spec(flow=DataFlow(effects=frozenset({Effect.REVEAL}))),
        spec(tier=Tier.DANGEROUS),
    ],
)
async def test_after_foreign_text_a_human_decides_about_what_others_could_gain_from(
    label: Taint, tool: ToolSpec
) -> None:
    gate_fixture = GateFixture([verdict("approve")])
    assert (await gate_fixture.about(tool)).decision is Decision.APPROVE
    judged = await gate_fixture.about(tool, at=scope(ANA, label))
    assert (judged.decision, judged.decided_by) == (Decision.ASK, "taint")
    nested = await gate_fixture.about(tool, at=scope(trail=CallTrail(frozenset({label}))))
    assert nested.decided_by == "taint"
    trusting = replace(WATCHED, trusted=frozenset({label}))
    assert (await gate_fixture.about(tool, trusting, at=scope(ANA, label))).decision is Decision.APPROVE


async def test_after_foreign_text_a_tool_may_still_answer_here_but_not_send_elsewhere() -> None:
    tainted = scope(ANA, Taint.WEB)
    assert (await GateFixture().about(SENDER, at=tainted)).decision is Decision.APPROVE
    assert (await GateFixture().about(SENDER, at=tainted, to="10")).decision is Decision.APPROVE
    elsewhere = await GateFixture().about(SENDER, at=tainted, to="78")
    assert (elsewhere.decision, elsewhere.decided_by) == (Decision.ASK, "taint")
    known = GatePolicy(destinations=("discord:78",))
    assert (await GateFixture().about(SENDER, known, at=tainted, to="78")).decision is Decision.APPROVE


RULES = st.builds(
    ToolRule,
    st.sampled_from(["*", "look", "l*", "other"]),
    st.sampled_from([Decision.APPROVE, Decision.DENY, Decision.ASK]),
    st.sampled_from([{}, {"q": "x"}, {"q": "("}, {"gone": ""}]),
    roles=st.sampled_from([frozenset[str](), frozenset({"owner"})]),
    approval=st.sampled_from([None, ApprovalRule(timeout_s=1.0, grant_on_timeout=True)]),
)
POLICIES = st.builds(
    GatePolicy,
    rules=st.lists(RULES, max_size=5).map(tuple),
    modes=st.builds(
        ToolModes,
        by_tool=st.lists(st.tuples(st.sampled_from(["*", "look"]), st.sampled_from(ToolMode)), max_size=3).map(tuple),
        default=st.sampled_from([ToolMode.RUN, ToolMode.ASK]),
    ),
    approval=st.just(ApprovalRule(grant_on_timeout=True)),
    destinations=st.sampled_from([None, (), ("*",)]),
    observer=st.just(WATCHED.observer),
)


@given(policy=POLICIES, taint=st.sets(st.sampled_from(Taint), min_size=1), is_owner=st.booleans())
async def test_no_order_of_rules_lets_a_tainted_dangerous_call_run_without_a_human(
    policy: GatePolicy, taint: set[Taint], is_owner: bool
) -> None:
    gate_fixture = GateFixture([verdict("approve")])
    at = scope(OWNER if is_owner else ANA, *taint)
    judged = await gate_fixture.about(spec(tier=Tier.DANGEROUS), policy, at=at, q="x")
    assert judged.decision is not Decision.APPROVE
    assert judged.rule is None or not judged.rule.grant_on_timeout


@given(policy=POLICIES, tier=st.sampled_from(Tier))
async def test_nothing_runs_above_tier_1_without_an_observer_a_rule_or_a_human(policy: GatePolicy, tier: Tier) -> None:
    judged = await GateFixture().about(spec(tier=tier), policy, q="x")
    if judged.decision is Decision.APPROVE:
        assert tier <= Tier.LIMITED or (tier is Tier.SENSITIVE and judged.decided_by == "rule")


# --- faults ----------------------------------------------------------------------------------------------------------


class FailingObserver:
    """An observer that fails in a way that nobody has thought of."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def review(self, case: GateCase, policy: GatePolicy) -> ObserverOpinion | None:
        raise self._error


class BrokenPolicy(GatePolicy):
    """Whatever is asked of it fails."""

    def __getattribute__(self, name: str) -> object:
        if name in BREAKS:
            raise BREAKS[name]
        return super().__getattribute__(name)


BREAKS: dict[str, Exception] = {}
PARTS = ["tier", "find_rule", "find_foreign", "find_roles", "find_rate_limits", "mode", "trusted"]


@pytest.mark.proves("V20", "E1", "P2")
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("origin", list(Origin))
async def test_a_fault_anywhere_in_the_gate_denies_whatever_the_call_comes_from(
    part: str, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BREAKS, part, ZeroDivisionError("secret detail"))
    judged = await GateFixture().about(spec(), BrokenPolicy(), origin=origin)
    assert (judged.decision, judged.decided_by) == (Decision.DENY, "gate-fault")
    assert "secret" not in judged.reason


@pytest.mark.proves("V20", "P2")
@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), MemoryError(), RecursionError(), TimeoutError()])
async def test_a_fault_of_the_observer_denies(error: Exception) -> None:
    engine = PolicyEngine(observer=FailingObserver(error))
    for tier in (Tier.SENSITIVE, Tier.DANGEROUS):
        judged = await engine.decide(spec(tier=tier), call(), scope(), WATCHED)
        assert (judged.decision, judged.decided_by) == (Decision.DENY, "gate-fault")


# --- the executor -----------------------------------------------------------------------------------------------------


@pytest.mark.proves("V19")
async def test_an_approved_call_runs_and_a_denied_one_gives_the_model_the_reason() -> None:
    for says, ran in ((verdict("approve"), 1), (verdict("deny", "it is too much"), 0)):
        gate_fixture, tools = GateFixture([says]), RecordingToolset([spec(tier=Tier.DANGEROUS)])
        gate = ToolExecutor(gate_fixture.clock, gate_fixture.policy_engine)
        outcome = await gate.run(BoundTool(tools.specs[0], tools), call(), scope(), WATCHED)
        assert len(tools.calls) == ran
        assert outcome.result.is_error is (ran == 0)
        if not ran:
            assert outcome.result.text.startswith("Denied: it is too much.")


@pytest.mark.proves("E1", "X-internal-calls", "TW1", "P2")
@pytest.mark.parametrize("origin", list(Origin))
async def test_where_nobody_can_be_asked_the_answer_is_no_and_says_so_whatever_the_call_comes_from(
    origin: Origin,
) -> None:
    tools = RecordingToolset([spec(tier=Tier.DANGEROUS)])
    gate = ToolExecutor(ManualClock())
    outcome = await gate.run(BoundTool(tools.specs[0], tools), call(origin=origin), scope(), GatePolicy())
    assert tools.calls == []
    assert outcome.verdict.decision is Decision.DENY
    assert outcome.result.is_error and "nobody can be asked" in outcome.result.text


@pytest.mark.proves("T17")
@pytest.mark.parametrize(("took_s", "told"), [(0.099, "done"), (0.1, "done\n[took 0.1 s]"), (90, "done\n[took 2 min]")])
async def test_a_result_tells_its_run_time_from_100_ms_on(took_s: float, told: str) -> None:
    clock = ManualClock()

    class SlowToolset(RecordingToolset):
        async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
            clock.advance(took_s)
            return await super().call(call, scope)

    tools = SlowToolset([spec()])
    outcome = await ToolExecutor(clock).run(BoundTool(tools.specs[0], tools), call(), scope(), GatePolicy())
    assert outcome.result.text == told


async def test_a_fault_of_a_tool_becomes_a_result_with_a_reference_and_without_internals() -> None:
    tools = RecordingToolset([spec()], error=ZeroDivisionError("secret detail"))
    outcome = await ToolExecutor(ManualClock()).run(BoundTool(tools.specs[0], tools), call(), scope(), GatePolicy())
    assert outcome.result.is_error
    assert "err_" in outcome.result.text and "secret" not in outcome.result.text


async def test_a_tool_sees_a_scope_that_is_one_deeper_and_names_the_chain() -> None:
    tools = RecordingToolset([spec()])
    await ToolExecutor(ManualClock()).run(BoundTool(tools.specs[0], tools), call(), scope(), GatePolicy())
    ((_, seen),) = tools.calls
    assert (seen.depth, seen.chain) == (1, ("look",))


JSON: st.SearchStrategy[JsonObject] = st.dictionaries(
    st.text(max_size=5),
    st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5),
    max_size=3,
)


@pytest.mark.filterwarnings("ignore:Possible .*set:FutureWarning")  # `re` about patterns such as [[a]: no harm here
@example(args={"a": "b"}, pattern="[[a]")
@given(args=JSON, pattern=st.text(max_size=5))
async def test_no_arguments_and_no_pattern_break_the_judge(args: JsonObject, pattern: str) -> None:
    policy = GatePolicy(rules=(ToolRule("look", Decision.DENY, dict.fromkeys(args, pattern)),))
    judged = await PolicyEngine().decide(spec(), call(args=args), scope(), policy)
    assert judged.decided_by in {"rule", "tier-0"}


# --- the administration ----------------------------------------------------------------------------------------------


async def test_tools_of_the_administration_are_for_admins_and_owners_in_turns_about_it_only() -> None:
    gate_fixture, tool = GateFixture(), spec(tier=Tier.HARMLESS, administration=True)
    admin = replace(ANA, roles=frozenset({"admin"}))
    for who in (admin, OWNER):
        assert (await gate_fixture.about(tool, at=scope(who, is_administration=True))).decision is Decision.APPROVE
        elsewhere = await gate_fixture.about(tool, at=scope(who))
        assert (elsewhere.decision, elsewhere.decided_by) == (Decision.DENY, "administration")
    for at in (scope(ANA, is_administration=True), scope(ANA), scope(admin, chain=("other",))):
        assert (await gate_fixture.about(tool, at=at)).decision is Decision.DENY
    rule = GatePolicy(rules=(ToolRule("*", Decision.APPROVE),))
    assert (await gate_fixture.about(tool, rule, at=scope(ANA, is_administration=True))).decision is Decision.DENY


def test_of_a_rule_for_unknown_roles_only_what_is_stricter_counts() -> None:
    def rule(decision: Decision, *roles: str) -> ToolRule:
        return ToolRule("post", decision, roles=frozenset(roles), reason=f"{decision} {roles}")

    deny, ask, approve = rule(Decision.DENY), rule(Decision.ASK), rule(Decision.APPROVE)
    mods_deny, mods_ask, mods_approve = (
        rule(each, "role:1") for each in (Decision.DENY, Decision.ASK, Decision.APPROVE)
    )
    for rules, expected in (
        ((mods_deny, approve), mods_deny),
        ((mods_ask, approve), mods_ask),
        ((mods_ask, deny), deny),
        ((mods_ask, ask), ask),
        ((mods_approve, ask), ask),
        ((mods_approve,), None),
        ((mods_ask, mods_deny, approve), mods_deny),
        ((approve, mods_deny), approve),  # the first rule that surely matches decides as ever
        ((), None),
    ):
        policy = GatePolicy(rules=rules)
        assert policy.find_strictest(call("post"), scope()) is expected

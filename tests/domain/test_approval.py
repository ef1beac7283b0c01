"""Whose word counts about a call that waits, what it means, and what a yes for an hour covers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.approval import (
    Approval,
    ApprovalChoice,
    ApprovalRequest,
    ApprovalRule,
    ApprovalStatus,
    AskerReach,
    Deciders,
    VoteOutcome,
    can_be_asked,
    combine_rules,
    decide_approval,
    describe_end,
    expire_approval,
    grant_covers,
    meets_rule,
    plan_grant,
    same_people,
)
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Taint, Tier

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PLACE = Place("discord", "1")
NOTHING: frozenset[Taint] = frozenset()


def person(name: str, *roles: str) -> Principal:
    return Principal(PrincipalKind.PLATFORM_USER, f"discord:{name}", name, frozenset(roles))


ANA, BEN = person("ana"), person("ben")
PEOPLE = [person(name, *roles) for name, roles in (("a", ()), ("b", ("judge",)), ("c", ("judge",)), ("d", ("owner",)))]
OPERATOR = Principal(PrincipalKind.LOCAL, "operator", "operator", frozenset({"owner"}))


def make_approval(rule: ApprovalRule | None = None, *, expires_in_s: float | None = 300) -> Approval:
    return Approval(
        id="apr_1",
        request=ApprovalRequest(
            turn_id=TurnId("t"),
            agent=AgentName("ada"),
            requester=ANA.key,
            place=PLACE,
            conversation_id=PLACE.conversation_id,
            tool="erase",
            args={"name": "x"},
            tier=Tier.SENSITIVE,
            reason="it destroys",
            preview="",
        ),
        rule=rule or ApprovalRule(),
        created_at=NOW,
        expires_at=None if expires_in_s is None else NOW + timedelta(seconds=expires_in_s),
    )


def with_request(approval: Approval, **changes: Any) -> Approval:
    return replace(approval, request=replace(approval.request, **changes))


@pytest.mark.parametrize(
    ("rule", "voter", "counts"),
    [
        (ApprovalRule(), ANA, True),
        (ApprovalRule(), BEN, False),
        (ApprovalRule(), person("eve", "owner", "admin"), False),
        (ApprovalRule(), OPERATOR, True),
        (ApprovalRule(people=frozenset({BEN.key})), BEN, True),
        (ApprovalRule(Deciders.ROLE, "admin"), ANA, False),
        (ApprovalRule(Deciders.ROLE, "admin"), person("x", "admin"), True),
        (ApprovalRule(Deciders.ROLE, "admin"), person("x", "owner"), True),
        (ApprovalRule(Deciders.ROLE, "owner"), person("x", "admin"), False),
        (ApprovalRule(Deciders.ROLE, "role:7"), person("x", "owner"), False),
        (ApprovalRule(Deciders.ROLE, "role:7"), person("x", "role:7"), True),
    ],
)
def test_a_vote_counts_only_of_the_people_that_the_rule_names(
    rule: ApprovalRule, voter: Principal, counts: bool
) -> None:
    ruling = decide_approval(make_approval(rule), voter, ApprovalChoice.ONCE, now=NOW)
    assert ruling.outcome is (VoteOutcome.DECIDED if counts else VoteOutcome.REFUSED)
    assert (ruling.approval.status is ApprovalStatus.APPROVED) == counts


def test_a_stranger_is_refused_also_when_all_is_decided() -> None:
    decided = decide_approval(make_approval(), ANA, ApprovalChoice.DENY, now=NOW).approval
    assert decide_approval(decided, BEN, ApprovalChoice.ONCE, now=NOW).outcome is VoteOutcome.REFUSED


def test_a_person_whom_the_rule_names_needs_no_quorum() -> None:
    rule = ApprovalRule(Deciders.QUORUM, "judge", 3, frozenset({BEN.key}))
    assert decide_approval(make_approval(rule), BEN, ApprovalChoice.ONCE, now=NOW).outcome is VoteOutcome.DECIDED


@pytest.mark.proves("T-approval-timeout")
def test_at_its_end_nothing_can_be_decided_any_more_and_silence_means_what_the_rule_says() -> None:
    late = decide_approval(make_approval(), ANA, ApprovalChoice.ONCE, now=NOW + timedelta(seconds=300))
    assert (late.outcome, late.approval.status) == (VoteOutcome.LATE, ApprovalStatus.EXPIRED)
    granted = expire_approval(make_approval(ApprovalRule(grant_on_timeout=True)))
    assert granted.status is ApprovalStatus.APPROVED
    assert describe_end(granted) == "approved, since nobody decided in time"
    assert granted.waited_s == 300
    for_ever = make_approval(expires_in_s=None)
    assert (
        decide_approval(for_ever, ANA, ApprovalChoice.ONCE, now=NOW + timedelta(days=900)).outcome
        is VoteOutcome.DECIDED
    )


@given(
    st.sampled_from(Deciders),
    st.integers(1, 3),
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(PEOPLE), st.sampled_from(ApprovalChoice), st.integers(0, 400)), max_size=8),
)
def test_what_is_decided_stays_and_nobody_is_counted_twice_or_without_right(
    deciders: Deciders, quorum: int, grants: bool, words: list[tuple[Principal, ApprovalChoice, int]]
) -> None:
    rule = ApprovalRule(deciders, "judge", quorum, grant_on_timeout=grants)
    approval = with_request(make_approval(rule), requester=PEOPLE[0].key)
    for voter, choice, after_s in words:
        before = approval
        ruling = decide_approval(approval, voter, choice, now=NOW + timedelta(seconds=after_s))
        approval = ruling.approval
        if before.status.is_final or ruling.outcome in (VoteOutcome.REFUSED, VoteOutcome.OVER):
            assert approval == before
        assert decide_approval(approval, voter, choice, now=NOW + timedelta(seconds=after_s)).approval == approval
        assert len(set(approval.voices)) == len(approval.voices)
        entitled = {PEOPLE[0].key} if deciders is Deciders.REQUESTER else {PEOPLE[1].key, PEOPLE[2].key}
        assert set(approval.voices) <= entitled
        if approval.status is ApprovalStatus.APPROVED and approval.decision.by != "timeout":
            assert len(approval.voices) >= (quorum if deciders is Deciders.QUORUM else 1)


@pytest.mark.proves("TW1", "X-approval-absent")
@pytest.mark.parametrize(
    ("rule", "reach", "watched", "can"),
    [
        (ApprovalRule(), AskerReach.NOBODY, True, False),
        (ApprovalRule(), AskerReach.CARD, False, True),
        (ApprovalRule(), AskerReach.WATCHER, True, True),
        (ApprovalRule(), AskerReach.WATCHER, False, False),
        (ApprovalRule(Deciders.ROLE), AskerReach.NOBODY, False, False),
        (ApprovalRule(people=frozenset({"x"})), AskerReach.NOBODY, False, False),
        (ApprovalRule(), AskerReach.WAITS, False, True),
        (ApprovalRule(Deciders.ROLE), AskerReach.WAITS, False, True),
        (ApprovalRule(), AskerReach.PRIVATE, False, True),
        (ApprovalRule(), AskerReach.OTHERS, False, False),
        (ApprovalRule(Deciders.ROLE), AskerReach.OTHERS, False, True),
        (ApprovalRule(people=frozenset({"x"})), AskerReach.ELSEWHERE, False, True),
    ],
)
def test_a_call_waits_only_where_the_asker_or_others_can_decide(
    rule: ApprovalRule, reach: AskerReach, watched: bool, can: bool
) -> None:
    assert can_be_asked(rule, reach, is_watched=watched) == can


@pytest.mark.proves("T-approval-discord")
def test_a_grant_for_any_arguments_is_not_for_what_foreign_text_may_have_chosen() -> None:
    approved = decide_approval(make_approval(), ANA, ApprovalChoice.HOUR, now=NOW).approval
    grant = plan_grant(approved, now=NOW)
    assert grant.expires_at - NOW == timedelta(hours=1)
    rule = approved.rule
    assert grant_covers(grant, {"name": "other"}, rule, is_exact=False, taint=NOTHING)
    assert not grant_covers(grant, {"name": "other"}, rule, is_exact=True, taint=NOTHING)
    assert not grant_covers(grant, {"name": "other"}, rule, is_exact=False, taint=frozenset({Taint.WEB}))


def test_a_grant_for_the_same_arguments_is_for_no_others_however_they_are_ordered() -> None:
    approval = with_request(make_approval(), args={"a": 1, "b": [2]}, is_exact=True)
    grant = plan_grant(approval, now=NOW)
    assert grant_covers(grant, {"b": [2], "a": 1}, approval.rule, is_exact=True, taint=frozenset({Taint.WEB}))
    assert not grant_covers(grant, {"b": [2], "a": 2}, approval.rule, is_exact=False, taint=NOTHING)


@pytest.mark.parametrize("is_exact", [False, True])
def test_a_grant_is_no_word_of_others_who_have_to_decide_about_the_next_call(is_exact: bool) -> None:
    approval = with_request(make_approval(), args={"a": 1}, is_exact=is_exact)
    grant = plan_grant(approval, now=NOW)
    assert grant_covers(grant, {"a": 1}, replace(approval.rule, timeout_s=0), is_exact=is_exact, taint=NOTHING)
    for others in (ApprovalRule(Deciders.ROLE), ApprovalRule(Deciders.QUORUM), ApprovalRule(people=frozenset({"x"}))):
        assert not grant_covers(grant, {"a": 1}, others, is_exact=is_exact, taint=NOTHING)


def test_rules_that_ask_the_same_people_are_alike_whatever_their_patience() -> None:
    usual = ApprovalRule()
    assert same_people(usual, replace(usual, timeout_s=0, role="other"))
    assert not same_people(usual, ApprovalRule(Deciders.ROLE))
    assert not same_people(ApprovalRule(Deciders.ROLE, "a"), ApprovalRule(Deciders.ROLE, "b"))
    assert not same_people(ApprovalRule(Deciders.QUORUM, quorum=2), ApprovalRule(Deciders.QUORUM, quorum=3))
    assert not same_people(usual, replace(usual, people=frozenset({"x"})))


ASKER, MEMBERS, ADMINS, OWNERS = ApprovalRule(), *(ApprovalRule(Deciders.ROLE, r) for r in ("member", "admin", "owner"))
TWO_ADMINS = ApprovalRule(Deciders.QUORUM, "admin", 2)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (ASKER, OWNERS, OWNERS),
        (ASKER, MEMBERS, ADMINS),
        (MEMBERS, ADMINS, ADMINS),
        (ADMINS, TWO_ADMINS, TWO_ADMINS),
        (OWNERS, TWO_ADMINS, ApprovalRule(Deciders.QUORUM, "owner", 2)),
        (TWO_ADMINS, replace(TWO_ADMINS, quorum=3), replace(TWO_ADMINS, quorum=3)),
        (ApprovalRule(Deciders.ROLE, "role:7"), ApprovalRule(Deciders.ROLE, "role:8"), OWNERS),
        (replace(OWNERS, people=frozenset({"x", "y"})), replace(OWNERS, people=frozenset({"y"})), None),
    ],
)
def test_of_two_rules_the_stricter_says_who_decides(
    one: ApprovalRule, other: ApprovalRule, both: ApprovalRule | None
) -> None:
    both = both or replace(OWNERS, people=frozenset({"y"}))
    assert same_people(combine_rules(one, other), both)
    assert same_people(combine_rules(other, one), both)
    assert meets_rule(both, one) and meets_rule(both, other)
    assert same_people(one, both) or not meets_rule(one, other)


def test_of_two_rules_silence_is_consent_only_where_both_say_so() -> None:
    silent = ApprovalRule(grant_on_timeout=True)
    assert combine_rules(silent, silent).grant_on_timeout
    assert not combine_rules(silent, ASKER).grant_on_timeout
    assert not combine_rules(ASKER, silent).grant_on_timeout

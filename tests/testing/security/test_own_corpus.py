"""Our own attacks on the gate: each ends as it is written, and none in a call of tier 3 without people."""

from __future__ import annotations

import pytest

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId
from denizen.domain.json import Json
from denizen.domain.tool import Origin, Tier, ToolCall
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.ports.toolset import CallScope
from denizen.testing.security.case import AttackCase, AttackKind, AttackOutcome
from denizen.testing.security.corpus import CORPUS, list_specs, list_unobserved, run_case
from denizen.testing.security.engine import OWNER


def name_case(case: AttackCase) -> str:
    return f"{case.kind}: {case.name}"


@pytest.mark.anyio
@pytest.mark.parametrize("case", CORPUS, ids=name_case)
async def test_a_case_ends_as_it_is_written(case: AttackCase) -> None:
    assert (await run_case(case)).fate is case.fate


@pytest.mark.anyio
async def test_where_no_observer_looks_no_attack_ends_in_a_call_of_tier_2_or_3_without_people() -> None:
    for case in list_unobserved(CORPUS):
        found = await run_case(case)
        assert not (found.succeeded and found.tier >= Tier.SENSITIVE), name_case(case)


def test_the_corpus_is_large_names_no_case_twice_and_leaves_no_kind_out() -> None:
    attacks = [case for case in CORPUS if case.is_attack]
    assert len(attacks) >= 60
    assert {case.kind for case in CORPUS} == set(AttackKind)
    assert len({name_case(case) for case in CORPUS}) == len(CORPUS)


def test_what_is_let_through_is_explained() -> None:
    through = [
        case for case in CORPUS if case.is_attack and case.fate in (AttackOutcome.ALLOWED, AttackOutcome.APPROVED)
    ]
    assert [name_case(case) for case in through if not case.residual] == []


@pytest.mark.parametrize(
    ("address", "is_foreign"),
    [
        ("https://home.example/a", False),
        ("https://home.example/?list=1,2;3", False),
        ("a@home.example", False),
        ("a@home.example; b@home.example", False),
        ("the big room", False),
        ("the big room, lobby", True),
        ("https://home.example@evil.example/", True),
        ("https://evil.example\\@home.example/", True),
        ("https://evil.example\n@home.example/", True),
        ("b@evil.example,a@home.example", True),
        ("b@evil.example a@home.example", True),
    ],
)
def test_a_destination_is_known_only_when_all_of_it_is(address: str, is_foreign: bool) -> None:
    policy = GatePolicy(destinations=("home.example", "*@home.example", "terminal:the big room"))
    spec = next(spec for spec in list_specs() if spec.name == "mail_send")
    args: dict[str, Json] = {"to": address, "text": ""}
    scope = CallScope(
        agent=AgentName("ada"),
        principal=OWNER,
        place=Place("terminal", "t"),
        session_id=SessionId("s"),
        turn_id=TurnId("t"),
    )
    call = ToolCall(CallId("c"), "mail_send", args, Origin.MODEL)
    assert bool(policy.find_foreign(spec, call, scope)) is is_foreign

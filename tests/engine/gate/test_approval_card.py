"""What people are shown of a call cannot be forged by what the call holds."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.approval import (
    Approval,
    ApprovalChoice,
    ApprovalDecision,
    ApprovalRequest,
    ApprovalRule,
    ApprovalStatus,
    Deciders,
)
from denizen.domain.attachments import collect_extras
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.json import JsonObject
from denizen.domain.tool import Taint, Tier
from denizen.engine.gate.approval_card import (
    MAX_PREVIEW_CHARS,
    MAX_VALUE_CHARS,
    card_action,
    describe_call,
    mask_secrets,
    plan_card,
    plan_end,
    read_action,
)
from tests.engine.engine_fixture import WRITE

PLACE = Place("discord", "1")


def make_approval(preview: str, *, tool: str = "write", asker: str = "Ana") -> Approval:
    now = datetime(2026, 11, 22, tzinfo=UTC)
    return Approval(
        id="apr_0123456789abcdef01234567",
        request=ApprovalRequest(
            turn_id=TurnId("t"),
            agent=AgentName("ada"),
            requester="x",
            requester_name=asker,
            place=PLACE,
            conversation_id=PLACE.conversation_id,
            tool=tool,
            args={},
            tier=Tier.SENSITIVE,
            reason="",
            preview=preview,
        ),
        rule=ApprovalRule(),
        created_at=now,
        expires_at=None,
    )


@given(st.text(max_size=400), st.text(max_size=80), st.text(max_size=300))
def test_nothing_leaves_the_code_block_or_adds_a_line_to_it(value: str, name: str, why: str) -> None:
    preview, decision = describe_call(WRITE, {name: value}, why=why, taint=()), ApprovalDecision(name=value, note=why)
    assert len(preview.splitlines()) == 3
    for content in (
        plan_card(make_approval(preview, tool=name, asker=value)),
        plan_end(replace(make_approval(preview, tool=name), status=ApprovalStatus.DENIED, decision=decision)),
    ):
        assert content.text.count("```") == 2
        assert len(content.text) <= 2000
        head, block, foot = content.text.split("```")
        assert block == f"text\n{preview.replace('`', 'ˋ')}\n"
        assert (head.count("\n"), foot.count("\n")) == (1, 1)
        assert not content.ping_users


def test_a_card_shows_arguments_reason_and_what_was_read_and_hides_secrets() -> None:
    preview = describe_call(
        WRITE,
        {"q": "a\nb", "options": {"api_key": "k-1", "list": [{"Password": "p"}]}},
        why="the owner\nwants it",
        taint=frozenset({Taint.WEB}),
    )
    assert preview == (
        "Writes something down.\n"
        '  q: "a\\nb"\n'
        '  options: {"api_key": "•••", "list": [{"Password": "•••"}]}\n'
        "Asked because the owner wants it.\n"
        "This answer has read web pages."
    )


def test_characters_that_turn_others_round_are_spelled_out_and_long_values_cut() -> None:
    preview = describe_call(WRITE, {"q": "\u202egnp.exe", "r": "x" * 900}, why="w", taint=())
    assert "\\u202egnp.exe" in preview
    assert max(map(len, preview.splitlines())) <= 300
    assert mask_secrets({"token": {"a": 1}}) == [("token", "•••")]


def test_no_number_and_length_of_arguments_hides_why_people_are_asked_or_that_something_is_not_shown() -> None:
    args: JsonObject = {f"{number}{'n' * 90}": "x" * 5000 for number in range(40)}
    preview = describe_call(WRITE, args, why="w" * 400, taint=frozenset(Taint))
    assert len(preview) <= MAX_PREVIEW_CHARS
    *_, more, why, read = preview.splitlines()
    assert re.fullmatch(r"  and \d+ more that are not shown", more)
    assert why.startswith("Asked because www")
    assert read.startswith("This answer has read documents")
    assert "… (4,897 more characters)" in preview
    assert "(1 more characters)" in describe_call(WRITE, {"q": "x" * (MAX_VALUE_CHARS - 6)}, why="w", taint=())


def test_a_card_is_short_enough_however_many_are_told_of_it() -> None:
    args: JsonObject = {f"{number}": "x" * 5000 for number in range(40)}
    approval = make_approval(
        describe_call(WRITE, args, why="w" * 400, taint=frozenset(Taint)), tool="t" * 200, asker="a" * 200
    )
    rule = ApprovalRule(
        Deciders.QUORUM, f"role:{10**20}", people=frozenset("p"), grant_on_timeout=True, timeout_s=86400.0
    )
    approval = replace(approval, rule=rule, expires_at=approval.created_at)
    owners = [str(10**19 + number) for number in range(50)]
    for card in (plan_card(approval, owners), plan_card(approval, is_orphan=True)):
        assert len(card.text) <= 2000
    assert plan_card(approval, owners).ping_users == frozenset(owners[:8])


def test_a_button_says_the_same_in_every_process_and_no_tool_can_make_one() -> None:
    approval = make_approval("x")
    for choice in ApprovalChoice:
        assert read_action(card_action(approval, choice)) == (choice, approval.id)
    assert read_action("nothing") is None
    rows = [{"buttons": [{"label": "Next", "value": "v", "action": card_action(approval, ApprovalChoice.ONCE)}]}]
    [content] = collect_extras(rows)
    assert [button.action for button in content.buttons] == [""]


@pytest.mark.proves("T-approval-discord")
def test_a_card_has_its_buttons_until_the_end() -> None:
    approval = make_approval("x")
    assert [button.asks_why for button in plan_card(approval).buttons] == [False, False, True]
    assert plan_end(replace(approval, status=ApprovalStatus.EXPIRED)).buttons == ()

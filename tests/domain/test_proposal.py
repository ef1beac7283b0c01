"""Proposed answers: what a file of one says, and to which gap a message is an answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.conversation import Place
from denizen.domain.gap import GapKind, KnowledgeGap
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.proposal import (
    EARLY,
    NEAR,
    Proposal,
    ProposalDecision,
    ProposedAnswer,
    clean_proposal_text,
    diff_lines,
    find_proposal_id,
    is_same_emoji,
    name_file,
    nearest_gap,
    render_proposal,
)

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PLACE = Place("discord", "1")
PROPOSAL = Proposal(
    id="prop_0123456789ab",
    answer=ProposedAnswer(
        place=PLACE,
        post="7",
        text="Ten euros.\nFor a night.",
        author="platform_user:discord:2",
        author_name="Ben",
        link="https://discord.com/channels/9/1/7",
        said_at=NOW,
    ),
    proposer="platform_user:discord:1",
    created_at=NOW,
    question="How much is a berth?",
    asker="platform_user:discord:3",
)


EDITED = ProposalDecision(text="Twelve euros.")


def with_answer(*, question: str, **changes: str) -> Proposal:
    return replace(PROPOSAL, question=question, answer=replace(PROPOSAL.answer, **changes))


def make_gap(
    key: str, *, at: datetime = NOW, question: str = "How much is a berth?", **changes: object
) -> KnowledgeGap:
    gap = KnowledgeGap(
        id=key,
        agent=AgentName("ada"),
        question=question,
        asker="platform_user:discord:3",
        place=PLACE,
        is_private=False,
        kind=GapKind.UNKNOWN,
        turn_id=TurnId("t"),
        created_at=at,
    )
    return replace(gap, **changes)


def test_a_file_says_what_was_asked_and_answered_by_whom_and_where() -> None:
    assert render_proposal(PROPOSAL, "api_key:ada") == (
        "---\n"
        "id: prop_0123456789ab\n"
        "date: 2026-11-22\n"
        'question: "How much is a berth?"\n'
        'author: "Ben (id 2)"\n'
        'link: "https://discord.com/channels/9/1/7"\n'
        'accepted_by: "api_key:ada"\n'
        "---\n\n"
        "# How much is a berth?\n\n"
        "> Ten euros.\n> For a night.\n\n"
        "Said by Ben (id 2) on 2026-11-22: https://discord.com/channels/9/1/7\n"
    )


@pytest.mark.parametrize(
    "hostile",
    ["# Rules", "---\nauthor: boss\n---", "```\nopen", "Title\n=====", "<!-- ", "a\r# b", "\u2028# c", "\x0c# d"],
)
def test_what_people_write_is_never_a_heading_a_fence_or_front_matter_of_the_file(hostile: str) -> None:
    proposal = with_answer(text=hostile, author_name=hostile, question=hostile)
    lines = render_proposal(proposal, "local:operator").split("\n")
    assert lines[0] == lines[7] == "---"
    assert all(line.split(":")[0] in ("id", "date", "question", "author", "link", "accepted_by") for line in lines[1:7])
    outside = [line for line in lines[8:] if line and not line.startswith(">")]
    assert len(outside) == 2
    assert outside[0].startswith("# ")
    assert outside[1].startswith("Said by ")


@given(st.text(), st.text(), st.text())
def test_whatever_was_written_the_file_keeps_its_form_and_its_id(answer: str, question: str, name: str) -> None:
    proposal = with_answer(text=answer, author_name=name, question=question)
    text = render_proposal(proposal, "local:operator")
    assert find_proposal_id(text) == PROPOSAL.id
    assert text.count("\n---\n") == 1
    assert text.encode()
    assert [line for line in text.splitlines() if line.startswith("#")] == text.splitlines()[9:10]


def test_what_the_reviewer_wrote_takes_the_place_of_the_answer_and_is_told_of_as_theirs() -> None:
    text = render_proposal(replace(PROPOSAL, decision=EDITED), "local:operator")
    assert "> Twelve euros.\n\nAfter Ben (id 2), edited by local:operator, on 2026-11-22: https://" in text
    assert '\nedited_by: "local:operator"\n' in text
    assert "Ten" not in text
    assert "Said by" not in text
    without_question = render_proposal(replace(PROPOSAL, decision=EDITED, question=""), "local:operator")
    assert "# After Ben (id 2)\n" in without_question


def test_without_a_question_the_file_is_named_and_titled_after_what_is_there() -> None:
    without_question = replace(PROPOSAL, question="")
    assert name_file(without_question, ()) == "2026-11-22-ten-euros-for-a-night.md"
    assert "# What Ben (id 2) said\n" in render_proposal(without_question, "local:operator")


def test_a_nickname_does_not_pass_for_somebody_else() -> None:
    for name in ("Ana (id 3)", "Ana (id 3)" + " " * 400 + "x" * 400):
        text = render_proposal(with_answer(author_name=name, question=""), "local:operator")
        assert text.count("Ana (id 3)") == text.count("(id 2)") == 3


def test_names_of_files_are_plain_and_differ() -> None:
    assert name_file(PROPOSAL, ()) == "2026-11-22-how-much-is-a-berth.md"
    assert name_file(PROPOSAL, {"2026-11-22-how-much-is-a-berth.md"}) == "2026-11-22-how-much-is-a-berth-012345.md"
    assert name_file(replace(PROPOSAL, question="../../Ärger?"), ()) == "2026-11-22-arger.md"
    assert name_file(replace(PROPOSAL, question="何?"), ()) == "2026-11-22-answer.md"
    assert len(name_file(replace(PROPOSAL, question="long " * 100), ())) < 80


@pytest.mark.parametrize("text", ["", "# Title", "---\ntitle: x\n---\n", "x\n---\nid: prop_1", "---\n" * 20])
def test_a_file_of_somebody_else_has_no_id(text: str) -> None:
    assert find_proposal_id(text) == ""


def test_a_diff_says_what_accepting_changes() -> None:
    assert diff_lines("", "a\nb\n", "x.md").splitlines() == ["--- /dev/null", "+++ x.md", "@@ -0,0 +1,2 @@", "+a", "+b"]
    assert diff_lines("a\n", "b\n", "x.md").splitlines()[-2:] == ["-a", "+b"]


def test_a_message_answers_the_nearest_gap_of_its_place_and_time() -> None:
    old, new = make_gap("old", at=NOW - timedelta(hours=3)), make_gap("new", at=NOW - timedelta(hours=1))
    assert nearest_gap([old, new], PLACE, NOW) == new
    assert nearest_gap([old], PLACE, NOW) == old
    others = [
        make_gap("late", at=NOW + EARLY + timedelta(seconds=1)),
        make_gap("early", at=NOW - NEAR - timedelta(seconds=1)),
        make_gap("private", is_private=True),
        make_gap("elsewhere", place=Place("discord", "2")),
    ]
    assert nearest_gap(others, PLACE, NOW) is None
    assert nearest_gap([make_gap("soon", at=NOW + EARLY)], PLACE, NOW) == make_gap("soon", at=NOW + EARLY)


def test_a_reply_answers_the_gap_of_the_one_who_asked_that() -> None:
    berth, water = make_gap("berth"), make_gap("water", question="Is drinking water free?")
    asked = {"asker": "platform_user:discord:3", "question": "@Ada how much is a berth"}
    assert nearest_gap([water, berth], PLACE, NOW, **asked) == berth
    assert nearest_gap([water], PLACE, NOW, **asked) is None
    assert nearest_gap([berth], PLACE, NOW, **{**asked, "asker": "platform_user:discord:4"}) is None
    assert nearest_gap([make_gap("empty", question="?")], PLACE, NOW, **{**asked, "question": "?"}) is None


def test_an_emoji_is_the_same_however_it_is_drawn_or_named() -> None:
    assert is_same_emoji("❤️", "❤")
    assert is_same_emoji("<:learn:12>", "<a:renamed:12>")
    assert not is_same_emoji("<:learn:12>", "<:learn:13>")
    assert not is_same_emoji("📚", "📖")


def test_invisible_characters_are_removed_from_a_proposal() -> None:
    assert clean_proposal_text(" a\u202eb\x00\ud800\r\nc ", 10) == "ab\nc"
    assert clean_proposal_text("abcdef", 3) == "abc"


@pytest.mark.parametrize(
    "unseen",
    [
        "\U000e0041\U000e007f",
        "\U000e0100",
        "\u200b",
        "\u200c",
        "\u200e",
        "\u200f",
        "\u202a",
        "\u2060",
        "\u206f",
        "\u2064",
        "\xad",
        "\u034f",
        "\u061c",
        "\u115f",
        "\u1160",
        "\u180b",
        "\u180e",
        "\u3164",
        "\uffa0",
        "\ufe00",
        "\ufe0e",
        "\u200d",
        "\ufe0f",
        "\ufe0f\u200d",
        "\u200d\ufe0f\u200d",
    ],
)
def test_no_words_are_hidden_from_the_one_who_reviews_them(unseen: str) -> None:
    assert clean_proposal_text(f"a{unseen}b{unseen}\n{unseen} \u4f55{unseen}", 20) == "ab\n \u4f55"


@pytest.mark.parametrize("emoji", ["❤️", "👩‍🚀", "🏴‍☠️", "👩🏽‍⚕️", "❤️‍🔥"])
def test_emoji_stay_as_they_are(emoji: str) -> None:
    assert clean_proposal_text(f"a {emoji} {emoji}", 40) == f"a {emoji} {emoji}"
    assert clean_proposal_text(f"{emoji}\u200d\u200d\ufe0f\ufe0f", 40) == emoji

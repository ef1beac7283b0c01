"""For an answer that names no source, the line is found that it plainly says again, and none otherwise."""

from __future__ import annotations

import pytest

from denizen.domain.attribution import ReadLines, find_attributions
from denizen.domain.claims import DocumentLines

RULES = DocumentLines(
    "docs/library/rules.md",
    [
        "# Rules",
        "",
        "Board games are lent for 7 days and cannot be renewed.",
        "On Thursdays the reading room stays open until 22:00.",
        "New volunteers are shown around by Tadeusz.",
        "Filament for the 3D printer costs 6 cents a gram.",
        "In case of fire the assembly point is the fountain in Mill Lane.",
        "A lost card is replaced for 3 euros.",
    ],
)
READ = [ReadLines(RULES, range(1, 9))]


def named(answer: str, question: str, read: list[ReadLines] = READ) -> list[str]:
    return [str(each.ref) for each in find_attributions(answer, read, question)]


@pytest.mark.parametrize(
    ("answer", "question", "line"),
    [
        ("Board games are lent for seven days.", "How long can I borrow a board game?", 3),
        ("You can borrow a board game for 7 days; it cannot be renewed.", "How long can I have a board game?", 3),
        ("You can borrow a board game for 7 days.", "How long can I borrow a board game?", 3),
        ("A new card costs 3 euros.", "How much does a new card cost when I lost mine?", 8),
        ("Until 22:00.", "Until when is the reading room open on Thursdays?", 4),
        ("Tadeusz", "Who shows new volunteers around?", 5),
        ("The filament costs 6 cents a gram.", "What does filament for the 3D printer cost?", 6),
        (
            "Hello! The assembly point is the fountain in Mill Lane. Anything else?",
            "Where do we go in case of fire?",
            7,
        ),
    ],
)
def test_an_answer_that_says_a_line_again_is_from_there(answer: str, question: str, line: int) -> None:
    assert named(answer, question) == [f"docs/library/rules.md:{line}"]


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("Hello! How can I help you?", "Hello!"),
        ("I do not know. I did not find the answer in my sources.", "What is the password of the guest wifi?"),
        ("The documents do not say how long board games are lent.", "How long can I borrow a board game?"),
        ("Board games are lent for 14 days.", "How long can I borrow a board game?"),
        ("Until 21:00.", "Until when is the reading room open on Thursdays?"),
        ("Odile", "Who shows new volunteers around?"),
        ("Paris is the capital of France.", "What is the capital of France?"),
        ("Are board games lent for 7 days and cannot be renewed?", "How long can I borrow a board game?"),
        ("```\nBoard games are lent for 7 days and cannot be renewed.\n```", "How long can I borrow a board game?"),
        ("Yes, on Thursdays.", "Is the reading room open on Thursdays?"),
    ],
)
def test_an_answer_that_does_not_plainly_come_from_a_line_names_none(answer: str, question: str) -> None:
    assert named(answer, question) == []


FEES = DocumentLines(
    "docs/fees.md",
    [
        "# Membership",
        "",
        "| Kind | Fee a month | Notes |",
        "|---|---|---|",
        "| Full | 28 € | |",
        "| Reduced | 18 € | students, pensioners |",
    ],
)


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        ("The reduced membership costs 18 € per month.", ["docs/fees.md:6"]),
        ("18 € a month.", ["docs/fees.md:6"]),
        ("The reduced membership costs 28 € per month.", []),
    ],
)
def test_a_row_of_a_table_is_read_with_its_headings(answer: str, lines: list[str]) -> None:
    assert named(answer, "What does the reduced membership cost?", [ReadLines(FEES, range(1, 7))]) == lines


def test_each_line_is_named_once_and_only_what_was_read() -> None:
    answer = "Board games are lent for 7 days. Yes, board games are lent for 7 days! Filament costs 6 cents a gram."
    asked = "How long can I have a board game, and what is the price of filament?"
    assert named(answer, asked) == ["docs/library/rules.md:3", "docs/library/rules.md:6"]
    assert named(answer, asked, [ReadLines(RULES, [6])]) == ["docs/library/rules.md:6"]
    assert named(answer, asked, []) == []

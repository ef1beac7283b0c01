"""A sentence is held against the lines that it cites: its numbers, its quotations, its names and its words."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from denizen.domain.citation import CitationFault
from denizen.domain.claims import CitedLines, DocumentLines, find_fault

TEXT = """# Harbour

A berth is ten euros a night.
Boats over 10 metres pay 14 euros.

## Water

Drinking water is *free* for all guests.
Power is 0.40 euros a kilowatt hour.

## Office

The office is open from 8:00 to 11:30.
Ask Birgitte or Anders there.
Keys cost a deposit of 20 euros.

## Events

The regatta takes place in June.
Live music is played in the sail loft.
"""
DOCUMENT = DocumentLines("docs/guide/harbour.md", TEXT.split("\n"))


def fault(claim: str, first: int, last: int = 0, asked: str = "") -> CitationFault | None:
    return find_fault(claim, [CitedLines(DOCUMENT, first, last or first)], asked)


@pytest.mark.parametrize(
    ("claim", "line", "asked"),
    [
        ("A berth costs 10 € a night", 3, ""),
        ("A berth costs 10 € a night, so 30 € for you", 3, "What do 3 nights cost?"),
        ("Bigger boats pay 4 euros more", 4, ""),
        ("40 cents buy one kilowatt hour", 9, ""),
        ("It opens at 8 in the morning for 3.5 hours", 13, ""),
        ("It opens at 8 am and closes at half past eleven", 13, ""),
        ("1. Ask Anders", 14, ""),
        ("A berth of 10 metres for 7 nights is 14 euros × 7 = 98 euros", 4, ""),
        ("A berth of 10 metres for 7 nights is 98 euros = 7 × 14 euros", 4, ""),
        ("Today, 24 November, a berth costs `10` euros", 3, ""),
        ("Run `pay --berth 7` for a berth of `10 euros`", 3, ""),
        ("No, it is not 25 euros", 3, "Is it 25 euros?"),
        ("As it says in section 3 on page 12, water is free", 8, ""),
        ("The deposit is 20 euros", 13, ""),  # two lines above
        ('It says "Drinking water is free for all guests"', 8, ""),
        ('It says "DRINKING WATER IS ... for all guests."', 8, ""),
        ('Water is "free"', 8, ""),
        ("Das Trinkwasser kostet nichts", 8, ""),
    ],
)
def test_what_the_lines_say_in_other_words_is_not_doubted(claim: str, line: int, asked: str) -> None:
    assert fault(claim, line, asked=asked) is None


@pytest.mark.parametrize(
    ("claim", "line", "doubt"),
    [
        ("A berth costs 12 euros", 3, CitationFault.OTHERWISE),
        ("A berth costs 10 euros, bigger boats pay 19", 4, CitationFault.OTHERWISE),
        ("Keys cost a deposit of two hundred and 30 euros", 15, CitationFault.OTHERWISE),
        ("It opens at 9 am", 13, CitationFault.OTHERWISE),
        ("A berth costs `12` euros", 3, CitationFault.OTHERWISE),
        ("A berth costs `12 euros`", 3, CitationFault.OTHERWISE),
        ("Today a berth costs 12 euros", 3, CitationFault.OTHERWISE),
        ("Today a berth costs €12", 3, CitationFault.OTHERWISE),
        ("A berth of 10 metres is 900 euros (10 x 14 = 140)", 4, CitationFault.OTHERWISE),
        ("A berth of 10 metres for 7 nights is 14 euros × 7 = 99 euros", 4, CitationFault.OTHERWISE),
        ("Ask Birgitte or Gustav there about keys and the deposit", 14, CitationFault.OTHERWISE),
        ("The regatta takes place in September", 20, CitationFault.OTHERWISE),
        ("Bigger boats pay 19 euros, twice as much", 4, CitationFault.OTHERWISE),
        ('It says "Drinking water costs one euro"', 8, CitationFault.NOT_SAID),
        ("Live music is played in the sail loft", 3, CitationFault.ELSEWHERE),
    ],
)
def test_a_number_a_name_a_quotation_or_words_that_stand_elsewhere_are_doubted(
    claim: str, line: int, doubt: CitationFault
) -> None:
    assert fault(claim, line) is doubt


def test_a_name_whose_number_differs_is_doubted() -> None:
    cited = [CitedLines(DocumentLines("docs/a.md", ["Requests are signed with HMAC-SHA256."]), 1, 1)]
    assert find_fault("Requests are signed with HMAC-SHA512", cited) is CitationFault.OTHERWISE
    assert find_fault("Requests are signed with SHA256", cited) is None


def test_a_figure_of_the_question_that_is_only_agreed_with_is_doubted() -> None:
    assert fault("Yes, it is 25 euros", 3, asked="It is 25 euros, right?") is CitationFault.OTHERWISE


@pytest.mark.parametrize(
    ("claim", "asked", "is_doubted"),
    [
        ("The fee is 900 euros for 2 years.", "Is the fee 900 euros?", True),
        ("No, the fee is not 900 euros but 4 euros.", "Is the fee 900 euros?", False),
        ("4 memberships cost 8 euros for 4 years.", "What do 4 memberships cost for 4 years?", False),
    ],
)
def test_a_figure_of_the_question_is_no_other_figure_of_the_lines(claim: str, asked: str, is_doubted: bool) -> None:
    fees = DocumentLines("docs/fees.md", ["The fee is 4 euros per 2 years."])
    assert (find_fault(claim, [CitedLines(fees, 1, 1)], asked) is CitationFault.OTHERWISE) is is_doubted


def test_the_lines_of_all_places_that_a_sentence_cites_count() -> None:
    berths, keys = CitedLines(DOCUMENT, 3, 3), CitedLines(DOCUMENT, 15, 15)
    claim = "A berth is 10 euros and a key 20 euros"
    assert find_fault(claim, [berths]) is CitationFault.OTHERWISE
    assert find_fault(claim, [berths, keys]) is None


def test_all_of_a_document_may_be_cited() -> None:
    assert find_fault("A berth is 10 euros, music is in the sail loft", [CitedLines(DOCUMENT)]) is None
    assert find_fault("A berth is 77 euros", [CitedLines(DOCUMENT)]) is CitationFault.OTHERWISE


@pytest.mark.parametrize(
    "claim", ["33 " * 133, "12 euros " * 8000, "1\n" * 8000, "[1," * 8000, "a." * 16_000, '"a b c d e f" ' * 1000]
)
def test_the_work_stays_small_whatever_a_claim_and_its_lines_are_made_of(claim: str) -> None:
    count = 0

    def note(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    cited = [CitedLines(DocumentLines("docs/a.md", [("12 euros " * 12)[:100]] * 300), 1, 300)]
    sys.setprofile(note)
    try:
        find_fault(claim, cited)
    finally:
        sys.setprofile(None)
    assert count < 1_500_000


def test_what_stands_behind_the_longest_claim_is_not_judged() -> None:
    assert fault("A berth costs 10 euros" + " now" * 300 + " or 77 euros", 3) is None
    assert fault("A berth costs 10 euros" + " now" * 200 + " or 77 euros", 3) is CitationFault.OTHERWISE

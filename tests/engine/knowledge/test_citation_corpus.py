"""Over a corpus of answers next to nothing false is shown, and next to nothing right is taken out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.citation_corpus import (
    BARE_FORMS,
    BEYOND,
    DOCUMENTS,
    FORMS,
    HAND_WRITTEN,
    Case,
    list_cases,
    list_generated,
)
from benchmarks.citations import CitationRates, judge, show
from denizen.domain.agent import CitationFormat
from denizen.domain.cited_text import UNPROVED

pytestmark = pytest.mark.anyio

MAX_SHOWN, MAX_REMOVED = 0.01, 0.03


async def test_on_the_corpus_under_one_percent_of_the_false_are_shown_and_under_three_of_the_right_removed() -> None:
    cases = list_cases()
    assert len(cases) > 300
    assert len(HAND_WRITTEN) > 200
    rates = CitationRates()
    for case in cases:
        rates.add(case, await judge(case))
    assert rates.wrong > 150
    assert rates.right > 150
    assert rates.shown_share < MAX_SHOWN, [case.text for case in rates.shown]
    assert rates.removed_share < MAX_REMOVED, [case.text for case in rates.removed]


async def test_what_is_said_to_be_beyond_the_rule_is() -> None:
    assert [await judge(case) for case in BEYOND] == ["+"] * len(BEYOND)


async def test_people_see_a_mark_for_each_citation_that_is_not_proved_and_for_no_other() -> None:
    for case in list_cases():
        assert (await show(case)).count(UNPROVED) == (await judge(case)).count("-"), case.text


_AROUND = ["{}", "**{}**", "> {}", "- {}", "1. {}", "| a | {} |", "({})", "{}\n\nSo.", "So it is. {} And more."]
_PATH = DOCUMENTS["board"][0]


@given(
    st.sampled_from([*FORMS, *BARE_FORMS]),
    st.sampled_from(_AROUND),
    st.sampled_from(["The budget is 90,000 kroner", "Nobody knows", "Das Budget beträgt 90.000 Kronen", "预算是九万"]),
    st.sampled_from(["", "Hello. ", "\n", "A berth is 180 kroner [docs/guide/harbour.md:7]. "]),
    st.sampled_from(CitationFormat),
)
@settings(max_examples=200, deadline=None)
async def test_no_way_to_write_the_place_of_a_document_that_was_not_read_is_shown_unmarked(
    form: str, around: str, said: str, before: str, style: CitationFormat
) -> None:
    text = before + around.format(form.format(said=said, path=_PATH, n=4))
    shown = await show(Case(text, "", "harbour"), style)
    assert _PATH not in shown
    assert UNPROVED in shown


@given(st.sampled_from([case for case in list_generated() if case.marks == "+"]), st.sampled_from(CitationFormat))
@settings(max_examples=100, deadline=None)
async def test_no_way_to_write_the_place_of_what_was_read_is_marked(case: Case, style: CitationFormat) -> None:
    assert UNPROVED not in await show(case, style)

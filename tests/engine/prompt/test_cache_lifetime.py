"""For how long a conversation is kept in a provider's cache, by the pauses between its turns (C22)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.engine.prompt.caching import LONG_S, SHORT_S, pauses_between, plan_keep_s

MINUTE = 60.0
QUICK, MIDDLE, LONG = 1 * MINUTE, 7 * MINUTE, 120 * MINUTE


@pytest.mark.proves("C22")
def test_a_steady_conversation_is_kept_for_five_minutes() -> None:
    assert plan_keep_s([]) == SHORT_S
    assert plan_keep_s([QUICK] * 30) == SHORT_S


@pytest.mark.proves("C22")
def test_one_with_pauses_of_some_minutes_is_kept_for_an_hour_from_the_first_on() -> None:
    assert [plan_keep_s([MIDDLE] * count) for count in range(4)] == [SHORT_S, LONG_S, LONG_S, LONG_S]


def test_a_single_pause_does_not_make_everything_be_written_for_an_hour_at_once() -> None:
    """It is cold then, and all of it would be dear; from the next turn on only what is new is."""
    steady = [QUICK] * 10
    assert plan_keep_s([*steady, MIDDLE]) == SHORT_S
    assert plan_keep_s([*steady, MIDDLE, QUICK]) == LONG_S


def test_one_pause_in_a_conversation_is_enough_since_the_longer_it_is_the_more_there_is_to_lose() -> None:
    assert plan_keep_s([QUICK, MIDDLE, *[QUICK] * 30]) == LONG_S


def test_longer_pauses_than_an_hour_are_no_reason_to_keep_anything_for_an_hour() -> None:
    assert plan_keep_s([LONG] * 12) == SHORT_S
    assert plan_keep_s([MIDDLE, MIDDLE, MIDDLE, QUICK, QUICK, LONG]) == SHORT_S


def test_pauses_go_from_the_end_of_a_turn_to_the_beginning_of_the_next() -> None:
    start = datetime(2026, 11, 1, tzinfo=UTC)
    at = [start + timedelta(seconds=seconds) for seconds in (0, 10, 70, 75, 74)]
    assert pauses_between([(at[0], at[1]), (at[2], at[3]), (at[4], at[4])]) == [60.0, 0.0]
    assert pauses_between([]) == []


def compute_cost(
    pauses: Sequence[float], rule: Callable[[Sequence[float]], float], prompt: int = 1500, turn: int = 220
) -> float:
    """Of a conversation with these pauses, where each turn adds `turn` tokens to a prompt that is always there."""
    units, kept, keep_s = 2.0 * prompt, 0, 0.0
    for number in range(len(pauses) + 1):
        is_warm = number > 0 and pauses[number - 1] <= keep_s
        keep_s = rule(pauses[:number])
        new = turn if is_warm else kept + turn
        units += 0.1 * (prompt + (kept if is_warm else 0)) + (1.25 if keep_s == SHORT_S else 2.0) * new
        kept += turn
    return units


@pytest.mark.parametrize(("pauses", "best"), [([QUICK] * 50, SHORT_S), ([MIDDLE] * 50, LONG_S), ([LONG] * 50, SHORT_S)])
def test_the_rule_costs_about_what_the_better_of_both_does(pauses: list[float], best: float) -> None:
    assert compute_cost(pauses, plan_keep_s) <= 1.05 * compute_cost(pauses, lambda _: best)


@given(st.lists(st.sampled_from([QUICK, MIDDLE, LONG]), min_size=20, max_size=60))
def test_no_rhythm_makes_the_rule_much_dearer_than_the_better_of_both(pauses: list[float]) -> None:
    better = min(compute_cost(pauses, lambda _: SHORT_S), compute_cost(pauses, lambda _: LONG_S))
    assert compute_cost(pauses, plan_keep_s) <= 1.6 * better

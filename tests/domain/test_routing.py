"""How much work a question takes: what an answer may say, and what belongs to the question before."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.agent import TurnLimits
from denizen.domain.routing import (
    MODELS,
    Complexity,
    PreviousRoute,
    Route,
    RoutedBy,
    is_follow_up,
    keep_route,
    max_calls,
    parse_route,
    route_from_json,
    route_to_json,
    scale_steps,
)
from tests.clock import NOON

ANSWER = {"complexity": "simple", "max_steps": 8, "model": "fast", "reason": "One lookup."}
LONG = PreviousRoute(Route.of(Complexity.COMPLEX, "a bug"), NOON, keep_s=300.0)


@pytest.mark.proves("S1")
@pytest.mark.parametrize(
    ("complexity", "steps", "model"),
    [("trivial", 4, "fast"), ("simple", 8, "fast"), ("moderate", 15, "balanced"), ("complex", 25, "quality")],
)
def test_a_complexity_stands_for_steps_and_a_model(complexity: str, steps: int, model: str) -> None:
    assert Route.of(Complexity(complexity), "why") == Route(Complexity(complexity), steps, model, "why")


@pytest.mark.proves("S2")
@pytest.mark.parametrize("steps", [1, 30])
def test_an_answer_within_its_limits_is_read(steps: int) -> None:
    route = parse_route({**ANSWER, "max_steps": steps, "reason": "x" * 200})
    assert route == Route(Complexity.SIMPLE, steps, "fast", "x" * 200)


@pytest.mark.proves("S2")
@pytest.mark.parametrize(
    "wrong",
    [
        {"max_steps": 0},
        {"max_steps": 31},
        {"max_steps": "8"},
        {"max_steps": True},
        {"max_steps": 7.5},
        {"model": "opus"},
        {"model": None},
        {"reason": "x" * 201},
        {"reason": " "},
        {"reason": 1},
        {"complexity": "hard"},
        {"complexity": None},
    ],
    ids=str,
)
def test_an_answer_outside_of_its_limits_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        parse_route({**ANSWER, **wrong})


@given(st.sampled_from(Complexity), st.integers(1, 100), st.sampled_from(MODELS), st.text(), st.sampled_from(RoutedBy))
def test_a_route_comes_back_from_json(
    complexity: Complexity, steps: int, model: str, reason: str, routed_by: RoutedBy
) -> None:
    route = Route(complexity, steps, model, reason, routed_by)
    assert route_from_json(route_to_json(route)) == route


@pytest.mark.proves("S-config-step-multiplier")
@pytest.mark.parametrize(
    ("steps", "multiplier", "expected"),
    [(15, 1.0, 15), (15, 0.5, 8), (25, 0.5, 13), (25, 3.0, 75), (4, 1.6, 6), (1, 0.5, 1), (90, 3.0, 100)],
)
def test_steps_are_multiplied_and_rounded_half_up(steps: int, multiplier: float, expected: int) -> None:
    assert scale_steps(steps, multiplier) == expected
    assert TurnLimits().max_steps_multiplier == 1.0


@pytest.mark.proves("S8")
def test_a_turn_has_two_tool_calls_fewer_than_steps() -> None:
    assert [max_calls(steps) for steps in (1, 2, 3, 4, 25)] == [1, 1, 1, 2, 23]


def test_one_or_two_words_after_a_longer_answer_are_a_follow_up() -> None:
    for said in ("yes", "Thanks!", "ok, do that", "да, пожалуйста", "好的,继续"):
        assert is_follow_up(said, LONG, NOON)
    for said in ("Why does the build fail on Windows?", "now do it for all files", "東京の明日の天気はどうですか"):
        assert not is_follow_up(said, LONG, NOON)
    assert keep_route(LONG).routed_by is RoutedBy.KEPT


def test_without_a_longer_answer_before_or_with_a_cold_cache_nothing_is_a_follow_up() -> None:
    assert not is_follow_up("yes", None, NOON)
    assert not is_follow_up("yes", replace(LONG, route=Route.of(Complexity.SIMPLE, "")), NOON)
    assert not is_follow_up("yes", LONG, NOON + timedelta(seconds=301))

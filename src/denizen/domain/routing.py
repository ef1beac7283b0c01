"""The complexity of a question, and the model and number of steps that follow from it. Pure.

`engine/loop/routing.py` asks a model for its opinion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, cast

from denizen.domain.json import JsonObject
from denizen.domain.message import Message, Role
from denizen.domain.record import record

MIN_STEPS, MAX_STEPS = 1, 30
"""The bounds of a routing answer."""
MOST_STEPS = 100
"""The most steps of a turn, whatever it is multiplied with."""
MIN_MULTIPLIER, MAX_MULTIPLIER = 0.5, 3.0
MAX_REASON_CHARS = 200

AUTO = "auto"
"""Stands in the configuration for a model that is chosen for each question."""
MODELS = ("fast", "balanced", "quality")
"""The aliases among which is chosen, the weakest first."""
USUAL = "balanced"

FOLLOW_UP_BYTES = 30
FOLLOW_UP_WORDS = 4
"""A longer text may be a question of its own. Counted in bytes of UTF-8, since some scripts say much with few
characters.
"""
FALLBACK_REASON = "no usable routing answer, so it counts as moderate"


class Complexity(StrEnum):
    """How hard a question is, as the router sorts it."""

    TRIVIAL = "trivial"
    SIMPLE = "simple"
    MODERATE = "moderate"
    COMPLEX = "complex"


class RoutedBy(StrEnum):
    """How a turn's route was found. FALLBACK: the router gave no usable answer."""

    ROUTER = "router"
    """A model sorted the question."""
    KEPT = "kept"
    """A follow-up: what holds for the question before it."""
    FALLBACK = "fallback"


@record
class Route:
    """`model` is an alias; `max_steps` those of this turn."""

    complexity: Complexity
    max_steps: int
    model: str
    reason: str
    routed_by: RoutedBy = RoutedBy.ROUTER

    @classmethod
    def of(cls, complexity: Complexity, reason: str) -> Route:
        """Returns the route for a complexity."""
        steps, model = _OF_COMPLEXITY[complexity]
        return cls(complexity, steps, model, reason)


_OF_COMPLEXITY: Mapping[Complexity, tuple[int, str]] = {
    Complexity.TRIVIAL: (4, "fast"),
    Complexity.SIMPLE: (8, "fast"),
    Complexity.MODERATE: (15, USUAL),
    Complexity.COMPLEX: (25, "quality"),
}

FALLBACK = replace(Route.of(Complexity.MODERATE, FALLBACK_REASON), routed_by=RoutedBy.FALLBACK)


@record
class PreviousRoute:
    """The route of the turn before in the same session, when that ended, and how long its prompt stays in the
    provider's cache from then on.
    """

    route: Route
    ended_at: datetime
    keep_s: float

    def is_warm(self, now: datetime) -> bool:
        return now - self.ended_at <= timedelta(seconds=self.keep_s)


def parse_route(answer: Mapping[str, Any]) -> Route:
    """A routing answer within its limits. Raises ValueError for any other."""
    steps, model, reason = answer.get("max_steps"), answer.get("model"), answer.get("reason")
    if isinstance(steps, bool) or not isinstance(steps, int) or not MIN_STEPS <= steps <= MAX_STEPS:
        raise ValueError(f"max_steps is not {MIN_STEPS} to {MAX_STEPS}")
    if model not in MODELS:
        raise ValueError(f"the model is none of {', '.join(MODELS)}")
    if not isinstance(reason, str) or not reason.strip() or len(reason) > MAX_REASON_CHARS:
        raise ValueError(f"the reason is not 1 to {MAX_REASON_CHARS} characters")
    return Route(Complexity(answer.get("complexity")), steps, str(model), " ".join(reason.split()).rstrip("."))


def is_follow_up(question: str, earlier: PreviousRoute | None, now: datetime) -> bool:
    """Whether a question as short as "yes, do that" belongs to the one before it, which was no small matter: then its
    own words tell nothing of the work that it takes.
    """
    if earlier is None or not earlier.is_warm(now) or earlier.route.complexity in _SMALL:
        return False
    is_short = len(question.encode("utf-8", "replace")) <= FOLLOW_UP_BYTES
    return is_short and len(question.split()) <= FOLLOW_UP_WORDS


_SMALL = frozenset({Complexity.TRIVIAL, Complexity.SIMPLE})


def keep_route(earlier: PreviousRoute) -> Route:
    """For a follow-up."""
    return replace(earlier.route, routed_by=RoutedBy.KEPT)


def scale_steps(steps: int, multiplier: float) -> int:
    """Rounded half up, at least one."""
    return min(max(math.floor(steps * multiplier + 0.5), 1), MOST_STEPS)


def max_calls(steps: int) -> int:
    """The last two steps are without tools."""
    return max(steps - 2, 1)


def describe_route(route: Route, *, with_reason: bool = True) -> str:
    """One line for people. The reason is about what was asked."""
    reason = f": {route.reason}" if with_reason else ""
    told = f"{route.complexity}, so {route.model} with at most {route.max_steps} steps"
    return f"route: {told}, by {route.routed_by}{reason}"


def route_to_json(route: Route) -> JsonObject:
    return {
        "complexity": route.complexity.value,
        "max_steps": route.max_steps,
        "model": route.model,
        "reason": route.reason,
        "routed_by": route.routed_by.value,
    }


def route_from_json(row: Mapping[str, Any]) -> Route:
    """The inverse. Raises ValueError or KeyError for a row that is no route."""
    return Route(
        Complexity(row["complexity"]),
        int(row["max_steps"]),
        str(row["model"]),
        str(row["reason"]),
        RoutedBy(row["routed_by"]),
    )


ROUTE = "route"


def route_meta(route: Route, keep_s: float) -> JsonObject:
    """A provider keeps the prompt for `keep_s`."""
    return {**route_to_json(route), "keep_s": keep_s}


def find_previous_route(message: Message) -> PreviousRoute | None:
    """None for an answer of a turn that was not routed."""
    if ROUTE not in message.meta:
        return None
    row = cast("Mapping[str, Any]", message.meta[ROUTE])
    return PreviousRoute(route_from_json(row), message.created_at, float(row["keep_s"]))


def list_turn_times(messages: Sequence[Message], route: Route | None) -> list[tuple[datetime, datetime]]:
    """When each question was asked, and when what came of it ended; the last is the one to answer. Of a routed turn
    only those on its model: each model has a cache of its own, whose rhythm is that of its own turns.
    """
    turns: list[tuple[datetime, datetime, str]] = []
    for message in messages:
        began_at, model = message.created_at, ""
        if message.role is not Role.USER and turns:
            began_at, _, model = turns.pop()
        earlier = find_previous_route(message)
        turns.append((began_at, message.created_at, earlier.route.model if earlier else model))
    wanted = None if route is None else route.model
    return [(began_at, end) for began_at, end, model in turns[:-1] if wanted in (None, model)] + [
        (began_at, end) for began_at, end, _ in turns[-1:]
    ]

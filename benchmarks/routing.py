"""Compares the cost of a conversation with routed questions to one that stays on a model, by the program's rules.

    python -m benchmarks routing

Fifty questions of mixed difficulty, in one conversation that grows to what an agent reads by default, and in threads of
two each. Each model has a cache of its own that keeps five minutes. Pure arithmetic on the decisions of
`domain/routing`: nothing is sent. A unit is a token of input on the weakest model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from benchmarks.figures import Figure, show
from denizen.domain.routing import MODELS, Complexity, PreviousRoute, Route, is_follow_up, keep_route
from denizen.engine.prompt.caching import LONG_S, SHORT_S, plan_keep_s

FIXED_TOKENS, QUESTION_TOKENS, ANSWER_TOKENS, RESULT_TOKENS = 1500, 60, 300, 500
MOST_TOKENS = 25_500
PRICES = {"fast": 1.0, "balanced": 3.0, "quality": 5.0}
"""The price of an input token, as vendors have it for their small, middle and large models."""
READ, WRITTEN, OUTPUT = 0.1, {SHORT_S: 1.25, LONG_S: 2.0}, 5.0
"""The price of a token that is read from a provider's cache, written to it, or generated; one of input is 1."""
REQUESTS = {Complexity.TRIVIAL: 1, Complexity.SIMPLE: 2, Complexity.MODERATE: 3, Complexity.COMPLEX: 6}
ROUTER_COST = 350 + 40 * OUTPUT
"""The tokens of one question to the router, on the weakest model."""
TURNS = 50

QUESTIONS: Sequence[tuple[str, Complexity]] = (
    ("Where is the style guide kept?", Complexity.SIMPLE),
    ("Which of the two linters is stricter, and why?", Complexity.MODERATE),
    ("ok, thanks", Complexity.TRIVIAL),
    ("Who maintains the parser these days?", Complexity.SIMPLE),
    ("Why does the nightly build crash on Windows?", Complexity.COMPLEX),
    ("yes, do that", Complexity.TRIVIAL),
    ("In which file was that function defined?", Complexity.SIMPLE),
    ("And what is its second argument for?", Complexity.SIMPLE),
    ("Good morning everybody, how are you?", Complexity.TRIVIAL),
    ("How do the three caches differ from each other?", Complexity.MODERATE),
)

Choose = Callable[[str, Complexity, PreviousRoute | None, datetime], tuple[Route, bool]]
"""A route, and whether the router was asked for it."""


@dataclass
class Caches:
    """The part of the conversation that each model has cached, and until when. The pauses between turns on that model
    decide, or with `by_talk` those of the conversation.
    """

    by_talk: bool = False
    of: dict[str, tuple[int, datetime]] = field(default_factory=dict[str, tuple[int, datetime]])
    asked: dict[str, list[datetime]] = field(default_factory=dict[str, list[datetime]])

    def begin(self, model: str, now: datetime) -> float:
        """A turn. For how long it is kept then."""
        times = self.asked.setdefault("" if self.by_talk else model, [])
        times.append(now)
        return plan_keep_s([(later - each).total_seconds() for each, later in pairwise(times)])

    def request(self, model: str, size: int, keep_s: float, now: datetime) -> float:
        known, until = self.of.get(model, (0, now))
        cached = min(known, size) if now <= until else 0
        self.of[model] = size, now + timedelta(seconds=keep_s)
        written = WRITTEN[keep_s] * (size - cached)
        return PRICES[model] * (READ * cached + written + OUTPUT * ANSWER_TOKENS)


def always(model: str) -> Choose:
    return lambda _said, complexity, _earlier, _now: (Route(complexity, 20, model, ""), False)


def alone(_said: str, complexity: Complexity, _earlier: PreviousRoute | None, _now: datetime) -> tuple[Route, bool]:
    """Each question by itself."""
    return Route.of(complexity, ""), True


def upward(said: str, complexity: Complexity, earlier: PreviousRoute | None, now: datetime) -> tuple[Route, bool]:
    """Never to a weaker model while the cache of the stronger is warm."""
    route, was_asked = denizen(said, complexity, earlier, now)
    if earlier is not None and earlier.is_warm(now):
        route = replace(route, model=max(route.model, earlier.route.model, key=MODELS.index))
    return route, was_asked


def denizen(said: str, complexity: Complexity, earlier: PreviousRoute | None, now: datetime) -> tuple[Route, bool]:
    if earlier is not None and is_follow_up(said, earlier, now):
        return keep_route(earlier), False
    return Route.of(complexity, ""), True


def cost(choose: Choose, *, pause_s: float, turns: int = TURNS, by_talk: bool = False) -> float:
    """The cost of all questions in conversations of `turns` turns."""
    now, size, total = datetime(2026, 11, 2, 9, 0, tzinfo=UTC), 0, 0.0
    caches, earlier = Caches(by_talk), None
    for number in range(TURNS):
        if number % turns == 0:
            caches, earlier, size = Caches(by_talk), None, FIXED_TOKENS
        said, complexity = QUESTIONS[number % len(QUESTIONS)]
        route, was_asked = choose(said, complexity, earlier, now)
        total += ROUTER_COST if was_asked else 0
        keep_s = caches.begin(route.model, now)
        for _ in range(REQUESTS[complexity]):
            size = min(size + QUESTION_TOKENS + RESULT_TOKENS, MOST_TOKENS)
            total += caches.request(route.model, size, keep_s, now)
            size = min(size + ANSWER_TOKENS, MOST_TOKENS)
        earlier = PreviousRoute(route, now, keep_s)
        now += timedelta(seconds=pause_s)
    return total


def main(_url: str = "") -> None:
    ways = {
        "always balanced": always("balanced"),
        "always quality": always("quality"),
        "upward only": upward,
        "each question by itself": alone,
        "as Denizen routes": denizen,
    }
    for about, pause_s, turns in (
        ("threads of two", 30.0, 2),
        ("one talk, steady", 30.0, TURNS),
        ("one talk, pauses of 2 min", 120.0, TURNS),
        ("one talk, pauses of 7 min", 420.0, TURNS),
    ):
        costs = {name: cost(way, pause_s=pause_s, turns=turns) for name, way in ways.items()}
        costs["the same, kept by the pauses of the talk"] = cost(denizen, pause_s=pause_s, turns=turns, by_talk=True)
        show([Figure(f"{about}: {name}", round(units), "units") for name, units in costs.items()], 1.0)


if __name__ == "__main__":
    main()

"""What a model is told about the task of this very turn: how much work it seems to be, and how many tool calls it has
(inventory S8). A passing note, since it differs from question to question. Called by `gather`.
"""

from __future__ import annotations

from collections.abc import Mapping

from denizen.domain.agent import Agent
from denizen.domain.prompt import PromptMessage
from denizen.domain.routing import Complexity, Route, RoutedBy, max_calls
from denizen.engine.prompt.assemble import passing

_HINTS: Mapping[Complexity, str] = {
    Complexity.TRIVIAL: "This needs no more than a short answer.",
    Complexity.SIMPLE: "This is simple: one lookup should do.",
    Complexity.MODERATE: "This takes some work: look in a few places before you answer.",
    Complexity.COMPLEX: "This is complex: look at everything that matters, step by step, before you answer.",
}


def plan_task(agent: Agent, route: Route | None, *, tool_rules: bool) -> list[PromptMessage]:
    """Nothing for an agent whose turns are alike: its rules say it once for all, where a cache keeps it."""
    # Where nobody has looked at this question, a hint would lead astray: "thanks" is no work.
    hint = _HINTS[route.complexity] if route is not None and route.routed_by is RoutedBy.ROUTER else ""
    budget = ""
    if agent.is_routed and tool_rules and agent.tools:
        budget = f"Make at most {max_calls(agent.limits.steps)} tool calls, then answer."
    text = " ".join(filter(None, (hint, budget)))
    return [passing(text, "task")] if text else []

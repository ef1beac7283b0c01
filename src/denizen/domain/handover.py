"""Hand-over: an agent answers in a room in place of the one that usually does, for a while. Pure.

It has the room until its time is over, it has answered so many messages, or somebody says `!exit`. What is said there
counts as said to it meanwhile. `engine/outbox/handovers.py` keeps it and tells the room.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

from denizen.domain.conversation import ALONE, Place
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import AgentName
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record

HANDOVER_KEY = "handover:"
"""The beginning of the keys of hand-overs among the settings; the id of the conversation follows."""
HAND_OVER = "hand_over"
"""The tool by which an agent hands a room to another."""
BACK = "back"
"""The word of `/handover` that ends one, in place of an agent."""
EXIT_WORDS = frozenset({"!exit", "/exit"})
DEFAULT_MINUTES, MAX_MINUTES = 15, 24 * 60
DEFAULT_MESSAGES, MAX_MESSAGES = 20, 200
MAX_PASSES = 1
"""How often agents hand on a room that was handed to one of them, until a person hands it over."""


@record(kw_only=True)
class Handover:
    """The room is the agent's until then, for so many messages more. `passes` counts how often agents handed it on."""

    agent: AgentName
    until: datetime
    messages_left: int
    passes: int = 0

    def is_over(self, now: datetime) -> bool:
        return now >= self.until or self.messages_left <= 0

    @property
    def after_message(self) -> Handover:
        """The hand-over once one more message was taken."""
        return replace(self, messages_left=self.messages_left - 1)


def plan_handover(
    agent: AgentName,
    now: datetime,
    *,
    minutes: int = DEFAULT_MINUTES,
    messages: int = DEFAULT_MESSAGES,
    passes: int = 0,
) -> Handover:
    """Raises InvalidInput for a span or a number that is not allowed."""
    if not (1 <= minutes <= MAX_MINUTES and 1 <= messages <= MAX_MESSAGES):
        raise InvalidInput(
            "A room is not handed over for that long.",
            code="handover_limits",
            fix=f"Give 1 to {MAX_MINUTES} minutes and 1 to {MAX_MESSAGES} messages.",
        )
    return Handover(agent=agent, until=now + timedelta(minutes=minutes), messages_left=messages, passes=passes)


def is_own_session(place: Place) -> bool:
    """Whether the place is a session of one person that goes on: a chat of the web, or `denizen chat`. There each
    message names the agent that answers.
    """
    if place.platform == "terminal":
        return place.channel == "chat"
    return place.platform == "web" and not place.thread.startswith(ALONE)


def is_exit(text: str) -> bool:
    """Whether a message asks the agent to give the room back."""
    return text.strip().casefold() in EXIT_WORDS


def handover_to_json(handover: Handover) -> JsonObject:
    return {
        "agent": handover.agent,
        "until": handover.until.isoformat(),
        "left": handover.messages_left,
        "passes": handover.passes,
    }


def handover_from_json(value: Json) -> Handover | None:
    """The inverse; None for what is none."""
    if not isinstance(value, Mapping):
        return None
    row = cast("Mapping[str, Any]", value)
    return Handover(
        agent=AgentName(row["agent"]),
        until=datetime.fromisoformat(row["until"]),
        messages_left=row["left"],
        passes=row["passes"],
    )

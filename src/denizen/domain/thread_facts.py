"""What a platform knows of the thread in which somebody asks, such as an issue on GitHub (inventory S7).

A channel that has such threads puts it into what it hands in; the router reads it. All of it is text that anybody may
have written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from denizen.domain.json import Json, JsonObject

MAX_BODY_CHARS = 500
MAX_LABELS = 20
MAX_TEXT_CHARS = 300
"""Of a title, and of a label."""


@dataclass(frozen=True, slots=True)
class ThreadFacts:
    """`origin` is where it is from, such as `github issue`; `number` 0 where threads have none; `body` how it begins,
    cut by `thread_to_json`.
    """

    origin: str
    title: str
    number: int = 0
    body: str = ""
    labels: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """`#12 Title`."""
        return f"#{self.number} {self.title}" if self.number else self.title


def thread_to_json(facts: ThreadFacts) -> JsonObject:
    """As it is kept with a turn: not more than the router reads."""
    labels: list[Json] = [label[:MAX_TEXT_CHARS] for label in facts.labels[:MAX_LABELS]]
    return {
        "origin": facts.origin,
        "title": facts.title[:MAX_TEXT_CHARS],
        "number": facts.number,
        "body": facts.body[:MAX_BODY_CHARS],
        "labels": labels,
    }


def thread_from_json(row: Mapping[str, Any]) -> ThreadFacts:
    """The inverse."""
    return ThreadFacts(row["origin"], row["title"], row["number"], row["body"], tuple(row["labels"]))

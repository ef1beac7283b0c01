"""What a model gives besides the text of its answer: pictures, and its reasoning where an agent is to show that.

Collected by `steps`, shown to people by the outbox and by whoever watches, and read from the record again for those
who come late. Reasoning is never part of a later prompt as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from denizen.domain.message import ImagePart, Part, Role, ThinkingPart
from denizen.domain.turn import Turn
from denizen.engine.runtime import Generation
from denizen.ports.store import Store

LATEST = 50
"""Among so many messages of its session the answer of a turn is looked for."""


@dataclass(frozen=True, slots=True)
class Beside:
    """`images` are data URIs."""

    images: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()

    def __add__(self, more: Beside) -> Beside:
        return Beside((*self.images, *more.images), (*self.reasoning, *more.reasoning))

    @property
    def thoughts(self) -> str:
        return "\n\n".join(self.reasoning)

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """For `domain/extras`, and for the piece in front of an answer."""
        rows: list[Mapping[str, Any]] = []
        if self.images:
            rows.append({"images": [{"url": url} for url in self.images]})
        if self.reasoning:
            rows.append({"reasoning": self.thoughts})
        return rows


def beside_of(parts: Iterable[Part], *, with_reasoning: bool) -> Beside:
    """In the parts of one reply."""
    given = tuple(parts)
    thoughts = (part.text.strip() for part in given if isinstance(part, ThinkingPart)) if with_reasoning else ()
    return Beside(
        tuple(part.url for part in given if isinstance(part, ImagePart)), tuple(text for text in thoughts if text)
    )


async def load_beside(store: Store, turn: Turn, generation: Generation) -> Beside:
    """Of a turn that has ended, from its messages."""
    agent = generation.agents.get(turn.agent)
    async with store.work(write=False) as work:
        messages = await work.messages.list_tail(turn.session_id, limit=LATEST)
    found = Beside()
    for message in messages:
        if message.turn_id == turn.id and message.role is Role.ASSISTANT:
            found += beside_of(message.parts, with_reasoning=agent is not None and agent.show_reasoning)
    return found

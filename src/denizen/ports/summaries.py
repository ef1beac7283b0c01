"""Summaries of stretches of sessions. They go when a message in their stretch is forgotten, or its turn is asked anew;
`Archive` and `Messages` see to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from denizen.domain.ids import SessionId
from denizen.domain.summary import Summary


class Summaries(Protocol):
    async def list_summaries(self, session_id: SessionId) -> Sequence[Summary]:
        """In the order of their messages; their stretches do not overlap."""
        ...

    async def put(self, summary: Summary, *, known: Sequence[Summary]) -> bool:
        """Adds it in the place of those whose stretch lies within its own. False, and nothing is written, when the
        session's summaries are not `known` any more. What the unit of work reads of the session after this is what
        holds when it is committed.
        """
        ...

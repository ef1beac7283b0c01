"""The port of questions to the owner. Part of a unit of work.

Whoever answers takes the question first: of two who answer at once, the second sees what the first has written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from denizen.domain.ids import AgentName
from denizen.domain.question import OwnerQuestion, QuestionStatus


class QuestionRepository(Protocol):
    """The questions that agents left for the owner."""

    async def add(self, question: OwnerQuestion) -> bool:
        """Adds the question. False, and nothing changes, when its id exists."""
        ...

    async def find(self, question_id: str) -> OwnerQuestion | None: ...

    async def take(self, question_id: str) -> OwnerQuestion:
        """Locks the question until this unit of work ends, and returns it. Raises NotFound."""
        ...

    async def update(self, question: OwnerQuestion) -> None:
        """Writes the fields that may change: status, whether it is told, and the answer. Raises NotFound."""
        ...

    async def list_questions(
        self, *, status: QuestionStatus | None = None, limit: int = 100
    ) -> Sequence[OwnerQuestion]:
        """Returns questions, newest first."""
        ...

    async def list_untold(self, *, limit: int = 100) -> Sequence[OwnerQuestion]:
        """Returns the open questions that the owner was not written to about yet, oldest first."""
        ...

    async def count_open(self, agent: AgentName, *, asker: str = "") -> int:
        """Returns how many questions of the agent wait for an answer; with `asker`, those from turns of that principal
        key.
        """
        ...

    async def forget_asker(self, asker: str) -> int:
        """Removes the questions from turns of that principal key. Returns how many there were."""
        ...

"""What tools can ask of the agent's memory, and of the record of what it did, as plain records.

Memories are of the user whose turn it is, or core: of the agent, whoever speaks. Everything is limited to what all who
read the answer may hear of. What is not among it and what does not exist give the same NotFound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """One memory. `core`: the agent's own, not the user's. Times are aware and UTC."""

    id: str
    text: str
    at: datetime
    core: bool = False


class MemoryAccess(Protocol):
    """The memory of one agent as one call may see and change it. Core memories are written by owners and admins."""

    async def remember(self, text: str, *, core: bool = False) -> MemoryItem:
        """What is remembered already is given back. Raises InvalidInput for a text that is empty or too long, Exhausted
        when there is no room, NotAllowed for a core memory that may not be written by this user or in this place.
        """
        ...

    async def recall(self, words: str, *, limit: int = 8) -> Sequence[MemoryItem]:
        """What fits the words, by the words themselves and by meaning; the best first."""
        ...

    async def list(self, *, limit: int = 50) -> Sequence[MemoryItem]:
        """Newest first."""
        ...

    async def update(self, memory_id: str, text: str) -> MemoryItem:
        """Raises NotFound, NotAllowed and InvalidInput."""
        ...

    async def forget(self, memory_id: str) -> MemoryItem:
        """Gives what it was. Raises NotFound and NotAllowed."""
        ...


@dataclass(frozen=True, slots=True)
class PastToolCall:
    """One tool call of an earlier turn. `outcome` is one of done, failed, denied."""

    tool: str
    at: datetime
    outcome: str
    duration_ms: int
    turn_id: str


class ToolCallLog(Protocol):
    """What the agent did, in rooms that everybody who reads the answer may see."""

    async def search(self, words: str = "", *, limit: int = 20) -> Sequence[PastToolCall]:
        """Newest first; with words, those of which the tool's name or the outcome has them all."""
        ...

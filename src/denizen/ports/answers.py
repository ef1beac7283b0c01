"""What is kept of answers from documents: what they cite, what they could not answer, and what people proposed as an
answer instead. Part of a unit of work.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.citation import Citation
from denizen.domain.gap import Gap
from denizen.domain.ids import TurnId
from denizen.domain.proposal import Proposal, ProposalStatus


class CitationRepository(Protocol):
    async def add(self, turn_id: TurnId, citations: Sequence[Citation]) -> None:
        """In their order; nothing changes when the turn has some."""
        ...

    async def list_for(self, turn_id: TurnId) -> Sequence[Citation]: ...


class GapRepository(Protocol):
    async def add(self, gap: Gap) -> bool:
        """False, and nothing changes, when its id exists."""
        ...

    async def list_gaps(
        self, *, since: datetime | None = None, closed: bool = False, limit: int = 1000
    ) -> Sequence[Gap]:
        """Newest first; those that are closed, or those that are not."""
        ...

    async def close(self, gap_ids: Collection[str]) -> int:
        """They need no answer any more. Returns how many were open."""
        ...

    async def forget_asker(self, asker: str) -> int:
        """All of that principal's key. Returns how many there were."""
        ...


class ProposalRepository(Protocol):
    async def add(self, proposal: Proposal) -> bool:
        """False, and nothing changes, when its id exists."""
        ...

    async def find(self, proposal_id: str) -> Proposal | None: ...

    async def find_for_posts(self, platform: str, post_ids: Collection[str]) -> Sequence[Proposal]:
        """What was proposed of these posts, whatever became of it, the oldest first."""
        ...

    async def list_proposals(self, status: ProposalStatus, *, limit: int = 1000) -> Sequence[Proposal]:
        """Newest first."""
        ...

    async def decide(self, proposal: Proposal) -> bool:
        """Keeps what was decided about it, and its file. False, and nothing changes, unless it is open and question,
        answer, author and asker are those that are kept.
        """
        ...

    async def withdraw(self, proposal_id: str) -> bool:
        """Its author does not want it: everything that they or the asker wrote goes. False when there is none, or it
        was withdrawn before.
        """
        ...

    async def set_file(self, proposal_id: str, file: str, *, is_filed: bool) -> None:
        """Of one that is accepted; nothing of any other."""
        ...

    async def remove(self, proposal_ids: Collection[str]) -> int:
        """Returns how many there were."""
        ...

    async def forget_author(self, author: str) -> int:
        """All of that principal's key go. Returns how many there were."""
        ...

    async def forget_asker(self, asker: str) -> int:
        """What that principal's key asked goes, and the answers stay without the names of their files. Returns how many
        had such a question.
        """
        ...

    async def forget_room(self, platform: str, room: str) -> int:
        """All of a channel and its threads go, or of a thread. Returns how many there were."""
        ...

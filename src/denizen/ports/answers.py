"""The ports of answers from documents: citations, knowledge gaps, and proposed answers. Part of a unit of work."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.citation import Citation
from denizen.domain.gap import KnowledgeGap
from denizen.domain.ids import TurnId
from denizen.domain.proposal import Proposal, ProposalStatus


class CitationRepository(Protocol):
    """The citations of each turn's answer."""

    async def add(self, turn_id: TurnId, citations: Sequence[Citation]) -> None:
        """Adds the citations in their order. Nothing changes when the turn has some already."""
        ...

    async def list_for(self, turn_id: TurnId) -> Sequence[Citation]:
        """Returns the citations of a turn in their order."""
        ...

    async def list_for_all(self, turn_ids: Collection[TurnId]) -> Mapping[TurnId, Sequence[Citation]]:
        """Returns the citations of those of these turns that have some, each in their order."""
        ...


class GapRepository(Protocol):
    """The questions that the documents did not answer."""

    async def add(self, gap: KnowledgeGap) -> bool:
        """Adds the gap. False, and nothing changes, when its id exists."""
        ...

    async def list_gaps(
        self, *, since: datetime | None = None, closed: bool = False, limit: int = 1000
    ) -> Sequence[KnowledgeGap]:
        """Returns the closed gaps, or the open ones, newest first."""
        ...

    async def close(self, gap_ids: Collection[str]) -> int:
        """Closes the gaps, which need no answer any more. Returns how many were open."""
        ...

    async def forget_asker(self, asker: str) -> int:
        """Removes the gaps of that principal key. Returns how many there were."""
        ...


class ProposalRepository(Protocol):
    """The answers that people proposed for the documents."""

    async def add(self, proposal: Proposal) -> bool:
        """Adds the proposal. False, and nothing changes, when its id exists."""
        ...

    async def find(self, proposal_id: str) -> Proposal | None: ...

    async def find_for_posts(self, platform: str, post_ids: Collection[str]) -> Sequence[Proposal]:
        """Returns the proposals of these posts in any status, oldest first."""
        ...

    async def list_proposals(self, status: ProposalStatus, *, limit: int = 1000) -> Sequence[Proposal]:
        """Returns the proposals of that status, newest first."""
        ...

    async def decide(self, proposal: Proposal) -> bool:
        """Records a decision with the name of the file.

        False, and nothing changes, unless the proposal is open and its question, answer, author and asker are still the
        ones that the decider saw.
        """
        ...

    async def withdraw(self, proposal_id: str) -> bool:
        """Withdraws the proposal for its author and removes everything that author and asker wrote.

        False when there is none, or it was withdrawn before.
        """
        ...

    async def set_file(self, proposal_id: str, file: str, *, is_filed: bool) -> None:
        """Sets the file of an accepted proposal. Nothing happens to any other."""
        ...

    async def remove(self, proposal_ids: Collection[str]) -> int:
        """Removes the proposals. Returns how many there were."""
        ...

    async def forget_author(self, author: str) -> int:
        """Removes the proposals whose author has that principal key. Returns how many there were."""
        ...

    async def forget_asker(self, asker: str) -> int:
        """Removes the questions that the principal key asked; the answers stay, without the names of their files.

        Returns how many proposals had such a question.
        """
        ...

    async def forget_room(self, platform: str, room: str) -> int:
        """Removes the proposals from a thread, or from a channel and its threads. Returns how many there were."""
        ...

"""Answers that people proposed for the documents, in the memory store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from denizen.domain.proposal import Proposal, ProposalStatus
from denizen.testing.memory_unit import Unit, in_utc, newest_first


class MemoryProposals:
    """`denizen.ports.answers.ProposalRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, proposal: Proposal) -> bool:
        self._unit.check_writes()
        rows = self._unit.tables.proposals
        if proposal.id in rows:
            return False
        times = {"said_at": in_utc(proposal.said_at), "created_at": in_utc(proposal.created_at)}
        self._unit.put(rows, proposal.id, replace(proposal, **times))
        return True

    async def find(self, proposal_id: str) -> Proposal | None:
        return self._unit.tables.proposals.get(proposal_id)

    async def find_for_posts(self, platform: str, post_ids: Collection[str]) -> Sequence[Proposal]:
        rows = self._unit.tables.proposals.values()
        return [each for each in rows if each.place.platform == platform and each.post in post_ids]

    async def list_proposals(self, status: ProposalStatus, *, limit: int = 1000) -> Sequence[Proposal]:
        rows = [each for each in self._unit.tables.proposals.values() if each.status is status]
        return newest_first(rows, lambda each: each.created_at, limit)

    async def decide(self, proposal: Proposal) -> bool:
        known = self._unit.tables.proposals.get(proposal.id)
        if known is None or known.status is not ProposalStatus.OPEN or _said(known) != _said(proposal):
            self._unit.check_writes()
            return False
        self._put(
            replace(
                known, status=proposal.status, decided_by=proposal.decided_by, decided_at=proposal.decided_at,
                reason=proposal.reason, text=proposal.text, file=proposal.file, is_filed=False,
            )
        )  # fmt: skip
        return True

    async def withdraw(self, proposal_id: str) -> bool:
        known = self._unit.tables.proposals.get(proposal_id)
        if known is None or known.status is ProposalStatus.WITHDRAWN:
            self._unit.check_writes()
            return False
        self._put(known.withdrawn())
        return True

    async def set_file(self, proposal_id: str, file: str, *, is_filed: bool) -> None:
        known = self._unit.tables.proposals.get(proposal_id)
        if known is not None and known.status is ProposalStatus.ACCEPTED:
            self._put(replace(known, file=file, is_filed=is_filed))

    async def remove(self, proposal_ids: Collection[str]) -> int:
        return self._remove(lambda each: each.id in proposal_ids)

    async def forget_author(self, author: str) -> int:
        return self._remove(lambda each: each.author == author)

    async def forget_asker(self, asker: str) -> int:
        theirs = [each for each in self._unit.tables.proposals.values() if asker and each.asker == asker]
        for each in theirs:
            self._put(replace(each, question="", asker="", gap_id="", file="", is_filed=False))
        return len(theirs)

    async def forget_room(self, platform: str, room: str) -> int:
        def is_there(each: Proposal) -> bool:
            return each.place.platform == platform and room != "" and room in (each.place.channel, each.place.thread)

        return self._remove(is_there)

    def _put(self, proposal: Proposal) -> None:
        self._unit.check_writes()
        self._unit.put(self._unit.tables.proposals, proposal.id, proposal)

    def _remove(self, goes: Callable[[Proposal], bool]) -> int:
        self._unit.check_writes()
        rows = self._unit.tables.proposals
        chosen = [key for key, each in rows.items() if goes(each)]
        self._unit.remove(rows, *chosen)
        return len(chosen)


def _said(proposal: Proposal) -> tuple[str, ...]:
    return proposal.question, proposal.answer, proposal.author, proposal.author_name, proposal.asker

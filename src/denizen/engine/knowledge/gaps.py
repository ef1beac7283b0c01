"""The coverage report: questions that the documents did not answer, and what becomes of them (`denizen gaps`).

What was asked where others do not read along is told to the operator only; admins on the web learn that it was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from anyio import to_thread

from denizen.domain.clock import Clock
from denizen.domain.errors import NotFound
from denizen.domain.gap import Gap, GapGroup, asks_alike, group_gaps
from denizen.domain.proposal import Proposal
from denizen.ports.store import Store, UnitOfWork

MAX_GAPS = 1000
"""The newest: each is compared with the others."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of a number of days, the newest `MAX_GAPS`; with `is_cut` there are older ones. What was asked most comes first;
    `hidden` of the `total` were asked in private and are not in `groups`.
    """

    groups: Sequence[GapGroup]
    total: int
    hidden: int
    is_cut: bool = False


class GapReport:
    """One for a process."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def load(self, days: int, *, with_private: bool) -> Coverage:
        since = self._clock.now() - timedelta(days=days)
        async with self._store.work(write=False) as work:
            found = await work.gaps.list_gaps(since=since, limit=MAX_GAPS + 1)
        gaps = found[:MAX_GAPS]
        told = [gap for gap in gaps if with_private or not gap.is_private]
        groups = await to_thread.run_sync(group_gaps, told)
        return Coverage(groups, len(gaps), len(gaps) - len(told), is_cut=len(found) > len(gaps))

    async def close(self, gap_id: str, *, with_private: bool = True) -> Sequence[Gap]:
        """Closes it with all that ask the same: somebody has seen to it. Raises NotFound, without `with_private` also
        for what was asked in private.
        """
        async with self._store.work(write=False) as work:
            gaps = await work.gaps.list_gaps(limit=MAX_GAPS)
        groups = await to_thread.run_sync(group_gaps, gaps)
        async with self._store.work() as work:
            asked = [(gap, group) for group in groups for gap in group.gaps if gap.id == gap_id]
            if not asked or (asked[0][0].is_private and not with_private):
                raise NotFound(
                    f"There is no open gap '{gap_id}'.", code="gap_not_found", fix="`denizen gaps` lists them."
                )
            found = asked[0][1].gaps
            await work.gaps.close([gap.id for gap in found])
        return found


async def close_answered(work: UnitOfWork, proposal: Proposal) -> int:
    """Closes the gap that the accepted answer is for, and all that ask the same. How many were open."""
    asked = [
        gap.id
        for gap in await work.gaps.list_gaps(limit=MAX_GAPS)
        if gap.id == proposal.gap_id or asks_alike(proposal.question, gap.question)
    ]
    return await work.gaps.close(asked)

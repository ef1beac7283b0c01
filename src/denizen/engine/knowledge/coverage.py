"""The coverage report: questions that the documents did not answer, and what becomes of them (`denizen gaps`).

What was asked where others do not read along is told to the operator only; admins on the web learn that it was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import anyio
from anyio import to_thread

from denizen.domain.clock import Clock
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.domain.gap import GapGroup, KnowledgeGap, asks_alike, group_gaps
from denizen.domain.principal import Principal
from denizen.domain.proposal import (
    MAX_ANSWER_CHARS,
    Proposal,
    ProposalDecision,
    ProposalStatus,
    clean_proposal_text,
    diff_lines,
    name_file,
    render_proposal,
)
from denizen.domain.record import record
from denizen.domain.source import LEARNED, SourceChange, SourceKind, SyncRun
from denizen.engine.audit.audit_log import review_event
from denizen.engine.knowledge.index import DocumentIndexer, report_nothing
from denizen.engine.knowledge.reading import SourceReadings
from denizen.engine.knowledge.snapshots import SnapshotPublisher
from denizen.engine.knowledge.sources import SourceCatalog
from denizen.engine.knowledge.sync import KnowledgeSync
from denizen.ports.source import LearnedAnswerFiles
from denizen.ports.store import Store, UnitOfWork

MAX_GAPS = 1000
"""The newest: each is compared with the others."""


@record
class CoverageReport:
    """The gaps of a number of days, the newest `MAX_GAPS`; with `is_cut` there are older ones. What was asked most
    comes first; `hidden` of the `total` were asked in private and are not in `groups`.
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

    async def load(self, days: int, *, with_private: bool) -> CoverageReport:
        since = self._clock.now() - timedelta(days=days)
        async with self._store.work(write=False) as work:
            found = await work.gaps.list_gaps(since=since, limit=MAX_GAPS + 1)
        gaps = found[:MAX_GAPS]
        told = [gap for gap in gaps if with_private or not gap.is_private]
        groups = await to_thread.run_sync(group_gaps, told)
        return CoverageReport(groups, len(gaps), len(gaps) - len(told), is_cut=len(found) > len(gaps))

    async def close(self, gap_id: str, *, with_private: bool = True) -> Sequence[KnowledgeGap]:
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


LABEL = "Learned from the community"
MAX_REASON_CHARS = 500
_ALL = 1_000_000


@record
class ProposalReview:
    """The effect of accepting a proposal: the exact content of the file, and its diff."""

    proposal: Proposal
    file: str
    content: str
    diff: str


@record(kw_only=True)
class LearningDeps:
    """Where accepted answers go: the folder, and what makes documents of it."""

    files: LearnedAnswerFiles
    catalog: SourceCatalog
    reading: SourceReadings
    snapshots: SnapshotPublisher
    indexing: DocumentIndexer
    sync: KnowledgeSync


class ProposalReviews:
    """One for a process."""

    def __init__(self, store: Store, clock: Clock, deps: LearningDeps) -> None:
        self._store = store
        self._clock = clock
        self._learning = deps
        self._lock = anyio.Lock()

    async def list_reviews(self, by: Principal) -> Sequence[ProposalReview]:
        """Lists the reviews of all undecided proposals, the newest first."""
        async with self._store.work(write=False) as work:
            found = await work.proposals.list_proposals(ProposalStatus.OPEN)
        return [await self._review(proposal, by) for proposal in found]

    async def review(self, proposal_id: str, by: Principal, text: str = "") -> ProposalReview:
        """With `text` in place of the answer. Raises NotFound, and Conflict when it was decided about already."""
        return await self._review(await self._load(proposal_id), by, text)

    async def accept(self, proposal_id: str, by: Principal, text: str = "") -> SyncRun | None:
        """Keeps the decision, closes the gap, writes the file and starts reading it. Raises as `review`, and Conflict
        when the id of the source is taken by another one.
        """
        review = await self.review(proposal_id, by, text)
        await self._find_source()
        decision = ProposalDecision(file=review.file, text=_edited(review.proposal, text))
        decided = replace(review.proposal, status=ProposalStatus.ACCEPTED, decision=decision)
        await self._decide(decided, by, review.content)
        return await self.settle()

    async def reject(self, proposal_id: str, by: Principal, reason: str = "") -> None:
        """Raises NotFound, and Conflict when it was decided about already."""
        proposal = await self._load(proposal_id)
        why = clean_proposal_text(reason, MAX_REASON_CHARS)
        await self._decide(
            replace(proposal, status=ProposalStatus.REJECTED, decision=ProposalDecision(reason=why)), by, ""
        )

    async def settle(self) -> SyncRun | None:
        """Brings the folder in line with what was accepted, and starts reading it when there was something to do."""
        async with self._lock:
            written, _ = await self._arrange()
            if not written:
                return None
            if await self._find_source() is False:
                given = SourceChange(kind=SourceKind.FOLDER, label=LABEL)
                await self._learning.catalog.add(self._learning.files.location, given, source_id=LEARNED)
            run = await self._learning.sync.start([LEARNED])
            await self._note_filed(written)  # only now: until then the next process does all of it again
        return run

    async def withdraw(self) -> bool:
        """When this returns, what was forgotten or taken back is neither in the folder nor in any snapshot. Whether
        there was such a thing.
        """
        async with self._lock:
            learning = self._learning
            written, has_removed = await self._arrange()
            if not await self._find_source():
                return has_removed
            read = await learning.reading.read(LEARNED, report_nothing)
            if read.error and (has_removed or not await learning.files.list_files()):
                await learning.catalog.remove(LEARNED)  # rather nothing than what somebody took back
            else:
                await learning.snapshots.publish()
                await self._note_filed([] if read.error else written)
            await learning.indexing.catch_up()
        return has_removed

    async def catch_up(self) -> None:
        """Once for each process that stays: what an earlier one had begun."""
        await self.withdraw()
        await self.settle()

    async def _load(self, proposal_id: str) -> Proposal:
        async with self._store.work(write=False) as work:
            found = await work.proposals.find(proposal_id)
        if found is None or found.status is ProposalStatus.WITHDRAWN:
            raise NotFound(
                f"There is no proposal '{proposal_id}'.",
                code="proposal_not_found",
                why="It may have been taken back, or proposed anew with another text.",
                fix="`denizen gaps proposals` lists those that are open.",
            )
        if found.status is not ProposalStatus.OPEN:
            raise _decided(found)
        return found

    async def _review(self, proposal: Proposal, by: Principal, text: str = "") -> ProposalReview:
        proposal = replace(proposal, decision=replace(proposal.decision, text=_edited(proposal, text)))
        name = name_file(proposal, {each.decision.file for each in await self._list_accepted()})
        content = render_proposal(proposal, by.key)
        return ProposalReview(proposal, name, content, diff_lines(await self._learning.files.read(name), content, name))

    async def _list_accepted(self) -> Sequence[Proposal]:
        async with self._store.work(write=False) as work:
            return await work.proposals.list_proposals(ProposalStatus.ACCEPTED, limit=_ALL)

    async def _decide(self, decided: Proposal, by: Principal, content: str) -> None:
        now = self._clock.now()
        decided = replace(decided, decision=replace(decided.decision, by=by.key, at=now))
        async with self._store.work() as work:
            if not await work.proposals.decide(decided):  # or what was reviewed is not what is kept any more
                raise _decided(decided)
            if decided.status is ProposalStatus.ACCEPTED:
                await close_answered(work, decided)
            await work.audit.add([review_event(decided, content, by, now)])

    async def _find_source(self) -> bool:
        """Whether it is there. Raises Conflict when another one has its id."""
        known = {each.source.id: each.source for each in await self._learning.catalog.list_known()}.get(LEARNED)
        if known is not None and (known.kind, known.location) != (SourceKind.FOLDER, self._learning.files.location):
            raise Conflict(
                f"There is a source '{LEARNED}' that is something else.",
                code="learned_taken",
                fix=f"Give that one another id: `denizen sources remove {LEARNED}`, and add it anew.",
            )
        return known is not None

    async def _arrange(self) -> tuple[Sequence[Proposal], bool]:
        """Removes the files that nobody accepts any more, and writes those that are missing: these, and whether any was
        removed.
        """
        files = self._learning.files
        wanted: dict[str, str] = {}
        due: list[Proposal] = []
        for each in reversed(await self._list_accepted()):
            named = each
            if not each.decision.file or each.decision.file in wanted:
                # its asker was forgotten, or two were accepted at once
                named = replace(each, decision=replace(each.decision, file=name_file(each, wanted), is_filed=False))
            wanted[named.decision.file] = named.id
            due += [] if named.decision.is_filed else [named]
        there = await files.list_files()
        stale = [name for name, made_of in there.items() if made_of and wanted.get(name) != made_of]
        for name in stale:
            await files.remove(name)
        for named in due:
            await files.write(named.decision.file, render_proposal(named, named.decision.by))
        return due, bool(stale)

    async def _note_filed(self, written: Sequence[Proposal]) -> None:
        async with self._store.work() as work:
            for proposal in written:
                await work.proposals.set_file(proposal.id, proposal.decision.file, is_filed=True)


def _edited(proposal: Proposal, text: str) -> str:
    """Empty when nothing was changed. Raises InvalidInput."""
    if len(text) > MAX_ANSWER_CHARS:
        raise InvalidInput("The answer is too long.", code="answer_long", fix=f"At most {MAX_ANSWER_CHARS} characters.")
    edited = clean_proposal_text(text, MAX_ANSWER_CHARS)
    return "" if edited == proposal.answer.text else edited


def _decided(proposal: Proposal) -> Conflict:
    return Conflict(
        f"Somebody has decided about '{proposal.id}' already, or it has changed.",
        code="proposal_decided",
        fix="`denizen gaps proposals` lists those that are open.",
    )

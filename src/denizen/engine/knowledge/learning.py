"""The review of proposed answers: what accepting one would write, the decision, and the file that comes of it.

The store says what was accepted; the folder and the source follow it, however often a process ends in between. What is
proposed is the business of `resident/proposing`. Called by the command line, the web, and when somebody is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.domain.principal import Principal
from denizen.domain.proposal import (
    MAX_ANSWER_CHARS,
    Proposal,
    ProposalStatus,
    clean,
    diff,
    name_file,
    render,
)
from denizen.domain.source import LEARNED, SourceChange, SourceKind, SyncRun
from denizen.engine.audit import of_review
from denizen.engine.knowledge.gaps import close_answered
from denizen.engine.knowledge.indexing import Indexing, report_nothing
from denizen.engine.knowledge.reading import Reading
from denizen.engine.knowledge.snapshots import Snapshots
from denizen.engine.knowledge.sources import Catalog
from denizen.engine.knowledge.sync import Sync
from denizen.ports.learned import LearnedFiles
from denizen.ports.store import Store

LABEL = "Learned from the community"
MAX_REASON_CHARS = 500
_ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class Review:
    """What accepting the proposal writes: the exact content of the file, and what that changes."""

    proposal: Proposal
    file: str
    content: str
    diff: str


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where accepted answers go: the folder, and what makes documents of it."""

    files: LearnedFiles
    catalog: Catalog
    reading: Reading
    snapshots: Snapshots
    indexing: Indexing
    sync: Sync


class Learning:
    """One for a process."""

    def __init__(self, store: Store, clock: Clock, shelf: Shelf) -> None:
        self._store = store
        self._clock = clock
        self._shelf = shelf
        self._lock = anyio.Lock()

    async def list_reviews(self, by: Principal) -> Sequence[Review]:
        """Of all proposals that nobody has decided about, the newest first."""
        async with self._store.work(write=False) as work:
            found = await work.proposals.list_proposals(ProposalStatus.OPEN)
        return [await self._review(proposal, by) for proposal in found]

    async def review(self, proposal_id: str, by: Principal, text: str = "") -> Review:
        """With `text` in place of the answer. Raises NotFound, and Conflict when it was decided about already."""
        return await self._review(await self._load(proposal_id), by, text)

    async def accept(self, proposal_id: str, by: Principal, text: str = "") -> SyncRun | None:
        """Keeps the decision, closes the gap, writes the file and starts reading it. Raises as `review`, and Conflict
        when the id of the source is taken by another one.
        """
        review = await self.review(proposal_id, by, text)
        await self._find_source()
        decided = replace(
            review.proposal, status=ProposalStatus.ACCEPTED, file=review.file, text=_edited(review.proposal, text)
        )  # fmt: skip
        await self._decide(decided, by, review.content)
        return await self.settle()

    async def reject(self, proposal_id: str, by: Principal, reason: str = "") -> None:
        """Raises NotFound, and Conflict when it was decided about already."""
        proposal = await self._load(proposal_id)
        why = clean(reason, MAX_REASON_CHARS)
        await self._decide(replace(proposal, status=ProposalStatus.REJECTED, reason=why), by, "")

    async def settle(self) -> SyncRun | None:
        """Brings the folder in line with what was accepted, and starts reading it when there was something to do."""
        async with self._lock:
            written, _ = await self._arrange()
            if not written:
                return None
            if await self._find_source() is False:
                given = SourceChange(kind=SourceKind.FOLDER, label=LABEL)
                await self._shelf.catalog.add(self._shelf.files.location, given, source_id=LEARNED)
            run = await self._shelf.sync.start([LEARNED])
            await self._note_filed(written)  # only now: until then the next process does all of it again
        return run

    async def withdraw(self) -> bool:
        """When this returns, what was forgotten or taken back is neither in the folder nor in any snapshot. Whether
        there was such a thing.
        """
        async with self._lock:
            shelf = self._shelf
            written, has_removed = await self._arrange()
            if not await self._find_source():
                return has_removed
            read = await shelf.reading.read(LEARNED, report_nothing)
            if read.error and (has_removed or not await shelf.files.list_files()):
                await shelf.catalog.remove(LEARNED)  # rather nothing than what somebody took back
            else:
                await shelf.snapshots.publish()
                await self._note_filed([] if read.error else written)
            await shelf.indexing.catch_up()
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

    async def _review(self, proposal: Proposal, by: Principal, text: str = "") -> Review:
        proposal = replace(proposal, text=_edited(proposal, text))
        name = name_file(proposal, await self._taken())
        content = render(proposal, by.key)
        return Review(proposal, name, content, diff(await self._shelf.files.read(name), content, name))

    async def _taken(self) -> set[str]:
        async with self._store.work(write=False) as work:
            accepted = await work.proposals.list_proposals(ProposalStatus.ACCEPTED, limit=_ALL)
        return {each.file for each in accepted}

    async def _decide(self, decided: Proposal, by: Principal, content: str) -> None:
        now = self._clock.now()
        decided = replace(decided, decided_by=by.key, decided_at=now)
        async with self._store.work() as work:
            if not await work.proposals.decide(decided):  # or what was reviewed is not what is kept any more
                raise _decided(decided)
            if decided.status is ProposalStatus.ACCEPTED:
                await close_answered(work, decided)
            await work.audit.add([of_review(decided, content, by, now)])

    async def _find_source(self) -> bool:
        """Whether it is there. Raises Conflict when another one has its id."""
        known = {each.source.id: each.source for each in await self._shelf.catalog.list_known()}.get(LEARNED)
        if known is not None and (known.kind, known.location) != (SourceKind.FOLDER, self._shelf.files.location):
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
        files = self._shelf.files
        async with self._store.work(write=False) as work:
            accepted = await work.proposals.list_proposals(ProposalStatus.ACCEPTED, limit=_ALL)
        wanted: dict[str, str] = {}
        due: list[Proposal] = []
        for each in reversed(accepted):
            named = each
            if not each.file or each.file in wanted:  # its asker was forgotten, or two were accepted at once
                named = replace(each, file=name_file(each, wanted), is_filed=False)
            wanted[named.file] = named.id
            due += [] if named.is_filed else [named]
        there = await files.list_files()
        stale = [name for name, made_of in there.items() if made_of and wanted.get(name) != made_of]
        for name in stale:
            await files.remove(name)
        for named in due:
            await files.write(named.file, render(named, named.decided_by))
        return due, bool(stale)

    async def _note_filed(self, written: Sequence[Proposal]) -> None:
        async with self._store.work() as work:
            for proposal in written:
                await work.proposals.set_file(proposal.id, proposal.file, is_filed=True)


def _edited(proposal: Proposal, text: str) -> str:
    """Empty when nothing was changed. Raises InvalidInput."""
    if len(text) > MAX_ANSWER_CHARS:
        raise InvalidInput("The answer is too long.", code="answer_long", fix=f"At most {MAX_ANSWER_CHARS} characters.")
    edited = clean(text, MAX_ANSWER_CHARS)
    return "" if edited == proposal.answer else edited


def _decided(proposal: Proposal) -> Conflict:
    return Conflict(
        f"Somebody has decided about '{proposal.id}' already, or it has changed.",
        code="proposal_decided",
        fix="`denizen gaps proposals` lists those that are open.",
    )

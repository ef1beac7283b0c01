"""The store over SQL: hands out units of work, each with the repositories bound to it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType

from denizen.adapters.store.answers import SqlCitations, SqlGaps, SqlProposals
from denizen.adapters.store.approvals import SqlApprovals
from denizen.adapters.store.archive import SqlArchive
from denizen.adapters.store.audit import SqlAudit
from denizen.adapters.store.columns import metadata
from denizen.adapters.store.connections import Lane, Lanes
from denizen.adapters.store.conversations import SqlConversations, SqlMessages, SqlSessions, SqlSummaries
from denizen.adapters.store.dialect import Dialect
from denizen.adapters.store.documents import SqlDocuments
from denizen.adapters.store.inbox import SqlReception
from denizen.adapters.store.memories import SqlMemories
from denizen.adapters.store.outbox import SqlOutbox
from denizen.adapters.store.post_embeddings import SqlPostMeanings
from denizen.adapters.store.reminders import SqlReminders
from denizen.adapters.store.settings import SqlAgentSettings, SqlGenerations, SqlUserSettings
from denizen.adapters.store.sources import SqlSources
from denizen.adapters.store.spending import SqlLedger, SqlSpending
from denizen.adapters.store.statistics import SqlStatistics
from denizen.adapters.store.transcripts import SqlTranscripts
from denizen.adapters.store.turns import SqlTurns
from denizen.adapters.store.unit import Unit
from denizen.adapters.store.vectors import SqlVectors
from denizen.domain.clock import Clock
from denizen.domain.errors import Unavailable
from denizen.ports.store import Work

__all__ = ["Database", "SqlWork", "metadata"]


class SqlWork:
    """`denizen.ports.store.Work`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    @property
    def conversations(self) -> SqlConversations:
        return SqlConversations(self._unit)

    @property
    def sessions(self) -> SqlSessions:
        return SqlSessions(self._unit)

    @property
    def messages(self) -> SqlMessages:
        return SqlMessages(self._unit)

    @property
    def turns(self) -> SqlTurns:
        return SqlTurns(self._unit)

    @property
    def ledger(self) -> SqlLedger:
        return SqlLedger(self._unit)

    @property
    def generations(self) -> SqlGenerations:
        return SqlGenerations(self._unit)

    @property
    def user_settings(self) -> SqlUserSettings:
        return SqlUserSettings(self._unit)

    @property
    def agent_settings(self) -> SqlAgentSettings:
        return SqlAgentSettings(self._unit)

    @property
    def archive(self) -> SqlArchive:
        return SqlArchive(self._unit)

    @property
    def reception(self) -> SqlReception:
        return SqlReception(self._unit)

    @property
    def outbox(self) -> SqlOutbox:
        return SqlOutbox(self._unit)

    @property
    def summaries(self) -> SqlSummaries:
        return SqlSummaries(self._unit)

    @property
    def transcripts(self) -> SqlTranscripts:
        return SqlTranscripts(self._unit)

    @property
    def spending(self) -> SqlSpending:
        return SqlSpending(self._unit)

    @property
    def approvals(self) -> SqlApprovals:
        return SqlApprovals(self._unit)

    @property
    def audit(self) -> SqlAudit:
        return SqlAudit(self._unit)

    @property
    def memories(self) -> SqlMemories:
        return SqlMemories(self._unit)

    @property
    def sources(self) -> SqlSources:
        return SqlSources(self._unit)

    @property
    def citations(self) -> SqlCitations:
        return SqlCitations(self._unit)

    @property
    def gaps(self) -> SqlGaps:
        return SqlGaps(self._unit)

    @property
    def proposals(self) -> SqlProposals:
        return SqlProposals(self._unit)

    @property
    def documents(self) -> SqlDocuments:
        return SqlDocuments(self._unit)

    @property
    def vectors(self) -> SqlVectors:
        return SqlVectors(self._unit)

    @property
    def post_meanings(self) -> SqlPostMeanings:
        return SqlPostMeanings(self._unit)

    @property
    def reminders(self) -> SqlReminders:
        return SqlReminders(self._unit)

    @property
    def statistics(self) -> SqlStatistics:
        return SqlStatistics(self._unit)


class Database:
    """`denizen.ports.store.Store`. Made by `open_store`, with the schema up to date.

    Units of work do not nest: a task that asks for a second one of the same kind gets a RuntimeError.
    """

    def __init__(self, dialect: Dialect, clock: Clock) -> None:
        self._dialect = dialect
        self._clock = clock
        self._writers = Lanes("store-write", dialect.engine, dialect.writers)
        self._readers = Lanes("store-read", dialect.engine, dialect.readers)
        self._closed = False

    @property
    def in_use(self) -> int:
        """How many units of work are under way."""
        return self._writers.in_use + self._readers.in_use

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[Work]:
        if self._closed:
            raise Unavailable("The store is closed.", code="store_closed", why="Denizen is shutting down.")
        return _Opening(self._writers if write else self._readers, self._dialect, self._clock, write=write)

    async def aclose(self) -> None:
        """Waits for the units of work that are under way. Twice is once."""
        if not self._closed:
            self._closed = True
            await self._readers.aclose()
            await self._writers.aclose()


class _Opening:
    """Takes a lane and a unit on it, and gives them back at the end of the block."""

    def __init__(self, lanes: Lanes, dialect: Dialect, clock: Clock, *, write: bool) -> None:
        self._lanes = lanes
        self._dialect = dialect
        self._clock = clock
        self._write = write
        self._lane: Lane | None = None
        self._unit: Unit | None = None

    async def __aenter__(self) -> SqlWork:
        self._lane = await self._lanes.take()
        self._unit = Unit(self._lane, self._dialect, self._clock, write=self._write)
        return SqlWork(self._unit)

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._lane is not None
        assert self._unit is not None
        try:
            await self._unit.end(error, trace)
        finally:
            self._lanes.give_back(self._lane)

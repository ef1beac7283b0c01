"""The store over SQL: it hands out units of work, each with the repositories bound to its transaction.

Importing this module registers every table in `metadata`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TypeVar, cast

from denizen.adapters.store.answers import SqlCitations, SqlGaps, SqlProposals
from denizen.adapters.store.approvals import SqlApprovals
from denizen.adapters.store.archive import SqlArchive
from denizen.adapters.store.audit import SqlAudit
from denizen.adapters.store.chats import SqlChats
from denizen.adapters.store.columns import metadata
from denizen.adapters.store.connections import ConnectionPool, ConnectionWorker
from denizen.adapters.store.conversations import SqlConversations, SqlSessions
from denizen.adapters.store.delegations import SqlDelegations
from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.documents import SqlDocuments
from denizen.adapters.store.event_sources import SqlEventSources
from denizen.adapters.store.events import SqlEvents
from denizen.adapters.store.feeds import SqlFeeds
from denizen.adapters.store.inbox import SqlInbox
from denizen.adapters.store.issue_mirrors import SqlIssueMirrors
from denizen.adapters.store.memories import SqlMemories
from denizen.adapters.store.messages import SqlMessages, SqlSummaries
from denizen.adapters.store.outbox import SqlOutbox
from denizen.adapters.store.personal_data import SqlPersonalData
from denizen.adapters.store.post_embeddings import SqlPostEmbeddings
from denizen.adapters.store.projects import SqlProjects, SqlTaskChanges
from denizen.adapters.store.questions import SqlQuestions
from denizen.adapters.store.rates import SqlRates
from denizen.adapters.store.reminders import SqlReminders
from denizen.adapters.store.schedules import SqlSchedules
from denizen.adapters.store.settings import SqlAgentSettings, SqlGenerations, SqlUserSettings
from denizen.adapters.store.sources import SqlSources
from denizen.adapters.store.spending import SqlLedger, SqlSpending
from denizen.adapters.store.statistics import SqlStatistics
from denizen.adapters.store.transaction import Transaction
from denizen.adapters.store.transcripts import SqlTranscripts
from denizen.adapters.store.turns import SqlTurns
from denizen.adapters.store.users import SqlAdminNames, SqlIdentities, SqlInvitations, SqlSignIns, SqlUserKeys, SqlUsers
from denizen.adapters.store.vectors import SqlVectors
from denizen.adapters.store.workflows import SqlWorkflows
from denizen.domain.clock import Clock
from denizen.domain.errors import Unavailable
from denizen.ports.store import UnitOfWork

__all__ = ["SqlStore", "SqlUnitOfWork", "metadata"]

T = TypeVar("T")


def _bind(kind: Callable[[Transaction], T]) -> T:
    """Returns an attribute of a unit of work: the repository, made when it is asked for, since a unit uses few."""
    return cast("T", property(lambda unit: kind(unit.transaction)))  # to a type checker as an attribute of that type


class SqlUnitOfWork:
    """Implements `denizen.ports.store.UnitOfWork`."""

    conversations = _bind(SqlConversations)
    sessions = _bind(SqlSessions)
    chats = _bind(SqlChats)
    messages = _bind(SqlMessages)
    turns = _bind(SqlTurns)
    ledger = _bind(SqlLedger)
    generations = _bind(SqlGenerations)
    user_settings = _bind(SqlUserSettings)
    agent_settings = _bind(SqlAgentSettings)
    archive = _bind(SqlArchive)
    inbox = _bind(SqlInbox)
    outbox = _bind(SqlOutbox)
    summaries = _bind(SqlSummaries)
    transcripts = _bind(SqlTranscripts)
    spending = _bind(SqlSpending)
    rates = _bind(SqlRates)
    approvals = _bind(SqlApprovals)
    audit = _bind(SqlAudit)
    memories = _bind(SqlMemories)
    sources = _bind(SqlSources)
    citations = _bind(SqlCitations)
    gaps = _bind(SqlGaps)
    proposals = _bind(SqlProposals)
    documents = _bind(SqlDocuments)
    vectors = _bind(SqlVectors)
    post_embeddings = _bind(SqlPostEmbeddings)
    events = _bind(SqlEvents)
    event_sources = _bind(SqlEventSources)
    reminders = _bind(SqlReminders)
    feeds = _bind(SqlFeeds)
    workflows = _bind(SqlWorkflows)
    projects = _bind(SqlProjects)
    task_changes = _bind(SqlTaskChanges)
    issue_mirrors = _bind(SqlIssueMirrors)
    schedules = _bind(SqlSchedules)
    questions = _bind(SqlQuestions)
    delegations = _bind(SqlDelegations)
    statistics = _bind(SqlStatistics)
    users = _bind(SqlUsers)
    sign_ins = _bind(SqlSignIns)
    identities = _bind(SqlIdentities)
    admin_names = _bind(SqlAdminNames)
    user_keys = _bind(SqlUserKeys)
    invitations = _bind(SqlInvitations)
    personal_data = _bind(SqlPersonalData)

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction


class SqlStore:
    """Implements `denizen.ports.store.Store`. Use `open_store`, which brings the schema up to date first.

    Units of work do not nest: a task that asks for a second one of the same kind gets a RuntimeError.
    """

    def __init__(self, dialect: SqlDialect, clock: Clock) -> None:
        self._dialect = dialect
        self._clock = clock
        self._writers = ConnectionPool("store-write", dialect.engine, dialect.writers)
        self._readers = ConnectionPool("store-read", dialect.engine, dialect.readers)
        self._closed = False

    @property
    def in_use(self) -> int:
        """The number of running units of work."""
        return self._writers.in_use + self._readers.in_use

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[UnitOfWork]:
        if self._closed:
            raise Unavailable("The store is closed.", code="store_closed", why="Denizen is shutting down.")
        return _UnitOfWorkContext(self._writers if write else self._readers, self._dialect, self._clock, write=write)

    async def aclose(self) -> None:
        """Waits for the running units of work. Closing again does nothing."""
        if not self._closed:
            self._closed = True
            await self._readers.aclose()
            await self._writers.aclose()


class _UnitOfWorkContext:
    """Takes a worker, begins a transaction on it, and gives the worker back at the end of the block."""

    def __init__(self, pool: ConnectionPool, dialect: SqlDialect, clock: Clock, *, write: bool) -> None:
        self._pool = pool
        self._dialect = dialect
        self._clock = clock
        self._write = write
        self._worker: ConnectionWorker | None = None
        self._transaction: Transaction | None = None

    async def __aenter__(self) -> SqlUnitOfWork:
        self._worker = await self._pool.take()
        self._transaction = Transaction(self._worker, self._dialect, self._clock, write=self._write)
        return SqlUnitOfWork(self._transaction)

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._worker is not None
        assert self._transaction is not None
        try:
            await self._transaction.end(error, trace)
        finally:
            self._pool.give_back(self._worker)

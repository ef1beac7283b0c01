"""The store without a database: a real implementation for tests of what is built on it.

Transactional: a unit of work that fails changes nothing, since every change leaves behind how it is undone. Payloads go
through JSON, so that a value that a database would give back changed, or refuse, does the same here. One unit of work
runs at a time. Passes `denizen.testing.store_contract`, as the databases do. It finds words only as they are written;
a database may also find other forms of them. The repositories are in the modules `memory_*`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio

from denizen.domain.errors import Unavailable
from denizen.ports.store import UnitOfWork
from denizen.testing.memory_agent_settings import MemoryAgentSettings
from denizen.testing.memory_answers import MemoryCitations, MemoryGaps
from denizen.testing.memory_approvals import MemoryApprovals
from denizen.testing.memory_archive import MemoryArchive
from denizen.testing.memory_audit import MemoryAudit
from denizen.testing.memory_documents import MemoryDocuments
from denizen.testing.memory_memories import MemoryMemories, MemoryVectors
from denizen.testing.memory_outbox import MemoryOutbox
from denizen.testing.memory_post_meanings import MemoryPostMeanings
from denizen.testing.memory_proposals import MemoryProposals
from denizen.testing.memory_reception import MemoryReception
from denizen.testing.memory_reminders import MemoryReminders
from denizen.testing.memory_settings import MemoryGenerations, MemoryUserSettings
from denizen.testing.memory_sources import MemorySources
from denizen.testing.memory_spending import MemorySpending
from denizen.testing.memory_statistics import MemoryStatistics
from denizen.testing.memory_summaries import MemorySummaries
from denizen.testing.memory_talk import MemoryConversations, MemoryMessages, MemorySessions
from denizen.testing.memory_transcripts import MemoryTranscripts
from denizen.testing.memory_turns import MemoryLedger, MemoryTurns
from denizen.testing.memory_unit import Tables, Unit


class _Work:
    def __init__(self, unit: Unit) -> None:
        self.conversations = MemoryConversations(unit)
        self.sessions = MemorySessions(unit)
        self.messages = MemoryMessages(unit)
        self.turns = MemoryTurns(unit)
        self.ledger = MemoryLedger(unit)
        self.generations = MemoryGenerations(unit)
        self.user_settings = MemoryUserSettings(unit)
        self.agent_settings = MemoryAgentSettings(unit)
        self.archive = MemoryArchive(unit)
        self.post_embeddings = MemoryPostMeanings(unit)
        self.inbox = MemoryReception(unit)
        self.outbox = MemoryOutbox(unit)
        self.summaries = MemorySummaries(unit)
        self.transcripts = MemoryTranscripts(unit)
        self.spending = MemorySpending(unit)
        self.approvals = MemoryApprovals(unit)
        self.audit = MemoryAudit(unit)
        self.memories = MemoryMemories(unit)
        self.sources = MemorySources(unit)
        self.citations = MemoryCitations(unit)
        self.gaps = MemoryGaps(unit)
        self.proposals = MemoryProposals(unit)
        self.documents = MemoryDocuments(unit)
        self.vectors = MemoryVectors(unit)
        self.reminders = MemoryReminders(unit)
        self.statistics = MemoryStatistics(unit)


class MemoryStore:
    """`denizen.ports.store.Store`. Empty at first; a second instance shares nothing with it."""

    def __init__(self) -> None:
        self._tables = Tables()
        self._lock = anyio.Lock()
        self._closed = False

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[UnitOfWork]:
        if self._closed:
            raise Unavailable("The store is closed.", code="store_closed", why="Denizen is shutting down.")
        return self._work(write=write)

    async def aclose(self) -> None:
        self._closed = True

    @asynccontextmanager
    async def _work(self, *, write: bool) -> AsyncGenerator[UnitOfWork]:
        async with self._lock:
            unit = Unit(self._tables, write=write)
            keep = False
            try:
                with anyio.CancelScope(shield=True):
                    yield _Work(unit)
                keep = True
            finally:
                unit.end(keep=keep)

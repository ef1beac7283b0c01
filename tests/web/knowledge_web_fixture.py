"""A server with a library, for tests of what people do with its sources over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2

from denizen.domain.embedding_progress import EmbeddingProgress
from denizen.domain.snapshot import RemoteRepository
from denizen.domain.source import Source, SourceKind
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.knowledge.index import DocumentSearch
from denizen.ports.source import ReadingProgress, ReportProgress, SourceFile, SourceReader, SourceTree
from denizen.testing.memory_durable import MemoryDurable
from denizen.testing.temporary_store import TemporaryStore
from denizen.web.http.auth import ApiKey
from denizen.web.http.dependencies import KnowledgeServices
from denizen_sdk import DenizenClient
from tests.clock import ManualClock
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, ThemeEmbedder, give_way
from tests.timing import HANG_LIMIT_S
from tests.web_fixture import ADA, ANN, LOCAL, WebFixture, open_web

SECRETS = {"notes": "a-secret-of-the-notes", "gone": "a-secret-of-nothing", "empty": ""}


NO_READERS: Mapping[SourceKind, SourceReader] = {}


OWNER = ApiKey.from_text("olga", "key-of-olga", ("owner",))


class ApiCaller:
    """Requests with one key."""

    def __init__(self, client: httpx2.AsyncClient, key: str) -> None:
        self._client = client
        self._headers = {"x-api-key": key}

    async def ask(self, method: str, path: str, **body: Any) -> tuple[int, Any]:
        answer = await self._client.request(method, path, headers=self._headers, json=body or None)
        return answer.status_code, answer.json() if answer.content else None

    async def sync(self, path: str = "/api/sync", **body: Any) -> dict[str, Any]:
        """The run, once it has ended."""
        status, started = await self.ask("POST", path, **body)
        assert (status, started["status"]) == (202, "started")
        with anyio.fail_after(HANG_LIMIT_S):
            while True:
                _, runs = await self.ask("GET", "/api/sync")
                found = [run for run in runs if run["id"] == started["run"]]
                if found and found[0]["ended_at"]:
                    return found[0]
                await give_way()


class KnowledgeWebFixture:
    """A server with a library, and three people: an owner, an admin, a member."""

    def __init__(
        self, client: httpx2.AsyncClient, sdk: DenizenClient, engine: KnowledgeFixture, web: WebFixture
    ) -> None:
        self.web = web
        self.sdk = sdk
        self.engine = engine
        self.owner, self.admin, self.member = (ApiCaller(client, f"key-of-{name}") for name in ("olga", "ada", "ann"))


def build_knowledge_services(engine: KnowledgeFixture, webhook_secrets: Mapping[str, str]) -> KnowledgeServices:
    async def change(remote: RemoteRepository) -> None:
        engine.remote = remote

    async def find_embedding() -> EmbeddingProgress | None:
        return await engine.indexing.find_embedding_progress()  # of the one that a test may have put there

    return KnowledgeServices(
        catalog=engine.catalog,
        search=DocumentSearch(engine.store, engine.library, BudgetedEmbedder(ThemeEmbedder)),
        sync=engine.sync,
        snapshots=engine.snapshots,
        remote=lambda: engine.remote or RemoteRepository(""),
        change_remote=change,
        webhooks=lambda: webhook_secrets,
        indexing=lambda: engine.indexing.progress,
        embedding=find_embedding,
    )


@asynccontextmanager
async def open_knowledge_web(
    root: Path, readers: Mapping[SourceKind, SourceReader] = NO_READERS
) -> AsyncGenerator[KnowledgeWebFixture]:
    engines: list[KnowledgeFixture] = []

    def make(store: TemporaryStore, durable: MemoryDurable, clock: ManualClock) -> KnowledgeServices:
        engines.append(KnowledgeFixture(root, readers, store=store, durable=durable))
        return build_knowledge_services(engines[0], SECRETS)

    async with open_web(keys=[OWNER, ADA, ANN], make_knowledge=make) as web, web.client() as client:
        transport = httpx2.ASGITransport(web.app)
        async with DenizenClient(LOCAL, "key-of-ada", transport=transport) as sdk:
            yield KnowledgeWebFixture(client, sdk, engines[0], web)


class SlowReader:
    """A reader of one file that waits until it may go on, and counts how often it was asked."""

    def __init__(self) -> None:
        self.looked = 0
        self.reached = anyio.Event()
        self.goes_on = anyio.Event()

    async def look(self, source: Source) -> str:
        self.looked += 1
        self.reached.set()
        await self.goes_on.wait()
        return str(self.looked)

    @asynccontextmanager
    async def open(self, source: Source, report: ReportProgress) -> AsyncGenerator[SourceTree]:
        report(ReadingProgress("receiving objects", 5, 10))
        yield SourceTree(str(self.looked), 1, iter([SourceFile("a.md", 1, lambda: b"A")]))

    async def forget(self, source_ids: Sequence[str]) -> None:
        """Nothing is kept."""

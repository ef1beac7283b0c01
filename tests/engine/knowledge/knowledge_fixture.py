"""A small library with real files and real repositories, on the store and the durable log in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import anyio

from denizen.adapters.fetch import WebFetcher
from denizen.adapters.files import FolderReader, LearnedFolder
from denizen.adapters.git import GitReader, GitRemote
from denizen.adapters.git.program import Git
from denizen.adapters.library import ConvertedText, DocumentConverters, FileLibrary
from denizen.adapters.sitemap import SitemapReader
from denizen.adapters.youtube import YoutubeReader
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.errors import Unavailable
from denizen.domain.snapshot import RemoteRepository
from denizen.domain.source import Source, SourceChange, SourceKind, SyncRun
from denizen.domain.video import VideoAccess
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.archive.channel_source import ChannelSourceReader
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.removal import ArchiveRemoval
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.knowledge.coverage import LearningDeps, ProposalReviews
from denizen.engine.knowledge.index import DocumentIndexer
from denizen.engine.knowledge.reading import SourceReadings
from denizen.engine.knowledge.snapshots import SnapshotPublisher
from denizen.engine.knowledge.sources import SourceCatalog
from denizen.engine.knowledge.sync import KnowledgeSync, SnapshotPush, SyncDeps
from denizen.ports.embed import EmbeddingResult, EmbedKind
from denizen.ports.fetch import NO_HEADERS, FetchedPage
from denizen.ports.source import ReportProgress, SnapshotUploader, SourceFile, SourceReader, SourceTree
from denizen.testing.memory_durable import MemoryDurable
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import ManualClock
from tests.repository import ENVIRONMENT
from tests.timing import HANG_LIMIT_S

PLAIN = DocumentConverters(
    html=lambda data: ConvertedText(data.decode().upper()), pdf=lambda data: ConvertedText(data.decode())
)


async def give_way() -> None:
    """Between two looks at what other threads do: a loop that only yields would keep the interpreter from them."""
    await anyio.sleep(0.005)


class WebFixture:
    """A web of pages by their addresses, each with its status and type. Those that are `silent` never answer."""

    def __init__(self) -> None:
        self.silent: set[str] = set()
        self.pages: dict[str, tuple[int, str, str]] = {}
        self.asked: list[str] = []

    def put(self, url: str, text: str, *, status: int = 200, kind: str = "text/html") -> None:
        self.pages[url] = (status, kind, text)

    async def fetch(
        self, url: str, *, timeout_s: float = 15.0, max_bytes: int = 2_000_000, headers: Mapping[str, str] = NO_HEADERS
    ) -> FetchedPage:
        self.asked.append(url)
        if url in self.silent:
            await anyio.sleep_forever()
        if url not in self.pages:
            raise Unavailable("There is no answer.", why="Connection refused")
        status, kind, text = self.pages[url]
        return FetchedPage(url, status, kind, text, len(text), truncated=False)

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass
class KnowledgeFixture:
    """`readers` replace those of their kind. Within an `async with` block its durable runs go on."""

    root: Path
    readers: Mapping[SourceKind, SourceReader] = field(default_factory=dict[SourceKind, SourceReader])
    store: TemporaryStore = field(default_factory=TemporaryStore)
    clock: ManualClock = field(default_factory=ManualClock)
    durable: MemoryDurable = field(default_factory=MemoryDurable)
    remote: RemoteRepository | None = None
    repository: SnapshotUploader | None = None
    web: WebFixture = field(default_factory=WebFixture)
    videos: VideoAccess | None = None
    policy: ArchivePolicy = field(default_factory=ArchivePolicy)
    channels: ConnectedAccounts = field(default_factory=ConnectedAccounts)

    def __post_init__(self) -> None:
        self.mirror = ArchiveMirror(self.store, lambda: self.policy, self.clock)
        self.talk = ChannelSourceReader(self.store, self.channels, self.mirror, self.clock)
        self.library = FileLibrary(self.root / "library", PLAIN, self.clock)
        readers: dict[SourceKind, SourceReader] = {
            SourceKind.GIT: GitReader(Git(ENVIRONMENT), self.root / "clones"),
            SourceKind.FOLDER: FolderReader(self.root / "home", self.root / "library"),
            SourceKind.SITEMAP: SitemapReader(self.web, self.clock),
            SourceKind.YOUTUBE: YoutubeReader(
                lambda: self.videos, _open_fetcher, self.root / "transcripts", self.clock
            ),
            SourceKind.ARCHIVE: self.talk,
            **self.readers,
        }
        self.snapshots = SnapshotPublisher(self.store, self.library, self.clock)
        self.privacy = ArchiveRemoval(self.mirror, self.clock, on_forgotten=self.snapshots.withdraw)
        self.reading = SourceReadings(self.store, self.clock, self.library, readers, sleep=self.clock.sleep)
        pushing = SnapshotPush(
            self.library,
            self.repository or GitRemote(Git(ENVIRONMENT), self.root / "pushing"),
            lambda: self.remote or RemoteRepository(""),
            sleep=self.clock.sleep,
        )
        self.indexing = DocumentIndexer(self.store, self.library, BudgetedEmbedder(), self.clock)
        work = SyncDeps(self.reading, self.snapshots, pushing, on_published=self.indexing.hurry)
        self.sync = KnowledgeSync(self.store, self.durable, self.clock, work, sleep=self.clock.sleep)
        self.sync.register()
        self.catalog = SourceCatalog(self.store, self.clock, self.snapshots, readers)

    async def __aenter__(self) -> Self:
        await self.durable.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.durable.aclose()

    async def add(self, location: Path | str, name: str = "", **given: str | int) -> Source:
        change = SourceChange(**given)  # pyright: ignore[reportArgumentType] - names and kinds are the caller's
        return await self.catalog.add(str(location), change, source_id=name)

    async def run(self, *only: str, reset: bool = False) -> SyncRun:
        self.clock.advance(minutes=1)
        with anyio.fail_after(HANG_LIMIT_S):
            return await self.sync.wait(await self.sync.start(only, reset=reset))

    def files(self) -> dict[str, str]:
        """What agents see."""
        root = self.library.current_folder()
        assert root is not None
        found = (path for path in sorted(root.rglob("*")) if path.is_file())
        return {path.relative_to(root).as_posix(): path.read_text() for path in found}


def _open_fetcher(access: VideoAccess) -> WebFetcher:
    host = urlsplit(access.api_url).netloc
    return WebFetcher(allow_private=[host], trusted=[host], backoff_s=(0, 0))


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


class UnreliableReader:
    """A reader of one file that fails as often as it is told, or waits until it may go on."""

    def __init__(self, *failures: Exception) -> None:
        self.failures: list[Exception] = [*failures]
        self.text = "text"
        self.opened = 0
        self.waits: anyio.Event | None = None
        self.reached = anyio.Event()

    async def look(self, source: Source) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return self.text

    @asynccontextmanager
    async def open(self, source: Source, report: ReportProgress) -> AsyncGenerator[SourceTree]:
        self.opened += 1
        self.reached.set()
        if self.waits is not None:
            await self.waits.wait()
        yield SourceTree(self.text, 1, iter([SourceFile("a.md", len(self.text), self.text.encode)]))

    async def forget(self, source_ids: Sequence[str]) -> None:
        """Nothing is kept."""


class ThemeEmbedder:
    """An embedder to which a text means the themes that its words belong to."""

    themes = (("euro", "price", "cost", "ten"), ("water", "drink", "thirst"), ("boat", "berth", "vessel"))

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.is_away = False

    @property
    def name(self) -> str:
        return "concepts"

    async def estimate_cost_usd(self, tokens: int) -> Decimal | None:
        return tokens * Decimal(0)

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
        if self.is_away:
            raise Unavailable("It is away.", code="embed_unavailable")
        self.texts += texts if kind is EmbedKind.DOCUMENT else []
        return EmbeddingResult(
            [[float(sum(word in text.lower() for word in theme)) for theme in self.themes] for text in texts]
        )

    async def aclose(self) -> None:
        """Nothing is open."""


def build_learning(engine: KnowledgeFixture) -> ProposalReviews:
    indexing = DocumentIndexer(engine.store, engine.library, BudgetedEmbedder(lambda: None), engine.clock)
    files = LearnedFolder(engine.root / "home" / "learned")
    deps = LearningDeps(
        files=files,
        catalog=engine.catalog,
        reading=engine.reading,
        snapshots=engine.snapshots,
        indexing=indexing,
        sync=engine.sync,
    )
    return ProposalReviews(engine.store, engine.clock, deps)

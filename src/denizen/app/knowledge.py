"""What reads the sources of knowledge, put together: readers, the library in the home folder, syncs and snapshots."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import anyio
from anyio import from_thread

from denizen.adapters.discord.pdf import read_pdf
from denizen.adapters.fetch import WebFetcher
from denizen.adapters.files import FolderReader, LearnedFolder
from denizen.adapters.git import GitReader, GitRemote
from denizen.adapters.git.program import Git
from denizen.adapters.library import Converted, Converters, FileLibrary
from denizen.adapters.sandbox.pool import SandboxPool
from denizen.adapters.sandbox.process import SandboxLimits
from denizen.adapters.sitemap import SitemapReader
from denizen.adapters.youtube import YoutubeReader
from denizen.app.embeddings import build_meaning
from denizen.app.home.environment import read_environment
from denizen.app.platform_services import PlatformServices
from denizen.app.settings import Settings
from denizen.app.settings.knowledge import LEARNED_FOLDER, LIBRARY_FOLDER, HomeFolders, SandboxSection
from denizen.domain.clock import Clock
from denizen.domain.errors import NeedsAttention, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.source import SourceKind
from denizen.domain.video import VideoAccess
from denizen.engine.archive.reader import ArchiveReader
from denizen.engine.knowledge.gaps import GapReport
from denizen.engine.knowledge.indexing import Indexing
from denizen.engine.knowledge.learning import Learning, Shelf
from denizen.engine.knowledge.pushing import Pushing
from denizen.engine.knowledge.reading import Reading
from denizen.engine.knowledge.regular import TalkCare
from denizen.engine.knowledge.search import DocumentSearch
from denizen.engine.knowledge.snapshots import Snapshots
from denizen.engine.knowledge.sources import Catalog
from denizen.engine.knowledge.sync import Sync, Work
from denizen.engine.runtime import Runtime
from denizen.ports.durable import Durable
from denizen.ports.sandbox import Sandbox, ShellResult, ShellView
from denizen.ports.source import SourceReader
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope
from denizen.skills.shelf import Shelf as DocumentShelf

MIN_SECRET_CHARS = 16
"""Of the secret of a webhook."""


@dataclass(frozen=True, slots=True)
class KnowledgeSystem:
    """`library` is where agents look things up, `talk` is about channels of the archive; the rest is for people who run
    Denizen.
    """

    catalog: Catalog
    sync: Sync
    snapshots: Snapshots
    library: FileLibrary
    indexing: Indexing
    search: DocumentSearch
    gaps: GapReport
    learning: Learning
    talk: TalkCare
    remote: GitRemote


def open_library(home: Path, clock: Clock) -> FileLibrary:
    """By itself, for commands that only look."""
    return FileLibrary(home / LIBRARY_FOLDER, Converters(html=_html_text, pdf=_pdf_text), clock)


@dataclass(frozen=True, slots=True)
class KnowledgeDeps:
    """What reading has to do with: the configuration of the moment, the archive, and where documents are looked at."""

    runtime: Runtime
    community: PlatformServices
    sandbox: Sandbox


def build_knowledge(home: Path, store: Store, durable: Durable, clock: Clock, beside: KnowledgeDeps) -> KnowledgeSystem:
    """Before the durable log is opened: its workflow is registered here."""
    runtime, community = beside.runtime, beside.community
    library = open_library(home, clock)
    git, folder = Git(read_environment()), home / LIBRARY_FOLDER / "clones"
    talk = ArchiveReader(store, community.channels, community.mirror, clock)
    videos = YoutubeReader(
        lambda: runtime.current.videos, _open_video_fetcher, home / LIBRARY_FOLDER / "transcripts", clock
    )
    readers: dict[SourceKind, SourceReader] = {
        SourceKind.GIT: GitReader(git, folder),
        SourceKind.SITEMAP: SitemapReader(WebFetcher(), clock),
        SourceKind.FOLDER: FolderReader(home, home / LIBRARY_FOLDER),
        SourceKind.YOUTUBE: videos,
        SourceKind.ARCHIVE: talk,
    }
    snapshots = Snapshots(store, library, clock)
    remote = GitRemote(git, home / LIBRARY_FOLDER)
    pushing = Pushing(library, remote, lambda: runtime.current.snapshot_remote, sleep=anyio.sleep)
    reading = Reading(store, clock, library, readers)
    work = Work(reading, snapshots, pushing)
    sync = Sync(store, durable, clock, work, sleep=anyio.sleep)
    sync.register()
    meaning = build_meaning(runtime, store, clock)
    indexing = Indexing(store, library, meaning)
    sync.tell_of_published(indexing.hurry)
    search = DocumentSearch(store, library, meaning, lambda: runtime.current.recall.similarity)

    async def let_go() -> None:
        await _take_out(snapshots.settle, beside.sandbox)

    async def withdraw(platform: str) -> None:
        if await _take_out(partial(snapshots.withdraw, platform), beside.sandbox):
            await indexing.catch_up()

    community.privacy.tell_of_forgotten(withdraw)
    catalog, gaps = Catalog(store, clock, snapshots, readers), GapReport(store, clock)
    files = LearnedFolder((home / LEARNED_FOLDER).absolute())
    learning = Learning(store, clock, Shelf(files, catalog, reading, snapshots, indexing, sync))

    async def withdraw_learned(_platform: str = "") -> None:
        await _take_out(learning.withdraw, beside.sandbox)

    community.proposing.tell_of_withdrawn(withdraw_learned)
    community.privacy.tell_of_forgotten(withdraw_learned)
    return KnowledgeSystem(
        catalog, sync, snapshots, library, indexing, search, gaps, learning, TalkCare(talk.is_urgent, let_go), remote
    )


async def _take_out(change: Callable[[], Awaitable[bool]], sandbox: Sandbox) -> bool:
    """Whether it changed what agents see. It may have when it fails, too: what was taken back is hidden."""
    is_changed = True
    try:
        is_changed = await change()
    finally:
        if is_changed:
            await sandbox.forget()
    return is_changed


def read_video_access(settings: Settings) -> VideoAccess | None:
    section = settings.config.knowledge.youtube
    return section.access(settings.secrets.resolve(section.api_key))


def read_webhooks(settings: Settings) -> Mapping[str, str]:
    """Secrets by source. Raises NeedsAttention for one that could be guessed."""
    hooks = settings.config.knowledge.webhooks
    found = {source: settings.secrets.resolve(secret) for source, secret in hooks.items() if secret is not None}
    for source, secret in found.items():
        if 0 < len(secret) < MIN_SECRET_CHARS:
            raise NeedsAttention(
                f"The secret of the webhook of '{source}' is too short.",
                code="secret_short",
                why=f"With less than {MIN_SECRET_CHARS} characters it could be guessed.",
                fix=f"`denizen sources webhook {source}` makes a good one.",
            )
    return {source: secret for source, secret in found.items() if secret}


def _open_video_fetcher(access: VideoAccess) -> WebFetcher:
    """The key goes to the server of the configuration alone, which may be one of this machine."""
    server = urlsplit(access.api_url)
    host = f"{server.hostname}:{server.port or (443 if server.scheme == 'https' else 80)}"
    return WebFetcher(allow_private=[host], trusted=[host])


def _html_text(data: bytes) -> Converted:
    from denizen.skills.page_text import to_page_text

    page = to_page_text(data.decode("utf-8-sig", errors="replace"), "")
    title = f"# {page.title}\n\n" if page.title and not page.text.startswith("# ") else ""
    return Converted(f"{title}{page.text}\n" if page.text else "")


def _pdf_text(data: bytes) -> Converted:
    """In a process of its own; called in a worker thread. What is missing is said at the end of what is there. A PDF
    that takes too long is none to try again: it would keep its source from being read for ever.
    """
    read = from_thread.run(read_pdf, data)
    if read.is_passing:
        raise Unavailable(
            "The PDFs of the source cannot be read now.",
            code="pdf_reader",
            why=read.lacks,
            fix="Look at the memory and the limits of processes and open files on this machine, then sync again.",
        )
    return Converted(f"{read.text}\n\n[{read.lacks}]\n" if read.text and read.lacks else read.text, read.lacks)


OWN, SHARED = "own", "shared"
"""How the folders are called in the shell, as the skill `knowledge` calls them."""


def build_sandbox(section: SandboxSection, clock: Clock) -> SandboxPool:
    """For the life of the process; nothing is started yet."""
    limits = SandboxLimits(
        workers=section.workers, timeout_s=section.timeout_s, batch_timeout_s=section.batch_timeout_s,
        memory_mb=section.memory_mb,
    )  # fmt: skip
    return SandboxPool(clock, limits)


def find_shell_view(folders: HomeFolders, agent: AgentName, snapshot: Path | None) -> ShellView | None:
    """What this agent may look into now: its own folder, the shared one, and those of the snapshot of the sources,
    which keep their names. None when there is nothing.
    """
    named = [(OWN, folders.own_knowledge(agent)), (SHARED, folders.knowledge)]
    if snapshot is not None:
        named += [(folder.name, folder) for folder in sorted(snapshot.iterdir()) if folder.name not in {OWN, SHARED}]
    found = tuple((name, folder) for name, folder in named if folder.is_dir() and not name.startswith("."))
    return ShellView(found) if found else None


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """Knowledge that comes from no source, by the names that tools give it."""

    folders: HomeFolders

    def read(self, agent: AgentName, path: str) -> str | None:
        """None for what is none of these, or not there. Blocks."""
        top, _, name = path.partition("/")
        folder = {OWN: self.folders.own_knowledge(agent), SHARED: self.folders.knowledge}.get(top)
        return DocumentShelf(folder).find_text(name) if folder is not None and name else None


@dataclass(frozen=True, slots=True)
class KnowledgeShells:
    """`open` is given to skills."""

    sandbox: Sandbox
    folders: HomeFolders
    snapshot: Callable[[], Path | None]

    def open(self, scope: CallScope) -> KnowledgeShell | None:
        view = find_shell_view(self.folders, scope.agent, self.snapshot())
        return KnowledgeShell(self.sandbox, view, scope) if view else None


@dataclass(frozen=True, slots=True)
class KnowledgeShell:
    """Of one agent in one conversation, whose session it keeps (inventory S21, SW10). Everybody who calls a tool over
    HTTP has a conversation of their own for that.
    """

    sandbox: Sandbox
    view: ShellView
    scope: CallScope

    async def __call__(self, commands: Sequence[str]) -> tuple[ShellResult, ...]:
        """Raises Unavailable where the system offers no isolation."""
        owner = f"{self.scope.agent}/{self.scope.conversation_id}"
        reply = await self.sandbox.run(commands, self.view, owner=owner, session_id=self.scope.shell_session)
        self.scope.trail.shell = reply
        return reply.results

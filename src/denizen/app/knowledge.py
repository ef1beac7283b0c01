"""Knowledge put together: readers of sources, the library of snapshots, syncs, search, and the shell over documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import anyio
from anyio import from_thread

from denizen.adapters.documents.pdf import read_pdf
from denizen.adapters.fetch import WebFetcher
from denizen.adapters.files import FolderReader, LearnedFolder
from denizen.adapters.git import GitReader, GitRemote
from denizen.adapters.git.program import Git, RemoteAddress
from denizen.adapters.library import ConvertedText, DocumentConverters, FileLibrary
from denizen.adapters.sandbox.pool import SandboxPool
from denizen.adapters.sandbox.process import SandboxLimits
from denizen.adapters.sitemap import SitemapReader
from denizen.adapters.youtube import YoutubeReader
from denizen.app.embeddings import build_embedder
from denizen.app.home.environment import read_environment
from denizen.app.settings import Settings
from denizen.app.settings.fields import copy_fields
from denizen.app.settings.knowledge import LEARNED_FOLDER, LIBRARY_FOLDER, HomeFolders, SandboxSection
from denizen.builtin_skills.knowledge import TextFolder
from denizen.domain.clock import Clock
from denizen.domain.errors import NeedsAttention, NotAllowed, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.record import record
from denizen.domain.source import SourceKind
from denizen.domain.video import VideoAccess
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.archive.channel_source import ChannelSourceReader
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.configuration.generation import Runtime
from denizen.engine.knowledge.coverage import GapReport, LearningDeps, ProposalReviews
from denizen.engine.knowledge.index import DocumentIndexer, DocumentSearch
from denizen.engine.knowledge.reading import SourceReadings
from denizen.engine.knowledge.schedule import WithheldTalkRefresh
from denizen.engine.knowledge.snapshots import SnapshotPublisher
from denizen.engine.knowledge.sources import SourceCatalog
from denizen.engine.knowledge.sync import KnowledgeSync, SnapshotPush, SyncDeps
from denizen.ports.durable import DurableExecution
from denizen.ports.sandbox import Sandbox, ShellResult, ShellView
from denizen.ports.source import SourceReader
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope

MIN_SECRET_CHARS = 16
"""The least length of a webhook's secret. A shorter one could be guessed."""
MAX_GUILD_CLONE_BYTES = 256 * 1024 * 1024
"""The limit for what git keeps of a repository that is for one community alone."""
OWN, SHARED = "own", "shared"
"""The names of the knowledge folders in the shell, as the skill `knowledge` has them too."""


@record(kw_only=True)
class KnowledgeSystem:
    """Everything about documents. Agents look things up in `library` through `search`; `refresh` looks after channels
    of the archive that are sources; the rest is for people who run Denizen.
    """

    catalog: SourceCatalog
    sync: KnowledgeSync
    snapshots: SnapshotPublisher
    library: FileLibrary
    indexing: DocumentIndexer
    search: DocumentSearch
    gaps: GapReport
    learning: ProposalReviews
    refresh: WithheldTalkRefresh
    remote: GitRemote
    sandbox: Sandbox

    async def withdraw(self, platform: str) -> None:
        """Takes what people of the platform have deleted out of the documents: out of snapshots first, then out of
        learned answers.
        """
        if await _remove(partial(self.snapshots.withdraw, platform), self.sandbox):
            await self.indexing.catch_up()
        await self.withdraw_learned()

    async def withdraw_learned(self) -> None:
        """Takes the answers of withdrawn proposals out of the documents."""
        await _remove(self.learning.withdraw, self.sandbox)


@record(kw_only=True)
class KnowledgeDeps:
    """The dependencies of knowledge. `runtime` has the current configuration; in `sandbox` agents see documents."""

    home: Path
    store: Store
    durable: DurableExecution
    clock: Clock
    runtime: Runtime
    channels: ConnectedAccounts
    mirror: ArchiveMirror
    sandbox: Sandbox


def open_library(home: Path, clock: Clock) -> FileLibrary:
    """Opens the library alone, for commands that only look."""
    return FileLibrary(home / LIBRARY_FOLDER, DocumentConverters(html=_html_text, pdf=_pdf_text), clock)


def build_knowledge(deps: KnowledgeDeps) -> KnowledgeSystem:
    """Builds it before the durable log is opened: the workflow of syncs is registered here."""
    store, clock, runtime = deps.store, deps.clock, deps.runtime
    folder = deps.home / LIBRARY_FOLDER
    library = open_library(deps.home, clock)

    async def resolve(location: str) -> RemoteAddress:
        return await resolve_repository(WebFetcher(allow_private=runtime.current.knowledge.private_hosts), location)

    async def resolve_for_guild(location: str) -> RemoteAddress:
        return await resolve_repository(WebFetcher(), location)  # the operator's private servers are not for guilds

    git = Git(read_environment(), resolve=resolve)
    guild_git = Git(read_environment(), max_file_bytes=MAX_GUILD_CLONE_BYTES, resolve=resolve_for_guild)
    archive = ChannelSourceReader(store, deps.channels, deps.mirror, clock)
    readers: dict[SourceKind, SourceReader] = {
        SourceKind.GIT: GitReader(git, folder / "clones", guild_git),
        SourceKind.SITEMAP: SitemapReader(WebFetcher(), clock),
        SourceKind.FOLDER: FolderReader(deps.home, folder),
        SourceKind.YOUTUBE: YoutubeReader(
            lambda: runtime.current.knowledge.videos, _open_video_fetcher, folder / "transcripts", clock
        ),
        SourceKind.ARCHIVE: archive,
    }
    snapshots = SnapshotPublisher(store, library, clock)
    remote = GitRemote(git, folder)
    pushing = SnapshotPush(library, remote, lambda: runtime.current.knowledge.snapshot_remote, sleep=anyio.sleep)
    reading = SourceReadings(
        store, clock, library, readers, guild_limits=lambda: runtime.current.knowledge.guild_sources
    )
    embedder = build_embedder(runtime, store, clock)
    indexing = DocumentIndexer(store, library, embedder, clock)
    sync_deps = SyncDeps(reading, snapshots, pushing, on_published=indexing.hurry)
    sync = KnowledgeSync(store, deps.durable, clock, sync_deps, sleep=anyio.sleep)
    sync.register()
    catalog = SourceCatalog(store, clock, snapshots, readers)
    files = LearnedFolder((deps.home / LEARNED_FOLDER).absolute())
    learning = ProposalReviews(
        store,
        clock,
        LearningDeps(files=files, catalog=catalog, reading=reading, snapshots=snapshots, indexing=indexing, sync=sync),
    )

    async def settle() -> None:
        await _remove(snapshots.settle, deps.sandbox)

    return KnowledgeSystem(
        catalog=catalog,
        sync=sync,
        snapshots=snapshots,
        library=library,
        indexing=indexing,
        search=DocumentSearch(store, library, embedder, lambda: runtime.current.knowledge.recall.similarity),
        gaps=GapReport(store, clock),
        learning=learning,
        refresh=WithheldTalkRefresh(archive.is_urgent, settle, (deps.mirror.withheld, deps.channels.added)),
        remote=remote,
        sandbox=deps.sandbox,
    )


async def _remove(change: Callable[[], Awaitable[bool]], sandbox: Sandbox) -> bool:
    """Returns whether the change took away something that agents see. A change that fails halfway counts as one: what
    it withdrew is hidden already, so the shell must not show its old copy.
    """
    is_changed = True
    try:
        is_changed = await change()
    finally:
        if is_changed:
            await sandbox.forget()
    return is_changed


def read_video_access(settings: Settings) -> VideoAccess | None:
    """Returns how YouTube is read; None without a key."""
    section = settings.config.knowledge.youtube
    return section.access(settings.secrets.resolve(section.api_key))


def read_webhooks(settings: Settings) -> Mapping[str, str]:
    """Returns the secrets of webhooks by source. Raises NeedsAttention for one that could be guessed."""
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


_REFS = "/info/refs?service=git-upload-pack"
"""The first request of git, whose redirects it takes for redirects of the repository."""


async def resolve_repository(fetcher: WebFetcher, location: str) -> RemoteAddress:
    """Returns where a repository is after redirects over https, with checked addresses. Raises NotAllowed for a private
    address that is not allowed.
    """
    asked, found = location.rstrip("/") + _REFS, location
    try:
        page = await fetcher.fetch(asked, timeout_s=60.0, max_bytes=1000)
        moved = page.url.removesuffix(_REFS)
        # An address with '=' could not be told to git.
        if page.url not in (asked, moved) and moved.startswith("https://") and "=" not in moved:
            found = moved
        parts = urlsplit(found)
        return RemoteAddress(found, await fetcher.check(parts.hostname or "", parts.port or 443))
    except NotAllowed as error:
        raise NotAllowed(
            "The repository is on a server that may not be reached.",
            code="source_private",
            why=error.message,
            fix="If it is meant to be, an owner adds the server to knowledge.private_hosts, such as git.lan:443. That "
            "does not hold for a source that is for one Discord server alone.",
        ) from error


def _open_video_fetcher(access: VideoAccess) -> WebFetcher:
    """Opens a fetcher that sends the key to the configured server alone, which may be on this machine."""
    server = urlsplit(access.api_url)
    host = f"{server.hostname}:{server.port or (443 if server.scheme == 'https' else 80)}"
    return WebFetcher(allow_private=[host], trusted=[host])


def _html_text(data: bytes) -> ConvertedText:
    from denizen.builtin_skills.page_text import extract_page_text

    page = extract_page_text(data.decode("utf-8-sig", errors="replace"), "")
    title = f"# {page.title}\n\n" if page.title and not page.text.startswith("# ") else ""
    return ConvertedText(f"{title}{page.text}\n" if page.text else "")


def _pdf_text(data: bytes) -> ConvertedText:
    """Reads a PDF in a process of its own; called in a worker thread. The text ends with a note of what is missing.

    Raises Unavailable only for faults of this machine. A PDF that takes too long is not tried again: it would keep its
    source from ever being read.
    """
    read = from_thread.run(read_pdf, data)
    if read.is_temporary:
        raise Unavailable(
            "The PDFs of the source cannot be read now.",
            code="pdf_reader",
            why=read.missing,
            fix="Look at the memory and the limits of processes and open files on this machine, then sync again.",
        )
    return ConvertedText(
        f"{read.text}\n\n[{read.missing}]\n" if read.text and read.missing else read.text, read.missing
    )


def build_sandbox(section: SandboxSection, clock: Clock) -> SandboxPool:
    """Builds the pool for the life of the process; nothing is started yet."""
    return SandboxPool(clock, copy_fields(section, SandboxLimits))


def find_shell_view(
    folders: HomeFolders, agent: AgentName, snapshot: Sequence[tuple[str, Path]] = ()
) -> ShellView | None:
    """Returns the folders that this agent may look into now: its own, the shared one, and those of the snapshot that
    may be seen there (`Library.list_folders`), which keep their names. None when there is nothing.
    """
    named = [(OWN, folders.own_knowledge(agent)), (SHARED, folders.knowledge)]
    named += [(name, folder) for name, folder in snapshot if name not in {OWN, SHARED}]
    found = tuple((name, folder) for name, folder in named if folder.is_dir() and not name.startswith("."))
    return ShellView(found) if found else None


@record
class OwnFiles:
    """The knowledge files that come from no source, by the names that tools give them."""

    folders: HomeFolders

    def list_folders(self, agent: AgentName) -> list[tuple[str, TextFolder]]:
        """Returns the agent's own folder and the shared one, each with what the names of its files begin with."""
        named = [(OWN, self.folders.own_knowledge(agent)), (SHARED, self.folders.knowledge)]
        return [(f"{name}/", TextFolder(folder)) for name, folder in named]

    def read(self, agent: AgentName, path: str) -> str | None:
        """Returns the text of a file; None when it is not one of these, or not there. Blocks."""
        top, _, name = path.partition("/")
        folder = dict(self.list_folders(agent)).get(f"{top}/")
        return folder.find_text(name) if folder is not None and name else None


@record
class KnowledgeShells:
    """Opens shells over documents for skills. `snapshot` has its folders for talk in a community."""

    sandbox: Sandbox
    folders: HomeFolders
    snapshot: Callable[[str], Sequence[tuple[str, Path]]]

    def open(self, scope: CallScope) -> KnowledgeShell | None:
        view = find_shell_view(self.folders, scope.agent, self.snapshot(scope.guild))
        return KnowledgeShell(self.sandbox, view, scope) if view else None


@record
class KnowledgeShell:
    """The read-only shell of one agent in one conversation, whose session it keeps. Everybody who calls a tool over
    HTTP has a conversation of their own.
    """

    sandbox: Sandbox
    view: ShellView
    scope: CallScope

    async def __call__(self, commands: Sequence[str]) -> tuple[ShellResult, ...]:
        """Runs the commands. Raises Unavailable where the system offers no isolation."""
        # A session keeps the folders that it began with, so it belongs to who may see them.
        owner = f"{self.scope.agent}/{self.scope.conversation_id}/{self.scope.guild}"
        reply = await self.sandbox.run(commands, self.view, owner=owner, session_id=self.scope.options.shell_session)
        self.scope.trail.shell = reply
        return reply.results

"""The sections about what agents can look up: `knowledge`, `archive`, `memory`, `embeddings`, `folders` and `sandbox`,
and the context files that stand in prompts.

The sources of knowledge themselves are in the store (`domain/source.py`); people set them with `denizen sources`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, WrapValidator, field_validator, model_validator

from denizen.app.settings.discord import Emoji, Ids
from denizen.app.settings.fields import (
    HttpUrl,
    Language,
    Name,
    Number,
    Secret,
    Section,
    SomeText,
    Text,
    Whole,
    default_section,
    keep_template,
    refuse,
)
from denizen.app.settings.problem import ConfigProblem, KeyPath
from denizen.app.settings.yaml_document import ConfigDocument
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.errors import InvalidInput
from denizen.domain.memory import RecallPolicy
from denizen.domain.proposal import PROPOSED, REFUSED, LearningPolicy, is_same_emoji
from denizen.domain.record import record
from denizen.domain.snapshot import RemoteRepository
from denizen.domain.source import WEEK_MINUTES, GuildSourceLimits, SourceKind, is_branch, read_location
from denizen.domain.video import VideoAccess

_VIDEOS = VideoAccess("")
_LEARNING = LearningPolicy()


def _private_host(value: str) -> str:
    from denizen.adapters.fetch.addresses import AllowList

    try:
        AllowList([value])
    except InvalidInput as error:
        raise refuse(f"{error.message}.", f"{error.fix}.") from error
    return value


PrivateHost = Annotated[SomeText, AfterValidator(_private_host), WrapValidator(keep_template)]


class RemoteSection(Section):
    """A git repository that each new snapshot is pushed to, for people who want to see it elsewhere."""

    repository: Text = Field(
        default="",
        description="`owner/repo` on GitHub, an address for git, or a path, at which an empty repository is made when "
        "there is none. Empty: nothing is pushed.",
    )
    branch: SomeText = Field(default="main", description="The branch that snapshots are pushed to.")
    allow_existing: bool = Field(
        default=False,
        description="Whether the branch of a repository is replaced that has content and was not made by Denizen.",
    )

    @field_validator("repository")
    @classmethod
    def _is_location(cls, repository: str) -> str:
        try:
            return read_location(repository, SourceKind.GIT)[1] if repository else ""
        except InvalidInput as error:
            raise refuse(error.message, error.fix) from error

    @field_validator("branch")
    @classmethod
    def _is_branch(cls, branch: str) -> str:
        if not is_branch(branch):
            raise refuse("this is not the name of a branch.", "Write it as `git branch` shows it.")
        return branch

    @property
    def remote(self) -> RemoteRepository:
        return RemoteRepository(self.repository, self.branch, self.allow_existing)


class YoutubeSection(Section):
    """How channels of YouTube are read that were added as sources. Without a key they are skipped."""

    api_key: Secret = Field(
        default=None, description="A key for the YouTube Data API v3. Without one channels of YouTube are skipped."
    )
    languages: tuple[Language, ...] = Field(
        default=_VIDEOS.languages,
        description="Languages of transcripts, the best first; where none of them is there, any other is taken.",
    )
    api_url: HttpUrl = Field(default=_VIDEOS.api_url, description="Another address of the Data API, such as a proxy's.")
    site_url: HttpUrl = Field(default=_VIDEOS.site_url, description="Another address for transcripts, likewise.")

    def access(self, api_key: str) -> VideoAccess | None:
        """Returns the access with the value of the key; None without one."""
        return VideoAccess(api_key, self.api_url, self.site_url, self.languages) if api_key else None


class LearningSection(Section):
    """Learning an answer of a member with one reaction; an owner or admin accepts it with `denizen gaps accept`."""

    enabled: bool = Field(
        default=_LEARNING.enabled, description="Whether a reaction proposes a message as an answer for the documents."
    )
    emoji: Emoji = Field(default=_LEARNING.emoji, description="That reaction.")
    roles: Ids = Field(
        default=(), description="Ids of roles whose members may propose an answer, beside owners and admins."
    )

    @field_validator("emoji")
    @classmethod
    def _is_free(cls, emoji: str) -> str:
        if not emoji or is_same_emoji(emoji, PROPOSED) or is_same_emoji(emoji, REFUSED):
            raise refuse(f"this emoji has another meaning, or none: {emoji}", "Choose another one, such as 📚.")
        return emoji

    @property
    def policy(self) -> LearningPolicy:
        return LearningPolicy(self.enabled, self.emoji, frozenset(self.roles))


_GUILD_SOURCES = GuildSourceLimits()


class ServerSourcesSection(Section):
    """Sources that people add for a Discord server alone, which they own or manage, on its page."""

    max_sources: Whole = Field(
        default=_GUILD_SOURCES.sources,
        ge=0,
        le=100,
        description="How many each server may have. 0: none; what was added before stays until somebody removes it.",
    )
    max_files: Whole = Field(
        default=_GUILD_SOURCES.files, ge=1, le=200_000, description="How many files are kept of one of them."
    )
    max_mb: Whole = Field(
        default=_GUILD_SOURCES.size_bytes // 1024**2,
        ge=1,
        le=4096,
        description="How much is kept of all that one server has, in megabytes.",
    )

    @property
    def limits(self) -> GuildSourceLimits:
        return GuildSourceLimits(sources=self.max_sources, files=self.max_files, size_bytes=self.max_mb * 1024**2)


class KnowledgeSection(Section):
    """How sources are kept up to date. They are added with `denizen sources add`."""

    sync_every_minutes: Whole = Field(
        default=0,
        ge=0,
        le=WEEK_MINUTES,
        description="How often `denizen run` reads sources again that have no schedule of their own, counted from the "
        "beginning of one sync to the beginning of the next. 0: only when somebody asks for it; channels of the "
        "archive are looked at twice an hour in any case.",
    )

    youtube: YoutubeSection = default_section()
    webhooks: dict[Name, Secret] = Field(
        default_factory=dict[str, Secret],
        description="By the id of a source: the secret with which `POST /api/sync/webhook/ID` has it read.",
    )

    private_hosts: tuple[PrivateHost, ...] = Field(
        default=(),
        description="Servers from which repositories may be read over https although their addresses are private, such "
        "as `git.lan:443`, or networks such as `10.0.0.0/8`.",
    )
    server_sources: ServerSourcesSection = default_section()
    learning: LearningSection = default_section()
    remote: RemoteSection = default_section()

    @property
    def sync_every(self) -> timedelta | None:
        return timedelta(minutes=self.sync_every_minutes) if self.sync_every_minutes else None


NONE = "none"
LOCAL = "local"
_RECALL = RecallPolicy()


class MemorySection(Section):
    """Memories that match a message are shown to the model without its asking, as far as everybody who reads the reply
    may see them. The tools are those of the skill (`tools.memory`).
    """

    max_items: Whole = Field(
        default=_RECALL.max_items, ge=0, le=50, description="How many memories come up with one message; 0: none."
    )
    max_tokens: Whole = Field(
        default=_RECALL.max_tokens, ge=50, le=10_000, description="How long they are together, in estimated tokens."
    )


class EmbeddingsSection(Section):
    """The model that embeds texts, so that they are found by meaning too. Without one they are found by words."""

    provider: Text = Field(
        default="",
        description="`none`; `local` for a model on this machine (the extra `embed`); or the name of a provider of "
        "`models.providers` with OpenAI's embeddings API. Unset: `local` where the extra is installed and the weights "
        "are here, else `none`; nothing is ever downloaded for it.",
    )
    model: Text = Field(
        default="",
        description="Which model of the provider, such as text-embedding-3-small. When it changes, what is remembered "
        "is embedded anew in the background.",
    )
    similarity: Number = Field(
        default=_RECALL.similarity,
        ge=0,
        le=1,
        description="How similar in meaning (cosine) a text has to be to be found by it. Some models call everything "
        "similar, and need more.",
    )

    @property
    def is_served(self) -> bool:
        """Whether a provider of the configuration is asked."""
        return self.provider not in ("", NONE, LOCAL)

    @model_validator(mode="after")
    def _names_a_model(self) -> Self:
        if self.is_served and not self.model:
            fix = "Write model: text-embedding-3-small, or whatever the provider calls it."
            raise refuse("a provider of embeddings needs the name of a model.", fix, key="model")
        if not self.is_served and self.model:
            fix = "Take model out, or name a provider of models.providers."
            raise refuse("only an embeddings provider of models.providers has a choice of models.", fix, key="model")
        return self


class SandboxSection(Section):
    """The resources of the tools `bash` and `bash_batch` and of `denizen shell`. The commands that they may run are one
    fixed list and not configured.
    """

    enabled: bool = Field(
        default=True,
        description="Whether agents have the tools `bash` and `bash_batch`, where there are knowledge folders and the "
        "system can shut programs in.",
    )
    workers: Whole = Field(
        default=2, ge=1, le=32, description="How many lines may run at the same time; each worker takes about 5 MB."
    )
    timeout_s: Number = Field(default=10.0, ge=0.1, le=60, description="How long one command may run, in seconds.")
    batch_timeout_s: Number = Field(
        default=30.0, ge=0.1, le=100, description="How long all commands of one call may run together, in seconds."
    )
    memory_mb: Whole = Field(
        default=512, ge=128, le=16_384, description="How much memory each program of a line may take, in megabytes."
    )

    @model_validator(mode="after")
    def _times_fit(self) -> Self:
        if self.batch_timeout_s < self.timeout_s:
            raise refuse("is less than one command may take.", "Raise it, or lower timeout_s.", key="batch_timeout_s")
        return self


CONTEXT_FOLDER = "context"
KNOWLEDGE_FOLDER = "knowledge"


class FoldersSection(Section):
    """Folders that all agents share, relative to the home folder. An agent's own lie below `agents/<name>/`, under the
    names `context` and `knowledge`.
    """

    context: SomeText = Field(
        default=CONTEXT_FOLDER,
        description="Its Markdown files, sorted by name, stand in the system prompt of every agent that does not skip "
        "them (`skip_global_context`). A change holds from the next message on.",
    )
    knowledge: SomeText = Field(
        default=KNOWLEDGE_FOLDER,
        description="Its text files, folders below it included, can be listed, searched and read by every agent that "
        "may use the tools of the skill `knowledge`.",
    )

    @field_validator("context", "knowledge")
    @classmethod
    def _is_path(cls, value: str) -> str:
        if "\0" in value:
            raise refuse("this cannot be a folder.", "Write a path, such as context or /srv/denizen/context.")
        return value


LIBRARY_FOLDER = "knowledge-snapshots"
"""The snapshots of sources, in the home folder."""
LEARNED_FOLDER = "learned"
"""The accepted answers of people, in the home folder."""
MAX_CONTEXT_BYTES = 128 * 1024
"""The limit for all context files of one agent together, the shared ones included. They are sent with every request."""


@record
class HomeFolders:
    """The paths of the folders, whether they exist or not."""

    home: Path
    section: FoldersSection

    @property
    def context(self) -> Path:
        return self.home / self.section.context

    @property
    def knowledge(self) -> Path:
        return self.home / self.section.knowledge

    @property
    def current_snapshot(self) -> Path:
        """The file that names the snapshot that agents read, once there is one."""
        return self.home / LIBRARY_FOLDER / "current.json"

    def own_context(self, agent: str) -> Path:
        return self.home / "agents" / agent / CONTEXT_FOLDER

    def own_knowledge(self, agent: str) -> Path:
        return self.home / "agents" / agent / KNOWLEDGE_FOLDER

    def has_knowledge(self, agents: Sequence[str]) -> bool:
        """Returns whether there is anything to look into."""
        folders = (self.knowledge, *map(self.own_knowledge, agents))
        return self.current_snapshot.is_file() or any(folder.is_dir() for folder in folders)


@dataclass(slots=True)
class ContextFileReader:
    """Reads the context files of agents. A file that cannot be read becomes a problem, with the place that is to
    blame.
    """

    folders: HomeFolders
    document: ConfigDocument
    problems: list[ConfigProblem] = field(default_factory=list[ConfigProblem])
    _read_before: dict[Path, tuple[tuple[str, str], ...]] = field(
        default_factory=dict[Path, tuple[tuple[str, str], ...]]
    )

    def read(self, agent: str, *, skip_global: bool) -> tuple[tuple[str, str], ...]:
        """Returns (heading, text) pairs: of the shared folder by name, then of the agent's own."""
        shared = () if skip_global else self._folder(self.folders.context, ("folders", "context"))
        own = self._folder(self.folders.own_context(agent), ("agents", agent))
        size = sum(len(text.encode()) for _, text in (*shared, *own))
        if size > MAX_CONTEXT_BYTES:
            message = (
                f"the context files of '{agent}' have {-(-size // 1024)} KiB together, and at most "
                f"{MAX_CONTEXT_BYTES // 1024} KiB go into a prompt."
            )
            fix = "Shorten them, or move what is only looked up now and then into the knowledge folder."
            self._refuse(("agents", agent), message, fix)
        return (*shared, *own)

    def check(self) -> None:
        """Refuses folders that contain the home folder: they would open up everything in it, secrets too."""
        home = self.folders.home.resolve()
        for name, folder in (("context", self.folders.context), ("knowledge", self.folders.knowledge)):
            if home.is_relative_to(folder.resolve()):
                fix = f"Name a folder within it, such as {name}, or one beside it."
                self._refuse(("folders", name), "this folder holds Denizen's home folder.", fix)
            elif folder.exists() and not folder.is_dir():
                self._refuse(("folders", name), f"{folder} is not a folder.", "Name a folder, or move the file away.")

    def _folder(self, folder: Path, path: KeyPath) -> tuple[tuple[str, str], ...]:
        if folder not in self._read_before:
            files = sorted(folder.glob("*.md")) if folder.is_dir() else []
            pairs = ((file.stem, self._text(folder, file, path)) for file in files)
            self._read_before[folder] = tuple(pair for pair in pairs if pair[1])
        return self._read_before[folder]

    def _text(self, folder: Path, file: Path, path: KeyPath) -> str:
        if not file.resolve().is_relative_to(folder.resolve()):
            self._refuse(path, f"'{file.name}' leads out of {folder}.", "Put the file itself there instead of a link.")
            return ""
        try:
            if file.stat().st_size <= MAX_CONTEXT_BYTES:
                return file.read_text(encoding="utf-8-sig").strip()
            fix = "Shorten it, or move it into the knowledge folder."
            self._refuse(path, f"'{file.name}' in {folder} is larger than {MAX_CONTEXT_BYTES // 1024} KiB.", fix)
        except (OSError, UnicodeDecodeError):
            fix = "Make it a UTF-8 text file that Denizen's user may read, or take it away."
            self._refuse(path, f"'{file.name}' in {folder} cannot be read.", fix)
        return ""

    def _refuse(self, path: KeyPath, message: str, fix: str) -> None:
        self.problems.append(self.document.problem(path, message, fix))


_ARCHIVE = ArchivePolicy()


class ArchiveSection(Section):
    """The mirror of the messages on platforms."""

    enabled: bool = Field(default=True, description="Whether messages are kept, so that agents can look them up.")
    channels: Ids = Field(default=(), description="Ids of the channels that are kept, with their threads; empty: all.")
    backfill: bool = Field(
        default=_ARCHIVE.backfill, description="Whether older messages are fetched in the background."
    )
    backfill_per_room: Whole = Field(
        default=_ARCHIVE.backfill_limit_per_room,
        ge=0,
        le=10_000_000,
        description="How many older messages of one channel or thread are fetched at most; 0: all.",
    )
    retention_days: Whole = Field(
        default=_ARCHIVE.retention_days, ge=0, le=36_500, description="Older messages are forgotten; 0: none are."
    )
    embeddings: bool = Field(
        default=_ARCHIVE.embeddings,
        description=(
            "Whether messages are found by meaning too, where there is an embedder (`embeddings`). It costs about 5 ms"
            " of a processor a sentence with the small local model, or what the provider takes for it."
        ),
    )
    opt_out_channels: Ids = Field(default=(), description="Ids of channels that are not kept, nor their threads.")
    opt_out_roles: Ids = Field(default=(), description="Ids of roles whose members' messages are not kept.")
    opt_out_users: Ids = Field(default=(), description="Ids of users whose messages are not kept.")

"""The shape of `knowledge`: how sources are kept up to date. The sources themselves are in the store."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field, field_validator

from denizen.app.settings.fields import HttpUrl, Language, Name, Secret, Section, SomeText, Text, Whole, refuse
from denizen.app.settings.schema_discord import Emoji, Ids
from denizen.domain.errors import InvalidInput
from denizen.domain.proposal import PROPOSED, REFUSED, LearningPolicy, is_same_emoji
from denizen.domain.snapshot import RemoteRepository
from denizen.domain.source import WEEK_MINUTES, SourceKind, is_branch, read_location
from denizen.domain.video import VideoAccess

_NORMAL = VideoAccess("")
_LEARNING = LearningPolicy()


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
        default=_NORMAL.languages,
        description="Languages of transcripts, the best first; where none of them is there, any other is taken.",
    )
    api_url: HttpUrl = Field(default=_NORMAL.api_url, description="Another address of the Data API, such as a proxy's.")
    site_url: HttpUrl = Field(default=_NORMAL.site_url, description="Another address for transcripts, likewise.")

    def access(self, api_key: str) -> VideoAccess | None:
        """With the value of the key; None without one."""
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


class KnowledgeSection(Section):
    """Sources of knowledge are added with `denizen sources add`."""

    sync_every_minutes: Whole = Field(
        default=0,
        ge=0,
        le=WEEK_MINUTES,
        description="How often `denizen run` reads sources again that have no schedule of their own, counted from the "
        "beginning of one sync to the beginning of the next. 0: only when somebody asks for it; channels of the "
        "archive are looked at twice an hour in any case.",
    )

    youtube: YoutubeSection = Field(default_factory=YoutubeSection)
    webhooks: dict[Name, Secret] = Field(
        default_factory=dict[str, Secret],
        description="By the id of a source: the secret with which `POST /api/sync/webhook/ID` has it read.",
    )

    learning: LearningSection = Field(default_factory=LearningSection)
    remote: RemoteSection = Field(default_factory=RemoteSection)

    @property
    def sync_every(self) -> timedelta | None:
        return timedelta(minutes=self.sync_every_minutes) if self.sync_every_minutes else None

"""The shape of `knowledge`: how sources are kept up to date. The sources themselves are in the store."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field, field_validator

from denizen.app.settings.fields import Section, SomeText, Text, Whole, refuse
from denizen.domain.errors import InvalidInput
from denizen.domain.snapshot import Remote
from denizen.domain.source import SourceKind, is_branch, read_location

_WEEK_MINUTES = 7 * 24 * 60


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
    def remote(self) -> Remote | None:
        return Remote(self.repository, self.branch, self.allow_existing) if self.repository else None


class KnowledgeSection(Section):
    """Sources of knowledge are added with `denizen sources add`."""

    sync_every_minutes: Whole = Field(
        default=0,
        ge=0,
        le=_WEEK_MINUTES,
        description="How often `denizen run` reads all sources again, counted from the beginning of one sync to the "
        "beginning of the next. 0: only when somebody asks for it.",
    )

    remote: RemoteSection = Field(default_factory=RemoteSection)

    @property
    def sync_every(self) -> timedelta | None:
        return timedelta(minutes=self.sync_every_minutes) if self.sync_every_minutes else None

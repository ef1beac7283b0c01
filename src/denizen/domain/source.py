"""Sources of knowledge: where documents are read, what of them is kept, and how far each was read. Pure.

What may be written for a location is in `location`; how a kind is read is in `adapters/git`, `files`, `sitemap` and
`youtube`, and in `engine/archive/channel_source`; what is made of what was read is in `snapshot`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import PurePosixPath
from typing import cast

from denizen.domain.errors import InvalidInput
from denizen.domain.ids import derive
from denizen.domain.location import SourceKind, read_location
from denizen.domain.record import record

LEARNED = "learned"
"""The id of the source that has answers of people, which they may take back."""
TEXT_SUFFIXES = frozenset({".md", ".mdx", ".rst", ".txt", ".yml", ".yaml", ".json"})
HTML_SUFFIXES = frozenset({".html", ".htm"})
PDF_SUFFIXES = frozenset({".pdf"})
KEPT_SUFFIXES = TEXT_SUFFIXES | HTML_SUFFIXES | PDF_SUFFIXES
DOCUMENT_SUFFIXES = frozenset({".md", ".mdx"})
WHAT_IS_KEPT = (
    "Kept are Markdown, reStructuredText, text, YAML, JSON, HTML and PDF; nothing that is hidden, and no links."
)
README_NAMES = ("readme.md", "readme.mdx", "readme.rst", "readme.txt", "readme.html")
"""In the order of preference, whatever their case."""

MAX_VIDEOS, MOST_VIDEOS = 50, 1000
"""Videos of a channel: the default number, and the highest that can be set."""
WEEK_MINUTES = 7 * 24 * 60

SKIPPED = frozenset({"youtube_key_missing", "archive_not_connected"})
"""Codes of errors that say that a source cannot be read here and now, with nothing being wrong with it."""

SYNC_REMINDER = timedelta(days=7)
"""People are reminded of a sync when the last one is older."""

READ_AS = "4"
"""Part of the fingerprint: raised when the same source would be kept differently."""

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_NO_ID = re.compile(r"[^a-z0-9._-]+")
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+@-]{0,199}")
_ROOTS = {SourceKind.YOUTUBE: "youtube", SourceKind.ARCHIVE: "archive"}
_GUILD_ROOT = "guild-"
"""The top folders of communities in a snapshot begin with it, followed by the community's id."""
_GUILD = re.compile(r"[0-9]{1,20}")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_MAX_PATH_CHARS = 1000
_MAX_NAME_BYTES = 255


@record(kw_only=True)
class Source:
    """A source of documents. `location` is an address or an absolute path as `read_location` gives it; `branch` (or
    tag) empty means the repository's own choice; only what is below `content_path` is read. Files go to
    `docs/<output_path>/` of a snapshot, or `docs/<id>/` where that is empty; those of channels beside `docs`.
    Of a channel of YouTube the newest `max_videos` are read. `sync_every_minutes` 0 leaves it to the configuration.
    With a `guild`, the platform's id of a community, the source is for talk in that community alone.
    """

    id: str
    kind: SourceKind
    location: str
    label: str = ""
    branch: str = ""
    content_path: str = ""
    output_path: str = ""
    readme_only: bool = False
    max_videos: int = MAX_VIDEOS
    sync_every_minutes: int = 0
    guild: str = ""
    created_at: datetime
    updated_at: datetime

    @property
    def folder(self) -> str:
        """Where its files are in a snapshot: those of a community below a top folder of its own."""
        root = f"{_GUILD_ROOT}{self.guild}" if self.guild else _ROOTS.get(self.kind, "docs")
        return f"{root}/{self.output_path or self.id}"

    @property
    def is_made_by_guild(self) -> bool:
        """Whether it belongs to those who manage the community, as its id says: they see where it is read, and may
        remove it.
        """
        return bool(self.guild) and self.id.startswith(f"{self.guild}-")

    @property
    def is_talk(self) -> bool:
        """Whether it is what people said, who may take it back: it is nowhere but here, and gone when they do."""
        return self.kind is SourceKind.ARCHIVE or self.id == LEARNED

    @property
    def every(self) -> timedelta | None:
        """How often it is read by a schedule of its own."""
        return timedelta(minutes=self.sync_every_minutes) if self.sync_every_minutes else None

    @property
    def fingerprint(self) -> str:
        """Changes with whatever decides what is read."""
        only = "readme" if self.readme_only else "all"
        more = [str(self.max_videos)] if self.kind is SourceKind.YOUTUBE else []
        more += [self.guild] if self.guild else []
        return derive("read", READ_AS, self.kind.value, self.location, self.branch, self.content_path, only, *more)


@record(kw_only=True)
class SourceChange:
    """A change that somebody asks for; None leaves a value as it is, or at its default. Settings have the names of
    `Source`, by which the command line, the web and the store copy them.
    """

    location: str | None = None
    kind: SourceKind | None = None
    label: str | None = None
    branch: str | None = None
    content_path: str | None = None
    output_path: str | None = None
    readme_only: bool | None = None
    max_videos: int | None = None
    sync_every_minutes: int | None = None
    guild: str | None = None

    def apply(self, source: Source) -> Source:
        """Returns the changed source. Raises InvalidInput for a location that cannot be read."""
        given = {name: value for name in _CHANGEABLE if (value := getattr(self, name)) is not None}
        if "location" in given or "kind" in given:
            given["kind"], given["location"] = read_location(given.get("location", source.location), self.kind)
        if self.label is not None:
            given["label"] = self.label.strip()
        for name in {"content_path", "output_path"} & given.keys():
            given[name] = given[name].strip("/")
        return replace(source, **given)


_CHANGEABLE = tuple(each.name for each in fields(SourceChange))
SOURCE_SETTINGS: Mapping[str, type[str | bool | int]] = {
    each.name: cast("type[str | bool | int]", type(cast("object", each.default)))
    for each in fields(Source)
    if each.default is not MISSING
}
"""The settings of a source and their types; each has a default."""


@record(kw_only=True)
class GuildSourceLimits:
    """The limits for what people add for a community that they manage: so many sources (none with 0), which keep so
    many files each and so many bytes together.
    """

    sources: int = 3
    files: int = 2000
    size_bytes: int = 20 * 1024 * 1024


@record(kw_only=True)
class SourceReading:
    """The files kept from one reading of a source. `manifest` names the list of its files, `documents` counts those of
    Markdown, `skipped` files of a kept kind that could not be kept: too large, no text, a name that cannot be.
    `left_out` names the first of those, each with why.
    """

    manifest: str
    files: int
    documents: int
    size_bytes: int
    skipped: int = 0
    left_out: tuple[str, ...] = ()


@record(kw_only=True)
class SourceState:
    """How far a source was read: the last good reading (`taken` None before the first one), and what the last attempt
    came to. `revision` is the commit, or what stands for the state of a folder; without a reading it says nothing.
    """

    source_id: str
    revision: str = ""
    fingerprint: str = ""
    taken: SourceReading | None = None
    synced_at: datetime | None = None
    tried_at: datetime | None = None
    error_code: str = ""
    error: str = ""

    @property
    def is_withheld(self) -> bool:
        """Whether something of it was taken back since it was read, and it was not tried again yet."""
        return self.taken is None and self.tried_at is None

    @property
    def is_skipped(self) -> bool:
        """Whether the last attempt was none: what it takes is not set up, or not at hand in that process."""
        return self.error_code in SKIPPED


class SyncStatus(StrEnum):
    """How far a sync has come."""

    RUNNING = "running"
    DONE = "done"
    PARTIAL = "partial"
    """Some sources could not be read; of those the last good reading stays."""
    FAILED = "failed"
    """No source could be read, or no snapshot be made of what was read."""


@record(kw_only=True)
class SyncRun:
    """One sync. `failed` maps sources (and `(remote)`, to which snapshots are pushed, or `(snapshot)` where none could
    be made) to what was wrong, `skipped` those that were left as they are to why; `snapshot` is what was current when
    it ended, empty where none could be made. `left_out` maps sources to which of their files were not kept, and why.
    """

    id: str
    sources: tuple[str, ...]
    started_at: datetime
    ended_at: datetime | None = None
    status: SyncStatus = SyncStatus.RUNNING
    snapshot: str = ""
    changed: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict[str, str])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    left_out: dict[str, str] = field(default_factory=dict[str, str])


def check_source(source: Source) -> None:
    """Raises InvalidInput for a record that cannot be read, or whose words a program could take for options."""
    if not _ID.fullmatch(source.id) or ".." in source.id:
        fix = "Use lower-case letters, digits, '-', '_' and '.', beginning with a letter or digit, at most 63."
        raise _refuse(f"'{source.id}' cannot be the id of a source.", fix, "id")
    if source.branch and not is_branch(source.branch):
        raise _refuse(f"'{source.branch}' is not the name of a branch.", "Write it as `git branch` shows it.", "branch")
    _check_kind(source)
    if not 1 <= source.max_videos <= MOST_VIDEOS:
        raise _refuse("So many videos are not read.", f"Give a number from 1 to {MOST_VIDEOS}.", "max_videos")
    if not 0 <= source.sync_every_minutes <= WEEK_MINUTES:
        fix = f"Give minutes from 1 to {WEEK_MINUTES}, or 0 to leave it to the configuration."
        raise _refuse("This is no time between two syncs.", fix, "sync_every_minutes")
    for name, path in (("content path", source.content_path), ("output path", source.output_path)):
        if path and (not is_plain_path(path) or path.startswith("-")):
            fix = "Write a path below the root, such as docs/guide, without '..' and without a leading '/'."
            raise _refuse(f"'{path}' cannot be the {name}.", fix, name)
    if _UNSEEN.search(source.label) or len(source.label) > 200:
        raise _refuse("The label is no line of text.", "Write at most 200 characters without line breaks.", "label")
    if source.guild and not _GUILD.fullmatch(source.guild):
        fix = "Write the id of the Discord server, which is digits only."
        raise _refuse("This is not the id of a server.", fix, "guild")
    if read_location(source.location, source.kind)[1] != source.location:
        raise _refuse("The location is not in its full form.", "Write an address or an absolute path.", "location")


def _check_kind(source: Source) -> None:
    if source.kind not in (SourceKind.GIT, SourceKind.FOLDER) and source.readme_only:
        raise _refuse("Only repositories and folders have a README.", "Leave that out.", "readme_only")
    if source.kind is not SourceKind.GIT and source.branch:
        raise _refuse("Only a repository has branches.", "Leave the branch out.", "branch")
    if source.kind in _ROOTS and source.content_path:
        raise _refuse("A channel has no paths.", "Leave the content path out.", "content_path")


def is_open_to(path: str, guild: str) -> bool:
    """Whether talk in that community may see this path of a snapshot, or top folder; without a community only what is
    for everybody. Every reader of documents asks this.
    """
    top = path.partition("/")[0]
    return not top.startswith(_GUILD_ROOT) or (bool(guild) and top == f"{_GUILD_ROOT}{guild}")


def name_source(location: str) -> str:
    """Returns an id from the last part of a location."""
    last = PurePosixPath(re.split(r"[/:]", location.rstrip("/"))[-1]).name.lower()
    return _NO_ID.sub("-", last.removesuffix(".git")).strip("-._")[:40] or "source"


def is_branch(name: str) -> bool:
    """Whether it can be the name of a branch or tag, and is nothing else to git."""
    return _BRANCH.fullmatch(name) is not None and ".." not in name and not name.endswith(("/", ".lock", "."))


def is_plain_path(path: str) -> bool:
    """Whether a relative path stays below its root on any machine, in a form that is the only one."""
    if not path or path.startswith("/") or len(path) > _MAX_PATH_CHARS or _UNSEEN.search(path) or "\\" in path:
        return False
    return all(part not in ("", ".", "..") and len(part.encode()) <= _MAX_NAME_BYTES for part in path.split("/"))


def make_visible(path: str) -> str:
    """A name that somebody else chose, in one line and without what a terminal would obey."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), path)


def is_kept(path: str) -> bool:
    """By its name: whether a file of a source is kept, as it is or as its text. Nothing that is hidden is."""
    parts = PurePosixPath(path).parts
    return PurePosixPath(path).suffix.lower() in KEPT_SUFFIXES and not any(part.startswith(".") for part in parts)


def describe_left_out(taken: SourceReading, *, most: int | None = None) -> str:
    """Which files were not kept, and why, in one line; empty when all were. At most so many are named."""
    if not taken.skipped:
        return ""
    shown = taken.left_out[:most]
    more = taken.skipped - len(shown)
    named = "; ".join([*shown, *([f"{more} more"] if more and shown else [])])
    return f"{taken.skipped} left out{f': {named}' if named else ''}"


def is_sync_due(last_sync_at: datetime | None, now: datetime) -> bool:
    """Whether people are to be reminded of a sync: there was none yet, or the last one is older than a week."""
    return last_sync_at is None or now - last_sync_at > SYNC_REMINDER


def find_readme(names: list[str]) -> str | None:
    """The README among the names of one folder."""
    by_name = {name.lower(): name for name in sorted(names, reverse=True)}
    return next((by_name[name] for name in README_NAMES if name in by_name), None)


def plan_folders(sources: list[Source]) -> str:
    """Returns what is wrong when these write into one snapshot, in one sentence; empty when nothing is."""
    taken: dict[tuple[str, ...], str] = {}
    for source in sources:
        parts = tuple(part.lower() for part in PurePosixPath(source.folder).parts)
        for other, owner in taken.items():
            shorter = min(len(parts), len(other))
            if parts[:shorter] == other[:shorter]:
                return f"The sources '{owner}' and '{source.id}' would write into one folder, {source.folder}."
        taken[parts] = source.id
    return ""


def _refuse(message: str, fix: str, key: str) -> InvalidInput:
    return InvalidInput(message, code="source_invalid", fix=fix, key=key)

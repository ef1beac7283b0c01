"""Sources of knowledge: where documents are read, what of them is kept, and how far each was read. Pure.

How a kind is read is in `adapters/git`, `files` and `sitemap`; what is made of what was read is in `snapshot`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from denizen.domain.errors import InvalidInput
from denizen.domain.ids import derive

TEXT_SUFFIXES = frozenset({".md", ".mdx", ".rst", ".txt", ".yml", ".yaml", ".json"})
HTML_SUFFIXES = frozenset({".html", ".htm"})
PDF_SUFFIXES = frozenset({".pdf"})
KEPT_SUFFIXES = TEXT_SUFFIXES | HTML_SUFFIXES | PDF_SUFFIXES
DOCUMENT_SUFFIXES = frozenset({".md", ".mdx"})
README_NAMES = ("readme.md", "readme.mdx", "readme.rst", "readme.txt", "readme.html")
"""In the order of preference, whatever their case."""

READ_AS = "1"
"""Part of the fingerprint: raised when the same source would be kept differently."""

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_SHORTHAND = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_AT_HOST = re.compile(r"([A-Za-z0-9_.-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?!//)[^\s:][^\s]*")
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+@-]{0,199}")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_PATH_CHARS = 1000
_MAX_NAME_BYTES = 255


class SourceKind(StrEnum):
    GIT = "git"
    """A repository, from anywhere that git reads: https, ssh, a path."""
    FOLDER = "folder"
    """A folder of this machine."""
    SITEMAP = "sitemap"
    """The pages of a web site, by its sitemap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Inventory 2.1, sources. `location` is an address or an absolute path as `read_location` gives it; `branch` (or
    tag) empty means the repository's own choice; only what is below `content_path` is read. Files go to
    `docs/<output_path>/` of a snapshot, or `docs/<id>/` where that is empty.
    """

    id: str
    kind: SourceKind
    location: str
    label: str = ""
    branch: str = ""
    content_path: str = ""
    output_path: str = ""
    readme_only: bool = False
    created_at: datetime
    updated_at: datetime

    @property
    def folder(self) -> str:
        """Where its files are in a snapshot."""
        return f"docs/{self.output_path or self.id}"

    @property
    def fingerprint(self) -> str:
        """Changes with whatever decides what is read."""
        only = "readme" if self.readme_only else "all"
        return derive("read", READ_AS, self.kind.value, self.location, self.branch, self.content_path, only)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What was kept of one reading. `manifest` names the list of its files, `documents` counts those of Markdown,
    `skipped` files of a kept kind that could not be kept: too large, no text, a name that cannot be.
    """

    manifest: str
    files: int
    documents: int
    size_bytes: int
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """How far a source was read: the last good reading (`taken` None before the first one), and what the last attempt
    came to. `revision` is the commit, or what stands for the state of a folder.
    """

    source_id: str
    revision: str = ""
    fingerprint: str = ""
    taken: Taken | None = None
    synced_at: datetime | None = None
    tried_at: datetime | None = None
    error_code: str = ""
    error: str = ""


class SyncStatus(StrEnum):
    RUNNING = "running"
    DONE = "done"
    PARTIAL = "partial"
    """Some sources could not be read; of those the last good reading stays."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRun:
    """One sync. `failed` maps sources (and `(remote)`, to which snapshots are pushed) to what was wrong; `snapshot` is
    what was current when it ended.
    """

    id: str
    sources: tuple[str, ...]
    started_at: datetime
    ended_at: datetime | None = None
    status: SyncStatus = SyncStatus.RUNNING
    snapshot: str = ""
    changed: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict[str, str])


def check_source(source: Source) -> None:
    """Raises InvalidInput for a record that cannot be read, or whose words a program could take for options."""
    if not _ID.fullmatch(source.id) or ".." in source.id:
        fix = "Use lower-case letters, digits, '-', '_' and '.', beginning with a letter or digit, at most 63."
        raise _refuse(f"'{source.id}' cannot be the id of a source.", fix, "id")
    if source.branch and not is_branch(source.branch):
        raise _refuse(f"'{source.branch}' is not the name of a branch.", "Write it as `git branch` shows it.", "branch")
    if source.kind is SourceKind.SITEMAP and source.readme_only:
        raise _refuse("A web site has no README.", "Leave that out.", "readme_only")
    if source.kind is not SourceKind.GIT and source.branch:
        raise _refuse("Only a repository has branches.", "Leave the branch out.", "branch")
    for name, path in (("content path", source.content_path), ("output path", source.output_path)):
        if path and (not is_plain_path(path) or path.startswith("-")):
            fix = "Write a path below the root, such as docs/guide, without '..' and without a leading '/'."
            raise _refuse(f"'{path}' cannot be the {name}.", fix, name)
    if _UNSEEN.search(source.label) or len(source.label) > 200:
        raise _refuse("The label is no line of text.", "Write at most 200 characters without line breaks.", "label")
    if read_location(source.location, source.kind)[1] != source.location:
        raise _refuse("The location is not in its full form.", "Write an address or an absolute path.", "location")


def read_location(text: str, kind: SourceKind | None = None) -> tuple[SourceKind, str]:
    """The kind and the full form of what people write: `owner/repo` on GitHub, an address for git, `user@host:path`, an
    absolute path (a folder unless `kind` says git), the address of a sitemap. Raises InvalidInput.
    """
    given = text.strip()
    if not given or given.startswith("-") or _UNSEEN.search(given) or len(given) > _MAX_PATH_CHARS:
        raise _refuse("This is not the location of a source.", "Write owner/repo, an address or a path.", "location")
    if given.startswith("/") and kind is not SourceKind.SITEMAP:
        path = PurePosixPath(given)
        if ".." in path.parts:
            raise _refuse("The path has '..' in it.", "Write where it leads.", "location")
        return kind or SourceKind.FOLDER, str(path)
    if kind is SourceKind.FOLDER:
        raise _refuse("A folder is given by its absolute path.", "Write it from the root, with '/'.", "location")
    if kind is not SourceKind.SITEMAP and _SHORTHAND.fullmatch(given):
        return SourceKind.GIT, f"https://github.com/{given.removesuffix('.git')}.git"
    if "://" in given:
        return _read_url(given, kind)
    if kind is not SourceKind.SITEMAP and _AT_HOST.fullmatch(given) and "::" not in given:
        return SourceKind.GIT, given
    fix = "Write owner/repo for GitHub, an address such as https://git.example/docs.git, or an absolute path."
    raise _refuse(f"'{given}' is no location that can be read.", fix, "location")


def is_branch(name: str) -> bool:
    """Whether it can be the name of a branch or tag, and is nothing else to git."""
    return _BRANCH.fullmatch(name) is not None and ".." not in name and not name.endswith(("/", ".lock", "."))


def is_plain_path(path: str) -> bool:
    """Whether a relative path stays below its root on any machine, in a form that is the only one."""
    if not path or path.startswith("/") or len(path) > _MAX_PATH_CHARS or _UNSEEN.search(path) or "\\" in path:
        return False
    return all(part not in ("", ".", "..") and len(part.encode()) <= _MAX_NAME_BYTES for part in path.split("/"))


def is_kept(path: str) -> bool:
    """By its name: whether a file of a source is kept, as it is or as its text. Nothing that is hidden is."""
    parts = PurePosixPath(path).parts
    return PurePosixPath(path).suffix.lower() in KEPT_SUFFIXES and not any(part.startswith(".") for part in parts)


def find_readme(names: list[str]) -> str | None:
    """The README among the names of one folder."""
    by_name = {name.lower(): name for name in sorted(names, reverse=True)}
    return next((by_name[name] for name in README_NAMES if name in by_name), None)


def plan_folders(sources: list[Source]) -> str:
    """What is wrong when these write into one snapshot, in one sentence; empty when nothing is."""
    taken: dict[tuple[str, ...], str] = {}
    for source in sources:
        parts = tuple(part.lower() for part in PurePosixPath(source.folder).parts)
        for other, owner in taken.items():
            shorter = min(len(parts), len(other))
            if parts[:shorter] == other[:shorter]:
                return f"The sources '{owner}' and '{source.id}' would write into one folder, {source.folder}."
        taken[parts] = source.id
    return ""


def _read_url(text: str, kind: SourceKind | None) -> tuple[SourceKind, str]:
    """An address that ends with .xml is a sitemap, unless it is said to be something else."""
    is_sitemap = kind is SourceKind.SITEMAP or (kind is None and text.lower().endswith(".xml"))
    if is_sitemap and not text.startswith("https://"):
        raise _refuse("A sitemap is read over https only.", "Write https://.", "location")
    return SourceKind.SITEMAP if is_sitemap else SourceKind.GIT, _read_address(text)


def _read_address(text: str) -> str:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
        parts = urlsplit("")
    del port
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return text
    if not host or host.startswith("-") or parts.scheme not in ("https", "http", "ssh"):
        fix = "Use https://, ssh:// or file:///; `git://` and helpers of git are refused."
        raise _refuse("This address cannot be read by git.", fix, "location")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise _refuse("Without TLS anybody on the way could change what agents read.", "Use https.", "location")
    if parts.password or (parts.username and parts.scheme != "ssh"):
        fix = "Take it out. For a private repository use ssh with a deploy key: ssh://git@host/owner/repo."
        raise _refuse("The address holds a user name or password, which would be kept in the store.", fix, "location")
    if (parts.username or "").startswith("-") or parts.query or parts.fragment:
        raise _refuse("This address cannot be read by git.", "Take out what follows '?' or '#'.", "location")
    return text


def _refuse(message: str, fix: str, key: str) -> InvalidInput:
    return InvalidInput(message, code="source_invalid", fix=fix, key=key)

"""Where a source is read: the kinds there are, and the full form of what people write for one. Pure.

Called by `source`, which checks records with it, and by whoever takes a location from somebody.
"""

from __future__ import annotations

import re
from enum import StrEnum
from ipaddress import ip_address
from pathlib import PurePosixPath
from urllib.parse import SplitResult, unquote, urlsplit

from denizen.domain.errors import InvalidInput

MAX_LOCATION_CHARS = 1000
YOUTUBE = "https://www.youtube.com"

_SHORTHAND = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_AT_HOST = re.compile(r"([A-Za-z0-9_.-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?!//)[^\s:][^\s]*")
_ROOM = re.compile(r"[a-z][a-z0-9_-]{0,30}:[A-Za-z0-9_-]{1,64}")
_DISCORD_ROOM = re.compile(r"discord:\d{1,20}")
_DISCORD_LINK = re.compile(r"https://(?:\w+\.)?discord\.com/channels/\d+/(\d{1,20})(?:/\d+)?/?")
_CHANNEL_ID = re.compile(r"UC[A-Za-z0-9_-]{22}")
_HANDLE = re.compile(r"@[\w.·-]{1,60}")
_USER = re.compile(r"[\w.-]{1,60}")
_YOUTUBE_HOSTS = frozenset({"youtube.com", "www.youtube.com", "m.youtube.com"})
_FOLDER_PAGE = r"/(?P<kind>tree|blob)/(?P<branch>[^/]+)(?:/(?P<below>.+?))?/?"
_GITHUB_REPOSITORY = r"(?P<repository>/[^/]+/[^/]+)"
_GITLAB_REPOSITORY = r"(?P<repository>(?:/[^/]+)+?)"
_GITHUB_PAGES = (re.compile(_GITHUB_REPOSITORY + _FOLDER_PAGE), re.compile(rf"{_GITHUB_REPOSITORY}/[^/]+.*"))
_GITLAB_PAGES = (re.compile(rf"{_GITLAB_REPOSITORY}/-{_FOLDER_PAGE}"), re.compile(rf"{_GITLAB_REPOSITORY}/-/.*"))
"""Pages of a folder or file in a repository, and other pages about a repository."""
_GITHUB_HOSTS = frozenset({"github.com", "www.github.com"})
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class SourceKind(StrEnum):
    """The kind of place from which a source's documents are read."""

    GIT = "git"
    """A repository, from anywhere that git reads: https, ssh, a path."""
    FOLDER = "folder"
    """A folder of this machine."""
    SITEMAP = "sitemap"
    """The pages of a web site, by its sitemap."""
    YOUTUBE = "youtube"
    """The transcripts of a channel's videos."""
    ARCHIVE = "archive"
    """The talk of a community channel that everybody there may read."""


def read_location(text: str, kind: SourceKind | None = None) -> tuple[SourceKind, str]:
    """The kind and the full form of what people write: `owner/repo` on GitHub, an address for git, `user@host:path`, an
    absolute path (a folder unless `kind` says git), the address of a sitemap, a channel of YouTube (`@name`, its id or
    its address), a channel of the archive (`discord:ID`, or its link). Raises InvalidInput.
    """
    given = text.strip()
    if not given or given.startswith("-") or _UNSEEN.search(given) or len(given) > MAX_LOCATION_CHARS:
        raise _refuse("This is not the location of a source.", "Write owner/repo, an address or a path.")
    if _holds_account(given):
        raise _refuse_account()
    if kind is SourceKind.ARCHIVE or (kind is None and _is_room(given)):
        return SourceKind.ARCHIVE, _read_room(given)
    if kind is SourceKind.YOUTUBE or (kind is None and _is_video_channel(given)):
        return SourceKind.YOUTUBE, _read_video_channel(given)
    return _read_documents(given, kind)


def is_on_this_machine(address: str) -> bool:
    """Whether the host of an address is the machine itself, in whatever form its number is written."""
    host = (urlsplit(address).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        number = ip_address(host)
    except ValueError:
        # Programs in C read `127.1` and `0x7f000001` as numbers, too.
        return _NUMBER.fullmatch(host.rpartition(".")[2]) is not None
    number = getattr(number, "ipv4_mapped", None) or number
    return number.is_loopback or number.is_unspecified


def is_shorthand(text: str) -> bool:
    """Whether it may be `owner/repo` on GitHub."""
    return _SHORTHAND.fullmatch(text) is not None


def _read_documents(given: str, kind: SourceKind | None) -> tuple[SourceKind, str]:
    if given.startswith("/") and kind is not SourceKind.SITEMAP:
        path = PurePosixPath(given)
        if ".." in path.parts:
            raise _refuse("The path has '..' in it.", "Write where it leads.")
        return kind or SourceKind.FOLDER, str(path)
    if kind is SourceKind.FOLDER:
        raise _refuse("A folder is given by its absolute path.", "Write it from the root, with '/'.")
    if kind is not SourceKind.SITEMAP and is_shorthand(given):
        return SourceKind.GIT, f"https://github.com/{given.removesuffix('.git')}.git"
    if "://" in given:
        return _read_url(given, kind)
    if kind is not SourceKind.SITEMAP and _AT_HOST.fullmatch(given) and "::" not in given:
        return SourceKind.GIT, given
    fix = "Write owner/repo for GitHub, an address such as https://git.example/docs.git, or an absolute path."
    raise _refuse(f"'{given}' is no location that can be read.", fix)


def _holds_account(given: str) -> bool:
    """Whether it is an address without its scheme, with a user name or password before the host. `user@host:path` is
    none, nor is a path, nor a name that begins with '@'.
    """
    if given.startswith("/") or "://" in given:
        return False
    before, colon, behind = given.partition(":")
    return "@" in behind or (not colon and "@" in before.partition("/")[0][1:])


def _is_room(given: str) -> bool:
    return bool(_DISCORD_ROOM.fullmatch(given) or _DISCORD_LINK.fullmatch(given))


def _read_room(given: str) -> str:
    link = _DISCORD_LINK.fullmatch(given)
    room = f"discord:{link[1]}" if link else given
    if not _ROOM.fullmatch(room):
        fix = "Write discord: and the channel's id, or the link that Discord gives for it."
        raise _refuse(f"'{given}' is no channel of the archive.", fix)
    return room


def _is_video_channel(given: str) -> bool:
    parts = _split(given)
    is_there = parts.scheme in ("http", "https") and parts.netloc.lower() in _YOUTUBE_HOSTS
    return is_there or bool(_HANDLE.fullmatch(given) or _CHANNEL_ID.fullmatch(given))


def _read_video_channel(given: str) -> str:
    """Names like `/c/name` are refused: YouTube itself tells whose they are only to those who search."""
    path = given
    if "://" in given:
        parts = _split(given)
        if parts.netloc.lower() not in _YOUTUBE_HOSTS:
            raise _refuse("This is no address of YouTube.", f"Write {YOUTUBE}/@name.")
        path = unquote(parts.path).strip("/")
    first, _, second = path.partition("/")
    if _CHANNEL_ID.fullmatch(first):
        return f"{YOUTUBE}/channel/{first}"
    if _HANDLE.fullmatch(first):
        return f"{YOUTUBE}/{first}"
    name = second.partition("/")[0]
    if (first == "channel" and _CHANNEL_ID.fullmatch(name)) or (first == "user" and _USER.fullmatch(name)):
        return f"{YOUTUBE}/{first}/{name}"
    fix = "Write its handle (@name) or its id (UC and 22 characters), which the page of the channel shows."
    raise _refuse(f"'{given}' is no channel of YouTube.", fix)


def _read_url(text: str, kind: SourceKind | None) -> tuple[SourceKind, str]:
    """An address that ends with .xml is a sitemap, unless it is said to be something else."""
    is_sitemap = kind is SourceKind.SITEMAP or (kind is None and text.lower().endswith(".xml"))
    if is_sitemap and not text.startswith("https://"):
        message = "A sitemap is read over https only: without TLS anybody on the way could change what agents read."
        raise _refuse(message, "Write https://. Pages of this machine are read as a folder.")
    return SourceKind.SITEMAP if is_sitemap else SourceKind.GIT, _read_address(text, is_sitemap=is_sitemap)


def _read_address(text: str, *, is_sitemap: bool) -> str:
    parts = _split(text)
    host = parts.hostname
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return text
    if not host or host.startswith("-") or parts.scheme not in ("https", "http", "ssh"):
        fix = "Use https://, ssh:// or file:///; `git://` and helpers of git are refused."
        raise _refuse("This address cannot be read by git.", fix)
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise _refuse("Without TLS anybody on the way could change what agents read.", "Use https.")
    if parts.password or (parts.username and parts.scheme != "ssh"):
        raise _refuse_account()
    if better := _find_repository(parts, is_sitemap=is_sitemap):
        message = "This is the address of a page about a repository, not of the repository."
        raise _refuse(message, f"Write {better}.")
    if (parts.username or "").startswith("-") or parts.query or parts.fragment:
        raise _refuse("This address cannot be read by git.", "Take out what follows '?' or '#'.")
    return text


def _find_repository(parts: SplitResult, *, is_sitemap: bool) -> str:
    """Returns the address to write instead of a page about a repository; empty for what may be a repository, or a
    sitemap in one.
    """
    folder, other = _GITHUB_PAGES if parts.hostname in _GITHUB_HOSTS else _GITLAB_PAGES
    page = folder.fullmatch(parts.path) or (None if is_sitemap else other.fullmatch(parts.path))
    if page is None:
        return ""
    more = page.groupdict()
    branch = f" with the branch {more['branch']}" if "branch" in more else ""
    below = f" and the content path {more['below']}" if more.get("kind") == "tree" and more["below"] else ""
    return f"{parts.scheme}://{parts.netloc}{page['repository'].removesuffix('.git')}.git{branch}{below}"


def _split(text: str) -> SplitResult:
    """Nothing at all for what is no address."""
    try:
        parts = urlsplit(text)
        _ = parts.hostname, parts.port
    except ValueError:
        return urlsplit("")
    return parts


def _refuse_account() -> InvalidInput:
    fix = "Take it out. For a private repository use ssh with a deploy key: ssh://git@host/owner/repo."
    return _refuse("The address holds a user name or password, which would be kept in the store.", fix)


def _refuse(message: str, fix: str) -> InvalidInput:
    return InvalidInput(message, code="source_invalid", fix=fix, key="location")

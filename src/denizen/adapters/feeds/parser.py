"""Parses RSS and Atom with feedparser, into plain text.

Only well-formed XML is handed to feedparser. Its other parser, for what is broken, and its cleaning of HTML take
minutes for some texts of a few hundred kB, which a hostile server would send on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import unescape
from html.entities import html5
from io import BytesIO
from typing import Any
from urllib.parse import urljoin
from xml.parsers import expat

import feedparser

from denizen.domain.errors import InvalidInput
from denizen.domain.feed import FeedDocument, FeedItem

MAX_ITEMS = 300
"""So many items of a feed are looked at, from its top."""
MAX_HTML_CHARS = 20_000
MAX_PROLOG_BYTES = 4_000
"""How much may stand before the first element: feedparser takes long over a long one."""

_FIRST_ELEMENT = re.compile(rb"<[A-Za-z_]")
_NAMED = re.compile(rb"&([A-Za-z][A-Za-z0-9]{1,30});")
_library: Any = feedparser
"""It has no types."""
_OF_XML = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})
_HIDDEN = re.compile(r"<(script|style)\b[^<>]*>[^<]*(?:<(?!/)[^<]*)*", re.IGNORECASE)
_BLOCK = re.compile(r"</?(?:p|div|br|li|ul|ol|tr|table|h[1-6]|blockquote|pre)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<!--[^<>]*-->|</?[A-Za-z!][^<>]*>")


def parse_feed(data: bytes, url: str) -> FeedDocument:
    """Returns the feed. `url` completes its relative links. Raises InvalidInput for what is no well-formed feed."""
    about: dict[str, Any] = {}
    text: bytes = _NAMED.sub(_number, _library.encodings.convert_to_utf8({}, data.strip(), about) or b"")
    if _FIRST_ELEMENT.search(text, 0, MAX_PROLOG_BYTES) is None:
        raise _unreadable("it is not XML")
    _check_well_formed(_library.sanitizer.replace_doctype(text)[1])
    # A file object: a text could be taken for the name of a file or for an address.
    parsed: Any = _library.parse(BytesIO(text), sanitize_html=False, resolve_relative_uris=False)
    if not parsed.version or (parsed.bozo and not parsed.entries):
        raise _unreadable("it is neither RSS nor Atom")
    items = (_read_item(each, url) for each in parsed.entries[:MAX_ITEMS])
    title = _plain(str(parsed.feed.get("title", ""))) or url
    return FeedDocument(" ".join(title.split()), tuple(item for item in items if item is not None))


def _number(name: re.Match[bytes]) -> bytes:
    """Returns an entity of HTML by its number, as XML has it; many feeds name some that they do not declare."""
    letters = html5.get(f"{name[1].decode()};", "")
    is_known = letters and name[1] not in _OF_XML
    return "".join(f"&#{ord(letter)};" for letter in letters).encode() if is_known else name[0]


def _check_well_formed(text: bytes) -> None:
    parser = expat.ParserCreate("utf-8")
    try:
        parser.Parse(text, True)  # noqa: FBT003 - it is the whole
    except expat.ExpatError as error:
        why = f"it is no well-formed XML: {expat.ErrorString(error.code)} in line {error.lineno}"
        raise _unreadable(why) from error


def _read_item(entry: Mapping[str, Any], base: str) -> FeedItem | None:
    """Returns the item; None for one that nothing names."""
    link = str(entry.get("link") or "")
    url = urljoin(base, link) if link else ""
    title = " ".join(_plain(str(entry.get("title") or "")).split())
    key = str(entry.get("id") or "") or url or title
    contents: Sequence[Mapping[str, Any]] = entry.get("content") or ()
    html = next((str(each["value"]) for each in contents if each.get("value")), str(entry.get("summary") or ""))
    return FeedItem(key=key, title=title, url=url, text=_plain(html)) if key else None


def _plain(html: str) -> str:
    """Returns HTML as plain text, in time that is proportional to its length."""
    text = _HIDDEN.sub(" ", html[:MAX_HTML_CHARS])
    text = unescape(_TAG.sub("", _BLOCK.sub("\n", text)))
    lines = (" ".join(line.split()) for line in text.splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _unreadable(why: str) -> InvalidInput:
    return InvalidInput(
        "This is no feed that can be read.",
        code="feed_unreadable",
        why=why,
        fix="Give the address of the RSS or Atom feed itself, not of the page that it belongs to.",
    )

"""A web site as a source: the pages that its sitemap lists, one after the other, each as its HTML.

The revision is a digest of the list with its dates of change; where a page has no date, it holds for a day. Only pages
on the sitemap's own host are read, and private addresses are out of reach, as for everything that is fetched.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from html import unescape
from itertools import islice
from posixpath import normpath
from urllib.parse import unquote, urlsplit

from anyio import from_thread, to_thread

from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, NeedsAttention, NotFound, Unavailable
from denizen.domain.record import record
from denizen.domain.source import Source, is_plain_path
from denizen.ports.fetch import FetchedPage, Fetcher
from denizen.ports.source import ReportProgress, SourceFile, SourceTree

__all__ = ["SitemapReader"]


MAX_PAGES = 1000
MAX_SITEMAPS = 20
MAX_ENTRIES = 50_000
"""The limit of the standard for one sitemap."""
MAX_SITEMAP_BYTES = 10_000_000
PAGE_TIMEOUT_S = 30.0

_TAG = re.compile(r"<(/?)(?:[\w.-]{1,50}:)?(\w{1,20})\b[^<>]*>")
"""The pattern takes time in proportion to the text, whatever the text is: it comes from strangers."""
_MAX_WORDS = 2100
_PAGES = frozenset({"text/html", "application/xhtml+xml"})


@record
class _Page:
    url: str
    path: str
    changed: str


class SitemapReader:
    """Reads sites by their sitemap (`denizen.ports.source.SourceReader`)."""

    def __init__(self, fetcher: Fetcher, clock: Clock) -> None:
        self._fetcher = fetcher
        self._clock = clock

    async def look(self, source: Source) -> str:
        return self._revision((await self._list(source))[:MAX_PAGES])

    @asynccontextmanager
    async def open(self, source: Source, report: ReportProgress) -> AsyncGenerator[SourceTree]:
        """Names pages that cannot be read; when most cannot, raises Unavailable at the end."""
        del report
        pages = await self._list(source)
        with closing(self._read(pages)) as files:
            yield SourceTree(self._revision(pages[:MAX_PAGES]), len(pages), files)

    async def forget(self, source_ids: Sequence[str]) -> None:
        """Does nothing: nothing is kept."""

    async def _list(self, source: Source) -> list[_Page]:
        waiting, seen = [source.location], set[str]()
        pages: dict[str, _Page] = {}
        # An index may list sitemaps that are indexes again, also in a circle.
        while waiting and len(seen) < MAX_SITEMAPS:
            address = waiting.pop(0)
            seen.add(address)
            for kind, url, changed in await to_thread.run_sync(_read_entries, await self._fetch_sitemap(address)):
                if kind == "sitemap":
                    is_new = len(waiting) < MAX_SITEMAPS and url not in seen and url not in waiting
                    waiting += [url] if is_new and _host(url) == _host(source.location) else []
                elif _host(url) == _host(source.location) and (path := _path(url, source.content_path)):
                    pages.setdefault(path, _Page(url, path, changed))
        if not pages:
            raise _no_pages(source)
        return list(pages.values())

    async def _fetch_sitemap(self, address: str) -> str:
        got = await self._fetcher.fetch(address, timeout_s=PAGE_TIMEOUT_S, max_bytes=MAX_SITEMAP_BYTES)
        if got.status in (401, 403):
            raise NeedsAttention("The sitemap may not be read.", code="source_denied", why=f"HTTP {got.status}")
        if got.status in (404, 410):
            raise NotFound("There is no such sitemap.", code="source_missing", fix="Check the location.")
        if got.status >= 400:
            raise Unavailable("The sitemap could not be read.", code="source_unavailable", why=f"HTTP {got.status}")
        return got.text

    def _revision(self, pages: Sequence[_Page]) -> str:
        today = "" if all(page.changed for page in pages) else self._clock.now().date().isoformat()
        digest = hashlib.sha256(repr([today, *((page.url, page.changed) for page in pages)]).encode())
        return digest.hexdigest()[:40]

    def _read(self, pages: Sequence[_Page]) -> Generator[SourceFile]:
        """Runs in a worker thread and fetches one page at a time, so as not to burden the site."""
        missed = 0
        wanted, more = pages[:MAX_PAGES], pages[MAX_PAGES:]
        for page in wanted:
            file = self._read_page(page)
            missed += bool(file.lacks)
            yield file
        # A site that is down must not look like one whose pages were removed.
        if missed * 2 > len(wanted):
            raise Unavailable(
                "Most pages of the site could not be read.", code="source_unavailable", why=f"{missed} of {len(wanted)}"
            )
        yield from (_missed(page, f"behind the first {MAX_PAGES} pages") for page in more)

    def _read_page(self, page: _Page) -> SourceFile:
        try:
            got: FetchedPage = from_thread.run(partial(self._fetcher.fetch, page.url, timeout_s=PAGE_TIMEOUT_S))
        except DenizenError as error:
            return _missed(page, (error.why or error.message).rstrip("."))
        if got.status >= 400:
            return _missed(page, f"HTTP {got.status}")
        if got.media_type not in _PAGES:
            return _missed(page, f"{got.media_type or 'of no type'} instead of HTML")
        if _host(got.url) != _host(page.url):
            return _missed(page, "it leads to another site")
        data = got.text.encode(errors="replace")
        return SourceFile(page.path, len(data), lambda: data)


def _missed(page: _Page, why: str) -> SourceFile:
    return SourceFile(page.path, 0, bytes, why)


def _read_entries(text: str) -> list[tuple[str, str, str]]:
    """Blocks: a sitemap may be large."""
    return list(islice(_entries(text), MAX_ENTRIES))


def _entries(text: str) -> Generator[tuple[str, str, str]]:
    """Yields for each entry whether it is a page (`url`) or another sitemap, its address, and its date of change.
    Nothing is expanded or loaded.
    """
    kind, begun, said = "", 0, dict[str, str]()
    for tag in _TAG.finditer(text):
        is_end, name = bool(tag[1]), tag[2]
        if name in {"url", "sitemap"}:
            if is_end and name == kind and said.get("loc"):
                yield kind, unescape(said["loc"]), said.get("lastmod", "")
            kind, said = "" if is_end else name, {}
        elif name in {"loc", "lastmod"} and not is_end:
            begun = tag.end()
        elif name in {"loc", "lastmod"} and kind:
            words = text[begun : min(tag.start(), begun + _MAX_WORDS)].strip()
            words = words.removeprefix("<![CDATA[").removesuffix("]]>").strip()
            said.setdefault(name, "" if "<" in words or "]" in words else words)  # no text with markup in it


def _host(url: str) -> str:
    """Returns the host of an https address; empty for anything else."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    # Sites often list pages with and without www.
    return parts.netloc.lower().removeprefix("www.") if parts.scheme == "https" else ""


def _path(url: str, below: str) -> str:
    """Returns the file path for a page; empty for a page that is not below the content path, or can have no file."""
    given = unquote(normpath(urlsplit(url).path or "/")).strip("/")  # as browsers do: a/../b.html is b.html
    if below and given != below and not given.startswith(f"{below}/"):
        return ""
    stem = given.removeprefix(below).strip("/").removesuffix(".html").removesuffix(".htm") or "index"
    path = f"{stem}.html"
    return path if is_plain_path(path) and not any(part.startswith(".") for part in path.split("/")) else ""


def _no_pages(source: Source) -> NotFound:
    where = f" below {source.content_path}" if source.content_path else ""
    return NotFound(
        f"The sitemap of '{source.id}' lists no page of its site{where}.",
        code="source_empty",
        fix="Look at the location and the content path; what was read before stays.",
    )

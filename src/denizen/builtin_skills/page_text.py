"""Turns an HTML page into text that a model reads well: headings, lists, links; no scripts, menus or hidden parts.

Hidden parts are left out because nobody who looks at the page sees them: they are a place for smuggled instructions.

`parse_html` takes time in proportion to the length of the page. Python's own `html.parser` takes minutes for some
broken pages of a few hundred kB, which a hostile server would send on purpose. This parser follows the standard where
it matters for reading (quoted attributes, raw-text elements, comments, unfinished tags) and builds no tree.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape as resolve_entities
from urllib.parse import urljoin


@dataclass(frozen=True, slots=True)
class HtmlTag:
    """An opening or closing tag; `name` and the names of attributes are in lower case."""

    name: str
    closes: bool = False
    attributes: dict[str, str] = field(default_factory=dict[str, str])


_TAG_START = re.compile(r"<(/?)([A-Za-z][^\s/>]*+)")
_ATTRIBUTE = re.compile(r"""[\s/]*+([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]*+)))?+""")
_HUGE_ENTITY = re.compile(r"&#(?:[0-9]{20,}+|[xX][0-9a-fA-F]{20,}+);?")
"""Numbers that stand for no character; Python refuses to read numbers of thousands of digits."""
_TAG_END = re.compile(r"[\s/=]*+>")
_RAW_TEXT = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style", "textarea", "title")
}


def parse_html(page: str) -> Iterator[HtmlTag | str]:
    """Yields tags and the texts between them, with entities resolved. Text after an unfinished tag or comment is
    dropped.
    """
    at = 0
    while at < len(page):
        start = page.find("<", at)
        if start < 0:
            break
        if start > at:
            yield unescape(page[at:start])
        opening = _TAG_START.match(page, start)
        if opening is None:
            at = _skip_markup(page, start)
            if at == start:
                yield "<"
                at = start + 1
            continue
        attributes, at = _attributes(page, opening.end())
        if at < 0:
            return
        tag = HtmlTag(opening[2].lower(), closes=bool(opening[1]), attributes=attributes)
        yield tag
        if tag.name in _RAW_TEXT and not tag.closes:
            end = _RAW_TEXT[tag.name].search(page, at)
            if end is None:
                return
            if tag.name == "title":
                yield unescape(page[at : end.start()])
            at = end.start()
    if at < len(page):
        yield unescape(page[at:])


def unescape(text: str) -> str:
    """Resolves entities as browsers do."""
    return resolve_entities(_HUGE_ENTITY.sub("\ufffd", text))


def _attributes(page: str, at: int) -> tuple[dict[str, str], int]:
    """Returns the attributes and the position after the tag; -1 when the page ends within it. The first attribute of
    a name counts.
    """
    attributes: dict[str, str] = {}
    while True:
        end = _TAG_END.match(page, at)
        if end is not None:
            return attributes, end.end()
        found = _ATTRIBUTE.match(page, at)
        if found is None:
            return attributes, -1
        value = found[2] or found[3] or found[4] or ""
        attributes.setdefault(found[1].lower(), unescape(value))
        at = found.end()


def _skip_markup(page: str, start: int) -> int:
    """Returns the position after a comment, declaration or stray closing tag; the same position where `<` is only a
    character.
    """
    if page.startswith("<!--", start):
        end = page.find("-->", start + 2)
        return len(page) if end < 0 else end + 3
    if page.startswith(("<!", "<?", "</"), start):
        end = page.find(">", start)
        return len(page) if end < 0 else end + 1
    return start


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SKIPPED = _names(
    "script style noscript template svg canvas iframe object head nav footer aside button select textarea dialog"
)
_VOID = _names("area base br col embed hr img input link meta source track wbr")
_BLOCKS = _names(
    "address article blockquote body dd details div dl dt fieldset figure figcaption form h1 h2 h3 h4 h5 h6 header hr "
    "li main ol p pre section summary table tbody td tfoot th thead tr ul"
)
_LINES = frozenset({"li", "tr", "td", "th", "dt", "dd"})
"""Blocks that follow one another without a blank line."""
_MAIN = frozenset({"main", "article"})
_CLOSED_BY_THE_NEXT = frozenset({"li", "p", "dt", "dd", "tr", "td", "th", "option"})
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_KEPT_SPACE = "\0"
"""Stands for the spaces of preformatted text until all others are tidied."""
_MAX_LINK_CHARS = 300
_MAX_BASE_CHARS = 1000
"""A longer base URL would be parsed for each link anew; links are then completed from its root."""
_MAIN_IS_ENOUGH_CHARS = 200


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a page, with blank lines between paragraphs; links are written `[text](absolute URL)`."""

    title: str
    text: str


def extract_page_text(html: str, url: str) -> PageText:
    """Returns the page's main part where it names one (`main`, `article`), else all of it. `url` completes relative
    links.
    """
    writer = _Writer(url)
    for token in parse_html(html.replace(_KEPT_SPACE, "")):
        if isinstance(token, str):
            writer.write(token)
        elif token.closes:
            writer.close(token.name)
        else:
            writer.open(token)
    main = _tidy(writer.main_text())
    return PageText(
        title=" ".join(writer.title.split())[:300],
        text=main if len(main) >= _MAIN_IS_ENOUGH_CHARS else _tidy(writer.text()),
    )


@dataclass(frozen=True, slots=True)
class _Link:
    """An open `a` element: its depth, its target, and where its text begins among the pieces."""

    depth: int
    href: str
    start: int


class _Writer:
    """Tracks which elements are open, and writes what is visible. Unknown and unbalanced tags do no harm."""

    def __init__(self, url: str) -> None:
        self.title = ""
        self._base = _bounded_base(url)
        self._open: list[HtmlTag] = []
        self._counts: Counter[str] = Counter()
        self._hidden: list[int] = []
        self._link: _Link | None = None
        self._pieces: list[str] = []
        self._main_spans: list[tuple[int, int]] = []
        self._main_start = 0

    def text(self) -> str:
        return "".join(self._pieces)

    def main_text(self) -> str:
        spans = [*self._main_spans, (self._main_start, len(self._pieces))] if self._in_main() else self._main_spans
        return "\n\n".join("".join(self._pieces[start:end]) for start, end in spans)

    def open(self, tag: HtmlTag) -> None:
        """Opens an element."""
        if tag.name == "base" and tag.attributes.get("href"):
            self._base = _bounded_base(_absolute(self._base, tag.attributes["href"]))
        # HTML allows leaving out these end tags.
        if tag.name in _CLOSED_BY_THE_NEXT and self._open and self._open[-1].name == tag.name:
            self.close(tag.name)
        if not self._hidden:
            self._begin(tag)
        if tag.name in _VOID:
            return
        if tag.name in _MAIN and not self._in_main():
            self._main_start = len(self._pieces)
        self._open.append(tag)
        self._counts[tag.name] += 1
        if tag.name in _SKIPPED or _is_hidden(tag):
            self._hidden.append(len(self._open))
        elif tag.name == "a" and not self._hidden:
            self._end_link()
            href = _absolute(self._base, tag.attributes.get("href", ""))
            self._link = _Link(len(self._open), href, len(self._pieces))

    def close(self, name: str) -> None:
        """Closes the nearest open element with that name and all within it; nothing when there is none."""
        while self._counts[name]:
            depth = len(self._open)
            tag = self._open.pop()
            self._counts[tag.name] -= 1
            if self._link and self._link.depth == depth:
                self._end_link()
            if not self._hidden and tag.name in _BLOCKS - _LINES:
                self._pieces.append("\n\n")
            if self._hidden and self._hidden[-1] == depth:
                self._hidden.pop()
            if tag.name in _MAIN and not self._in_main():
                self._main_spans.append((self._main_start, len(self._pieces)))
            if tag.name == name:
                return

    def write(self, text: str) -> None:
        """Writes text of the page, unless it is hidden."""
        if self._open and self._open[-1].name == "title":
            self.title = self.title or text
        elif not self._hidden:
            self._pieces.append(text.replace(" ", _KEPT_SPACE) if self._counts["pre"] else _SPACE.sub(" ", text))

    def _begin(self, tag: HtmlTag) -> None:
        """Writes what stands before an element's text."""
        match tag.name:
            case "br":
                self._pieces.append("\n")
            case "li":
                self._pieces.append("\n- ")
            case "td" | "th":
                self._pieces.append(" | ")
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                self._pieces.append(f"\n\n{'#' * int(tag.name[1])} ")
            case "img":
                alt = " ".join(tag.attributes.get("alt", "").split())[:200]
                self._pieces.append(f"(image: {alt})" if alt else "")
            case name if name in _BLOCKS:
                self._pieces.append("\n" if name in _LINES else "\n\n")
            case _:
                pass

    def _end_link(self) -> None:
        """Turns what was written since the link began into `[text](url)`; without a web address it stays as it is."""
        link, self._link = self._link, None
        if link is None or not link.href.startswith(("http://", "https://")) or len(link.href) > _MAX_LINK_CHARS:
            return
        text = " ".join("".join(self._pieces[link.start :]).split()).lstrip("#-| ")
        del self._pieces[link.start :]
        self._pieces.append(f"[{text}]({link.href})" if text else "")

    def _in_main(self) -> bool:
        return any(self._counts[name] for name in _MAIN)


def _is_hidden(tag: HtmlTag) -> bool:
    attributes = tag.attributes
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden", "").lower() == "true"
        or _HIDING_STYLE.search(attributes.get("style", "")) is not None
    )


def _bounded_base(url: str) -> str:
    """Returns the URL, or its root when it is too long, or nothing when that is too long as well."""
    base = url if len(url) <= _MAX_BASE_CHARS else _absolute(url, "/")
    return base if len(base) <= _MAX_BASE_CHARS else ""


def _absolute(base: str, href: str) -> str:
    try:
        return urljoin(base, href.strip()).partition("#")[0] if href and not href.startswith("#") else ""
    except ValueError:
        return ""


def _tidy(text: str) -> str:
    """Removes spaces at the ends of lines, repeated blank lines and empty list items."""
    lines = [re.sub(r"[ \t\xa0]+", " ", line).strip() for line in text.split("\n")]
    kept = [line for line in lines if line not in {"-", "|", "#"}]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip().replace(_KEPT_SPACE, " ")

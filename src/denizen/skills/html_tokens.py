"""HTML as a stream of tags and texts, in time that grows with the length of the page and no faster.

Python's own `html.parser` takes minutes for some broken pages of a few hundred kB, which a hostile server would send
on purpose. This reader follows the standard where it matters for reading (quoted attributes, raw-text elements,
comments, unfinished tags) and makes no tree. Called by `page_text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape as resolve_entities


@dataclass(frozen=True, slots=True)
class HtmlTag:
    """An opening or closing tag; `name` and the names of attributes are in lower case."""

    name: str
    closes: bool = False
    attributes: dict[str, str] = field(default_factory=dict[str, str])


_TAG_START = re.compile(r"<(/?)([A-Za-z][^\s/>]*+)")
_ATTRIBUTE = re.compile(r"""[\s/]*+([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]*+)))?+""")
_HUGE_ENTITY = re.compile(r"&#(?:[0-9]{20,}+|[xX][0-9a-fA-F]{20,}+);?")
"""Numbers of no character; Python refuses to read those of thousands of digits."""
_TAG_END = re.compile(r"[\s/=]*+>")
_RAW_TEXT = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style", "textarea", "title")
}


def parse_html(page: str) -> Iterator[HtmlTag | str]:
    """Tags and the texts between them, entities resolved. What follows an unfinished tag or comment is dropped."""
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
    """Entities resolved, as browsers do."""
    return resolve_entities(_HUGE_ENTITY.sub("\ufffd", text))


def _attributes(page: str, at: int) -> tuple[dict[str, str], int]:
    """The attributes and the place behind the tag; -1 when the page ends within it. The first of a name wins."""
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
    """Behind a comment, declaration or stray closing mark; the same place where `<` is only a character."""
    if page.startswith("<!--", start):
        end = page.find("-->", start + 2)
        return len(page) if end < 0 else end + 3
    if page.startswith(("<!", "<?", "</"), start):
        end = page.find(">", start)
        return len(page) if end < 0 else end + 1
    return start

"""Reading a page: headings as anchors, links, fenced blocks and code in running text, each with its line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token


@dataclass(frozen=True, slots=True)
class Link:
    """`target` as written: `page.md#anchor`, `#anchor`, an address."""

    line: int
    target: str


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `info` holds the words behind the fence: the language first, then marks."""

    line: int
    info: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """Code in running text."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """One Markdown file; `name` is its path in the repository."""

    path: Path
    name: str
    anchors: frozenset[str]
    links: tuple[Link, ...]
    blocks: tuple[Block, ...]
    spans: tuple[Span, ...]


def list_pages(root: Path) -> list[Path]:
    """The pages at the top and everything below `docs`."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def load_page(path: Path, root: Path) -> Page:
    return read_page(path.read_text(encoding="utf-8"), path, path.relative_to(root).as_posix())


def read_page(text: str, path: Path, name: str) -> Page:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    links: list[Link] = []
    blocks: list[Block] = []
    spans: list[Span] = []
    for token in tokens:
        line = token.map[0] + 1 if token.map else 0
        if token.type == "fence":
            blocks.append(Block(line, tuple(token.info.split()), token.content))
        for child in token.children or ():
            if child.type in ("link_open", "image"):
                target = child.attrGet("href") or child.attrGet("src") or ""
                links.append(Link(line, str(target)))
            elif child.type == "code_inline":
                spans.append(Span(line, child.content))
            elif child.type in ("softbreak", "hardbreak"):
                line += 1
    return Page(path, name, frozenset(_anchors(tokens)), tuple(links), tuple(blocks), tuple(spans))


def _anchors(tokens: list[Token]) -> Iterator[str]:
    """As GitHub makes them: lower case, punctuation gone, blanks to dashes, repetitions numbered."""
    seen: Counter[str] = Counter()
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        words = "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        yield f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor
        seen[anchor] += 1

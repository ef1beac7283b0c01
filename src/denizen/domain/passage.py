"""Passages: documents cut into pieces that are found, read and cited by themselves, each under its headings. Pure.

Lines are counted as `grep -n` and `sed` count them, from 1, so that a passage can be looked up in the file it is from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from denizen.domain.ids import derive
from denizen.domain.record import record
from denizen.domain.terms import index_terms

MAX_CHARS = 1200
"""About what a small embedding model reads (256 tokens), and what a search result can show."""
MIN_CHARS = 300
"""A passage that is full is cut behind a paragraph, if that leaves at least so much of it."""
MAX_TITLE_CHARS = 200
"""The limit for a heading: each passage below it carries it."""
MAX_PASSAGES = 5000
"""The limit of one document; search does not find what follows, only the shell does."""

CUT_AS = "1"
"""Part of every passage's key: raised when the same text would be cut or described differently."""

_MARKED = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINING = "=-~^\"'`*+#.:_<>"
_UNDERLINES = re.compile(rf"([{re.escape(_UNDERLINING)}])\1{{2,}}[ \t]*$")
_MARKDOWN = frozenset({".md", ".mdx"})
_TITLED = _MARKDOWN | {".rst", ".txt"}


@record
class Passage:
    """Lines `first_line` to `last_line` of a document, under its headings, outermost first."""

    number: int
    headings: tuple[str, ...]
    first_line: int
    last_line: int
    text: str

    @property
    def title(self) -> str:
        return " > ".join(self.headings)

    @property
    def described(self) -> str:
        """The text that is searched, by words and by embedding."""
        return f"{self.title}\n{self.text}" if self.headings else self.text


def passage_key(source_id: str, passage: Passage) -> str:
    """The same for the same words in one source, wherever they stand: what was made of them need not be made anew."""
    return derive("psg", CUT_AS, source_id, passage.described)


def searchable_words(path: str, passage: Passage, *, is_german: bool = False) -> str:
    """Returns the terms by which a passage is found, including those of its document's path. Whether it is German is
    told, since a short passage of a German document may not show it.
    """
    return " ".join(index_terms(f"{path} {passage.described}", is_german=is_german))


def split_passages(path: str, text: str) -> list[Passage]:
    """Splits a document into passages in order; each line that is not blank is in one of them, up to MAX_PASSAGES."""
    suffix = PurePosixPath(path).suffix.lower()
    cutter = _Cutter()
    for line in _read_lines(text, suffix):
        if line.title:
            cutter.begin(line)
        cutter.add(line)
        if len(cutter.passages) >= MAX_PASSAGES:
            return cutter.passages[:MAX_PASSAGES]
    cutter.finish()
    return cutter.passages[:MAX_PASSAGES]


@dataclass(slots=True)  # frozen ones take three times as long to make, and there is one for each line
class _Line:
    """`title` and `level` are of a heading that begins with this line. `breaks`: a paragraph ends here."""

    number: int
    text: str
    title: str = ""
    level: int = 0
    is_heading: bool = False
    breaks: bool = False


def _read_lines(text: str, suffix: str) -> Iterator[_Line]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    is_markdown, is_titled = suffix in _MARKDOWN, suffix in _TITLED
    fence, front = "", is_markdown and lines[0] == "---"
    underlines: list[str] = []
    is_underline = False
    for number, line in enumerate(lines, start=1):
        if front:
            front = number == 1 or line != "---"
            yield _Line(number, line)
            continue
        # Most lines are plain, and seen to be so before a pattern has to look.
        marked = _FENCE.match(line) if is_markdown and ("```" in line or "~~~" in line) else None
        if fence or marked:
            fence = _step_fence(fence, line, marked.group(1) if marked else "")
            yield _Line(number, line)
            continue
        if is_underline:
            is_underline = False
            yield _Line(number, line, is_heading=True)
            continue
        heading = _MARKED.match(line) if is_markdown and "#" in line[:4] else None
        if heading:
            title = heading.group(2).rstrip(" \t#").strip()[:MAX_TITLE_CHARS]
            yield _Line(number, line, title, len(heading.group(1)), is_heading=True)
        elif is_titled and number < len(lines) and _is_title(line, lines[number], suffix):
            is_underline = True
            title = line.strip()[:MAX_TITLE_CHARS]
            yield _Line(number, line, title, _level(lines[number][0], suffix, underlines), is_heading=True)
        else:
            yield _Line(number, line, breaks=not line.strip())


def _step_fence(fence: str, line: str, marked: str) -> str:
    """The fence that is open behind this line. It ends with one of its kind, at least as long, and nothing else."""
    if not fence:
        return marked
    closes = marked.startswith(fence) and not line.strip().strip(fence[0])
    return "" if closes else fence


def _is_title(line: str, below: str, suffix: str) -> bool:
    """Underlined, as rst has it; Markdown knows `=` and `-` only, of any length from three here."""
    found = _UNDERLINES.match(below) if below and below[0] in _UNDERLINING else None
    if not found or not line.strip() or line[:1].isspace() or _UNDERLINES.match(line):
        return False
    if suffix in _MARKDOWN:
        return found.group(1) in "=-" and not line.startswith(("-", "*", ">", "|", "+"))
    return len(below.rstrip()) >= len(line.rstrip())


def _level(char: str, suffix: str, underlines: list[str]) -> int:
    """In rst, the order in which the kinds of underline come up."""
    if suffix in _MARKDOWN:
        return 1 if char == "=" else 2
    if char not in underlines:
        underlines.append(char)
    return underlines.index(char) + 1


@dataclass(slots=True)
class _Cutter:
    """Fills one passage after another. A heading without text goes with what follows it."""

    passages: list[Passage] = field(default_factory=list[Passage])
    _stack: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    _held: list[_Line] = field(default_factory=list[_Line])
    _headings: tuple[str, ...] = ()
    _chars: int = 0

    def begin(self, heading: _Line) -> None:
        if any(line.text.strip() and not line.is_heading for line in self._held):
            self.finish()
        while self._stack and self._stack[-1][0] >= heading.level:
            self._stack.pop()
        self._stack.append((heading.level, heading.title))
        self._headings = tuple(title for _, title in self._stack)

    def add(self, line: _Line) -> None:
        if self._chars + len(line.text) + 1 > MAX_CHARS and self._held:
            self._cut()
        if len(line.text) > MAX_CHARS:
            last = (len(line.text) - 1) // MAX_CHARS * MAX_CHARS
            for start in range(0, last, MAX_CHARS):
                self._put(line.number, line.number, line.text[start : start + MAX_CHARS])
            line.text = line.text[last:]
        self._held.append(line)
        self._chars += len(line.text) + 1

    def finish(self) -> None:
        self._emit(len(self._held))

    def _cut(self) -> None:
        """Behind the last paragraph that is far enough, or else behind everything."""
        chars, at = 0, len(self._held)
        for index, line in enumerate(self._held):
            chars += len(line.text) + 1
            if line.breaks and chars >= MIN_CHARS:
                at = index + 1
        self._emit(at)

    def _emit(self, count: int) -> None:
        taken, self._held = self._held[:count], self._held[count:]
        self._chars = sum(len(line.text) + 1 for line in self._held)
        first, end = 0, len(taken)
        while first < end and not taken[first].text.strip():
            first += 1
        while first < end and not taken[end - 1].text.strip():
            end -= 1
        if first < end:
            self._put(taken[first].number, taken[end - 1].number, "\n".join([line.text for line in taken[first:end]]))

    def _put(self, first: int, last: int, text: str) -> None:
        if text.strip():
            self.passages.append(Passage(len(self.passages), self._headings, first, last, text.strip("\n")))

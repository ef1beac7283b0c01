"""Text with citations: where it names places in documents, and how that is shown. Pure.

A text may come in any pieces: what is read and shown does not depend on them, so that a stream shows what stands there
in the end. Only what may become a mark waits for what follows, from its bracket on and for a bounded length, and white
space for the word behind it. The work grows with the text, whatever is in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from denizen.domain.agent import CitationFormat
from denizen.domain.citation import Citation, DocumentRef
from denizen.domain.source import is_plain_path

UNPROVED = "[source not confirmed]"
"""Stands where a citation was that is not proved."""

UNKNOWN = "[[unknown]]"
"""The mark that an agent writes when its documents do not answer. It is taken out and counted as a gap."""

MIN_QUOTED_CHARS = 20
"""Shorter words in quotation marks are a manner of speaking."""

_MARK = re.compile(r"\[`?(?P<inside>[^\[\]\n`]{3,600})`?\]")
_MARK_BEGUN = re.compile(r"\[`?[^\[\]\n`]{0,600}`?\Z")
_LINK = re.compile(r"\([^()\s]{0,600}\)")
_LINK_BEGUN = re.compile(r"(?:\([^()\s]{0,600})?\Z")
_PLACE = re.compile(
    r"(?P<path>[^\s:#]+(?: [^\s:#]+)*\.[A-Za-z0-9]{1,5})"
    r"(?:(?::|#|, ?lines? )L?(?P<first>\d{1,7})(?: ?[-\u2013] ?L?(?P<last>\d{1,7}))?)?"
)
_BETWEEN = re.compile(r"[;,] +(?=[^;,]+\.)")
_FENCE = re.compile(r"\n[ \t>]*(`{3,})")
"""Also in a list or in a quote. Only backticks: not every platform takes `~~~` for code."""
_QUOTED = re.compile(r"[\"\u201c\u201e\u00ab]([^\"\u201c\u201d\u201e\u00ab\u00bb\n]{20,600})[\"\u201d\u201c\u00bb]")
_BLANK_PATH = re.compile(r"\A[A-Za-z0-9_.-]+(/[^/]+)+\Z")


@dataclass(frozen=True, slots=True)
class CitationMark:
    """Where a text names places. `quoted` are words in quotation marks right before it."""

    refs: tuple[DocumentRef, ...]
    quoted: str = ""


class UnmarkedText:
    """Text without the mark for what is unknown."""

    def __init__(self) -> None:
        self._held = ""
        self.has_found = False

    def feed(self, text: str) -> str:
        *before, rest = (self._held + text).split(UNKNOWN)
        self.has_found = self.has_found or bool(before)
        longest = min(len(UNKNOWN) - 1, len(rest))
        kept = next((size for size in range(longest, 0, -1) if UNKNOWN.startswith(rest[-size:])), 0)
        self._held = rest[len(rest) - kept :]
        return "".join([*before, rest[: len(rest) - kept]])

    def finish(self) -> str:
        held, self._held = self._held, ""
        return held


class CitationReader:
    """A text as the marks in it and the text between them, in order. There are no marks in blocks of code. The link
    that is written behind a mark is part of it, and dropped.
    """

    def __init__(self) -> None:
        self._held = ""
        self._before = _Before()
        self._mark: CitationMark | None = None
        """Has been read; its link may follow."""
        self._has_begun = False

    def feed(self, text: str) -> list[str | CitationMark]:
        if not self._has_begun:
            text = text.lstrip()
            self._has_begun = bool(text)
        return self._read(self._held + text)

    def finish(self) -> list[str | CitationMark]:
        return self._read(self._held, is_end=True)

    def _read(self, text: str, *, is_end: bool = False) -> list[str | CitationMark]:
        pieces: list[str | CitationMark] = []
        at = 0
        while True:
            if self._mark is not None:
                if not is_end and _LINK_BEGUN.match(text, at):
                    break
                link = _LINK.match(text, at)
                at = link.end() if link else at
                pieces.append(self._mark)
                self._mark = None
            found = _MARK.search(text, at)
            if found is None:
                begun = None if is_end else _MARK_BEGUN.search(text, at)
                end = begun.start() if begun else len(text)
                pieces.append(self._before.take(text[at:end]))
                at = end
                break
            pieces.append(self._before.take(text[at : found.start()]))
            refs = _read_refs(found["inside"])
            if refs and not self._before.is_code():
                self._mark = CitationMark(refs, self._before.take_quoted())
            else:
                pieces.append(self._before.take(found[0]))
            at = found.end()
        self._held = text[at:]
        return pieces


class _Before:
    """The text in front of a cited place: a block of code, words in quotation marks."""

    def __init__(self) -> None:
        self._new = ["\n"]
        self._line: list[str] = []
        """Since the last mark, or the beginning of the line."""
        self._fence = ""

    def take(self, text: str) -> str:
        self._new.append(text)
        return text

    def is_code(self) -> bool:
        """Whether a bracket here is in a block of code."""
        new = "".join(self._new)
        self._new = []
        for fence in _FENCE.finditer(new):
            if not self._fence:
                self._fence = fence[1]
            elif fence[1].startswith(self._fence):
                self._fence = ""
        _, breaks, rest = new.rpartition("\n")
        if breaks:
            self._line = []
        self._line.append(rest)
        return bool(self._fence)

    def take_quoted(self) -> str:
        """The last words in quotation marks of the sentence, or of the line, that a mark stands behind."""
        line = "".join(self._line)
        self._line = []
        line = line[:-1] if line.endswith((" ", "\t")) else line
        found = list(_QUOTED.finditer(line))
        is_close = bool(found) and len(line) - found[-1].end() <= MIN_QUOTED_CHARS
        return found[-1].group(1) if is_close else ""


class CitationWriter:
    """The text as people see it, without white space around it: `text` and `mark` in order, then `finish`."""

    def __init__(self, style: CitationFormat) -> None:
        self._style = style
        self._notes: dict[Citation, int] = {}
        self._blank: list[str] = []
        """White space that waits for a word behind it."""
        self._has_words = False
        self._ends_with_mark = False
        self._has_space = False
        """Whether the text ends with one that the mark behind it may take."""

    def text(self, text: str) -> str:
        if text.startswith(("(", "[")) and self._is_behind_mark():
            text = f" {text}"  # else what stands behind a mark would be its link
        self._has_space = text.endswith((" ", "\t")) if text else self._has_space
        return self._write(text)

    def mark(self, told: Sequence[Citation]) -> str:
        """`told` says of each of its places whether it is proved."""
        space = self._take_space()
        proved = [each for each in told if each.doubt is None]
        if not proved:
            return self._write(f"{space or ' '}{UNPROVED}", is_mark=True)
        if self._style is CitationFormat.INLINE:
            return self._write(space + " ".join(map(_linked, proved)), is_mark=True)
        if self._style is CitationFormat.FOOTNOTE:
            numbers = (self._notes.setdefault(each, len(self._notes) + 1) for each in proved)
            return self._write(space + "".join(f"[{number}]" for number in numbers), is_mark=True)
        return ""

    def finish(self) -> str:
        """The footnotes."""
        lines = [f"[{number}] {_linked(each)}" for each, number in self._notes.items()]
        return "\n".join(["\n", *lines]) if lines else ""

    def _take_space(self) -> str:
        """The one in front of a mark, which goes with it."""
        if self._is_behind_mark():
            return " "
        if not self._has_space:
            return ""
        self._has_space = False
        self._blank = ["".join(self._blank)[:-1]]
        return " "

    def _is_behind_mark(self) -> bool:
        return self._ends_with_mark and not any(self._blank)

    def _write(self, text: str, *, is_mark: bool = False) -> str:
        words = text.rstrip()
        if not words:
            self._blank += [text] if self._has_words else []
            return ""
        shown = "".join([*self._blank, words]) if self._has_words else words.lstrip()
        self._blank, self._has_words, self._ends_with_mark = [text[len(words) :]], True, is_mark
        return shown


def _linked(citation: Citation) -> str:
    """In angle brackets a link has no preview on Discord."""
    return f"[{citation.ref}](<{citation.link}>)" if citation.link else f"[{citation.ref}]"


def _read_refs(inside: str) -> tuple[DocumentRef, ...]:
    """Nothing unless all of it is places of documents."""
    refs: list[DocumentRef] = []
    for piece in _BETWEEN.split(inside.strip()):
        found = _PLACE.fullmatch(piece.strip().removeprefix("./"))
        # a path below a folder: names of files alone are said of many things
        if found is None or not (is_plain_path(found["path"]) and _BLANK_PATH.match(found["path"])):
            return ()
        first = int(found["first"] or 0)
        last = int(found["last"] or first)
        refs.append(DocumentRef(found["path"], first, max(first, last)))
    return tuple(refs)

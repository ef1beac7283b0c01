"""Text with citations: where it names places in documents, and how that is shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from denizen.domain.agent import CitationFormat
from denizen.domain.citation import Citation, Ref
from denizen.domain.source import is_plain_path

UNPROVED = "[source not confirmed]"
"""Stands where a citation was that is not proved."""

UNKNOWN = "[[unknown]]"
"""What an agent writes when its documents do not answer; taken out, and counted as a gap."""

MIN_QUOTED_CHARS = 20
"""Shorter words in quotation marks are a manner of speaking."""

_BRACKETS = re.compile(r"(?P<space>[ \t]?)\[`?(?P<inside>[^\[\]\n`]{3,600})`?\](?:\([^()\s]{0,600}\))?")
_PLACE = re.compile(
    r"(?P<path>[^\s:#]+(?: [^\s:#]+)*\.[A-Za-z0-9]{1,5})"
    r"(?:(?::|#|, ?lines? )L?(?P<first>\d{1,7})(?: ?[-\u2013] ?L?(?P<last>\d{1,7}))?)?"
)
_BETWEEN = re.compile(r"[;,] +(?=[^;,]+\.)")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_QUOTED = re.compile(r"[\"\u201c\u201e\u00ab]([^\"\u201c\u201d\u201e\u00ab\u00bb\n]{20,600})[\"\u201d\u201c\u00bb]")
_BLANK_PATH = re.compile(r"\A[A-Za-z0-9_.-]+(/[^/]+)+\Z")


@dataclass(frozen=True, slots=True)
class Mark:
    """Where an answer names places: `text[start:end]`, with the space in front. `quoted` are words in quotation marks
    right before it.
    """

    start: int
    end: int
    refs: tuple[Ref, ...]
    quoted: str = ""


class Unmarked:
    """Text that is streamed, without the mark for what is unknown: what may become one waits for what follows."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        text = (self._held + text).replace(UNKNOWN, "")
        longest = min(len(UNKNOWN) - 1, len(text))
        kept = next((size for size in range(longest, 0, -1) if UNKNOWN.startswith(text[-size:])), 0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def finish(self) -> str:
        held, self._held = self._held, ""
        return held


def find_marks(text: str) -> list[Mark]:
    """In order; none in blocks of code."""
    code = list(_code(text))
    marks: list[Mark] = []
    for found in _BRACKETS.finditer(text):
        while code and code[0][1] <= found.start():
            code.pop(0)
        refs = _read_refs(found.group("inside"))
        if refs and not (code and code[0][0] <= found.start()):
            begin = marks[-1].end if marks else 0
            marks.append(Mark(found.start(), found.end(), refs, _quoted_before(text[begin : found.start()])))
    return marks


def show(text: str, marks: Sequence[Mark], find: Callable[[Mark, Ref], Citation], style: CitationFormat) -> str:
    """The answer with its citations as people see them."""
    pieces: list[str] = []
    notes: dict[Citation, int] = {}
    at = 0
    for mark in marks:
        told = [find(mark, ref) for ref in mark.refs]
        proved = [each for each in told if each.doubt is None]
        space = " " if text[mark.start] in " \t" else ""
        pieces.append(text[at : mark.start])
        if not proved:
            pieces.append(f"{space or ' '}{UNPROVED}")
        elif style is CitationFormat.INLINE:
            pieces.append(space + " ".join(map(_linked, proved)))
        elif style is CitationFormat.FOOTNOTE:
            pieces.append(space + "".join(f"[{notes.setdefault(each, len(notes) + 1)}]" for each in proved))
        at = mark.end
        if text[at : at + 1] in ("(", "[") and proved and style is not CitationFormat.NONE:
            pieces.append(" ")  # else what the model wrote behind a proved place would be its link
    shown = "".join([*pieces, text[at:]])
    if notes:
        lines = (f"[{number}] {_linked(each)}" for each, number in notes.items())
        shown = "\n".join([shown.rstrip(), "", *lines])
    return shown


def _linked(citation: Citation) -> str:
    """In angle brackets a link has no preview on Discord."""
    return f"[{citation.ref}](<{citation.link}>)" if citation.link else f"[{citation.ref}]"


def _read_refs(inside: str) -> tuple[Ref, ...]:
    """Nothing unless all of it is places of documents."""
    refs: list[Ref] = []
    for piece in _BETWEEN.split(inside.strip()):
        found = _PLACE.fullmatch(piece.strip().removeprefix("./"))
        if found is None or not _is_path(found["path"]):
            return ()
        first = int(found["first"] or 0)
        last = int(found["last"] or first)
        refs.append(Ref(found["path"], first, max(first, last)))
    return tuple(refs)


def _is_path(path: str) -> bool:
    """Below a folder: names of files alone are said of many things."""
    return is_plain_path(path) and _BLANK_PATH.match(path) is not None


def _quoted_before(text: str) -> str:
    """The last words in quotation marks of the sentence, or of the line, that the mark stands behind."""
    line = text[text.rfind("\n") + 1 :]
    found = list(_QUOTED.finditer(line))
    is_close = bool(found) and len(line) - found[-1].end() <= MIN_QUOTED_CHARS
    return found[-1].group(1) if is_close else ""


def _code(text: str) -> Iterator[tuple[int, int]]:
    begun: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if begun is None:
            begun = fence
        elif fence.group(1).startswith(begun.group(1)):
            yield begun.start(), fence.end()
            begun = None
    if begun is not None:
        yield begun.start(), len(text)

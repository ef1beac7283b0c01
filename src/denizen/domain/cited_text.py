"""Text with citations: where it names places in documents, and how that is shown. Pure.

A text may come in any pieces: what is read and shown does not depend on them, so that a stream shows what stands there
in the end. What may become a place waits for what follows, for a bounded length; all else goes out with the next word.
The work grows with the text, whatever is in it.

A path with the ending of a document is found wherever it stands: in brackets of any kind, as a link's target, behind a
footnote's number, in backticks, or bare. Which of them count:

- A *citation* has to be proved, or it is marked: a path below the folders of documents (`docs/`, `own/`, `shared/`,
  ...) with lines behind it. In square brackets, 【】 or ［］ that hold nothing else, it is one without lines too; and
  any path with lines is, and the name of a document alone.
- A *mention* has to be proved if it is a document's, and else stays as it is, since people talk of files of their own:
  every other path, in prose, in round brackets, in backticks or as a link's target.
- In a block of code, and among other words in backticks, only a path with lines counts, and in a block only where a
  line begins with it: in a command or a sample it cites nothing. Addresses on the web are none of this.

What stands in brackets or in a link is shown as configured when it is proved; what is bare stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from denizen.domain.agent import CitationFormat
from denizen.domain.citation import Citation, DocumentRef
from denizen.domain.cited_place import (
    MAX_PATH_CHARS,
    MAX_SPEC_CHARS,
    RUN,
    CitedPlace,
    may_be_path,
    read_lines,
    read_name,
    read_place,
    read_whole,
)
from denizen.domain.record import record

UNPROVED = "[source not confirmed]"
"""Stands where a citation was that is not proved."""

UNKNOWN = "[[unknown]]"
"""The mark that an agent writes when its documents do not answer. It is taken out and counted as a gap."""

MAX_INSIDE = 600
"""Longer text in brackets or backticks is no citation."""
MAX_WORD_CHARS = 100
MAX_CLAIM_CHARS = 400
MAX_BLANK_CHARS = 20
MAX_SIDE_BY_SIDE = 20


@record
class CitationMark:
    """Where a text names places. `claim` is the sentence, or the part of it, that they are to prove; `also` are places
    that the sentence names besides. `written` is all of it as it was written, `label` the text of the link that it is
    the target of. `is_mention`: it counts only if it is a document's. `is_bare`: it is a part of the sentence.
    """

    refs: tuple[DocumentRef, ...]
    claim: str = ""
    also: tuple[DocumentRef, ...] = ()
    written: str = ""
    label: str = ""
    is_mention: bool = False
    is_bare: bool = False


Piece = str | CitationMark


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
    """A text as the marks in it and the text between them, in order. Marks that stand side by side prove one claim
    together: what stands before them in their sentence, or behind them where they begin it.
    """

    def __init__(self) -> None:
        self._finder = _PlaceFinder()
        self._sentence = _Sentence()
        self._group: list[Piece] = []
        self._behind = ""
        """The text behind the group."""
        self._has_begun = False

    def feed(self, text: str) -> list[Piece]:
        if not self._has_begun:
            text = text.lstrip()
            self._has_begun = bool(text)
        return [told for piece in self._finder.read(text) for told in self._take(piece)]

    def finish(self) -> list[Piece]:
        pieces = [told for piece in self._finder.read("", is_end=True) for told in self._take(piece)]
        return [*pieces, *self._tell()]

    def _take(self, piece: Piece) -> Iterator[Piece]:
        if isinstance(piece, CitationMark):
            if self._group and self._is_beside() and len(self._group) < MAX_SIDE_BY_SIDE:
                self._group += [self._behind, piece] if self._behind else [piece]
                self._behind = ""
            else:
                yield from self._tell()
                self._group = [piece]
        elif not self._group:
            self._sentence.take(piece)
            yield piece
        else:
            self._behind += piece
            if not self._is_beside() and (self._sentence.claim() or is_sentence(self._behind)):
                yield from self._tell()

    def _is_beside(self) -> bool:
        """Whether a mark that comes now is one of the group."""
        return len(self._behind) <= MAX_BLANK_CHARS and not self._behind.strip(_BETWEEN_MARKS)

    def _tell(self) -> Iterator[Piece]:
        group, behind = self._group, self._behind
        self._group, self._behind = [], ""
        claim = self._sentence.claim() or cut_sentence(behind)
        claim = claim if any(map(str.isalnum, claim)) else self._sentence.only_before()
        named = [ref for each in group if isinstance(each, CitationMark) for ref in each.refs]
        for piece in group:
            if isinstance(piece, CitationMark):
                others = tuple(ref for ref in (*self._sentence.named, *named) if ref not in piece.refs)
                yield replace(piece, claim=f"{claim} {piece.label}".strip(), also=others)
            else:
                yield piece
        if group:
            self._sentence.end_claim(named)
        if behind:
            self._sentence.take(behind)
            yield behind


_BETWEEN_MARKS = " \t,;"
_SENTENCE_END = re.compile(r"[.!?…][\"')*_”’»]{0,20}(?=\s)|[。！？\n]")
_BLANKS = re.compile(r"[ \t]+")
_LEAD_IN = re.compile(
    r"(?i)(?:[\s>*+\-#|.:(\[^\],]|\d{1,3}(?=[.)\]])|(?:according|to|as|in|see|per|from|sources?|under|laut|siehe|gem[aä]ß"
    r"|nach|selon|seg[uú]n|voir|zie|volgens|secondo|согласно|根据|the|file|document|page|die|datei)(?!\w))*"
)
"""Words that only lead to a place."""


def is_sentence(text: str) -> bool:
    """Returns whether the text holds the whole of its first sentence, or so much that the rest does not matter."""
    return len(text) > MAX_CLAIM_CHARS or _SENTENCE_END.search(text) is not None


def cut_sentence(text: str) -> str:
    """Returns the first sentence of a text."""
    found = _SENTENCE_END.search(text[: MAX_CLAIM_CHARS + 1])
    return text[: found.end()] if found else text[:MAX_CLAIM_CHARS]


class _Sentence:
    """The part of a sentence that stands in front of the next mark, and behind the marks before it. `named` is what
    those named.
    """

    def __init__(self) -> None:
        self._text = ""
        self._before: list[str] = []
        """The sentences in front of it in its line, without those that a mark stands behind."""
        self.named: list[DocumentRef] = []

    def take(self, text: str) -> None:
        self._text = _BLANKS.sub(" ", self._text + text)
        # A mark right behind the end of a sentence belongs to it.
        said = len(self._text.rstrip(" \t"))
        start = 0
        for found in _SENTENCE_END.finditer(self._text):
            is_line = found[0] == "\n"
            if is_line or found.end() < said:
                sentence = self._text[start : found.end()][-MAX_CLAIM_CHARS:].strip()
                self._before = [] if is_line else [*self._before[-1:], *([sentence] if sentence else [])]
                self.named = []
                start = found.end()
        # With the space that may stand behind the end of a sentence.
        self._text = self._text[start:][-MAX_CLAIM_CHARS - 1 :]

    def claim(self) -> str:
        """Returns nothing where there are only words that lead to a place, such as "According to"."""
        return "" if _LEAD_IN.fullmatch(self._text) else self._text.strip()[-MAX_CLAIM_CHARS:].strip()

    def only_before(self) -> str:
        """Returns the sentence before in the line, if there is one only: "It is so. Source: docs/a.md:3"."""
        return self._before[0] if len(self._before) == 1 else ""

    def end_claim(self, named: Iterable[DocumentRef]) -> None:
        self.named = [*self.named, *named][-MAX_SIDE_BY_SIDE:]
        self._before = []
        self._text = ""


_CLOSING = {"[": "]", "【": "】", "［": "］", "〔": "〕", "(": ")", "（": "）"}
_INSIDE = {opening: re.compile(rf"[^\n\{opening}\{closing}]*") for opening, closing in _CLOSING.items()}
_ROUND = frozenset("(（")
_TRIGGER = re.compile(r"[\[【［〔(（]|`+|[A-Za-z0-9][A-Za-z0-9_.~-]*")
_TICKS = {count: re.compile(rf"(?<!`)`{{{count}}}(?!`)") for count in (1, 2)}
_WEB = re.compile(r"(?i:https?|ftps?|git|ssh|wss?)")
_ADDRESS = re.compile(r"[^\s<>\"'()\[\]{}【】（）`]*")
_WORD = re.compile(r"[A-Za-z0-9_.~-]*")
_NAMED = re.compile(r".+\.[A-Za-z]{2,8}")
_PAREN = re.compile(r"\([^()\n]*")
_LINK = re.compile(r"\([^()\s]{0,600}\)")
_TARGET = re.compile(r"\(\s*(<[^<>\n]{1,600}>|[^()\n]{1,600}?)(?:\s+\"[^\"\n]*\")?\s*\)")
_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*[ \t>]*(`{3,})")
"""Also in a list or in a quote. Only backticks: not every platform takes `~~~` for code."""
_BEGINS_LINE = re.compile(r"[\s>*+\-#/\[({\d.:^|\"'=【（]*(?:(?i:sources?|see|refs?)[:\s]*)?")
_DOCUMENT = re.compile(r"(?i).+\.(?:md|mdx|rst|txt|html|pdf)")
_KEPT_OF_LINE = 200


class _MoreError(Exception):
    """Raised where more text decides, which is not there yet. `at` is where that begins."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


@record
class _PlaceMatch:
    """Pieces, and the part of the text that they stand for."""

    pieces: Sequence[Piece]
    start: int
    end: int


class _PlaceFinder:
    """A text as the places in it and the text between them. Nobody has looked yet what they are to prove."""

    def __init__(self) -> None:
        self._text = ""
        self._is_end = False
        self._line = _Line()
        self._line_end = 0
        self._skipped: re.Pattern[str] | None = None
        """The rest of an address or of an overlong word, which begins no path."""

    def read(self, text: str, *, is_end: bool = False) -> Iterator[Piece]:
        self._text, self._is_end, self._line_end = self._text + text, is_end, 0
        at, is_waiting = 0, False
        while at < len(self._text) and not is_waiting:
            try:
                found = self._find(at)
            except _MoreError as more:
                found, is_waiting = _PlaceMatch((), more.at, more.at), True
            if found.start > at:
                yield self._text[at : found.start]
            yield from found.pieces
            self._line.take(self._text[at : found.end])
            at = found.end
        self._text = self._text[at:]

    def _find(self, at: int) -> _PlaceMatch:
        """Returns the next places, or the end of the line. Raises _MoreError."""
        text = self._text
        if self._skipped is not None:
            match = self._skipped.match(text, at)
            end = match.end() if match else at
            self._skipped = self._skipped if end == len(text) else None
            if end > at:
                return _PlaceMatch((), end, end)
        if at >= self._line_end:
            self._line_end = text.find("\n", at) + 1 or len(text)
        place = at
        while trigger := _TRIGGER.search(text, place, self._line_end):
            char = trigger[0][0]
            if char == "`":
                found = self._read_ticks(trigger)
            elif char in _CLOSING:
                found = None if self._line.is_code else self._read_brackets(trigger.start(), char)
            else:
                found = self._read_word(trigger, at)
            if isinstance(found, _PlaceMatch):
                return found
            place = found or trigger.end()
        return _PlaceMatch((), self._line_end, self._line_end)

    def _need(self, end: int, start: int) -> None:
        """Raises _MoreError where the line may go on within what is looked at."""
        is_whole = self._line_end < len(self._text) or self._text.endswith("\n") or self._is_end
        if not is_whole and end >= len(self._text):
            raise _MoreError(start)

    # --- words ---

    def _read_word(self, trigger: re.Match[str], at: int) -> _PlaceMatch | int | None:
        """A path begins with a word; so does an address on the web. Returns a number to go on from there."""
        text, start, end = self._text, trigger.start(), trigger.end()
        if end - start > MAX_WORD_CHARS:
            self._skipped = _WORD
            return _PlaceMatch((), end, end)
        self._need(end + 2 if text.startswith((":", "#"), end) else end, start)
        if text.startswith("://", end) and _WEB.fullmatch(trigger[0]):
            self._skipped = _ADDRESS
            return _PlaceMatch((), end, end)
        follows = text[end : end + 1]
        if follows in (":", "#") and _NAMED.fullmatch(trigger[0]) and not self._line.is_code:
            return self._read_name(start)
        return self._read_path(start, at) if follows in ("/", "\\") else None

    def _read_name(self, start: int) -> _PlaceMatch | None:
        self._need(start + MAX_WORD_CHARS + MAX_SPEC_CHARS, start)
        place = read_name(self._text, start, self._line_end)
        return self._bare(place, start, place.end) if place else None

    def _read_path(self, start: int, at: int) -> _PlaceMatch | int:
        run = RUN.match(self._text, start, start + MAX_PATH_CHARS)
        end = run.end() if run else start + 1
        if end - start == MAX_PATH_CHARS:
            self._skipped = RUN
            return _PlaceMatch((), end, end)
        self._need(end, start)
        if not may_be_path(self._text[start:end]):
            return end
        self._need(end + 2 * MAX_SPEC_CHARS, start)
        place = read_place(self._text, start, self._line_end)
        if place is None:
            return end
        if self._line.is_code:
            before = (self._line.text + self._text[at : min(start, at + _KEPT_OF_LINE)])[:_KEPT_OF_LINE]
            if not place.has_lines or place.is_guess or not _BEGINS_LINE.fullmatch(before):
                return end
        return self._bare(place, start, place.end)

    def _bare(self, place: CitedPlace, start: int, end: int) -> _PlaceMatch:
        is_meant = place.is_rooted and place.has_lines and not place.is_guess
        mark = CitationMark(place.refs, written=self._text[start:end], is_mention=not is_meant, is_bare=True)
        return _PlaceMatch((mark,), start, end)

    # --- code ---

    def _read_ticks(self, trigger: re.Match[str]) -> _PlaceMatch | None:
        """Code in a line."""
        start, end, count = trigger.start(), trigger.end(), len(trigger[0])
        self._need(end, start)
        if self._line.is_code:
            self._line.close(count)
            return None
        if count not in _TICKS:
            return None
        closing = _TICKS[count].search(self._text, end, min(end + MAX_INSIDE, self._line_end))
        self._need(closing.end() if closing else end + MAX_INSIDE, start)
        if closing is None:
            return None
        inside = self._text[end : closing.start()]
        if place := read_whole(inside):
            place = self._with_lines(place, closing.end(), start)
            return self._bare(place, start, place.end)
        return _PlaceMatch(list(_find_with_lines(self._text[start : closing.end()])), start, closing.end())

    def _with_lines(self, place: CitedPlace, end: int, start: int) -> CitedPlace:
        """The place with the lines that are told behind its brackets."""
        if place.has_lines or len(place.refs) != 1:
            return replace(place, end=end)
        self._need(end + MAX_SPEC_CHARS, start)
        refs, length = read_lines(place.refs[0].path, self._text[end : min(end + MAX_SPEC_CHARS, self._line_end)])
        return replace(place, refs=refs, end=end + length) if refs[0].first_line else replace(place, end=end)

    # --- brackets and links ---

    def _read_brackets(self, start: int, opening: str) -> _PlaceMatch | None:
        text = self._text
        match = _INSIDE[opening].match(text, start + 1, start + MAX_INSIDE + 2)
        closing = match.end() if match else start + 1
        if closing - start - 1 > MAX_INSIDE:
            return None
        self._need(closing, start)
        if text[closing : closing + 1] != _CLOSING[opening]:
            return None
        inside, end = text[start + 1 : closing], closing + 1
        place = read_whole(inside)
        link, target = self._read_link(end, start) if opening == "[" else (end, "")
        if place:
            place = self._with_lines(place, link, start)
            names = all("/" in ref.path or _DOCUMENT.fullmatch(ref.path) for ref in place.refs)
            is_meant = place.has_lines and names if opening not in _ROUND else place.has_lines and place.is_rooted
            is_meant = is_meant or (place.is_rooted and opening not in _ROUND)
            mark = CitationMark(place.refs, written=text[start : place.end], is_mention=not is_meant)
            return _PlaceMatch((mark,), start, place.end)
        linked = read_whole(target) if target else None
        if linked is None or any(isinstance(each, CitationMark) for each in _find_all(inside)):
            return None
        linked = self._with_lines(linked, link, start)
        is_meant = linked.is_rooted and linked.has_lines
        written = text[start : linked.end]
        mark = CitationMark(linked.refs, written=written, label=inside, is_mention=not is_meant)
        return _PlaceMatch((mark,), start, linked.end)

    def _read_link(self, at: int, start: int) -> tuple[int, str]:
        """Returns where the link that begins there ends, and its target."""
        self._need(at, start)
        if not self._text.startswith("(", at):
            return at, ""
        inner = _PAREN.match(self._text, at, at + MAX_INSIDE + 2)
        self._need(inner.end() if inner else at, start)
        target = _TARGET.match(self._text, at, at + MAX_INSIDE + 2)
        link = _LINK.match(self._text, at, at + MAX_INSIDE + 2) or target
        return (link.end() if link else at), (target[1].strip("<>") if target else "")


def _find_all(text: str) -> Iterator[Piece]:
    return _PlaceFinder().read(text, is_end=True)


def _find_with_lines(code: str) -> Iterator[Piece]:
    """Code in a line as the places with lines in it and the rest."""
    at = 0
    for word in _WORD.finditer(code):
        place = read_place(code, word.start(), len(code)) if word[0] and word.start() >= at else None
        if place and place.has_lines and not place.is_guess:
            yield code[at : word.start()]
            written = code[word.start() : place.end]
            yield CitationMark(place.refs, written=written, is_mention=not place.is_rooted, is_bare=True)
            at = place.end
    yield code[at:]


class _Line:
    """How the line begins that is being read, and whether it is in a block of code."""

    def __init__(self) -> None:
        self.text = ""
        self._ticks = 0
        self._fence = 0
        self._is_closed = False

    @property
    def is_code(self) -> bool:
        return bool(self._fence) and not self._is_closed

    def close(self, ticks: int) -> None:
        """A run of backticks in a block: a platform may take it for its end wherever it stands."""
        self._is_closed = self._is_closed or ticks >= self._fence

    def take(self, text: str) -> None:
        *lines, rest = text.split("\n")
        for line in lines:
            self._add(line)
            self._end()
        self._add(rest)

    def _add(self, text: str) -> None:
        self.text += text[: _KEPT_OF_LINE - len(self.text)] if len(self.text) < _KEPT_OF_LINE else ""
        self._ticks += text.count("`")

    def _end(self) -> None:
        begun = _FENCE.match(self.text)
        if self._fence:
            self._fence = 0 if self._is_closed else self._fence
        elif begun and len(begun[1]) == self._ticks:
            self._fence = self._ticks
        self.text, self._ticks, self._is_closed = "", 0, False


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

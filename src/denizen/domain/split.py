"""Splitting an answer into messages of a platform's size, so that each of them still reads and renders well.

The rule is `split`; what must not be cut is found by `markup`. Whatever delivers answers calls this last, after pings
and attachments have been dealt with. Linear in the text's length.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from denizen.domain.markup import Fence, Span, Spans, list_code_spans, list_fences, list_gaps, list_tokens
from denizen.domain.record import record

DISCORD_LIMIT = 2000
"""Code points in one message of a bot."""

MIN_LIMIT = 50
"""Below this there is no room for fences and a line of code between them."""

_GRAPHEME_CHARS = 64
"""How far a hard cut moves back to spare a cluster of marks; a longer one is broken."""

_BLANK_RUN = re.compile(r"\n(?:[ \t]*+\n){2,}+")
_BLANK_LINES = re.compile(r"(?:[ \t]*+\n)*+")
_SPACES = re.compile(r"[^\S\n]*+")
_SENTENCE_END = re.compile(r"""[.!?…]["'”’»)\]*_~|]*+(?=\s)|[。！？｡]["'”’」』）]*+""")
_WHOLE_LINE = re.compile(
    r"^[ \t>]*+(?:(?:[-*+•]|\d{1,9}[.)])[ \t]++\S.*+|\|.*+|#{1,6}[ \t].*+\n*+)", re.MULTILINE
)  # of a list, of a table, and a heading with the space that ties it to what it is about
_EMPHASIS = re.compile(
    r"""
      \*\*(?=[^\s*])(?:[^\n*]++|\*(?!\*))*+\*\*
    | __(?=[^\s_])(?:[^\n_]++|_(?!_))*+__
    | ~~(?=[^\s~])(?:[^\n~]++|~(?!~))*+~~
    | \|\|(?=[^\s|])(?:[^\n|]++|\|(?!\|)|\n(?!\n))*+\|\|
    """,
    re.VERBOSE,
)


def split_text(text: str, *, limit: int = DISCORD_LIMIT, collapse_blank_lines: bool = True) -> list[str]:
    """The text in pieces of at most `limit` code points, none of them blank.

    A piece ends, in its second half, at a blank line, else at a line end, else at a sentence's end; else, wherever, at
    the last space or line end; else hard. Links, URLs and mentions that fit into one piece are never cut.
    Code in fences, lines of lists, tables and headings, inline code, bold text and spoilers stay whole where they fit.
    A fenced block that does not fit is closed at the cut and opened again, with its language, in the next piece; one
    that the text leaves open is closed.

    Nothing is lost except whitespace at cuts and both ends and, unless `collapse_blank_lines` is off, all but one of
    the blank lines in a row outside of code. Raises ValueError for a limit below `MIN_LIMIT`.
    """
    if limit < MIN_LIMIT:
        raise ValueError(f"a limit of {limit} is below {MIN_LIMIT}")
    text = _tidy(text, collapse=collapse_blank_lines)
    if len(text) <= limit:
        return [text] if text else []
    return list(_lay_out(text, limit).cut_pieces())


@record
class _Layout:
    """A text and what in it must not be cut: `tokens` never, `blocks` where there is another way.

    `fences` are those that are too long for one piece; the others are blocks.
    """

    text: str
    limit: int
    fences: Sequence[Fence]
    blocks: Spans
    tokens: Spans

    def cut_pieces(self) -> Iterator[str]:
        place = 0
        while (place := self._skip_space(place)) < len(self.text):
            inside = self._find_fence(place)
            header = f"{inside.opener}\n" if inside else ""
            end = place + self.limit - len(header)
            if end >= len(self.text):
                yield header + self.text[place:].rstrip()
                return
            ahead = self._find_fence(end)
            cut = self._cut_before(ahead, place, end) if ahead else None
            if ahead and cut is None:
                cut = self._cut_code(ahead, place, end)
                piece = self.text[place:cut].rstrip("\n")
                yield f"{header}{piece}\n{ahead.closer}"
            else:
                cut = cut or self._cut_prose(place, inside.end if inside else place, end)
                if piece := self.text[place:cut].rstrip():
                    yield header + piece
            place = cut

    def _skip_space(self, place: int) -> int:
        """Past blank lines, the space in which a line was cut, the end of a block whose code has ended, and an
        indentation that would fill the piece. Whole lines keep theirs.
        """
        start = -1
        while start != place:
            start = place
            fence = self._find_fence(place, or_at_start=True)
            if fence and place < fence.body_start:
                first = _match_end(_BLANK_LINES, self.text, fence.body_start)
                place = min(first, fence.body_end) if first > fence.body_start else place
                continue
            place = _match_end(_BLANK_LINES, self.text, place)
            if fence and place >= fence.body_end:
                place = fence.end
                continue
            content = _match_end(_SPACES, self.text, place)
            is_cut_line = not fence and self.text[place - 1 : place] not in ("", "\n")
            if is_cut_line or content - place > self.limit // 4:
                place = content
        return place

    def _find_fence(self, place: int, *, or_at_start: bool = False) -> Fence | None:
        """The long block in which a place lies: behind its start, and before its end."""
        at = bisect_left(self.fences, place + or_at_start, key=lambda fence: fence.start) - 1
        return self.fences[at] if at >= 0 and place < self.fences[at].end else None

    def _cut_before(self, fence: Fence, place: int, end: int) -> int | None:
        """Where to cut so that the block begins the next piece; None when this piece should hold the first of its code.

        That is so when the block starts in the first half of the piece, and a line of code has room in it.
        """
        if fence.start <= place:
            return None
        line_end = self.text.rfind("\n", fence.body_start, max(end - len(fence.closer), fence.body_start))
        if fence.start < _half(place, end) and line_end > 0 and self.text[fence.body_start : line_end].strip():
            return None
        cut = self._leave_spans(fence.start - 1, place)
        return cut if cut > place and self.text[place:cut].strip() else fence.start

    def _cut_code(self, fence: Fence, place: int, end: int) -> int:
        """A line end of the code, else a space in the second half, else hard. The closing fence has room behind it."""
        floor, top = max(place, fence.body_start), min(end - len(fence.closer) - 1, fence.body_end)
        cut = self.text.rfind("\n", floor + 1, top + 1)
        if cut > 0:
            return cut
        cut = self.text.rfind(" ", _half(floor, top), top)
        return cut + 1 if cut > 0 else _keep_grapheme(self.text, top, floor)

    def _cut_prose(self, place: int, floor: int, end: int) -> int:
        """The best place to cut, not before `floor`: up to there a block of code has its rest."""
        floor = max(floor, _match_end(_SPACES, self.text, place))
        half = max(_half(place, end), floor)
        for cut in (
            self._find_last("\n\n", half, end),
            self._find_last("\n", half, end),
            self._find_last_sentence(half, end),
            max(self._find_last("\n", floor, end), self._find_last(" ", floor, end)),
        ):
            if cut > 0:
                return cut
        cut = self._leave_spans(end, floor)
        if cut == end:
            cut = self._leave_spans(_keep_grapheme(self.text, end, floor), floor)
        if cut > floor:
            return cut
        return floor if floor > place else end

    def _find_last(self, space: str, low: int, high: int) -> int:
        """The last place from `low` to `high` where this whitespace stands and nothing would be broken; -1 for none."""
        cut = self.text.rfind(space, low, high + len(space))
        while cut >= 0 and (span := self._find_around(cut)):
            cut = self.text.rfind(space, low, span[0] + len(space))
        return cut

    def _find_last_sentence(self, low: int, high: int) -> int:
        ends = (match.end() for match in _SENTENCE_END.finditer(self.text, low, high + 1))
        return max((cut for cut in ends if cut <= high and not self._find_around(cut)), default=-1)

    def _leave_spans(self, cut: int, floor: int) -> int:
        """Back to the start of what would be broken there; `floor` when that is no cut any more."""
        while cut > floor and (span := self._find_around(cut)):
            cut = span[0]
        return max(cut, floor)

    def _find_around(self, place: int) -> Span | None:
        return self.tokens.find_around(place) or self.blocks.find_around(place)


def _tidy(text: str, *, collapse: bool) -> str:
    """One kind of line end, no blank lines too many, no space around the text, and no block left open."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").rstrip()
    text = text[_match_end(_BLANK_LINES, text, 0) :]
    fences = list_fences(text)
    if fences and not fences[-1].is_closed:
        last = fences[-1]
        text = f"{text}\n{last.closer}" if text[last.body_start :].strip() else text[: last.start].rstrip()
    if not collapse:
        return text
    # A block reaches from the start of a line to the end of one, so a run of blank lines never lies half in it.
    out: list[str] = []
    place = 0
    for start, end in list_gaps(text, [(fence.start, fence.end) for fence in fences]):
        out += (text[place:start], _BLANK_RUN.sub("\n\n", text[start:end]))
        place = end
    return "".join([*out, text[place:]])


def _lay_out(text: str, limit: int) -> _Layout:
    # A block whose fences would fill half a piece is taken for prose: there is no way to open it again and again.
    fences = [fence for fence in list_fences(text) if len(fence.opener) + len(fence.closer) + 2 <= limit // 2]
    places = [(fence.start, fence.end) for fence in fences]
    spans = list_code_spans(text, fences)
    whole = [span for span in places if span[1] - span[0] <= limit]
    for start, end in list_gaps(text, places):
        whole += [match.span() for match in _WHOLE_LINE.finditer(text, start, end)]
        whole += [match.span() for match in _EMPHASIS.finditer(text, start, end)]
    tokens = list_tokens(text, sorted([*places, *spans]))
    return _Layout(
        text=text,
        limit=limit,
        fences=[fence for fence in fences if fence.end - fence.start > limit],
        blocks=Spans(span for span in (*whole, *spans) if span[1] - span[0] <= limit),
        tokens=Spans(span for span in tokens if span[1] - span[0] <= limit),
    )


def _keep_grapheme(text: str, cut: int, floor: int) -> int:
    """The nearest place at or before `cut` that is not inside of what people see as one character."""
    for place in range(cut, max(floor, cut - _GRAPHEME_CHARS), -1):
        if not _joins(text, place):
            return place
    return cut


def _joins(text: str, place: int) -> bool:
    """Whether the characters on both sides of this place are drawn as one: marks, emoji sequences, flags, Hangul."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if before.isascii() and after.isascii():
        return False
    if "\u200d" in (before, after) or unicodedata.category(after).startswith("M"):
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return True
    if _is_flag_letter(after):
        letters = next((n for n in range(_GRAPHEME_CHARS) if not _is_flag_letter(text[place - n - 1 : place - n])), 0)
        return letters % 2 == 1
    return "\u1160" <= after <= "\u11ff" and ("\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3")


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _half(start: int, end: int) -> int:
    return start + (end - start) // 2


def _match_end(pattern: re.Pattern[str], text: str, place: int) -> int:
    match = pattern.match(text, place)
    return match.end() if match else place

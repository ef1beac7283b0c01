"""Where things stand in a text that a chat platform will render: code, links, mentions; and taking pieces out of it.

Only places are found here. What may be done at them is said by `split`, `pings` and `data_uri`, which call this. The
dialect is Discord's: fences may be indented, quoted or stand behind a list marker, and a fence of backticks is also
closed at the end of a line of code. Every function takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from denizen.domain.record import record

Span = tuple[int, int]
"""Start and end of a piece of a text, in code points; the end is not part of it."""

_OPENER = re.compile(
    r"^(?P<prefix>[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?)"
    r"(?P<fence>`{3,}+(?=[^`\n]*$)|~{3,}+(?=[^~\n]*$))(?P<info>.*)$",
    re.MULTILINE,
)
_TILDES = r"^[ \t>]*+~{%d,}+[ \t]*+$"
_BACKTICKS = r"(?<!`)`{%d,}+[ \t]*+$"
_TICKS_OR_GAP = re.compile(r"`++|\n[ \t]*+(?=\n)")
_TOKEN = re.compile(
    r"""
      !?\[(?:[^\[\]\n\\]++|\\.|\[[^\[\]\n]*+\])*+\]        # [text](place "title")
        \((?:<[^<>\n]*+>|(?:[^\s()\\]++|\\.|\([^\s()]*+\))*+)(?:[ \t]++(?:"[^"\n]*+"|'[^'\n]*+'))?[ \t]*+\)
    | <(?:@[!&]?\d++|\#\d++|a?:\w++:\d++|t:-?\d++(?::[a-zA-Z])?|/[^<>\n:]{1,100}+:\d++)>
    | <?\b(?:https?|ftp|discord)://[^\s<>。、，）」』】！？]++>?
    """,
    re.VERBOSE,
)
_PAIRS = frozenset({'""', "''", "()", "[]"})
_HOLE = "\ufdd0"
_HOLE_LINE = re.compile(rf"^[ \t]*+{_HOLE}[{_HOLE} \t]*+(?:\n|\Z)((?:[ \t]*+\n)*+)", re.MULTILINE)
_HOLE_IN_LINE = re.compile(rf"(?<![ \t])([ \t]*+){_HOLE}[{_HOLE} \t]*+")


@record(kw_only=True)
class Fence:
    """A fenced block of code. Its code is `text[body_start:body_end]`; `start` and `end` hold the fences as well.

    `opener` and `closer` are the lines that open the block again and close it early. A block that is never closed
    reaches to the end of the text.
    """

    start: int
    body_start: int
    body_end: int
    end: int
    opener: str
    closer: str
    is_closed: bool


def list_fences(text: str) -> list[Fence]:
    """The fenced blocks in order."""
    found: list[Fence] = []
    place = 0
    while opening := _OPENER.search(text, place):
        marks, indent = opening["fence"], re.sub(r"[^ \t>]", " ", opening["prefix"])
        body_start = min(opening.end() + 1, len(text))
        body_end = end = len(text)
        pattern = (_BACKTICKS if marks[0] == "`" else _TILDES) % len(marks)
        closing = re.compile(pattern, re.MULTILINE).search(text, body_start)
        if closing is not None:
            line_start = text.rfind("\n", 0, closing.start()) + 1
            is_alone = not text[line_start : closing.start()].strip(" \t>")
            body_end = max(body_start, line_start) if is_alone else closing.start()
            end = closing.end()
        fence = Fence(
            start=opening.start(),
            body_start=body_start,
            body_end=body_end,
            end=end,
            opener=indent + marks + opening["info"].rstrip(),
            closer=indent + marks,
            is_closed=closing is not None,
        )
        found.append(fence)
        place = end
    return found


def list_code_spans(text: str, fences: Sequence[Fence]) -> list[Span]:
    """The spans of inline code outside of the fences, with their backticks. A span does not reach over a blank line."""
    found: list[Span] = []
    for start, end in list_gaps(text, [(fence.start, fence.end) for fence in fences]):
        ticks: list[Span] = []
        for match in _TICKS_OR_GAP.finditer(text, start, end):
            if match.group().startswith("`"):
                ticks.append(match.span())
            else:
                found += _pair(text, ticks)
                ticks = []
        found += _pair(text, ticks)
    return found


def list_tokens(text: str, code: Sequence[Span]) -> list[Span]:
    """Lists the pieces outside of code that must not be cut: links, URLs, mentions, custom emoji, timestamps.

    A link whose text holds a span of code is one token. `code` is sorted and does not overlap.
    """
    inside = Spans(code)
    found: list[Span] = []
    place = 0
    while match := _TOKEN.search(text, place):
        around = inside.find_around(match.start())
        if around is None:
            found.append(match.span())
        place = around[1] if around else match.end()
    return found


def list_gaps(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Returns the pieces of the text between sorted spans, without empty ones."""
    place = 0
    for start, end in spans:
        if start > place:
            yield place, start
        place = max(place, end)
    if place < len(text):
        yield place, len(text)


class Spans:
    """Sorted spans, asked for the one around a place. Of those that overlap the first stays, the longest if several."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, spans: Iterable[Span]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            if not self._ends or start >= self._ends[-1]:
                self._starts.append(start)
                self._ends.append(end)

    def find_around(self, place: int, *, or_at_start: bool = False) -> Span | None:
        """The span that a cut at this place would break; with `or_at_start` also the one that begins there."""
        at = (bisect_right if or_at_start else bisect_left)(self._starts, place) - 1
        return (self._starts[at], self._ends[at]) if at >= 0 and place < self._ends[at] else None


def replace_spans(text: str, edits: Iterable[tuple[Span, str]], *, tight: str = "") -> str:
    """The text with sorted spans replaced. Around what is replaced by nothing the space is tidied.

    Lines that become empty go, two words do not grow together, and no space is left at a line's end or before one of
    the characters in `tight`.
    """
    pieces: list[str] = []
    place = 0
    for (start, end), new in edits:
        pieces += (text[place:start].replace(_HOLE, ""), new or _HOLE)
        place = end
    if not pieces:
        return text
    pieces.append(text[place:].replace(_HOLE, ""))
    lined = _HOLE_LINE.sub(_close_line, "".join(pieces))
    return _HOLE_IN_LINE.sub(lambda hole: _close(hole, tight), lined)


def _close_line(hole: re.Match[str]) -> str:
    before = hole.string[max(0, hole.start() - 2) : hole.start()]
    return "" if before in ("", "\n", "\n\n") else hole.group(1)


def _close(hole: re.Match[str], tight: str) -> str:
    before, after = hole.string[max(0, hole.start() - 1) : hole.start()], hole.string[hole.end() : hole.end() + 1]
    if before in ("", "\n"):
        return hole.group(1)
    if after in ("", "\n") or before + after in _PAIRS or after in tight:
        return ""
    return " "


def _pair(text: str, ticks: Sequence[Span]) -> Iterator[Span]:
    """A run of backticks opens a span that the next run of the same length closes."""
    last = {end - start: at for at, (start, end) in enumerate(ticks)}
    at = 0
    while at < len(ticks):
        start, end = ticks[at]
        is_escaped = end - start == 1 and text[start - 1 : start] == "\\"
        if not is_escaped and last[end - start] > at:
            size = end - start
            at = next(later for later in range(at + 1, len(ticks)) if ticks[later][1] - ticks[later][0] == size)
            yield start, ticks[at][1]
        at += 1

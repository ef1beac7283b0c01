"""The guard against an answer that goes on to speak for others. Pure.

A model that reads a transcript may write the next lines of it too. A line that begins with a known name and a colon,
angle brackets around the name or not, ends the answer before that line. At the very beginning it is no fragment: the
agent's own name there is an echo, and is taken away; anybody else's stays.

Names are taken literally. The first line with anything in it is the beginning.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from denizen.domain.record import record

_FORMS = ("{}:", "<{}:", "{}>:", "<{}>:")


@record
class SpeakerNames:
    """How an agent is called where it talks, and who else talks there."""

    own: str
    others: frozenset[str]

    def guard(self) -> ImpersonationFilter:
        return ImpersonationFilter(self.own, self.others)


@dataclass(slots=True)
class ImpersonationFilter:
    """For one answer. `feed` the pieces as they come, in any pieces; then `finish`. Once `is_hit`, nothing follows."""

    own: str
    names: Iterable[str]
    is_hit: bool = False
    _own: tuple[str, ...] = field(init=False)
    _all: tuple[str, ...] = field(init=False)
    _held: str = ""
    _open: tuple[str, ...] | None = None
    """The marks that the held text may still become; None within a line."""
    _is_first: bool = True
    _skips: bool = False
    """After an echo, white space goes too."""

    def __post_init__(self) -> None:
        self._own = _marks([self.own])
        self._all = _marks([self.own, *self.names])
        self._open = self._own

    def feed(self, piece: str) -> str:
        """Returns the text that may be shown now. Only the beginning of what may become a name is held back."""
        shown: list[str] = []
        rest = piece
        while rest and not self.is_hit:
            if self._open is not None:
                rest = self._look(rest, shown)
                continue
            end = rest.find("\n") + 1
            shown.append(rest[:end] if end else rest)
            rest = rest[end:] if end else ""
            self._open = self._all if end else None
        return "".join(shown)

    def _look(self, rest: str, shown: list[str]) -> str:
        """Takes one character at the beginning of a line; returns what is left."""
        char, rest = rest[0], rest[1:]
        if self._skips and char.isspace():
            return rest
        if self._skips:
            self._skips, self._open = False, None
            return char + rest
        self._held += char
        if self._is_first and not self._held.strip():
            return rest
        text = self._held.lstrip() if self._is_first else self._held
        self._open = tuple(mark for mark in self._open or () if mark.startswith(text))
        if not self._open:
            begins = len(self._held) - len(text)
            held = self._release()
            end = held.find("\n", begins) + 1  # a name's beginning, then a new line
            shown.append(held[:end] if end else held)
            self._open = self._all if end else None
            return held[end:] + rest if end else rest
        if text in self._open:
            if not self._is_first:
                self.is_hit = True
            self._skips = self._is_first
            self._release()
        return rest

    def _release(self) -> str:
        held, self._held, self._is_first = self._held, "", False
        return held

    def finish(self) -> str:
        """Returns the text that was held back and became no name."""
        return "" if self.is_hit else self._release()


def _marks(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(form.format(name) for name in dict.fromkeys(names) if name.strip() for form in _FORMS)

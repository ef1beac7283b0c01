"""Expands words as bash does: braces, then variables with splitting at blanks, then file name patterns."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from denizen.adapters.sandbox.inside.braces import MAX_WORDS, open_braces
from denizen.adapters.sandbox.inside.globs import GlobWalker, compile_pattern, is_pattern
from denizen.adapters.sandbox.inside.words import Char, CommandRefusedError, Parameter, Word

MAX_VALUE_CHARS = 10_000
"""The limit for the value of a variable."""
_BLANK = frozenset(" \t\n")


class DeadlineError(Exception):
    """The time was over while words were expanded."""


@dataclass(slots=True)
class Expander:
    """Expands words, until the `deadline`. `depth` is how far the current folder lies below the top; all words of a
    command share one `walk`, which bounds how many names their patterns look at.
    """

    variables: dict[str, str] = field(default_factory=dict[str, str])
    depth: int = 0
    status: int = 0
    deadline: float = math.inf
    walk: GlobWalker = field(default_factory=GlobWalker)

    def expand_words(self, words: tuple[Word, ...]) -> list[str]:
        """Returns the arguments that the words become. Raises CommandRefusedError."""
        return [text for word in words for text in self.expand(word)]

    def expand(self, word: Word) -> list[str]:
        """Returns the arguments that the word becomes, in bash's order. Raises CommandRefusedError, DeadlineError."""
        found: list[str] = []
        for opened in open_braces(word):
            self._check_time()
            for chars in self._split(opened):
                text = "".join(char for char, _ in chars)
                found += (self.walk.match(chars, self.depth) or [text]) if is_pattern(chars) else [text]
            if len(found) > MAX_WORDS:
                raise CommandRefusedError(
                    f"a word becomes more than {MAX_WORDS} arguments", "Use find or grep -r instead of patterns."
                )
        return found

    def expand_value(self, word: Word) -> str:
        """Returns the one text that the word is as the value of a variable. Raises CommandRefusedError."""
        text = "".join(self.find_value(piece) if isinstance(piece, Parameter) else piece[0] for piece in word)
        if len(text) > MAX_VALUE_CHARS:
            raise CommandRefusedError(f"the value of a variable is longer than {MAX_VALUE_CHARS} characters")
        return text

    def find_value(self, parameter: Parameter) -> str:
        """Returns the value. A variable that is not set is empty, as in bash."""
        if parameter.name == "?":
            return str(self.status)
        value = self.variables.get(parameter.name, "")
        if parameter.trim == "length":
            return str(len(value))
        return self._trim(value, parameter) if parameter.trim else value

    def _split(self, word: Word) -> Iterator[tuple[Char, ...]]:
        """Puts in the values of variables; a value that is not quoted is split at its blanks."""
        chars: list[Char] = []
        for piece in word:
            if not isinstance(piece, Parameter):
                chars.append(piece)
                continue
            value = self.find_value(piece)
            if piece.is_quoted:
                chars += [(char, True) for char in value] or [("", True)]
                continue
            if ("$", False) in word:
                raise CommandRefusedError(f"a `$` stands in one word with `{piece.name}`", f'Write "${piece.name}".')
            if "\\" in value and any(char in "*?[" for char in value):
                raise CommandRefusedError(
                    f"the value of `{piece.name}` is read as a pattern", f'Write "${piece.name}".'
                )
            for char in value:
                if char not in _BLANK:
                    chars.append((char, False))
                elif chars:
                    yield tuple(chars)
                    chars = []
        if chars:
            yield tuple(chars)

    def _trim(self, value: str, parameter: Parameter) -> str:
        """Takes the shortest (`%`, `#`) or longest (`%%`, `##`) part that matches from the end or the beginning."""
        pattern = compile_pattern(tuple((char, False) for char in parameter.pattern))
        is_end, is_longest = parameter.trim[0] == "%", len(parameter.trim) == 2
        lengths = range(len(value) + 1)
        for length in reversed(lengths) if is_longest else lengths:
            self._check_time()
            cut = len(value) - length
            if pattern.fullmatch(value[cut:] if is_end else value[:length]):
                return value[:cut] if is_end else value[length:]
        return value

    def _check_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise DeadlineError

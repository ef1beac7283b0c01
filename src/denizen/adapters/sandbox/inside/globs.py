"""Matches file name patterns as bash does.

A pattern that matches a name beginning with `-` gives `./-name`, so that no file name becomes an option.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from denizen.adapters.sandbox.inside.paths import check_path
from denizen.adapters.sandbox.inside.words import Char, CommandRefusedError

MAX_LOOKED_AT = 200_000
"""The limit for the names that the patterns of a command may look at."""

Pattern = tuple[Char, ...]


def is_pattern(text: Iterable[Char]) -> bool:
    return any(char in {"*", "?", "["} and not quoted for char, quoted in text)


def compile_pattern(pattern: Pattern) -> re.Pattern[str]:
    return re.compile(_to_regex(pattern), re.DOTALL)


@dataclass(slots=True)
class GlobWalker:
    """Matches names in folders and counts how many it looked at."""

    looked_at: int = 0

    def match(self, pattern: Pattern, depth: int) -> list[str]:
        """Returns the names in bash's order, none where nothing matches. Raises CommandRefusedError."""
        text = "".join(char for char, _ in pattern)
        check_path(text, depth)
        if "//" in text:
            raise CommandRefusedError("there is a doubled / in a file name pattern", "Write one.")
        parts: list[Pattern] = [()]
        for char in pattern:
            if char[0] == "/":
                parts.append(())
            else:
                parts[-1] = (*parts[-1], char)
        found = sorted(self._follow("", parts))
        # bash gives `-name` here, which the program would read as an option.
        return [f"./{name}" if name.startswith("-") else name for name in found]

    def _follow(self, before: str, parts: list[Pattern]) -> Iterator[str]:
        part, rest = parts[0], parts[1:]
        if not is_pattern(part):
            name = before + "".join(char for char, _ in part)
            if rest:
                yield from self._follow(f"{name}/", rest)
            elif os.path.lexists(name):
                yield name
            return
        regex = compile_pattern(part)
        wants_hidden = "".join(char for char, _ in part).startswith(".")
        for name in self._names(before):
            if name.startswith(".") and not wants_hidden:
                continue
            if regex.fullmatch(name) is None:
                continue
            if not rest:
                yield before + name
            elif Path(before + name).is_dir():
                yield from self._follow(f"{before}{name}/", rest)

    def _names(self, folder: str) -> list[str]:
        try:
            names = [entry.name for entry in os.scandir(folder or ".")]
        except OSError:
            return []
        self.looked_at += len(names)
        if self.looked_at > MAX_LOOKED_AT:
            raise CommandRefusedError("the patterns look at too many files", "Use find with -name, or name a folder.")
        return names


def _to_regex(part: Pattern) -> str:
    """Returns the pattern as a regular expression. Between two stars each piece takes the first place that fits and
    never another (an atomic group), so that no name takes long to match.
    """
    pieces: list[str] = [""]
    at = 0
    while at < len(part):
        char, quoted = part[at]
        if (char, quoted) == ("*", False):
            pieces.append("")
        elif quoted or char not in "?[":
            pieces[-1] += re.escape(char)
        elif char == "[" and (closing := _closing(part, at)):
            pieces[-1] += _bracket(part[at + 1 : closing])
            at = closing
        else:
            pieces[-1] += "." if char == "?" else r"\["
        at += 1
    first, *middle = pieces
    if not middle:
        return first
    last = middle.pop()
    return first + "".join(f"(?>.*?{piece})" for piece in middle if piece) + ".*" + last


def _closing(part: Pattern, start: int) -> int:
    """Returns where the bracket ends; 0 for a bracket that is not closed."""
    at = start + 1
    if part[at : at + 1] in {(("!", False),), (("^", False),)}:
        at += 1
    for place in range(at + 1, len(part)):
        if part[place] == ("]", False):
            return place
    return 0


def _bracket(inner: Pattern) -> str:
    if ("", True) in inner:
        raise CommandRefusedError(
            "empty quotes stand in a bracket of a file name pattern", "Leave them out, or quote the pattern."
        )
    if any(part[0][0] == "[" and part[1][0] in ":=." for part in pairwise(inner)):
        raise CommandRefusedError(
            "classes in file name patterns are not known here", "Quote the pattern if it is for grep."
        )
    is_negated = inner[0] in {("!", False), ("^", False)}
    chars = inner[1:] if is_negated else inner
    made: list[str] = []
    at = 0
    while at < len(chars):
        if at + 2 < len(chars) and chars[at + 1] == ("-", False):
            low, high = chars[at][0], chars[at + 2][0]
            if low > high:
                raise CommandRefusedError(
                    "a range in a file name pattern goes backwards", "Quote the pattern if it is for grep."
                )
            made.append(f"{re.escape(low)}-{re.escape(high)}")
            at += 3
        else:
            made.append(re.escape(chars[at][0]))
            at += 1
    return f"[{'^' if is_negated else ''}{''.join(made)}]"

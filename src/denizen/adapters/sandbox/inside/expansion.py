"""Expands braces and file name patterns of a word as bash does, and checks that paths stay below the top folder.

A pattern that matches a name beginning with `-` gives `./-name`, so that no file name becomes an option. The system
underneath shows nothing outside of the top folder anyway; but where it can only forbid reading (Landlock without
namespaces), a path that leads outside could still tell whether something exists there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from denizen.adapters.sandbox.inside.words import Char, CommandRefusedError, Word


def check_path(path: str, depth: int) -> None:
    """Raises CommandRefusedError for a path outside of the top folder, other than /dev/null.

    `depth` is how far the current folder lies below the top: that many `..` may stand at the beginning.
    """
    if path == "/dev/null":
        return
    if path.startswith("/"):
        raise CommandRefusedError(
            f"`{_cut(path)}` is an absolute path",
            "Write paths relative to the top folder, such as docs/guide.md or `.`.",
        )
    parts = [part for part in path.split("/") if part not in {"", "."}]
    ups = 0
    while ups < len(parts) and parts[ups] == "..":
        ups += 1
    if ups > depth or ".." in parts[ups:]:
        raise CommandRefusedError(
            f"`{_cut(path)}` leads out of the top folder", "Write paths without `..`, relative to the top folder."
        )


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


MAX_WORDS = 10_000
"""The limit for one word. More arguments would soon not fit the kernel's limit for a command line."""
MAX_LOOKED_AT = 200_000
"""The limit for the names that the patterns of a line may look at."""
_BRACE_FIX = "Write {a,b} without nesting, or put the braces into quotes."


def expand(word: Word, depth: int, walk: GlobWalker) -> list[str]:
    """Returns the arguments that the word becomes, in bash's order. Raises CommandRefusedError.

    `depth` is how far the current folder lies below the top; all words of a line share one `walk`.
    """
    found: list[str] = []
    for each in _open_braces(word):
        if not each:
            continue
        text = "".join(char for char, _ in each)
        found += (_match(each, text, depth, walk) or [text]) if _is_pattern(each) else [text]
        if len(found) > MAX_WORDS:
            raise CommandRefusedError(
                f"a word becomes more than {MAX_WORDS} arguments", "Use find or grep -r instead of patterns."
            )
    return found


def _open_braces(word: Word) -> list[Word]:
    braces = [place for place, (char, quoted) in enumerate(word) if char in {"{", "}"} and not quoted]
    if not braces:
        return [word]
    pairs = list(zip(braces[::2], braces[1::2], strict=False))
    is_flat = len(braces) % 2 == 0 and all(word[a][0] == "{" and word[b][0] == "}" for a, b in pairs)
    if (",", False) not in word and ".." not in "".join(char for char, _ in word):
        return [word]  # braces without a choice mean themselves
    if not is_flat or not all((",", False) in word[a:b] for a, b in pairs):
        raise CommandRefusedError("these braces are not understood", _BRACE_FIX)
    opened: list[Word] = [()]
    end = 0
    for start, stop in pairs:
        before = word[end:start]
        choices = list(_split(word[start + 1 : stop]))
        opened = [(*head, *before, *choice) for head in opened for choice in choices]
        if len(opened) > MAX_WORDS:
            raise CommandRefusedError(f"a word becomes more than {MAX_WORDS} arguments", _BRACE_FIX)
        end = stop + 1
    return [(*head, *word[end:]) for head in opened]


def _split(inner: Word) -> Iterator[Word]:
    choice: list[Char] = []
    for char in inner:
        if char == (",", False):
            yield tuple(choice)
            choice = []
        else:
            choice.append(char)
    yield tuple(choice)


def _is_pattern(word: Iterable[Char]) -> bool:
    return any(char in {"*", "?", "["} and not quoted for char, quoted in word)


def _match(word: Word, text: str, depth: int, walk: GlobWalker) -> list[str]:
    check_path(text, depth)
    if "//" in text:
        raise CommandRefusedError("there is a doubled / in a file name pattern", "Write one.")
    parts: list[Word] = [()]
    for char in word:
        if char[0] == "/":
            parts.append(())
        else:
            parts[-1] = (*parts[-1], char)
    found = sorted(walk.follow("", parts))
    # bash gives `-name` here, which the program would read as an option.
    return [f"./{name}" if name.startswith("-") else name for name in found]


@dataclass(slots=True)
class GlobWalker:
    """Matches names in folders and counts how many it looked at."""

    looked_at: int = 0

    def follow(self, before: str, parts: list[Word]) -> Iterator[str]:
        part, rest = parts[0], parts[1:]
        if not _is_pattern(part):
            name = before + "".join(char for char, _ in part)
            if rest:
                yield from self.follow(f"{name}/", rest)
            elif os.path.lexists(name):
                yield name
            return
        regex = re.compile(_to_regex(part), re.DOTALL)
        wants_hidden = "".join(char for char, _ in part).startswith(".")
        for name in self._names(before):
            if name.startswith(".") and not wants_hidden:
                continue
            if regex.fullmatch(name) is None:
                continue
            if not rest:
                yield before + name
            elif Path(before + name).is_dir():
                yield from self.follow(f"{before}{name}/", rest)

    def _names(self, folder: str) -> list[str]:
        try:
            names = [entry.name for entry in os.scandir(folder or ".")]
        except OSError:
            return []
        self.looked_at += len(names)
        if self.looked_at > MAX_LOOKED_AT:
            raise CommandRefusedError("the patterns look at too many files", "Use find with -name, or name a folder.")
        return names


def _to_regex(part: Word) -> str:
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


def _closing(part: Word, start: int) -> int:
    """Returns where the bracket ends; 0 for a bracket that is not closed."""
    at = start + 1
    if part[at : at + 1] in {(("!", False),), (("^", False),)}:
        at += 1
    for place in range(at + 1, len(part)):
        if part[place] == ("]", False):
            return place
    return 0


def _bracket(inner: Word) -> str:
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

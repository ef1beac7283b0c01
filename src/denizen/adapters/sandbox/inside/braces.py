"""Opens braces, `{a,b}` and `{1..9}` also within one another, as bash does before anything else of a word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from denizen.adapters.sandbox.inside.words import CommandRefusedError, Parameter, Piece, Word

MAX_WORDS = 10_000
"""The limit for one word. More arguments would soon not fit the kernel's limit for a command line."""
MAX_PIECES = 1_000_000
"""The limit for the characters that one word becomes."""
_MAX_NESTING = 10
_FIX = "Write fewer choices, or put the braces into quotes."
_OPEN, _CLOSE, _COMMA = ("{", False), ("}", False), (",", False)
_NUMBERS = re.compile(r"(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})(?:\.\.(-?[0-9]{1,9}))?")
_LETTERS = re.compile(r"([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z])")


def open_braces(word: Word) -> list[Word]:
    """Returns the words that it becomes, in bash's order. Raises CommandRefusedError."""
    if _OPEN not in word and _CLOSE not in word:
        return [word]
    if _COMMA not in word and ".." not in _plain(word):
        return [word]  # braces without a choice mean themselves
    _check_balance(word)
    _check_variables(word)
    return _open(word)


def _plain(word: Sequence[Piece]) -> str:
    """Returns the unquoted characters; anything else becomes a blank."""
    return "".join(piece[0] if isinstance(piece, tuple) and not piece[1] else " " for piece in word)


def _check_balance(word: Word) -> None:
    """Raises CommandRefusedError for odd braces: bash reads them in several ways."""
    depth = 0
    for piece in word:
        depth += (piece == _OPEN) - (piece == _CLOSE)
        if not 0 <= depth <= _MAX_NESTING:
            break
    if depth:
        raise CommandRefusedError("these braces are not understood", "Close each {, or put the braces into quotes.")


def _check_variables(word: Word) -> None:
    """For bash, `$x{a,b}` are the variables `xa` and `xb`."""
    for piece, following in pairwise(word):
        if not isinstance(piece, Parameter) or piece.is_braced or piece.is_quoted:
            continue
        if following in {_OPEN, _CLOSE, _COMMA}:
            raise CommandRefusedError(f"the variable `{piece.name}` stands next to braces", f"Write ${{{piece.name}}}.")


def _open(word: Word) -> list[Word]:
    made: list[Word] = [()]
    at = 0
    while at < len(word):
        if word[at] != _OPEN:
            end = next((place for place in range(at, len(word)) if word[place] == _OPEN), len(word))
            made = [(*each, *word[at:end]) for each in made]
        else:
            end = _closing(word, at) + 1
            made = _join(made, _choices(word[at + 1 : end - 1]))
        at = end
    return made


def _join(heads: list[Word], tails: list[Word]) -> list[Word]:
    longest = max(map(len, heads)) + max(map(len, tails), default=0)
    if len(heads) * len(tails) > MAX_WORDS or len(heads) * len(tails) * longest > MAX_PIECES:
        raise CommandRefusedError(f"a word becomes more than {MAX_WORDS} arguments, or far too long ones", _FIX)
    return [(*head, *tail) for head in heads for tail in tails]


def _closing(word: Word, start: int) -> int:
    depth = 0
    for place in range(start, len(word)):
        depth += (word[place] == _OPEN) - (word[place] == _CLOSE)
        if not depth:
            return place
    raise AssertionError("the balance was checked")


def _choices(inner: Word) -> list[Word]:
    choices = list(_split(inner))
    if len(choices) > 1:
        found = [opened for choice in choices for opened in _open(choice)]
        if len(found) > MAX_WORDS:
            raise CommandRefusedError(f"a word becomes more than {MAX_WORDS} arguments", _FIX)
        return found
    plain = _plain(inner)
    if found := _numbers(plain) or _letters(plain):
        return [tuple((char, False) for char in text) for text in found]
    if ".." in plain:
        raise CommandRefusedError("this range in braces is not understood", "Write {1..9} or {a..f}.")
    return [(_OPEN, *opened, _CLOSE) for opened in _open(inner)]


def _split(inner: Word) -> Iterator[Word]:
    choice: list[Piece] = []
    depth = 0
    for piece in inner:
        depth += (piece == _OPEN) - (piece == _CLOSE)
        if piece == _COMMA and not depth:
            yield tuple(choice)
            choice = []
        else:
            choice.append(piece)
    yield tuple(choice)


def _numbers(text: str) -> list[str]:
    found = _NUMBERS.fullmatch(text)
    if found is None:
        return []
    first, last = int(found[1]), int(found[2])
    step = abs(int(found[3] or 1)) or 1
    if abs(last - first) // step >= MAX_WORDS:
        raise CommandRefusedError(f"a range in braces has more than {MAX_WORDS} numbers", _FIX)
    is_padded = any(each.lstrip("-").startswith("0") and len(each.lstrip("-")) > 1 for each in (found[1], found[2]))
    width = max(len(found[1]), len(found[2])) if is_padded else 0
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    return [f"{number:0{width}d}" for number in numbers]


def _letters(text: str) -> list[str]:
    found = _LETTERS.fullmatch(text)
    if found is None:
        return []
    first, last = (ord(each) for each in found.groups() if each)
    return [chr(code) for code in (range(first, last + 1) if first <= last else range(first, last - 1, -1))]

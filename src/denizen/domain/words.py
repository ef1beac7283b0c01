"""Words as search sees them, and excerpts and beginnings of texts.

Every store indexes the words of a message and is asked for the words that somebody typed. So no character that means
something to a search engine ever reaches one, and all of them agree about case, accents and punctuation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

SEARCHED_CHARS = 100_000
"""Only so much of a text is searched: Postgres refuses an index entry of more than a megabyte."""

WORD_CHARS = 64
"""Longer words are cut, in texts and in what is looked for alike."""

MAX_MARKS = 30
"""On one character; further ones say nothing."""

STEM_CHARS = 4
"""An excerpt counts words that begin alike as the same one: a store may find `deployed` for `deploy`."""

_ACCENTS = re.compile("[\u0300-\u036f]+")
_RUN = re.compile(r"\S+")
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}


class _Parts(dict[int, str]):
    """The folded form of each character: itself, or a blank. It grows with the characters that turn up."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        is_part = char.isalnum() or (not char.isascii() and unicodedata.category(char).startswith("M"))
        self[code] = part = char if is_part else " "
        return part


_PARTS = _Parts()


def split_words(text: str) -> list[str]:
    """The words of a text in order: runs of letters, digits and the marks on them, without case and accents."""
    words = fold_words(text)
    if max(map(len, words), default=0) <= WORD_CHARS:
        return words
    return [word[:WORD_CHARS] for word in words]


def fold_words(text: str) -> list[str]:
    """The words of a text as `split_words` has them, of any length."""
    text = text[:SEARCHED_CHARS]
    if text.isascii():
        return text.translate(_ASCII).split()
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", _stream_safe(text)))
    folded = unicodedata.normalize("NFC", plain).casefold()
    return folded.translate(_PARTS).split()


def make_excerpt(text: str, words: Iterable[str], *, limit_chars: int = 240) -> str:
    """About `limit_chars` of a text, on one line, around the first of the words; the beginning when none is in it.

    `words` are as `split_words` or `query_terms` gives them.
    """
    line = " ".join(text[:SEARCHED_CHARS].split())
    if len(line) <= limit_chars:
        return line
    wanted = list(words)
    place = _find(line, wanted)
    start = max(0, min(place - limit_chars // 3, len(line) - limit_chars))
    end = start + limit_chars
    return ("…" if start else "") + line[start:end].strip() + ("…" if end < len(line) else "")


def _stream_safe(text: str) -> str:
    """Sorting a long run of marks takes time that grows with its square; no script needs more (UAX 15, stream-safe).
    Some characters are no marks and consist of them, so each is taken apart by itself first.
    """
    parts = {char: unicodedata.normalize("NFKD", char) for char in set(text)}
    if not any(unicodedata.combining(part[0]) for part in parts.values()):
        return text
    kept: list[str] = []
    marks = 0
    for char in "".join(map(parts.__getitem__, text)):
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= MAX_MARKS:
            kept.append(char)
    return "".join(kept)


def _find(line: str, wanted: Sequence[str]) -> int:
    """Where the first of the words stands; else what begins like one of them; else 0."""
    stems = {word[:STEM_CHARS] for word in wanted if len(word) >= STEM_CHARS}
    # Within a sentence that has no spaces.
    similar = min((place for word in wanted if not word.isascii() and (place := line.find(word)) > 0), default=0)
    for run in _RUN.finditer(line):
        found = split_words(run.group())
        if not set(wanted).isdisjoint(found):
            return run.start()
        if not similar and any(word[:STEM_CHARS] in stems for word in found):
            similar = run.start()
    return similar


def truncate(text: str, limit: int) -> str:
    """Returns at most `limit` characters of the text, with an ellipsis where some are left out."""
    return text if len(text) <= limit else f"{text[: max(limit - 1, 0)]}…"

"""Caches of stems and counts of words: asking the database for them takes longer than the rest of a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock

MAX_WORDS = 50_000
"""How many words are remembered, with stems about 5 MB."""
REMEMBERED_FROM = 500
"""A word that fewer rows have is counted each time, which is quick."""
TOLERANCE = 0.05


def is_near(total: int, counted: int) -> bool:
    """Whether what was found in a table of `counted` rows still holds about now that it has `total`."""
    return abs(total - counted) <= TOLERANCE * counted


class StemCache:
    """Stems of words; one for a database."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stems: dict[str, str] = {}

    def get(self, words: Sequence[str], find: Callable[[Sequence[str]], Mapping[str, str]]) -> Mapping[str, str]:
        """Returns the stem of each word. `find` is called with the words that are new."""
        with self._lock:
            if len(self._stems) > MAX_WORDS:
                self._stems.clear()
            new = [word for word in dict.fromkeys(words) if word not in self._stems]
            if new:
                self._stems.update(find(new))
            return {word: self._stems[word] for word in words}


class CountCache:
    """The number of rows that have each of the common words of a table; one for a table."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[str, int] = {}
        self._total = 0

    def get(
        self, words: Sequence[str], total: int, count: Callable[[Sequence[str]], Mapping[str, int]]
    ) -> Mapping[str, int]:
        """Returns the count of each word, in a table that has `total` rows now. `count` is called with the words that
        are not remembered.
        """
        with self._lock:
            if not is_near(total, self._total) or len(self._counts) > MAX_WORDS:
                self._counts, self._total = {}, total
            known = {word: self._counts[word] for word in words if word in self._counts}
        counted = count([word for word in words if word not in known])
        common = {word: each for word, each in counted.items() if each >= REMEMBERED_FROM}
        with self._lock:
            if is_near(total, self._total):
                self._counts.update(common)
        return {**known, **counted}

    def clear(self) -> None:
        with self._lock:
            self._counts, self._total = {}, 0

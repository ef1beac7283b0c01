"""Searches by words that any of them satisfies, the best first: passages of documents, and posts of the archive.

A search has two stages, since ranking every row that has one of the words takes a second at 200,000 of them. The rare
words select some thousand rows, and common ones those that have two of them. Of these, the rows whose words say most
are read and ranked by all words of the question (`denizen.domain.bm25`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import nlargest
from itertools import chain
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.dialect import IndexedTable, SqlDialect
from denizen.domain.bm25 import LENGTH_WEIGHT, TitledText, rank_by_bm25, weigh_word
from denizen.domain.ranking import Match
from denizen.domain.record import record
from denizen.domain.terms import query_terms

MAX_WORDS = 32
MAX_SELECTED = 2000
"""The approximate number of rows that are selected. Twice as many found the same."""
MAX_HOLDERS = 4 * MAX_SELECTED
"""The limit for the rows of one query: words that go together make an estimate too small."""
TOGETHER = 2
"""How much more often two words of a question are in one row than chance has it."""
COMMON = 0.2
"""A word in more than this share of rows does not decide which of the selected ones are read."""
MIN_READ = 64
"""So many rows are read and ranked by all words, or as many as are asked for. Three hundred found the same."""
STEM_BEGIN = 2
"""The letters of a word that its stem has, too, in any case."""


@record
class WordChoice:
    """The words that select passages: `alone`, or `paired`: each with one of some others."""

    alone: Sequence[str]
    paired: Mapping[str, Sequence[str]]


def choose_words(counts: Mapping[str, int], total: int) -> WordChoice:
    """Chooses from words and the number of passages that have each. The rarest come first, and there is always one."""
    left: float = MAX_SELECTED
    alone: list[str] = []
    common: list[str] = []
    paired: dict[str, list[str]] = {}
    for word in sorted(counts, key=lambda each: counts[each]):
        together = TOGETHER * counts[word] * sum(counts[each] for each in common) / max(total, 1)
        if counts[word] <= left and not common:
            alone.append(word)
            left -= counts[word]
            continue
        if common and together <= left:
            paired[word] = list(common)
            left -= together
        common.append(word)
    return WordChoice(alone if alone or paired else common[:1], paired)


@record
class WordIndex:
    """A table with words. `find` and `find_best` are its searches for any rows and for the best ones first; see
    `SqlDialect.list_holders`. Both take the parameters `limit` and those of `bounds`.
    """

    table: IndexedTable
    find: sa.Executable
    find_best: sa.Executable
    bounds: Mapping[str, Any]


class WordSearch:
    """One search by words, within a transaction: `select`, read what was selected, `rank`."""

    def __init__(self, connection: sa.Connection, dialect: SqlDialect, index: WordIndex) -> None:
        self._connection = connection
        self._dialect = dialect
        self._index = index
        self._counts: Mapping[str, int] = {}
        self._total = 0

    def select(self, words: str, also: str = "", *, limit: int) -> Sequence[int]:
        """Returns positions of the rows to read, those whose words say the most: at least `limit`, if there are so
        many. `also` are words that find nothing by themselves.
        """
        selecting = list(dict.fromkeys(query_terms(words)))[:MAX_WORDS]
        if not selecting:
            return []
        asked = list(dict.fromkeys([*selecting, *query_terms(also)]))[:MAX_WORDS]
        dialect = self._dialect
        counts, self._total = dialect.count_holders(self._connection, self._index.table, asked)
        chosen = choose_words({word: counts[word] for word in selecting}, self._total)
        one = {word: dialect.match_any([word]) for word in asked}
        pairs = [dialect.match_both(one[word], dialect.match_any(others)) for word, others in chosen.paired.items()]
        selected = dialect.match_either([*(one[word] for word in chosen.alone), *pairs])
        is_single = len(chosen.alone) == 1 and not pairs
        held = self._list_holders({word: one[word] for word in chosen.alone}, is_ranked=is_single)
        telling = [word for word in asked if word in chosen.paired or counts[word] <= COMMON * self._total]
        beside = {word: dialect.match_both(one[word], selected) for word in telling if word not in held}
        held |= self._list_holders(beside)
        if pairs and not any(held.values()):  # no two of the common words are together
            rarest = min(selecting, key=lambda word: counts[word])
            held = self._list_holders({rarest: one[rarest]}, is_ranked=True)
        self._counts = {word: max(count, len(held.get(word, ()))) for word, count in counts.items()}
        scores: dict[int, float] = {}
        for word, positions in held.items():
            weight = self._weigh(word)
            for position in positions:
                scores[position] = scores.get(position, 0.0) + weight
        return nlargest(max(MIN_READ, limit), scores, key=lambda position: scores[position])

    def rank(self, texts: Mapping[str, TitledText], *, length_weight: float = LENGTH_WEIGHT) -> list[Match]:
        """Returns the texts with their keys, the best first; of equals, the first."""
        # Every stem begins like its word, so that most words of the texts need not be looked at.
        begin = {word[:STEM_BEGIN] for word in self._counts}
        seen = set(chain.from_iterable(text.words for text in texts.values()))
        similar = [word for word in seen if word[:STEM_BEGIN] in begin]
        stems = self._dialect.stem_words(self._connection, [*self._counts, *similar])
        weights: dict[str, float] = {}
        for word in self._counts:
            weights[stems[word]] = max(self._weigh(word), weights.get(stems[word], 0.0))
        forms = {word: stem for word, stem in stems.items() if stem in weights}
        return rank_by_bm25(weights, forms, texts, length_weight=length_weight)

    def _weigh(self, word: str) -> float:
        return weigh_word(self._counts[word], max(self._total, *self._counts.values()))

    def _list_holders(self, queries: Mapping[str, str], *, is_ranked: bool = False) -> dict[str, Sequence[int]]:
        """Returns the positions that the query of each word finds."""
        find = self._index.find_best if is_ranked else self._index.find
        bounds = {**self._index.bounds, "limit": MAX_HOLDERS}
        found = self._dialect.list_holders(self._connection, find, list(queries.values()), bounds)
        return dict(zip(queries, found, strict=True))

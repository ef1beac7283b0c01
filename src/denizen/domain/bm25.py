"""Ranks texts by the words that they share with a question, by BM25 with more weight for words of the title. Pure.

`domain.ranking` ranks what is few, and fuses rankings. Here are the texts that a database has selected; the rarity of a
word is that in the whole database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum, log

from denizen.domain.ranking import Match
from denizen.domain.record import record

K1 = 1.2
"""How soon further occurrences of a word stop to count."""
LENGTH_WEIGHT = 0.75
"""How much a long text is held against it, from 0 to 1."""
COMMON_WEIGHT = 0.05
"""Keeps the order of words that half of the texts have, and of all words where there are only a few texts."""
TITLE_WEIGHT = 2
"""A word of the title counts as so many further occurrences."""


@record
class TitledText:
    """The words of a text, with those of its title, and those of its title alone."""

    words: Sequence[str]
    title: Sequence[str] = ()


def weigh_word(texts: int, total: int) -> float:
    """Returns how much a word says that is in so many texts of all: next to nothing from half of them on."""
    odds = (total - texts + 0.5) / (texts + 0.5)
    return max(log(odds), COMMON_WEIGHT * log(1 + odds))


def rank_by_bm25(
    weights: Mapping[str, float],
    forms: Mapping[str, str],
    texts: Mapping[str, TitledText],
    *,
    length_weight: float = LENGTH_WEIGHT,
) -> list[Match]:
    """Returns the texts that share a word, the best first; of equals, the first. `weights` are of stems, `forms` leads
    from the words of the texts to them.
    """
    average = sum(len(text.words) for text in texts.values()) / max(len(texts), 1)
    total = fsum(weights.values())
    matches: list[Match] = []
    for key, text in texts.items():
        damping = K1 * (1 - length_weight + length_weight * len(text.words) / max(average, 1))
        found = Counter([forms[word] for word in text.words if word in forms])
        for word in text.title:
            if word in forms:
                found[forms[word]] += TITLE_WEIGHT
        # `fsum`, since the order of words must not decide between equals.
        score = fsum([weights[stem] * count * (K1 + 1) / (count + damping) for stem, count in found.items()])
        if score > 0:
            matches.append(Match(key, score, fsum([weights[stem] for stem in found]) / total))
    return sorted(matches, key=lambda match: -match.score)

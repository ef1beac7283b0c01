"""Rankings: by the words that a text shares with a question, and several rankings made into one. Pure.

Used for what is few enough to be looked through (memories, own files), and to fuse what databases have ranked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log

from denizen.domain.record import record
from denizen.domain.terms import index_terms, is_unspaced, query_terms
from denizen.domain.words import split_words

RANKED = 50
"""The places of a ranking by words and of one by meaning that are fused."""
WORDS_SHARE = 0.5
"""The weight of words beside meaning, where they cover little of a question."""
SURE_FROM, SURE_AT = 0.7, 1.0
"""The coverage from which on words count for more, and at which they alone decide."""

STEM_CHARS = 5
_COMMON = frozenset(
    split_words(
        "all and any are but can did does for get got had has have her him his how its let may not now off"
        " one our out put say see she the too two use was way who why yes you about also been could doing done"
        " from give going help here into just know like made make many more most much must need only other"
        " over please really remember said says should some such take tell than that their them then there"
        " these they thing things this those very want were what when where which while will with would your"
        " yours"
    )
)
"""Words that every question has; they say nothing about what it is about."""
_SMALL_TALK = frozenset(
    {
        "bye",
        "evening",
        "fine",
        "good",
        "great",
        "hello",
        "hey",
        "morning",
        "night",
        "nice",
        "okay",
        "sorry",
        "sure",
        "thank",
    }
    | {"thanks", "today", "welcome", "well"}
)


def telling_words(question: str) -> list[str]:
    """The words that say what it is about; without any, those that may be names or numbers in another script."""
    asked = list(dict.fromkeys(split_words(question)))
    telling = [word for word in asked if (len(word) > 2 or is_unspaced(word)) and word not in _COMMON]
    return telling or [word for word in asked if not word.isascii() or word.isdigit()]


def topic_words(question: str) -> list[str]:
    """The telling words without those of small talk, and figures alone: to a sum no document has an answer."""
    return [word for word in telling_words(question) if word not in _SMALL_TALK and not word.isdigit()]


def rank_by_words(question: str, texts: Mapping[str, str]) -> list[str]:
    """Keys of the texts that share words with the question, the best first. Words count by how rare they are, forms of
    one word as the same; short and common ones not at all, unless there are no others.
    """
    stems = {key: _stems(index_terms(text)) for key, text in texts.items()}
    frequency = Counter(stem for each in stems.values() for stem in each)
    wanted = _stems(query_terms(" ".join(telling_words(question))))
    weights = {stem: log(1 + len(texts) / frequency[stem]) for stem in wanted if frequency[stem]}
    scores = {key: sum(weights[stem] for stem in each if stem in weights) for key, each in stems.items()}
    return sorted((key for key, score in scores.items() if score > 0), key=lambda key: -scores[key])


COVERED = 0.5
"""The share of a question's telling words that a text has which is about the question."""


def covers_question(text: str, question: str) -> bool:
    """Whether a text has at least COVERED of the words that say what the question is about, in whatever form: "book"
    and "booked" are one, as a word of the text may go on where the question's ends.
    """
    wanted = _stems(query_terms(" ".join(telling_words(question))))
    terms = index_terms(text)
    held = _stems(terms)
    longer = "\n".join(["", *terms])
    found = sum(stem in held or (len(stem) == STEM_CHARS - 1 and f"\n{stem}" in longer) for stem in wanted)
    return bool(wanted) and found >= COVERED * len(wanted)


@record
class Match:
    """A place in a ranking. `score` is the ranking's own measure, such as BM25 or a similarity. `coverage` is the share
    of the question's words that this one has, from 0 to 1, by what they say: rare words say more.
    """

    key: str
    score: float
    coverage: float = 0.0


def fuse_matches(
    by_words: Sequence[Match], by_meaning: Sequence[Match], *, least: float, words_share: float = WORDS_SHARE
) -> list[str]:
    """One ranking out of one by words and one by meaning, of RANKED places each. The more the best match by words
    covers of the question, the more words count: who names what there is wants that, whatever means the same. Where it
    covers little of it, words count for `words_share`. A meaning counts by how much nearer it is than the last one, or
    than `least`, at which texts have nothing in common.
    """
    floor = by_meaning[-1].score if len(by_meaning) >= RANKED else least
    sureness = (max((match.coverage for match in by_words), default=0) - SURE_FROM) / (SURE_AT - SURE_FROM)
    words_share += (1 - words_share) * min(max(sureness, 0), 1)
    best = max((match.score for match in by_words), default=1)
    scores = {match.key: words_share * match.score / best for match in by_words}
    for match in by_meaning:
        scores[match.key] = scores.get(match.key, 0) + (1 - words_share) * max(match.score - floor, 0)
    return sorted(scores, key=lambda key: -scores[key])


def cut_word(word: str) -> str:
    """Returns the beginning by which forms of a word are one: "noted" and "notes", and without the plural's letter also
    "cost" and "costs".
    """
    return (word.removesuffix("s") if len(word) > 3 else word)[:STEM_CHARS]


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(cut_word, words))

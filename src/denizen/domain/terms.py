"""Index terms: what a text is found by, and what a question looks for, in any script. Pure.

English words are their own terms; the database stems them. Other words need more, of which English pays nothing:

- Scripts without spaces between words (Chinese, Japanese, Thai and their neighbours, and Korean, whose words carry
  particles) are cut into runs of two or three letters that overlap.
- Words in Cyrillic letters are stemmed as Russian.
- A word of a German text is found by its parts, too: `Mitgliedsbeitrag` by `Beitrag` and by `Mitglied`. Where its parts
  begin is not looked up but guessed, at each place where a German word may begin; a part that is no word is never asked
  for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from denizen.domain.russian import stem_russian
from denizen.domain.words import WORD_CHARS, fold_words

_EAST = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Chinese, Japanese and Korean."""
_SOUTH = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
"""Thai, Lao, Burmese and Khmer."""
_UNSPACED = re.compile(f"([{_EAST}]+)|([{_SOUTH}]+)")
_GRAM = {1: 2, 2: 3}
"""The letters of a run, by group of `_UNSPACED`. A Chinese word has about two, a Thai one four."""
_CYRILLIC = re.compile("[\u0400-\u052f]+")

_GERMAN = frozenset(
    fold_words(
        "aber als auch auf aus bei beim bitte das dass dem der durch ein eine einem einen einer eines für"
        " gegen gibt haben ich ihr ihre ist jede jeder kann kein keine können mein nach nicht noch nur oder"
        " ohne sehr sein sich sie sind um und unser unsere vom von vor wann warum welche welcher wenn werden"
        " wie wir wird wo wurde zu zum zur über"
    )
)
"""Words that most German sentences have, and few of other languages."""
_GERMAN_SHARE = 0.08
_LOOKED_AT = 1000
"""The words of a text that tell whether it is German."""
MIN_PART = 4
"""The letters of a part of a compound."""
_COMPOUND = re.compile(f"[a-z]{{{2 * MIN_PART},}}")
_BEGIN = re.compile(
    "[aeiou]|(?:[bcdfghjklmnpqrstvwz]|bl|br|ch|dr|fl|fr|gl|gn|gr|kl|kn|kr|pf|pfl|pfr|ph|pl|pr|qu|sch|schl|schm|schn|schr"
    "|schw|sk|sp|spr|st|str|th|tr|wr|zw)[aeiouy]"
)
_VOWEL = re.compile("[aeiouy]")
_LINKS = ("s", "n")
"""Letters that join the parts of a compound, as in `Mitglied-s-beitrag`."""


def index_terms(text: str, *, is_german: bool | None = None) -> list[str]:
    """Returns the terms under which a text is indexed. Whether it is German shows in itself, unless it is told."""
    words = fold_words(text)
    german = has_german(words) if is_german is None else is_german
    if not german and text.isascii():
        return _cut(words)
    terms: list[str] = []
    for word in words:
        if german and _COMPOUND.fullmatch(word):
            terms += (word, *_list_parts(word))
        else:
            terms += (word,) if word.isascii() else _list_terms(word, is_indexed=True)
    return _cut(terms)


def query_terms(text: str) -> list[str]:
    """Returns the terms that a question looks for: those of `index_terms` that tell most."""
    if text.isascii():
        return _cut(fold_words(text))
    return _cut([term for word in fold_words(text) for term in _list_terms(word, is_indexed=False)])


def has_german(words: Sequence[str]) -> bool:
    """Whether folded words are from a German text."""
    some = words[:_LOOKED_AT]
    return sum(map(_GERMAN.__contains__, some)) > _GERMAN_SHARE * len(some)


def is_unspaced(word: str) -> bool:
    """Whether a word has letters of a script that puts no spaces between words: it may be a sentence."""
    return _UNSPACED.search(word) is not None


def _list_terms(word: str, *, is_indexed: bool) -> Iterator[str]:
    if _CYRILLIC.fullmatch(word):
        yield stem_russian(word)
        return
    end = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > end:
            yield word[end : run.start()]
        # Without marks, at which databases cut words in different ways.
        letters = "".join(filter(str.isalnum, run.group()))
        size = _GRAM[run.lastindex or 1]
        yield from _list_grams(letters, size)
        if is_indexed and len(letters) >= size:
            yield from _list_grams(letters, size - 1)
        end = run.end()
    if end < len(word):
        yield word[end:]


def _list_grams(letters: str, size: int) -> Iterator[str]:
    """Runs of so many letters, at each place; all letters when there are fewer."""
    if letters:
        yield from (letters[start : start + size] for start in range(max(len(letters) - size, 0) + 1))


@lru_cache(maxsize=20_000)
def _list_parts(word: str) -> Sequence[str]:
    """Returns what may be parts of a German compound, at its beginning and its end."""
    parts: list[str] = []
    for at in range(MIN_PART, len(word) - MIN_PART + 1):
        head, tail = word[:at], word[at:]
        if _BEGIN.match(tail) and _VOWEL.search(head):
            parts += (head, tail)
            if head.endswith(_LINKS) and len(head) > MIN_PART:
                parts.append(head[:-1])
    return tuple(dict.fromkeys(parts))


def _cut(terms: list[str]) -> list[str]:
    if max(map(len, terms), default=0) <= WORD_CHARS:
        return terms
    return [term[:WORD_CHARS] for term in terms]

"""The stems of Russian words, by the algorithm of Snowball, for words as `denizen.domain.words` has them: without case,
and with `и` for `й` and `е` for `ё`. Pure.

A text and a question are stemmed alike, so that `книгу` finds `книги`. Words of other languages in Cyrillic letters
lose fewer endings, and still find themselves.
"""

from __future__ import annotations

import re
from functools import lru_cache

_VOWELS = "аеиоуыэюя"
_BEGIN = re.compile(f"[^{_VOWELS}]*[{_VOWELS}]")
"""Everything up to the first vowel; no ending reaches into it."""
_R2 = re.compile(f"[^{_VOWELS}]*[{_VOWELS}]+[^{_VOWELS}]+[{_VOWELS}]+[^{_VOWELS}]")


def _endings(alone: str, behind_a: str = "") -> re.Pattern[str]:
    """Matches the longest of the endings at the end of a word; some count behind `а` and `я` only."""
    parts = [f"(?<=[ая])(?:{'|'.join(behind_a.split())})"] if behind_a else []
    return re.compile(f"(?:{'|'.join([*alone.split(), *parts])})$")


_GERUND = _endings("ив ивши ившись ыв ывши ывшись", "в вши вшись")
_REFLEXIVE = _endings("ся сь")
_ADJECTIVE = _endings("ее ие ые ое ими ыми еи ии ыи ои ем им ым ом его ого ему ому их ых ую юю ая яя ою ею")
_PARTICIPLE = _endings("ивш ывш ующ", "ем нн вш ющ щ")
_VERB = _endings(
    "ила ыла ена еите уите ите или ыли еи уи ил ыл им ым ен ило ыло ено ят ует уют ит ыт ены ить ыть ишь ую ю",
    "ла на ете ите ли и л ем н ло но ет ют ны ть ешь нно",
)
_NOUN = _endings("а ев ов ие ье е иями ями ами еи ии и иеи еи ои иям ям ием ем ам ом о у ах иях ях ы ь ию ью ю ия ья я")
_DERIVED = _endings("ост ость")
_SUPERLATIVE = _endings("еиш еише")


@lru_cache(maxsize=20_000)
def stem_russian(word: str) -> str:
    """Returns the stem of a word in Cyrillic letters."""
    begin = _BEGIN.match(word)
    if begin is None:
        return word
    head, rest = word[: begin.end()], word[begin.end() :]
    rest = _drop_inflection(rest)
    rest = rest.removesuffix("и")
    second = _R2.match(head + rest)
    derived = _DERIVED.search(rest)
    if second and derived and len(head) + derived.start() >= second.end():
        rest = rest[: derived.start()]
    rest = _SUPERLATIVE.sub("", rest)
    rest = rest[:-1] if rest.endswith("нн") else rest.removesuffix("ь")
    return head + rest


def _drop_inflection(rest: str) -> str:
    without = _GERUND.sub("", rest)
    if without != rest:
        return without
    rest = _REFLEXIVE.sub("", rest)
    without = _ADJECTIVE.sub("", rest)
    if without != rest:
        return _PARTICIPLE.sub("", without)
    for endings in (_VERB, _NOUN):
        without = endings.sub("", rest)
        if without != rest:
            return without
    return rest

"""Whether lines of a document hold what a sentence says by them: its numbers, its quotations, its names. Pure.

It looks for contradiction, not for proof: a sentence is doubted for what stands in it and not in the lines, where that
is plain. Lines beside the cited ones, headings above them, other places that the sentence cites, and what follows from
them by a plain calculation count as said. A sentence in another language than its lines is judged by numbers alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import log

from denizen.domain.citation import CitationFault
from denizen.domain.claimed_numbers import TODAY, has_numbers
from denizen.domain.numbers import find_numbers, guess_language
from denizen.domain.ranking import cut_word, telling_words
from denizen.domain.words import split_words

NEAR = 2
"""So many lines beside the cited ones count as cited."""
MAX_LINES = 20_000
MAX_CLAIM_CHARS = 1_100
"""A sentence with the text of its link; what stands behind that is not judged."""
MIN_QUOTED_CHARS, MIN_QUOTED_WORDS = 12, 3
"""Shorter words in quotation marks are a manner of speaking."""
ELSEWHERE_SHARE = 0.34
"""Lines that hold less of a sentence's telling words than this share of what others of the file hold are the wrong
ones.
"""
RARE_SHARE, RARE_LINES = 0.05, 3
"""A word that stands in no more of the lines is rare."""
MAX_LEVEL = 6

_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»\n]{3,600})[\"”“»]|「([^「」\n]{6,600})」")
_LEFT_OUT = re.compile(r"\s*(?:\[(?:…|\.\.\.)\]|…|\.\.\.)\s*")
_CODE = re.compile(r"`(?:([€$£]? ?\d[\d.,: ]*(?: ?[€$£%]| [^\W\d]{1,10})?)|[^`\n]*)`")
"""A number is one in backticks too."""
_NAME = re.compile(r"(?<=[a-zß-öø-ÿ,] )[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]{2,}(?![\w:*])")
_DATES = (
    re.compile(
        r"(?i)\b(?:january|february|march|april|june|july|august|september|october|november|december|januar|februar|märz"
        r"|juni|juli|oktober|dezember|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre"
        r"|enero|febrero|marzo|abril|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)\b"
    ),
    re.compile(
        r"(?i)\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:montag|dienstag|donnerstag|freitag|samstag|sonntag)s?"
        r"|mittwochs?|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábado"
        r"|domingo)\b"
    ),
)
_NUMBERED = re.compile(r"\b([A-Za-z]+-?[A-Z]+|[A-Z]+-?)(?:\d+)\b")
"""A name that ends with a number: SHA-256, A4."""
_CALENDAR = frozenset(
    "mon tue wed thu fri sat sun jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905 - readable
)
_COPIED_SHARE = 0.6
"""A sentence that shares so many of its words with the lines says them again, and no other name fits there."""


class DocumentLines:
    """The lines of a document, looked at as often as it is cited."""

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        self.path = path
        self.lines = lines[:MAX_LINES]

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The lines that each stem stands in, counted from 0."""
        found: dict[str, list[int]] = {}
        for number, line in enumerate(self.lines):
            for stem in find_stems(line):
                found.setdefault(stem, []).append(number)
        return found


class CitedLines:
    """A part of a document that a sentence cites. Without a first line it is all of it."""

    def __init__(self, document: DocumentLines, first: int = 0, last: int = 0) -> None:
        self.document = document
        self.first = max(first - 1 - NEAR, 0) if first else 0
        self.end = last + NEAR if first else len(document.lines)

    @cached_property
    def text(self) -> str:
        """The lines with those beside them."""
        return "\n".join(self.document.lines[self.first : self.end])

    @cached_property
    def context(self) -> str:
        """The headings that the lines stand under, and the name of the file."""
        headings: list[str] = []
        level = MAX_LEVEL + 1
        for line in reversed(self.document.lines[: self.first]):
            depth = len(line) - len(line.lstrip("#"))
            if 0 < depth < level:
                headings, level = [line, *headings], depth
        return "\n".join([self.document.path, *self.document.lines[:1], *headings])


def find_stems(text: str) -> frozenset[str]:
    """Returns the telling words of a text in the form in which they are compared: numbers are values."""
    words = {cut_word(word) for word in telling_words(text) if not word.isdigit()}
    return frozenset(words | {f"{value:g}" for number in find_numbers(text) for value in number.values})


def find_fault(claim: str, cited: Sequence[CitedLines], asked: str = "") -> CitationFault | None:
    """Returns what speaks against the claim; None where nothing does. `cited` are all places that its sentence cites,
    of which the claim may take from any; `asked` is the question that is answered.
    """
    claim = claim[:MAX_CLAIM_CHARS]
    said = "\n".join(each.text for each in cited)
    context = "\n".join([*(each.context for each in cited), asked])
    quotations = list(_quotations(claim))
    if quotations and not _are_quoted(quotations, f"{_flat(said)}\n{_flat(context)}"):
        return CitationFault.NOT_SAID
    plain = _QUOTED.sub(" ", _CODE.sub(lambda code: code[1] or " ", claim))
    if not has_numbers(plain, said, context, asked) or _has_other_date(plain, said, f"{context}\n{asked}"):
        return CitationFault.OTHERWISE
    if _has_other_name(plain, said, context, asked):
        return CitationFault.OTHERWISE
    if len(cited) == 1 and _stands_elsewhere(plain, cited[0]):
        return CitationFault.ELSEWHERE
    return None


# --- quotations ---


def _quotations(claim: str) -> Iterator[str]:
    for found in _QUOTED.finditer(claim):
        words = (found[1] or found[2]).strip()
        if len(words) >= MIN_QUOTED_CHARS and (len(words.split()) >= MIN_QUOTED_WORDS or not words.isascii()):
            yield words


def _are_quoted(quotations: Iterable[str], where: str) -> bool:
    parts = (part for words in quotations for part in map(_flat, _LEFT_OUT.split(words)))
    return all(part in where for part in parts if part)


def _flat(text: str) -> str:
    """Without what quoting changes: case, spaces, marks of emphasis, the kind of apostrophes, and stops at the end."""
    plain = text.translate(_SAME).casefold()
    return " ".join(plain.split()).strip(" .,;:!?…")


_SAME = str.maketrans(
    {"*": "", "_": "", "`": "", "\\": "", "’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-"}
)


# --- names and words ---


def _has_other_date(claim: str, said: str, context: str) -> bool:
    """Whether the sentence names another month, or another day of the week, than the only one of the lines."""
    if TODAY.search(claim):
        return False
    for pattern in _DATES:
        theirs = {found[0].casefold()[:3] for found in pattern.finditer(said)}
        mine = {found[0].casefold()[:3] for found in pattern.finditer(claim)}
        known = theirs | {found[0].casefold()[:3] for found in pattern.finditer(context)}
        if len(theirs) == 1 and mine and mine.isdisjoint(known) and guess_language(claim) == guess_language(said):
            return True
    return False


def _has_other_name(claim: str, said: str, context: str, asked: str) -> bool:
    """Whether the sentence says the lines again with another name in the place of theirs: of two names with a number
    only that differs, or of a person or place. Not in German, where every noun looks like one.
    """
    theirs_numbered = {found[1].casefold(): found[0] for found in _NUMBERED.finditer(said)}
    for found in _NUMBERED.finditer(claim):
        if found[1].casefold() in theirs_numbered and found[0] not in f"{said}\n{context}\n{asked}":
            return True
    if guess_language(claim) == "de" or guess_language(said) == "de":
        return False
    around = {*_stems(said), *_stems(context)}
    names = {name for name in _NAME.findall(claim) if name[:3].casefold() not in _CALENDAR}
    strange = {name for name in names if not set(_stems(name)) <= around}
    mine = set(_stems(claim))
    theirs = {name for name in _NAME.findall(said) if set(_stems(name)).isdisjoint(mine)}
    if not strange or not theirs:
        return False
    words = {*_stems(" ".join(telling_words(claim)))} - {stem for name in names for stem in _stems(name)}
    return len(words) >= MIN_QUOTED_WORDS - 1 and len(words & around) >= _COPIED_SHARE * len(words)


def _stems(text: str) -> list[str]:
    return [cut_word(word) for word in split_words(text)]


def _stands_elsewhere(claim: str, cited: CitedLines) -> bool:
    """Whether other lines of the document hold the telling words of the sentence, and these hold next to none."""
    document = cited.document
    if cited.end - cited.first >= len(document.lines):
        return False
    places = document.places
    stems = [stem for stem in find_stems(claim) - find_stems(cited.context) if stem in places]
    weights = {stem: log(1 + len(document.lines) / len(places[stem])) for stem in stems}
    here = {stem for stem in stems if _is_between(places[stem], cited.first, cited.end)}
    rare = [stem for stem in stems if len(places[stem]) <= max(RARE_LINES, RARE_SHARE * len(document.lines))]
    best = _best_window([(at, stem) for stem in rare for at in places[stem]], weights, cited.end - cited.first)
    strange = best - here
    enough = 2 if not here else 3
    held = sum(weights[stem] for stem in here)
    return len(strange) >= enough and held < ELSEWHERE_SHARE * sum(weights[stem] for stem in best)


def _is_between(numbers: Sequence[int], first: int, end: int) -> bool:
    at = bisect_left(numbers, first)
    return at < len(numbers) and numbers[at] < end


def _best_window(standing: Iterable[tuple[int, str]], weights: dict[str, float], size: int) -> frozenset[str]:
    """Returns the stems that stand together in so many lines, where they weigh most."""
    ordered = sorted(standing)
    held: Counter[str] = Counter()
    best, most, start = frozenset[str](), 0.0, 0
    for at, stem in ordered:
        held[stem] += 1
        while ordered[start][0] <= at - size:
            held[ordered[start][1]] -= 1
            start += 1
        now = frozenset(each for each, count in held.items() if count > 0)
        weight = sum(weights[each] for each in now)
        if weight > most:
            best, most = now, weight
    return best

"""Whether lines of a document have the numbers that a sentence states, or all follows from them that they do not have.
Pure.

A number counts as said in another unit, as a sum, a product, a difference or a share of those of the lines, or as what
the question gave; one for a step, a version or a list stands for nothing. Called by `claims`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from math import isclose

from denizen.domain.numbers import WrittenNumber, find_numbers, find_values
from denizen.domain.ranking import cut_word

MAX_STATED, MAX_WRITTEN = 40, 500
"""So many numbers of a sentence are looked at, and so many different ones of the lines for their units."""
MAX_OPERANDS = 20
ROUNDED = 2e-3
"""A computed figure may be rounded by so much."""
MIN_OPERANDS = 2
TODAY = re.compile(r"(?i)\b(?:today|tomorrow|yesterday|heute|morgen|gestern|hoy|aujourd.hui|oggi|vandaag)\b")
_NOT_SAID = re.compile(
    r"(?im)^\s*(?:[-*>#|]+\s*)*\(?\d{1,3}[.):]\s"
    r"|\[\^?\d{1,3}(?:[,;-] ?\d{1,3})*\]|(?<![\w.-])[\w.-]{1,64}@[\w.-]{1,255}|https?://\S+|#\d+"
    r"|(?:\b(?:steps?|sections?|chapters?|pages?|p\.|lines?|items?|rules?|options?|points?|parts?|levels?|versions?|figures?"
    r"|tables?|questions?|articles?|no\.|nr\.|schritte?|abschnitt|kapitel|seiten?|zeilen?|punkt|ligne|étape|página|paso)"
    r"|§) {0,2}\d+(?:[.:/-]\d+)*"
    rf"|{TODAY.pattern.removeprefix('(?i)')}[^.\n\d]{{0,25}}(?<![€$£])(?<![€$£] )\d++(?:[.:/-]\d+)*+"
    r"(?! ?(?:[€$£%¢]|(?:euros?|eur|dollars?|usd|pounds?|kroner?|cents?|percent|prozent|km|kg|kilo\w*|met(?:re|er)s?"
    r"|years?|months?|weeks?|days?|hours?|minutes?|jahre?n?|monate?n?|wochen?|tage?n?|stunden?|minuten)\b))"
)
"""Numbers that count or name something of the answer's own: steps of a list, footnotes, pages, today's date."""
_COMPUTED = re.compile(
    r"(?i)\b(?:total|together|sum|altogether|in all|overall|difference|more|less|cheaper|fewer|left|remain\w*"
    r"|average|save\w*|insgesamt|zusammen|gesamt\w*|summe|mehr|weniger|billiger|tout|totale?|différence|suma|totaal|samen|всего|итого"
    r"|вместе)\b|=|\d ?[+×*÷] ?\d|\d x \d"
)
_HOURS = re.compile(r"(?i)\b(?:hours?|stunden|heures|horas|ore|uur|часов)\b")
_TERM = r"[€$£]? ?\d+(?:[.,:]\d+)*(?: ?[€$£%])?(?: [^\W\d]{1,15}){0,2}?"
_RESULT = re.compile(rf"[^=\n\d]{{0,30}}= ?[^=\n\d]{{0,30}}(?={_TERM})")
_UNIT = re.compile(r" ?([^\W\d_]+|[€$£%])")
_SUM = re.compile(rf"{_TERM}(?: ?[+×*÷x/−–-] ?{_TERM})+")
_OPERATOR = re.compile(r"[+×*÷/−–-]|(?<![^\W\d])x(?![^\W\d])")
_HALF = re.compile(r"(?i)\b(?:hal[fv]\w*|double\w*|twice|hälfte|halb\w*|doppelt\w*|moitié|mitad|metà|helft|половин\w*)")
_HALF_DAY = re.compile(
    r"(?i)\b(?:morning|noon|afternoon|evening|night|midnight|morgens|mittags|abends|nachts|matin|soir|après-midi|mañana"
    r"|tarde|noche|mattina|sera|ochtend|middag|avond|утра|вечера|дня)"
)
_NEGATED = re.compile(
    r"(?i)\b(?:not?|never|nor|cannot|only|instead|nein|nicht|keine?n?|nur|sondern|non|ne|pas|no|nunca|solo|niet|geen|нет|не)\b"
    r"|n['’]t\b"
)
_YEAR = r"(?i)\b(?:years?|jahre?n?|ans?|années?|años?|ann[io]|jaar|jaren|год\w*|лет)\b"
_MONTH = r"(?i)\b(?:months?|monate?n?|mois|mes(?:es)?|mesi|maanden?|месяц\w*)\b"
_WEEK = r"(?i)\b(?:weeks?|wochen?|semaines?|semanas?|settiman[ae]|week|weken|недел\w+)\b|周|星期"
_DAY = r"(?i)\b(?:days?|tage?n?|jours?|días?|giorn[io]|dag|dagen|д(?:ень|ня|ней))\b|天|日"
_HOUR = r"(?i)\b(?:hours?|hrs?|h|stunden?|heures?|horas?|or[ae]|uur|uren|час\w*)\b|小时"
_MINUTE = r"(?i)\b(?:min\w*|минут\w*)\b|分钟"
_SECOND = r"(?i)\b(?:s|sec\w*|sek\w*|secondes?|segundos?|secondi)\b|秒"
_COIN = r"(?i)[¢%]|\b(?:cents?|ct|pence|p|øre|cm|prozent|per ?cent|pour cent|por ciento)\b"
_WHOLE = r"(?i)[€$£]|\b(?:euros?|eur|dollars?|usd|pounds?|kroner?|kr|m|met(?:re|er)s?|metern?|mètres?|metros?)\b"
_THOUSAND = r"(?i)\b(?:km|kg|kilo\w*|gb|kb|s|sec\w*|l|lit(?:re|er)s?|litros?|tb|kw)\b"
_ONE = r"(?i)\b(?:m|met(?:re|er)s?|metern?|g|gr\w*|mb|b\w*|ms|milli\w*|ml|w|watts?)\b"
_UNITS: Sequence[tuple[float, re.Pattern[str], re.Pattern[str]]] = [
    (factor, re.compile(larger), re.compile(smaller))
    for factor, larger, smaller in (
        (12, _YEAR, _MONTH),
        (365, _YEAR, _DAY),
        (52, _YEAR, _WEEK),
        (30, _MONTH, _DAY),
        (7, _WEEK, _DAY),
        (24, _DAY, _HOUR),
        (60, _HOUR, _MINUTE),
        (60, _MINUTE, _SECOND),
        (100, _WHOLE, _COIN),
        (1000, _THOUSAND, _ONE),
        (1024, _THOUSAND, _ONE),
    )
]
"""How many of a smaller unit make a larger one."""
_NO_CLOCK = re.compile(
    "|".join(f"(?:{each.removeprefix('(?i)')})" for each in (_YEAR, _MONTH, _WEEK, _DAY, _WHOLE)), re.IGNORECASE
)
"""Behind a number that is no time of the day."""


def has_numbers(claim: str, said: str, context: str, asked: str) -> bool:
    """Whether the lines have the numbers that the claim states, or all follows from them that they do not have."""
    plain = _NOT_SAID.sub(" ", claim)
    stated = _take_different(find_numbers(plain), plain, MAX_STATED)
    if not stated:
        return True
    wanted, written = find_values(asked), find_numbers(said)
    known = find_values(said)
    figures = _Figures(known | (find_values(context) - wanted), written, said)
    open_ = [number for number in stated if not figures.have(number, plain)]
    if len(stated) - len(open_) >= MIN_OPERANDS:
        summed = _find_summed(plain)  # written out, so that everybody sees it
        open_ = [number for number in open_ if not any(_is_among(value, summed, ROUNDED) for value in number.values)]
    if not open_:
        return True
    has_years = any(number.is_year for number in written)
    others = {value for number in open_ for value in number.values}
    sums = _Sums(plain, said, written, {value for number in find_numbers(asked) for value in number.values})
    counts = _count_items(said, claim)
    left = [
        number
        for number in open_
        if not (number.is_year and not has_years)
        and not _counts_items(number, counts)
        and not sums.give(number, (wanted | others) - number.values)
    ]
    if _NEGATED.search(claim):  # "no, not 900 euros": the question's figure is denied
        left = [number for number in left if number.values.isdisjoint(wanted)]
    elif len(left) < len(stated) or not known:
        units = {_find_unit(number, said) for number in written} - {""}
        left = [each for each in left if each.values.isdisjoint(wanted) or _find_unit(each, plain) in units]
    return not left


def _find_unit(number: WrittenNumber, text: str) -> str:
    """Returns the word behind a number, as it is compared; empty where there is none."""
    behind = _UNIT.match(text, number.start + len(number.text))
    return cut_word(behind[1].casefold()) if behind else ""


def _find_summed(text: str) -> list[float]:
    """Returns the operands and the results of the sums that are written out in a text and are right, in order."""
    summed: set[float] = set()
    for found in _SUM.finditer(text):
        terms = [max(number.values) for number in find_numbers(found[0]) if not number.is_word]
        operators = _OPERATOR.findall(found[0])
        if len(operators) != len(terms) - 1 or (0 in terms and not {"/", "÷"}.isdisjoint(operators)):
            continue
        result = _calculate(terms, operators)
        behind, before = _RESULT.match(text, found.end()), text[: found.start()].rstrip(" €$£")
        told = find_numbers(text[behind.end() :])[:1] if behind else []
        if not told and before.endswith("="):
            told = find_numbers(before)[-1:]
        if any(_is_among(value, [result], ROUNDED) for number in told for value in number.values) or (
            not told and not {"×", "*", "÷", "+", "x"}.isdisjoint(operators)
        ):
            summed.update([*terms, result])
    return sorted(summed)


def _calculate(terms: Sequence[float], operators: Sequence[str]) -> float:
    """Returns what a sum makes: products first."""
    made = [terms[0]]
    for operator, term in zip(operators, terms[1:], strict=True):
        if operator in "×*x":
            made[-1] *= term
        elif operator in "÷/":
            made[-1] /= term
        else:
            made.append(term if operator == "+" else -term)
    return sum(made)


def _take_different(numbers: Iterable[WrittenNumber], text: str, most: int) -> list[WrittenNumber]:
    """Returns the first numbers that differ, or that other units stand beside."""
    different: dict[tuple[str, frozenset[float]], WrittenNumber] = {}
    for number in numbers:
        different.setdefault((_around(number, text, 30), number.values), number)
        if len(different) == most:
            break
    return list(different.values())


class _Figures:
    """The numbers of the lines, and of what stands above them, made ready to be compared with many others."""

    def __init__(self, known: Collection[float], written: Sequence[WrittenNumber], said: str) -> None:
        clock = {value for each in written if each.is_time for value in each.values}
        clock -= {value for each in written if not each.is_time for value in each.values}
        self._known, self._clock, self._no_clock = sorted(known), sorted(clock), sorted(set(known) - clock)
        self._in_units: dict[_Units, list[float]] = {}
        for units, value in {
            (_find_units(_around(number, said)), value)
            for number in _take_different(written, said, MAX_WRITTEN)
            for value in number.values
        }:
            self._in_units.setdefault(units, []).append(value)
        for values in self._in_units.values():
            values.sort()

    def have(self, number: WrittenNumber, claim: str) -> bool:
        """Whether the number is one of these, or one of those written in the lines in another unit."""
        around = _around(number, claim)
        is_no_clock = _NO_CLOCK.search(around) is not None
        comparable = self._no_clock if is_no_clock and not number.is_time else self._known
        if any(_is_among(value, comparable) for value in number.values):
            return True
        is_hour, clock = any(0 < value <= 12 for value in number.values) and not is_no_clock, self._clock
        if number.is_time or _HALF_DAY.search(_around(number, claim, 30)):
            is_hour, clock = True, self._known
        if is_hour and any(_is_among(value + shift, clock) for value in number.values for shift in (12, -12)):
            return True
        own = _find_units(around)
        return any(
            _is_among(value * factor, values)
            for other, values in self._in_units.items()
            for factor in _find_factors(own, other)
            for value in number.values
        )


_Units = tuple[frozenset[int], frozenset[int]]
"""The rows of _UNITS whose larger unit stands in a text, and those whose smaller one does."""


@lru_cache(maxsize=2_048)
def _find_units(text: str) -> _Units:
    larger = frozenset(row for row, (_, pattern, _) in enumerate(_UNITS) if pattern.search(text))
    return larger, frozenset(row for row, (_, _, pattern) in enumerate(_UNITS) if pattern.search(text))


@lru_cache(maxsize=2_048)
def _find_factors(own: _Units, other: _Units) -> frozenset[float]:
    """Returns by how much a figure has to be multiplied to be in the unit of the other one."""
    up = {_UNITS[row][0] for row in own[0] & other[1]}
    return frozenset(up | {1 / _UNITS[row][0] for row in own[1] & other[0]})


def _around(number: WrittenNumber, text: str, behind: int = 16) -> str:
    """The number with what stands beside it: its unit, or the sign of a currency before it."""
    before = text[max(number.start - 2, 0) : number.start]
    end = number.start + len(number.text) + behind
    return (before if not any(map(str.isalnum, before)) else "") + text[number.start : end]


def _is_among(value: float, ordered: Sequence[float], tolerance: float = 1e-9, least: float = 1e-9) -> bool:
    """Whether the value is one of these, nearly: then it is one of the two that it stands between."""
    at = bisect_left(ordered, value)
    return any(isclose(value, each, rel_tol=tolerance, abs_tol=least) for each in ordered[max(at - 1, 0) : at + 1])


def _count_items(said: str, claim: str) -> frozenset[float]:
    """Returns how many items the lines, or the claim, may be said to list."""
    lines = [line for line in said.split("\n") if line.strip()]
    listed = [
        len(re.split(r",|;|\band\b|\bor\b|\bund\b|\boder\b|\bet\b|\by\b|\be\b|\ben\b|、", text))
        for text in (*lines, claim)
    ]
    bullets = sum(line.lstrip().startswith(("-", "*", "+", "|")) or line.lstrip()[:1].isdigit() for line in lines)
    return frozenset(float(count) for count in (*listed, bullets) if count > 1)


def _counts_items(number: WrittenNumber, counts: Collection[float]) -> bool:
    """Whether a small number may count what is listed."""
    return all(value <= 12 and value.is_integer() for value in number.values) and not number.values.isdisjoint(counts)


class _Sums:
    """Figures that follow from those of the lines: with one of the question's or of the sentence's own, in another
    unit, or from two of the lines where the sentence says, or the question asks, that something is computed.
    """

    def __init__(self, claim: str, said: str, written: Sequence[WrittenNumber], wanted: Collection[float]) -> None:
        self._known = sorted(find_values(said))[:MAX_OPERANDS]
        self._wanted = wanted
        self._is_percent = "%" in claim or "%" in said
        self._is_coin = _UNITS[-3][1].search(claim) is not None and _UNITS[-3][2].search(said) is not None
        self._lines = [
            (line, sorted({value for number in find_numbers(line) for value in number.values})[:MAX_OPERANDS])
            for line in said.split("\n")
        ]
        claimed = _find_units(claim)
        self._made = {made for line, known in self._lines if known for made in _convert(claimed, line, known)}
        self._ratios = sorted({one / each for _, known in self._lines for one in known for each in known if each})
        self._of_two: set[float] = set()
        is_computed = _COMPUTED.search(claim) is not None
        for one in self._known:
            for other in self._known:
                self._of_two |= {one + other, abs(one - other), one * other}
                if is_computed:
                    self._made |= {one + other, abs(one - other), one * other, one * (other + 1)}
                    self._made |= {one / other} if other else set()
                if self._is_percent:
                    self._made |= set(_percents(one, other))
                if self._is_coin and other:
                    self._made.add(100 * one / other)
        if _HALF.search(f"{claim} {said}"):
            self._made |= {one / 2 for one in self._known}
        if _HALF.search(claim):
            self._made |= {one * 2 for one in self._known}
        if _HOURS.search(claim):
            times = [value for number in written if number.is_time for value in number.values]
            self._made |= {(one - other) % 24 for one in times for other in times}

    def give(self, number: WrittenNumber, rest: Collection[float]) -> bool:
        """Whether the number is one of them. `rest` are the figures of the question, and others of the sentence."""
        made = set(self._made)
        if self._wanted and number.values.isdisjoint(self._wanted):
            made |= self._of_two
        for other in sorted(rest)[:MAX_OPERANDS]:
            for one in self._known:
                made |= {one + other, abs(one - other), one * other, one / other if other else one}
                made |= set(_percents(one, other)) if self._is_percent else set()
                made |= {one * other / 100} if self._is_coin else set()
            if other and any(_is_among(value / other, self._ratios, ROUNDED, 0) for value in number.values):
                return True  # in proportion
        ordered = sorted(made)
        return any(_is_among(value, ordered, ROUNDED, 0) for value in number.values)


def _convert(claimed: _Units, line: str, known: Collection[float]) -> Iterator[float]:
    """Yields figures of a line in units of the claim: 24 euros a year are 2 a month, each third month is 4 a year."""
    written = _find_units(line)
    for row in (claimed[0] & written[1]) | (claimed[1] & written[0]):
        factor = _UNITS[row][0]
        for one in known:
            yield from (one * factor, one / factor, factor / one if one else one)


def _percents(one: float, other: float) -> Iterator[float]:
    yield one * other / 100
    yield one * (1 - other / 100)
    yield one * (1 + other / 100)
    if other:
        yield 100 * one / other
        yield 100 - 100 * one / other

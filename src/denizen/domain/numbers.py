"""Numbers in a text as values that can be compared, however they are written. Pure.

`1,000`, `1.000` and `1000` are one number, and so are `10:00`, `10 am` and `10 Uhr`, `three` and `3`. What can be read
in two ways has two values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from denizen.domain.record import record


@record
class WrittenNumber:
    """A number and where it stands. `values` are the ways to read it. `is_word`: it is written as one."""

    text: str
    values: frozenset[float]
    start: int
    is_word: bool = False
    is_time: bool = False
    is_percent: bool = False

    @property
    def is_year(self) -> bool:
        return len(self.text) == len("2026") and self.text.isdigit() and 1800 <= int(self.text) <= 2199


def _count(words: str, **more: float) -> dict[str, float]:
    """Words for two, three and so on; a slash parts words for the same number."""
    counted = {each: float(number) for number, word in enumerate(words.split(), 2) for each in word.split("/")}
    return counted | more


_WORDS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "en": _count(
            "two/twice three/thrice four five six seven eight nine ten eleven twelve/dozen thirteen fourteen fifteen"
            " sixteen seventeen eighteen nineteen twenty",
            thirty=30,
            forty=40,
            fifty=50,
            sixty=60,
            seventy=70,
            eighty=80,
            ninety=90,
        ),
        "de": _count(
            "zwei/zweimal drei/dreimal vier/viermal fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn"
            " fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig",
            dreißig=30,
            vierzig=40,
            fünfzig=50,
            sechzig=60,
            siebzig=70,
            achtzig=80,
            neunzig=90,
        ),
        "fr": _count(
            "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze",
            vingt=20,
            trente=30,
            quarante=40,
            cinquante=50,
            soixante=60,
        ),
        "es": _count(
            "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
            veinte=20,
            treinta=30,
            cuarenta=40,
            cincuenta=50,
            sesenta=60,
        ),
        "it": _count(
            "due tre quattro cinque sei sette otto nove dieci undici dodici", quindici=15, venti=20, trenta=30
        ),
        "nl": _count("twee drie vier vijf zes zeven acht negen tien elf twaalf", vijftien=15, twintig=20, dertig=30),
        "pt": _count("dois/duas três quatro cinco seis sete oito nove dez onze doze", quinze=15, vinte=20, trinta=30),
        "ru": _count("два/две/двух три/трёх/трех четыре пять/пяти шесть семь/семи восемь девять десять"),
    }
)


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


_FUNCTION_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "en": _split("the a of to is are and for it you with on be can at in by not or an"),
        "de": _split("der die das ist und ein eine für mit nicht sie es kostet am um von im zu den bis auf wird"),
        "fr": _split("le la les est et un une des du pour avec vous il au par sont ne pas dans jusqu"),
        "es": _split("el la los las es y un una para con por del se en que al son puede hasta"),
        "it": _split("il lo la gli è e un una di per con che del al sono si fino in alla può"),
        "nl": _split("de het een is en van voor met op te niet je tot zijn kan wordt om in aan"),
        "pt": _split("o a os as é e um uma para com por do da se em que ao são pode até"),
        "ru": _split("и в на не с по для до это стоит можно от из за у к"),
    }
)
_ORDINALS: Mapping[str, float] = MappingProxyType(
    {
        **dict.fromkeys(_split("half halb demi medio media mezzo"), 0.5),
        "quarter": 0.25,
        **dict.fromkeys(
            _split("one once first single ein eine einen einer eines einmal erste ersten un une una uno"), 1
        ),
        **dict.fromkeys(_split("second double pair couple both beide zweite zweiten"), 2),
        **dict.fromkeys(_split("third dritte dritten"), 3),
        "fourth": 4,
        "fifth": 5,
        **dict.fromkeys(_split("week woche semaine semana settimana"), 7),
        **dict.fromkeys(_split("noon midday mittag midi mediodía"), 12),
        "fortnight": 14,
        **dict.fromkeys(_split("midnight mitternacht minuit"), 24),
        **dict.fromkeys(_split("hundred hundert cent cien"), 100),
        **dict.fromkeys(_split("thousand tausend mil mille"), 1000),
    }
)
"""Words that may support a number, and are too common to be one that has to be supported."""
_MONTHS = {
    "jan": 1,
    "feb": 2,
    "mar": 3,
    "apr": 4,
    "may": 5,
    "jun": 6,
    "jul": 7,
    "aug": 8,
    "sep": 9,
    "oct": 10,
    "nov": 11,
    "dec": 12,
    "mär": 3,
    "mai": 5,
    "okt": 10,
    "dez": 12,
    "fév": 2,
    "avr": 4,
    "jui": 6,
    "aoû": 8,
    "déc": 12,
    "ene": 1,
    "abr": 4,
    "ago": 8,
    "dic": 12,
    "gen": 1,
    "mag": 5,
    "giu": 6,
    "lug": 7,
    "set": 9,
}
_DATED = re.compile(r"\d(?:st|nd|rd|th|er)?[. ]? ?\||\|[., ]{1,2}\d")
"""Digits beside a month: else `may` is a verb."""
_CJK_DIGITS = {char: number for number, char in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_CJK_TENS = {"十": 10, "百": 100, "千": 1000}
_CJK = re.compile("[零〇一二两三四五六七八九十百千]+")
_HALF_BEHIND = re.compile(r"(?i) (?:and a half|y media|et demie?|e mezz[ao])\b|einhalb")
_HALF_BEFORE = re.compile(r"(?i)\b(half past|halb) $")

_UNITS = (
    r"(?:st|nd|rd|th|er|e|h|hrs?|min|s|ms|km|m|cm|mm|kg|g|mg|l|ml|cl|kb|mb|gb|tb|eur|usd|gbp|chf|ct|p|x|k|°c|px|w|kwh|v|a"
    r"|am|pm|uhr)\b"
)
_DIGITS = re.compile(
    rf"""(?ix)(?<![A-Za-z_\d.,]) (?<![A-Za-z]-)
    (?: (?P<date>\d{{4}}-\d{{1,2}}-\d{{1,2}})
      | (?P<hours>\d{{1,2}})(?:[:h]|\.(?=\d{{2}}\b))(?P<minutes>[0-5]\d)(?!\d)(?:\ ?(?P<half>[ap])\.?m\b)?
      | (?P<hour>\d{{1,2}})(?:\ ?(?P<day>[ap])\.?m\b|\ (?:uhr|o.clock)\b)
      | (?P<plain>\d{{1,3}}(?:[.,'’\u00a0\u202f\ ]\d{{3}})+(?:[.,]\d{{1,2}})?(?!\d)|\d+(?:[.,]\d+)?)
        (?P<unit>\ ?%|\ ?(?:k|million|mio|m)\b|\ (?:thousand|tausend|mil)\b)?
    )(?!\d)(?:(?=[^\W\d_])(?={_UNITS})|(?![A-Za-z_]))"""
)
_WORD = re.compile(r"[^\W\d_]+")


def find_numbers(text: str) -> list[WrittenNumber]:
    """Returns the numbers that a text states, in order."""
    found = [_read(match) for match in _DIGITS.finditer(text)]
    words = _WORDS[guess_language(text)]
    tens = None
    for match in _WORD.finditer(text):
        value = words.get(match[0].casefold())
        if tens and value and value < 10 and match.start() == tens.start + len(tens.text) + 1:  # twenty-four
            [ten] = tens.values
            found[-1] = WrittenNumber(
                text[tens.start : match.end()], frozenset({ten + value}), tens.start, is_word=True
            )
        elif value is not None:
            found.append(WrittenNumber(match[0], frozenset({float(value)}), match.start(), is_word=True))
        tens = found[-1] if value and value >= 20 and value % 10 == 0 else None
    return sorted((_with_half(each, text) for each in found), key=lambda each: each.start)


def find_values(text: str) -> frozenset[float]:
    """Returns every value that something in the text can stand for, in whatever language."""
    values = {value for match in _DIGITS.finditer(text) for value in _read(match).values}
    for match in _WORD.finditer(text):
        word = match[0].casefold()
        values |= _word_values().get(word, frozenset())
        month = _MONTHS.get(word[:3])
        if month and _DATED.search(text[max(match.start() - 4, 0) : match.start()] + "|" + text[match.end() :][:4]):
            values.add(float(month))
    values.update(value for number in find_numbers(text) for value in number.values)
    values.update(float(_read_cjk(match[0])) for match in _CJK.finditer(text))
    return frozenset(values)


@cache
def _word_values() -> Mapping[str, frozenset[float]]:
    tables = [*_WORDS.values(), _ORDINALS]
    return {
        word: frozenset(float(table[word]) for table in tables if word in table) for table in tables for word in table
    }


@cache
def _languages() -> Iterable[tuple[str, frozenset[str]]]:
    return tuple(_FUNCTION_WORDS.items())


def guess_language(text: str) -> str:
    """Returns the language whose small words the text has most of; English for none."""
    words = [match[0].casefold() for match in _WORD.finditer(text)]
    counts = {name: sum(word in known for word in words) for name, known in _languages()}
    return max(counts, key=lambda name: (counts[name], name == "en"))


def _read_cjk(text: str) -> int:
    """`三十五` is 35."""
    total = digit = 0
    for char in text:
        if char in _CJK_TENS:
            total, digit = total + max(digit, 1) * _CJK_TENS[char], 0
        else:
            digit = digit * 10 + _CJK_DIGITS[char]
    return total + digit


def _with_half(number: WrittenNumber, text: str) -> WrittenNumber:
    """`half past seven` and `halb acht` are 7.5."""
    end = number.start + len(number.text)
    before = _HALF_BEFORE.search(text[max(number.start - 12, 0) : number.start])
    if before is None and not _HALF_BEHIND.match(text, end):
        return number
    half = -0.5 if before and before[1].casefold() == "halb" else 0.5
    return replace(number, values=frozenset(value + half for value in number.values), is_time=before is not None)


def _read(match: re.Match[str]) -> WrittenNumber:
    if match["date"]:
        values = frozenset(map(float, match["date"].split("-")))
        return WrittenNumber(match["date"], values, match.start())
    if match["hours"]:
        hour = int(match["hours"]) + int(match["minutes"]) / 60
        read_otherwise = _plain_values(match[0]) if "." in match[0] else ()
        values = frozenset({*_day_hours(hour, match["half"]), *read_otherwise})
        return WrittenNumber(match[0], values, match.start(), is_time="." not in match[0])
    if match["hour"]:
        return WrittenNumber(
            match[0], frozenset(_day_hours(float(match["hour"]), match["day"])), match.start(), is_time=True
        )
    unit = (match["unit"] or "").strip().casefold()
    scale = {"k": 1e3, "thousand": 1e3, "tausend": 1e3, "mil": 1e3, "million": 1e6, "mio": 1e6}.get(unit, 1.0)
    values = frozenset(value * factor for value in _plain_values(match["plain"]) for factor in {1.0, scale})
    return WrittenNumber(match["plain"], values, match.start(), is_percent=unit == "%")


def _day_hours(hour: float, half: str | None) -> Iterator[float]:
    if half and half.casefold() == "p" and hour < 12:
        yield hour + 12
    elif half and half.casefold() == "a" and hour >= 12:
        yield hour - 12
    else:
        yield hour


def _plain_values(text: str) -> Iterator[float]:
    """`1.000` may be a thousand or one, `1,5` one and a half."""
    plain = re.sub(r"[^\d.,]", "", text)
    if re.fullmatch(r"\d+(?:[.,]\d{3})+", plain):
        yield float(re.sub(r"[.,]", "", plain))
    whole, _, part = plain.replace(",", ".").rpartition(".")
    yield float(f"{whole.replace('.', '') or '0'}.{part}") if whole else float(plain)

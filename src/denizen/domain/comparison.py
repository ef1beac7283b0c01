"""The one rule by which values are compared, in filters of events and in tests and transforms of workflows. Pure.

Values are equal when they are written alike: the numbers 5 and 5.0 equal the text `5`, and true equals the text `true`.
Texts are equal to the letter only, so `05` is not `5`, and two long ids never fall together as numbers would. Where a
value is missing no comparison holds, one with "not" neither; that it is missing is found by `exists` alone.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

from denizen.domain.json import Json

_NUMBER = re.compile(r"[+-]?\d{1,300}(\.\d{1,300})?([eE][+-]?\d{1,3})?", re.ASCII)


def is_equal(value: Json, wanted: Json) -> bool:
    """Whether both are there and written alike; lists and objects are compared entry by entry."""
    return value is not None and wanted is not None and equality_key(value) == equality_key(wanted)


def equality_key(value: Json) -> str:
    """Returns what is the same for equal values, and for no others."""
    return json.dumps(_write(value), sort_keys=True)


def _write(value: Json) -> Json:
    match value:
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case int() | float():
            return str(value)
        case Mapping():
            return {str(name): _write(each) for name, each in value.items()}
        case str() | None:
            return value
        case Sequence():
            return [_write(each) for each in value]


def contains(value: Json, part: Json) -> bool:
    """Whether a text has a part that is not empty, a list an equal entry, or an object a name."""
    if value is None or part is None:
        return False
    written = _write(part)
    if isinstance(value, str):
        return isinstance(written, str) and written != "" and written in value
    if isinstance(value, Mapping):
        return isinstance(written, str) and written in value
    return isinstance(value, Sequence) and any(is_equal(each, part) for each in value)


def matches(value: Json, pattern: str) -> bool:
    """Whether a text, number or flag fits a pattern as a whole. In it `*` stands for anything, and nothing else has a
    meaning of its own. Takes time in proportion to the text for each `*`.
    """
    text = _write(value)
    if not isinstance(text, str):
        return False
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *middle, last = others
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def fits(value: Json, wanted: Json) -> bool:
    """Whether it is equal, or fits what is wanted as a pattern."""
    return is_equal(value, wanted) or (isinstance(wanted, str) and "*" in wanted and matches(value, wanted))


def exists(value: Json) -> bool:
    """Whether there is a value. An empty text is none."""
    return value is not None and value != ""


def find_number(value: Json) -> int | float | None:
    """Returns the number that a value is, or that a text shows; None for what is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value if isinstance(value, int) or math.isfinite(value) else None
    found = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    number = float(found[0]) if found[1] or found[2] else int(found[0])
    return number if isinstance(number, int) or math.isfinite(number) else None


def is_within(value: Json, *, at_least: Json = None, at_most: Json = None) -> bool:
    """Whether it is a number from one bound to the other; without a bound it has none on that side."""
    number = find_number(value)
    return number is not None and _is_above(number, at_least) and _is_below(number, at_most)


def _is_above(number: float, bound: Json) -> bool:
    least = find_number(bound)
    return bound is None or (least is not None and number >= least)


def _is_below(number: float, bound: Json) -> bool:
    most = find_number(bound)
    return bound is None or (most is not None and number <= most)

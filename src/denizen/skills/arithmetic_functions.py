"""The functions and constants that `arithmetic` knows. Angles are in radians.

A function raises ValueError where it has no value. None may take long: arguments that could make it are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Number = int | float


def _whole(value: Number, limit: int) -> int:
    """Raises ValueError for a fraction, and for what would take long or be too large anyway."""
    if abs(value) > limit or value != int(value):
        raise ValueError
    return int(value)


def _round(value: Number, digits: Number = 0) -> Number:
    places = _whole(digits, 50)
    return round(value, places) if places else round(value)


def _log(value: Number, base: Number = math.e) -> float:
    return math.log(value) if base == math.e else math.log(value, base)


def _factorial(value: Number) -> int:
    return math.factorial(_whole(value, 500))


def _comb(n: Number, k: Number) -> int:
    return math.comb(_whole(n, 1000), _whole(k, 1000))


def _gcd(a: Number, b: Number) -> int:
    return math.gcd(_whole(a, 10**300), _whole(b, 10**300))


FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "abs": (abs, 1, 1),
    "acos": (math.acos, 1, 1),
    "asin": (math.asin, 1, 1),
    "atan": (math.atan, 1, 1),
    "atan2": (math.atan2, 2, 2),
    "cbrt": (math.cbrt, 1, 1),
    "ceil": (math.ceil, 1, 1),
    "comb": (_comb, 2, 2),
    "cos": (math.cos, 1, 1),
    "degrees": (math.degrees, 1, 1),
    "exp": (math.exp, 1, 1),
    "factorial": (_factorial, 1, 1),
    "floor": (math.floor, 1, 1),
    "gcd": (_gcd, 2, 2),
    "hypot": (math.hypot, 1, 10),
    "ln": (math.log, 1, 1),
    "log": (_log, 1, 2),
    "log10": (math.log10, 1, 1),
    "log2": (math.log2, 1, 1),
    "max": (max, 2, 50),
    "min": (min, 2, 50),
    "radians": (math.radians, 1, 1),
    "round": (_round, 1, 2),
    "sin": (math.sin, 1, 1),
    "sqrt": (math.sqrt, 1, 1),
    "tan": (math.tan, 1, 1),
}
"""Name -> (function, fewest values, most values)."""

CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e, "tau": math.tau}

"""Exact arithmetic: a parser for numbers, operators and a fixed list of functions.

Nothing here leads to Python's own evaluation: text becomes tokens, tokens become numbers. Every step is bounded
(length, nesting, size of numbers), so that no expression takes long. Angles are in radians.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from denizen.skill import Skill, Tier, ToolContext, ToolError

Number = int | float


def _whole(value: Number, limit: int) -> int:
    """Returns a whole number. Raises ValueError for a fraction, and for a number that would take long."""
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
"""Name to function, fewest values and most values. None of them may take long, and each raises ValueError where it
has no value.
"""

CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e, "tau": math.tau}


MAX_LENGTH = 500
MAX_NESTING = 50
MAX_BITS = 4096
"""The largest whole number has about 1200 digits."""

_TOKEN = re.compile(
    r"\s*+(?:(?P<number>(?:\d[\d_]*+(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]*+)|(?P<operator>\*\*|//|[-+*/%^(),×÷−]))"
)
_SAME = {"^": "**", "×": "*", "÷": "/", "−": "-"}
_SUMS = frozenset({"+", "-"})
_PRODUCTS = frozenset({"*", "/", "//", "%"})


class CalculationError(ValueError):
    """Says what is wrong with the expression."""


def calculate(expression: str) -> Number:
    """Returns the value, with Python's rules for whole and floating-point numbers; `^` means `**`.

    Raises CalculationError for text that is no arithmetic, has no value, or would be too large.
    """
    if len(expression) > MAX_LENGTH:
        raise CalculationError(f"The expression is longer than {MAX_LENGTH} characters.")
    reader = _Reader(_tokens(expression))
    try:
        value = _sum(reader, 0)
    except ZeroDivisionError as error:
        raise CalculationError("That divides by zero.") from error
    except OverflowError as error:
        raise CalculationError("The result is too large.") from error
    if reader.next:
        raise CalculationError(f"`{reader.next}` was not expected at character {reader.position + 1}.")
    return value


@dataclass(slots=True)
class _Reader:
    """The position in a list of (token, position) pairs; past the end the token is empty."""

    tokens: Sequence[tuple[str, int]]
    index: int = 0

    @property
    def next(self) -> str:
        return self.tokens[self.index][0]

    @property
    def position(self) -> int:
        return self.tokens[self.index][1]

    def take(self) -> str:
        token = self.next
        self.index += 1
        return token

    def expect(self, wanted: str) -> None:
        if self.next != wanted:
            found = f"`{self.next}`" if self.next else "the end"
            raise CalculationError(f"`{wanted}` is missing before {found} at character {self.position + 1}.")
        self.index += 1


def _tokens(expression: str) -> list[tuple[str, int]]:
    text = expression.rstrip()
    tokens: list[tuple[str, int]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            wrong = text[at:].lstrip()[:1]
            raise CalculationError(f"`{wrong}` at character {text.index(wrong, at) + 1} is not arithmetic.")
        token = match[match.lastgroup or 0]
        tokens.append((_SAME.get(token, token), match.start(match.lastgroup or 0)))
        at = match.end()
    return [*tokens, ("", len(text))]


def _sum(reader: _Reader, depth: int) -> Number:
    value = _product(reader, depth)
    while reader.next in _SUMS:
        operator, right = reader.take(), _product(reader, depth)
        value = _bounded(value + right if operator == "+" else value - right)
    return value


def _product(reader: _Reader, depth: int) -> Number:
    value = _signed(reader, depth)
    while reader.next in _PRODUCTS:
        operator, right = reader.take(), _signed(reader, depth)
        match operator:
            case "*":
                value = _bounded(value * right)
            case "/":
                value = _bounded(value / right)
            case "//":
                value = _bounded(value // right)
            case _:
                value = _bounded(value % right)
    return value


def _signed(reader: _Reader, depth: int) -> Number:
    """Reads a value with its sign, which binds less than a power: -2 ** 2 is -4."""
    _check_depth(depth)
    if reader.next == "-":
        reader.take()
        return -_signed(reader, depth + 1)
    if reader.next == "+":
        reader.take()
        return _signed(reader, depth + 1)
    base = _atom(reader, depth)
    if reader.next == "**":
        reader.take()
        return _power(base, _signed(reader, depth + 1))
    return base


def _atom(reader: _Reader, depth: int) -> Number:
    word, position = reader.next, reader.position
    if not word:
        raise CalculationError("The expression ends where a number was expected.")
    reader.take()
    if word == "(":
        value = _sum(reader, depth + 1)
        reader.expect(")")
        return value
    if word[0].isdigit() or word[0] == ".":
        return _literal(word)
    if word.lower() in CONSTANTS:
        return CONSTANTS[word.lower()]
    if word.lower() in {*FUNCTIONS, "pow"}:
        reader.expect("(")
        return _apply(word.lower(), _arguments(reader, depth + 1))
    if word[0].isalpha():
        raise CalculationError(f"`{word}` is unknown. Known: {', '.join(sorted({*FUNCTIONS, *CONSTANTS, 'pow'}))}.")
    raise CalculationError(f"`{word}` was not expected at character {position + 1}.")


def _arguments(reader: _Reader, depth: int) -> list[Number]:
    values: list[Number] = []
    if reader.next != ")":
        values.append(_sum(reader, depth))
        while reader.next == ",":
            reader.take()
            values.append(_sum(reader, depth))
    reader.expect(")")
    return values


def _literal(token: str) -> Number:
    if re.search(r"__|_$|_[.eE]", token):
        raise CalculationError(f"`{token}` is not a number.")
    digits = token.replace("_", "")
    return _bounded(int(digits) if digits.isdigit() else float(digits))


def _apply(name: str, values: list[Number]) -> Number:
    function, fewest, most = FUNCTIONS.get(name, (_power, 2, 2))
    if not fewest <= len(values) <= most:
        raise CalculationError(f"`{name}` does not take {len(values)} values.")
    try:
        return _bounded(function(*values))
    except (ValueError, TypeError) as error:
        given = ", ".join(format_number(value) for value in values)
        raise CalculationError(f"{name}({given}) has no value.") from error


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0:
        # Estimated before it is computed: 9**9**9 would take for ever.
        if base.bit_length() * exponent > MAX_BITS and abs(base) > 1:
            raise CalculationError("The result is too large.")
        return base**exponent
    value: Number | complex = base**exponent
    if isinstance(value, complex):
        raise CalculationError("A root of a negative number is not a real number.")
    return _bounded(value)


def _bounded(value: Number) -> Number:
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise CalculationError("The result is too large.")
        return value
    if not math.isfinite(value):
        raise CalculationError("The result is too large.")
    return value


def _check_depth(depth: int) -> None:
    if depth > MAX_NESTING:
        raise CalculationError(f"The expression is nested more than {MAX_NESTING} deep.")


def format_number(value: Number) -> str:
    """Writes whole numbers in full and others with 15 digits, so that 0.1 + 0.2 reads 0.3."""
    return str(value) if isinstance(value, int) else f"{value:.15g}"


skill = Skill("calculator", description="Exact arithmetic.")


@skill.tool(tier=Tier.HARMLESS, read_only=True)
async def calculator(
    context: ToolContext,  # noqa: ARG001
    expression: Annotated[str, "such as (2+3)**2 / sqrt(7)"],
) -> str:
    """Calculates: plus, minus, times, / // % **, sqrt, log, sin (radians), round, min, max and more."""
    try:
        return format_number(calculate(expression))
    except CalculationError as error:
        raise ToolError(str(error)) from error

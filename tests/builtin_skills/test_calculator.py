"""Arithmetic: agrees with Python where Python has an answer, refuses the rest, and never takes long."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.builtin_skills.calculator import MAX_BITS, CalculationError, calculate, format_number, skill
from denizen.skill import SkillToolset
from tests.skill_fixture import ServicesFixture, run

SMALL = st.integers(-20, 20).map(lambda number: f"({number})") | st.sampled_from(["0.5", "2.25", "7.", ".125", "1e3"])


def combine(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    just = st.just
    operators = st.sampled_from([" + ", "-", "*", " / ", "//", "%"])
    exponents = st.integers(0, 6).map(str)
    functions = st.sampled_from(["(", "abs(", "min(3, ", "max(3, ", "round("])
    return (
        st.tuples(parts, operators, parts)
        | st.tuples(functions, parts, just(")"))
        | st.tuples(st.sampled_from(["-", "+"]), parts)
        | st.tuples(SMALL, just(" ** "), exponents)
    ).map("".join)


EXPRESSIONS = st.recursive(SMALL, combine, max_leaves=8)


@given(EXPRESSIONS)
def test_small_expressions_have_the_value_that_python_gives_them(expression: str) -> None:
    try:
        expected = eval(expression)
    except ZeroDivisionError:
        with pytest.raises(CalculationError):
            calculate(expression)
        return
    value = calculate(expression)
    assert value == expected
    assert type(value) is type(expected)


@given(st.text(alphabet="0123456789.eE_+-*/%^(), abcdilmnopqrstux", max_size=40))
def test_any_text_has_a_finite_value_or_is_refused(text: str) -> None:
    try:
        value = calculate(text)
    except CalculationError as error:
        assert str(error)
    else:
        assert math.isfinite(value)
        assert len(format_number(value)) <= MAX_BITS


@given(st.text(max_size=60))
def test_no_text_is_a_fault_of_the_program(text: str) -> None:
    with suppress(CalculationError):
        calculate(text)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("2+2*3", "8"),
        ("0.1+0.2", "0.3"),
        ("-2**2", "-4"),
        ("2**-1", "0.5"),
        ("2**3**2", "512"),
        ("2^10", "1024"),
        ("7 // 2 + 7 % 2", "4"),
        ("3 × 4 ÷ 2 − 1", "5"),
        ("1_000 * 3", "3000"),
        ("sqrt(2)", "1.4142135623731"),
        ("round(2.675, 2)", "2.67"),
        ("round(-2.5)", "-2"),
        ("min(3, 1, 2) + max(1, 2)", "3"),
        ("log(8, 2) + log10(1000) + ln(e)", "7"),
        ("sin(pi/2)", "1"),
        ("factorial(20)", "2432902008176640000"),
        ("2**100", "1267650600228229401496703205376"),
        ("comb(5, 2) + gcd(12, 18)", "16"),
        ("Sqrt(PI*0 + 4)", "2"),
        ("hypot(3, 4)", "5"),
        ("1e3", "1000"),
        ("((((1))))", "1"),
        ("pow(2, 8)", "256"),
    ],
)
def test_what_people_ask_comes_out_right(expression: str, text: str) -> None:
    assert format_number(calculate(expression))[:15] == text[:15]


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("9**9**9", "too large"),
        ("9**9**9**9**9", "too large"),
        ("(10**400)**(10**400)", "too large"),
        ("2**2**2**2**2**2", "too large"),
        ("10**1000 * 10**1000", "too large"),
        ("1e308*10", "too large"),
        ("exp(1000)", "too large"),
        ("1e999", "too large"),
        ("10**400 / 3.0", "too large"),
        ("factorial(100000)", "no value"),
        ("comb(10**9, 10**8)", "no value"),
        ("round(1, -1000000000)", "no value"),
        ("1/0", "divides by zero"),
        ("0**-1", "divides by zero"),
        ("1 % 0", "divides by zero"),
        ("log(5, 1)", "divides by zero"),
        ("sqrt(-1)", "no value"),
        ("(-8)**0.5", "root"),
        ("log(0)", "no value"),
        ("factorial(2.5)", "no value"),
        ("sqrt(1, 2)", "does not take 2"),
        ("sqrt()", "does not take 0"),
        ("max(1)", "does not take 1"),
        ("sqrt 4", "`(` is missing"),
        ("(1+2", "`)` is missing"),
        ("1+", "ends where"),
        ("", "ends where"),
        ("1 2", "was not expected"),
        ("2pi", "was not expected"),
        (")", "was not expected"),
        ("1if 2else 3", "was not expected"),
        ("1__0", "is not a number"),
        ("10_", "is not a number"),
        ("two", "`two` is unknown"),
        ("__import__('os')", "is not arithmetic"),
        ("().__class__", "is not arithmetic"),
        ("1; 2", "is not arithmetic"),
        ("x := 3", "is not arithmetic"),
        ("lambda: 1", "is not arithmetic"),
        ("'a'*9", "is not arithmetic"),
        ("[1]*9", "is not arithmetic"),
        ("1 if 1 else 2", "was not expected"),
        ("5 > 3", "is not arithmetic"),
        ("0x10", "was not expected"),
        ("1\0", "is not arithmetic"),
        ("(" * 60 + "1" + ")" * 60, "nested"),
        ("-" * 60 + "1", "nested"),
        ("2**" * 60 + "1", "nested"),
        ("1+" * 300 + "1", "longer than"),
        ("9" * 501, "longer than"),
    ],
)
def test_what_cannot_be_calculated_is_refused_with_the_reason(expression: str, word: str) -> None:
    with pytest.raises(CalculationError, match=r".") as caught:
        calculate(expression)
    assert word in str(caught.value)


@pytest.mark.anyio
async def test_the_tool_answers_with_the_value_or_the_reason(tmp_path: Path) -> None:
    toolset = SkillToolset(skill, ServicesFixture(tmp_path).services())
    assert (await run(toolset, "calculator", {"expression": "6*7"})).text == "42"
    assert (await run(toolset, "calculator", {"expression": 42})).text == "42"
    result = await run(toolset, "calculator", {"expression": "9**9**9"})
    assert (result.text, result.is_error) == ("The result is too large.", True)

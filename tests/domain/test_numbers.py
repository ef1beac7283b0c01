"""Numbers are compared by what they mean, not by how they are written."""

from __future__ import annotations

import pytest

from denizen.domain.numbers import find_numbers, find_values, guess_language


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,000 kroner", "1000 kroner"),
        ("1.000 Euro", "1 000 euros"),
        ("0,20 €", "0.20"),
        ("10:00", "10 am"),
        ("22:00", "10 p.m."),
        ("17.30 Uhr", "5:30 pm"),
        ("half past seven", "7:30"),
        ("Es beginnt um halb acht", "7:30"),
        ("three", "3"),
        ("twenty-four", "24"),
        ("sie kostet zwölf Euro", "12"),
        ("三十五", "35"),
        ("2nd", "second"),
        ("3k", "3,000"),
        ("2026-11-24", "24 November"),
    ],
)
def test_one_number_written_in_two_ways_is_the_same(one: str, other: str) -> None:
    assert find_values(one) & find_values(other)


@pytest.mark.parametrize(("one", "other"), [("1,000", "100"), ("10 am", "10 pm"), ("0.2", "2"), ("14", "140")])
def test_different_numbers_stay_different(one: str, other: str) -> None:
    assert not find_values(one) & find_values(other)


@pytest.mark.parametrize("text", ["COVID-19", "A4", "3D", "v2.0", "H2O", "one of them", "the first", "x86"])
def test_what_is_no_statement_of_a_number_is_none(text: str) -> None:
    assert find_numbers(text) == []


def test_numbers_are_found_in_order_in_the_language_of_the_text() -> None:
    assert [each.text for each in find_numbers("It is 20 cents for two days, at most 8 euros.")] == ["20", "two", "8"]
    assert guess_language("Der Beitrag ist für die Mitglieder") == "de"
    assert [each.text for each in find_numbers("Es sei die Elf von uns, die Sechs.")] == ["Elf", "Sechs"]

"""Which remembered sentences tell of the same thing, so that only the newest of them is true."""

from __future__ import annotations

import pytest

from denizen.domain.fact import find_attributes, find_superseded, is_superseded


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ana lives in Lyon", "Ana moved to Porto"),
        ("User lives in Lyon, France.", "The user has recently moved to Oslo."),
        ("Lives in Lyon", "I'm now living in Oslo"),
        ("My home is Lyon", "Ana's home is Oslo"),
        ("Ana lives in Lyon and works at Acme", "Ana works at Initech and lives in Oslo"),
        ("Ana lives in Lyon", "Ana lives in Oslo and has a cat"),
        ("Works for Acme", "Ana is employed at a bakery now"),
        ("Works as a nurse", "Her profession is a baker"),
        ("Ana is 30 years old", "Ana is 31"),
        ("Ana is single", "Ana is married to Tom"),
        ("Ana's birthday is 3 May 1990", "Ana was born on 4 May 1990"),
        ("My dog is called Bella", "The user's dog's name is Rex"),
        ("Ana's favourite colour is blue", "My favorite colour is red"),
        ("Ana's sister lives in Lyon", "My sister moved to Oslo"),
        ("Bob lives in Lyon", "Bob moved to Oslo"),
        ("My time zone is CET", "Ana's timezone is Europe/Lisbon"),
        ("Ana's email is a@x.example", "My email is b@x.example"),
    ],
)
def test_what_has_one_value_at_a_time_is_superseded_by_a_newer_one(old: str, new: str) -> None:
    assert is_superseded(old, new, "Ana")
    assert find_superseded(new, [("1", old), ("2", new), ("3", "Ana likes tea")], "Ana") == ["1"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ana likes tea", "Ana likes coffee"),
        ("Ana is allergic to nuts", "Ana is allergic to milk"),
        ("Ana lives in Lyon", "Bob lives in Oslo"),
        ("Ana's sister lives in Lyon", "Ana lives in Oslo"),
        ("My dog is called Bella", "My cat is called Rex"),
        ("Ana's dog is brown", "Ana's dog is ill"),
        ("Ana's boss is Tom", "Ana's boss is ill"),
        ("Ana lives in Lyon and likes tea", "Ana lives in Oslo"),
        ("Ana lives in Oslo", "Ana used to live in Lyon"),
        ("Ana lives in Oslo", "Ana moved to Lyon in 2015"),
        ("Ana lives in Oslo", "Ana wants to move to Lyon"),
        ("Ana lives in Oslo", "Ana does not live in Lyon"),
        ("Ana lives in Oslo", "Ana lives in a flat"),
        ("Ana works at Acme", "Ana also works at Initech"),
        ("Ana works at Acme", "Ana works at night"),
        ("Ana works at Acme", "Ana works with Bob"),
        ("Ana is called Annie", "Ana is called twice a day"),
        ("Ana lives in Oslo", "Does Ana live in Lyon?"),
        ("Ana wohnt in Lyon", "Ana wohnt in Oslo"),
        ("Ana lives in Oslo", "Ana lives in Lyon during the week"),
        ("Ana lives in Oslo", "Ana lives in Lyon\x00"),
    ],
)
def test_what_may_be_true_beside_it_supersedes_nothing(old: str, new: str) -> None:
    assert not is_superseded(old, new, "Ana")


def test_of_the_same_words_nothing_is_superseded() -> None:
    assert find_superseded("Ana lives in Oslo", [("1", "Ana lives in Oslo")], "Ana") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ana lives in Oslo", {("", "home")}),
        ("Bob lives in Oslo", {("bob", "home")}),
        ("Ana's dog is called Rex", {("dog", "name")}),
        ("Ana lives in Oslo, and she likes tea", {("", "home"), None}),
        ("", set[None]()),
        ("a" * 1000, {None}),
    ],
)
def test_a_sentence_tells_whom_and_what_it_is_about(text: str, found: set[tuple[str, str] | None]) -> None:
    assert find_attributes(text, "Ana") == found

"""The promises and the tests agree: `tests/requirements.py` checked in itself and against the `proves` markers."""

import re
from collections import Counter

import pytest

from tests.promises.scan import Scan, scan_tests
from tests.promises.sync import find_proved, find_unknown
from tests.requirements import BY_ID, REQUIREMENTS, TESTS

RUN_SYNC = "run `python -m tests.requirements --sync`"

NUMBERED = [
    *(("V", 35), ("S", 35), ("C", 28), ("T", 39), ("L", 11)),
    *(("VW", 8), ("SW", 11), ("CW", 12), ("TW", 20), ("LW", 12)),
    *(("E", 10), ("P", 8)),
]
"""Prefixes of the rows that are numbered in the source, with the last number of each."""


@pytest.fixture(scope="module")
def scan() -> Scan:
    return scan_tests(TESTS)


@pytest.fixture(scope="module")
def proved(scan: Scan) -> frozenset[str]:
    return find_proved(REQUIREMENTS, {proof.requirement for proof in scan.proofs})


def test_every_id_is_used_once() -> None:
    counts = Counter(each.id for each in REQUIREMENTS)
    assert [name for name, count in counts.items() if count > 1] == []


def test_ids_name_a_numbered_row_or_a_topic_of_their_source() -> None:
    numbered = re.compile(r"(?:[VSCTLEP]|[VSCTL]W)[1-9]\d*(?:-[a-z]+)*")
    topic = re.compile(r"[VSCTLX](?:-[a-z0-9]+)+")
    wrong = [each.id for each in REQUIREMENTS if not (numbered.fullmatch(each.id) or topic.fullmatch(each.id))]
    assert wrong == []


def test_every_numbered_row_of_the_inventory_has_an_entry() -> None:
    rows = {f"{prefix}{number}" for prefix, last in NUMBERED for number in range(1, last + 1)}
    assert rows - set(BY_ID) == set()


def test_every_entry_says_where_it_comes_from() -> None:
    source = re.compile(r"[1-8](\.\d+)?( \S.*)?|product promise [1-8]")
    assert [each.id for each in REQUIREMENTS if not source.fullmatch(each.source)] == []


def test_every_entry_says_one_sentence_of_at_most_220_characters() -> None:
    wrong = [
        f"{each.id}: {each.says}"
        for each in REQUIREMENTS
        if len(each.says) > 220
        or each.says != " ".join(each.says.split())
        or not each.says.endswith(".")
        or re.search(r"[.!?]\s+[A-Z`]", each.says)
    ]
    assert wrong == []


def test_no_two_entries_say_the_same_words() -> None:
    counts = Counter(each.says for each in REQUIREMENTS)
    assert [says for says, count in counts.items() if count > 1] == []


def test_weaknesses_are_promised_as_absent() -> None:
    weaknesses = [each for each in REQUIREMENTS if re.match(r"[VSCTL]W\d", each.id)]
    assert [each.id for each in weaknesses if not each.says.startswith("Denizen does not have: ")] == []


def test_a_dropped_entry_has_a_reason_and_no_other_does() -> None:
    assert [each.id for each in REQUIREMENTS if (each.status == "dropped") != bool(each.reason)] == []


def test_an_entry_that_repeats_others_points_at_entries_that_stand_for_themselves() -> None:
    wrong = [
        f"{each.id} is the same as {name}"
        for each in REQUIREMENTS
        for name in each.same_as
        if name not in BY_ID or BY_ID[name].same_as or BY_ID[name].status == "dropped"
    ]
    assert wrong == []


def test_every_marker_stands_on_a_test_and_names_requirements_that_exist(scan: Scan) -> None:
    unknown = [f"{proof.test}: there is no {proof.requirement}" for proof in find_unknown(scan.proofs, BY_ID)]
    assert [*scan.faults, *unknown] == []


def test_what_is_covered_is_proved_by_a_test(proved: frozenset[str]) -> None:
    claimed = {each.id for each in REQUIREMENTS if each.status == "covered"}
    assert sorted(claimed - proved) == [], RUN_SYNC


def test_what_a_test_proves_is_covered(proved: frozenset[str]) -> None:
    still_open = {each.id for each in REQUIREMENTS if each.status == "open"}
    assert sorted(still_open & proved) == [], RUN_SYNC


def test_what_was_dropped_is_not_proved(proved: frozenset[str]) -> None:
    dropped = {each.id for each in REQUIREMENTS if each.status == "dropped"}
    assert sorted(dropped & proved) == []

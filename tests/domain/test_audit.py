"""The audit log's chain: whatever is done to it afterwards shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.audit import (
    AuditEntry,
    AuditEvent,
    AuditHead,
    AuditKind,
    append_to_chain,
    chain_head,
    find_chain_fault,
)
from tests.clock import NOON

EVENTS = st.lists(
    st.builds(
        AuditEvent,
        st.sampled_from(AuditKind),
        st.datetimes(timezones=st.just(UTC)),
        st.text(max_size=8),
        st.text(max_size=8),
        st.dictionaries(
            st.text(max_size=4), st.none() | st.booleans() | st.integers() | st.text(max_size=8), max_size=3
        ),
    ),
    max_size=6,
)


def build_log(events: Sequence[AuditEvent]) -> list[AuditEntry]:
    entries: list[AuditEntry] = []
    for event in events:
        entries.append(append_to_chain(chain_head(entries[-1]) if entries else AuditHead(), event))
    return entries


@given(EVENTS)
def test_a_log_that_nobody_touched_has_no_fault(events: list[AuditEvent]) -> None:
    entries = build_log(events)
    assert find_chain_fault(entries) == ""
    assert find_chain_fault(entries[2:], chain_head(entries[1]) if len(entries) > 1 else None) == ""


@given(EVENTS.filter(lambda events: len(events) > 1), st.data())
def test_a_change_anywhere_shows(events: list[AuditEvent], data: st.DataObject) -> None:
    entries = build_log(events)
    place = data.draw(st.integers(0, len(entries) - 1))
    entry = entries[place]
    forged = data.draw(
        st.sampled_from(
            [
                replace(entry, event=replace(entry.event, actor=f"{entry.event.actor}x")),
                replace(entry, event=replace(entry.event, at=entry.event.at + timedelta(microseconds=1)))
                if entry.event.at < datetime(9000, 1, 1, tzinfo=UTC)
                else replace(entry, event=replace(entry.event, subject=f"{entry.event.subject}!")),
                replace(entry, event=replace(entry.event, details={**entry.event.details, "more": 1, "m2": 2})),
                replace(entry, previous="f" * 64),
                replace(entry, digest="f" * 64),
            ]
        )
    )
    assert find_chain_fault([*entries[:place], forged, *entries[place + 1 :]]) != ""


@given(EVENTS.filter(lambda events: len(events) > 2))
def test_an_entry_taken_out_put_in_or_moved_shows(events: list[AuditEvent]) -> None:
    entries = build_log(events)
    assert "is missing" in find_chain_fault([entries[0], *entries[2:]])
    assert find_chain_fault([entries[1], entries[0], *entries[2:]]) != ""
    other = append_to_chain(chain_head(entries[0]), AuditEvent(AuditKind.CALL, NOON, "x", "y"))
    assert find_chain_fault([entries[0], other, *entries[2:]]) != ""


def test_a_rewritten_end_does_not_fit_a_head_that_was_noted() -> None:
    entries = build_log([AuditEvent(AuditKind.CALL, NOON, "a", str(n)) for n in range(3)])
    noted = chain_head(entries[2])
    rewritten = build_log([AuditEvent(AuditKind.CALL, NOON, "b", str(n)) for n in range(3)])
    assert find_chain_fault(rewritten) == ""
    assert chain_head(rewritten[-1]) != noted


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5))])
def test_the_same_moment_has_the_same_digest_in_every_zone(zone: timezone) -> None:
    event = AuditEvent(AuditKind.CALL, NOON.astimezone(zone), "a", "b")
    assert append_to_chain(AuditHead(), event).digest == append_to_chain(AuditHead(), replace(event, at=NOON)).digest

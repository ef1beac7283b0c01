"""What a reminder says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName
from denizen.domain.reminder import Reminder, format_span, reminder_id, reminder_text
from tests.clock import NOON


def reminder(text: str) -> Reminder:
    return Reminder(
        id="rem_1",
        account=AgentName("ada"),
        asker="platform_user:discord:7",
        place=Place("discord", "1"),
        text=text,
        due_at=NOON,
        created_at=NOON,
    )


def test_it_calls_the_asker_and_quotes_every_line() -> None:
    assert reminder_text(reminder("tea\n\nand cake"), now=NOON) == "<@7> Reminder:\n> tea\n> and cake"


def test_a_delay_is_told_and_a_moment_is_none() -> None:
    assert " late" not in reminder_text(reminder("tea"), now=NOON + timedelta(seconds=90))
    late = reminder_text(reminder("tea"), now=NOON + timedelta(hours=26, minutes=5))
    assert late == "<@7> Reminder (1 d 2 h late: I was not connected when it was due):\n> tea"


@pytest.mark.parametrize(
    ("minutes", "said"), [(0, "0 min"), (-5, "0 min"), (5, "5 min"), (60, "1 h"), (125, "2 h 5 min"), (1440, "1 d")]
)
def test_a_span_has_its_two_largest_units(minutes: int, said: str) -> None:
    assert format_span(timedelta(minutes=minutes)) == said


def test_the_same_call_gives_the_same_short_id() -> None:
    assert reminder_id("a") == reminder_id("a") != reminder_id("b")
    assert len(reminder_id("a")) == 14

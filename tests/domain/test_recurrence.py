"""Times that come again, in words: the expressions that they are, and that nothing is guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.adapters.cron import find_cron_fault
from denizen.domain.errors import InvalidInput
from denizen.domain.recurrence import RECURRENCE_FORMS, find_recurrence


@pytest.mark.parametrize(
    ("text", "cron"),
    [
        ("every minute", "* * * * *"),
        ("every 15 minutes", "*/15 * * * *"),
        ("every 60 minutes", "0 * * * *"),
        ("every hour", "0 * * * *"),
        ("hourly", "0 * * * *"),
        ("every 2 hours", "0 */2 * * *"),
        ("every day at 9", "0 9 * * *"),
        ("daily at 9pm", "0 21 * * *"),
        ("each day at noon", "0 12 * * *"),
        ("every day at 9:00 and 17:00", "0 9,17 * * *"),
        ("every day at 9:00, 9:30 and 9:45", "0,30,45 9 * * *"),
        ("every weekday at 18:30", "30 18 * * mon-fri"),
        ("on weekdays at 9:00", "0 9 * * mon-fri"),
        ("every weekend at 10:00", "0 10 * * sat,sun"),
        (" Every  MONDAY at 9 ", "0 9 * * mon"),
        ("mondays at 9:00", "0 9 * * mon"),
        ("at 9 every monday", "0 9 * * mon"),
        ("every friday 4pm", "0 16 * * fri"),
        ("weekly on Tuesday at 8:15", "15 8 * * tue"),
        ("every week on wed at 8:15", "15 8 * * wed"),
        ("every Mon, Wed and Fri at 9:30", "30 9 * * mon,wed,fri"),
        ("every Monday to Friday at 9", "0 9 * * 1,2,3,4,5"),
        ("every sat-mon at 9", "0 9 * * 6,0,1"),
        ("every month on the 1st at 9:00", "0 9 1 * *"),
        ("monthly on the 15th at 9:00", "0 9 15 * *"),
        ("on the 1st and 15th of the month at 9", "0 9 1,15 * *"),
        ("the 31st of every month at 8:00", "0 8 31 * *"),
        ("every last day of the month at 17:00", "0 17 L * *"),
        ("first Monday of the month at 9:00", "0 9 * * mon#1"),
        ("every month on the last friday at 4pm", "0 16 * * L5"),
        ("every year on 24 December at 18:00", "0 18 24 12 *"),
        ("yearly on Dec 24 at 18:00", "0 18 24 12 *"),
        ("every 24 December at 18:00", "0 18 24 12 *"),
    ],
)
def test_words_are_the_expression_that_they_mean(text: str, cron: str) -> None:
    assert find_recurrence(text) == cron
    assert find_cron_fault(cron) is None


@pytest.mark.parametrize("text", RECURRENCE_FORMS.split(", "))
def test_every_form_that_an_error_names_is_one(text: str) -> None:
    assert find_recurrence(text)


@pytest.mark.parametrize(
    ("text", "understood"),
    [
        ("every day", "no time of the day"),
        ("every Monday", "no time of the day"),
        ("every 5 hours", "5 hours do not divide 24"),
        ("every 90 minutes", "90 minutes do not divide 60"),
        ("every 24 hours", "24 hours do not divide 24"),
        ("every 0 minutes", "0 minutes"),
        ("every 2 hours at 9", "a span has no time"),
        ("every day at 9 and 17:30", "different minutes"),
        ("every day at 25", "'25' is no time"),
        ("every other Friday at 9", "'every other friday'"),
        ("every second Friday at 9", "'every second friday'"),
        ("every 3 days at 9", "'every 3 days'"),
        ("every night at 3", "'every night'"),
        ("monthly", "'monthly'"),
    ],
)
def test_what_no_expression_can_say_is_refused_with_what_was_understood(text: str, understood: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        find_recurrence(text)
    assert understood in caught.value.message
    assert caught.value.fix


@pytest.mark.parametrize("text", ["", "in 3 hours", "tomorrow at 9", "friday at 9:00", "soon", "x" * 5000])
def test_what_comes_once_or_never_is_no_recurrence(text: str) -> None:
    assert find_recurrence(text) is None


@given(st.text(max_size=120))
def test_whatever_is_written_gives_an_expression_or_a_refusal(text: str) -> None:
    try:
        find_recurrence(f"every {text}")
    except InvalidInput as error:
        assert error.fix

"""A reminder that was asked for on Discord outlives the process that it was asked of, and is said once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

from denizen.domain.clock import SystemClock
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import Harbour

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


def let_an_hour_pass(harbour: Harbour) -> None:
    """For the reminders, while nothing runs."""
    with closing(sqlite3.connect(harbour.home.folder / "denizen.db")) as connection, connection:
        connection.execute("UPDATE reminders SET due_at = created_at")


@pytest.mark.proves("V-skill-utility", "P1")
async def test_a_reminder_is_said_by_the_next_process_and_pings_who_asked(harbour: Harbour) -> None:
    harbour.configure()
    async with harbour.run() as first:
        when = (SystemClock().now() + timedelta(hours=1)).isoformat()
        harbour.script(
            ModelAnswer(calls=(ModelCall("remind", {"when": when, "text": "tea with @everyone"}),)), "Will do."
        )
        harbour.ask(harbour.ana, "remind me of tea in a moment")
        await harbour.until(lambda: "Will do." in harbour.said())
        await first.kill()
    let_an_hour_pass(harbour)
    async with harbour.run():
        await harbour.until(lambda: len(harbour.said()) == 2)
        said = await harbour.settle()
    assert len(said) == 2
    reminder = harbour.posts()[1]
    assert reminder.content == f"{harbour.ana.mention} Reminder:\n> tea with @\N{ZERO WIDTH SPACE}everyone"
    assert reminder.mentions == [harbour.ana]
    assert not reminder.mention_everyone
    assert harbour.rows("SELECT count(*) FROM reminders") == [(0,)]

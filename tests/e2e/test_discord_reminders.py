"""A reminder that was asked for on Discord outlives the process that it was asked of, and is said once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

from denizen.domain.clock import SystemClock
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import DiscordDeployment

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


def let_an_hour_pass(deployment: DiscordDeployment) -> None:
    """For the reminders, while nothing runs."""
    with closing(sqlite3.connect(deployment.home.folder / "denizen.db")) as connection, connection:
        connection.execute("UPDATE reminders SET due_at = created_at")


@pytest.mark.proves("V-skill-utility", "P1")
async def test_a_reminder_is_said_by_the_next_process_and_pings_who_asked(deployment: DiscordDeployment) -> None:
    deployment.configure()
    async with deployment.run() as first:
        when = (SystemClock().now() + timedelta(hours=1)).isoformat()
        deployment.script(
            ModelAnswer(calls=(ModelCall("remind", {"when": when, "text": "tea with @everyone"}),)), "Will do."
        )
        deployment.ask(deployment.ana, "remind me of tea in a moment")
        await deployment.until(lambda: "Will do." in deployment.said())
        await first.kill()
    let_an_hour_pass(deployment)
    async with deployment.run():
        await deployment.until(lambda: len(deployment.said()) == 2)
        said = await deployment.settle()
    assert len(said) == 2
    reminder = deployment.posts()[1]
    assert reminder.content == f"{deployment.ana.mention} Reminder:\n> tea with @\N{ZERO WIDTH SPACE}everyone"
    assert reminder.mentioned.users == [deployment.ana]
    assert not reminder.mentioned.everyone
    assert deployment.rows("SELECT count(*) FROM reminders") == [(0,)]

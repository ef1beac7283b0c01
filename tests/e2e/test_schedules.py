"""Schedules of a `denizen run`: they post on Discord at their time, once whatever happens to the process."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from denizen.testing.model_server import HangingAnswer
from tests.e2e.discord import DiscordDeployment

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

NEW_YEAR = "0 0 1 1 *"
STATES = "SELECT status FROM schedule_runs ORDER BY position"


def write_schedule(where: int, *, name: str = "news", cron: str = NEW_YEAR, more: str = "") -> str:
    return f"""\
schedules:
  {name}:
    cron: "{cron}"
    prompt: Say what is new.
    catch_up: once
    delivery: {{to: discord, target: "{where}"}}
{more}"""


async def let_its_time_pass(deployment: DiscordDeployment) -> None:
    """Lets the schedules be seen once, and years pass while nothing runs."""
    async with deployment.run() as first:
        await deployment.until(lambda: deployment.rows("SELECT name FROM schedules"))
        await first.kill()
    with closing(sqlite3.connect(deployment.home.folder / "denizen.db")) as connection, connection:
        connection.execute("UPDATE schedules SET looked_until = '2020-06-01 00:00:00.000000'")


async def test_a_schedule_posts_into_its_channel_when_its_time_has_come(deployment: DiscordDeployment) -> None:
    deployment.configure(rest=write_schedule(deployment.general.id))
    await let_its_time_pass(deployment)
    deployment.script("Nothing is new.")
    async with deployment.run():
        await deployment.until(deployment.said)
        assert await deployment.settle() == ["Nothing is new."]
    assert deployment.rows(STATES) == [("started",)]
    assert len(deployment.requests) == 2


async def test_a_run_that_was_killed_goes_on_and_posts_once(deployment: DiscordDeployment) -> None:
    deployment.configure(rest=write_schedule(deployment.general.id))
    await let_its_time_pass(deployment)
    deployment.script(HangingAnswer())
    async with deployment.run() as first:
        await deployment.until(lambda: deployment.requests)
        await first.kill()
    deployment.script("Nothing is new.")
    async with deployment.run():
        await deployment.until(deployment.said)
        assert await deployment.settle() == ["Nothing is new."]
    assert deployment.rows(STATES) == [("started",)]

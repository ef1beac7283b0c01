"""`denizen schedules`: what the operator says in a terminal holds for the schedules of members, too."""

from __future__ import annotations

from pathlib import Path

import anyio

from denizen.adapters.store import open_store
from denizen.domain.clock import SystemClock
from denizen.domain.room import Room
from tests.e2e.home import Home

ACCOUNT = 'channels: {discord: {accounts: {denizen: "${TOKEN:-}"}}}\n'


def test_the_operator_switches_on_what_a_member_had_switched_off(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    section = "{cron: '@daily', prompt: Tea., owner: 'platform_user:discord:7', paused: true}"
    home.configure("http://127.0.0.1:9/v1", rest=f"schedules:\n  tea: {section}\n")
    assert '"enabled": false' in home.do("schedules", "list", "--json").out
    done = home.do("schedules", "enable", "tea")
    assert (done.code, done.out.strip()) == (0, "tea is on.")
    assert '"enabled": true' in home.do("schedules", "list", "--json").out


def test_a_schedule_is_not_added_for_a_channel_that_no_account_sees(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.configure("http://127.0.0.1:9/v1", rest=ACCOUNT)
    add = ("schedules", "add", "tea", "--cron", "@daily", "--prompt", "Tea.", "--discord")

    async def put_room() -> None:
        store = await open_store(home.store_url, clock=SystemClock())
        async with store.work() as work:
            await work.archive.put_room(Room("discord", "10", "general", guild="1"))
        await store.aclose()

    assert home.do("schedules", "list").code == 0
    anyio.run(put_room)
    refused = home.do(*add, "11")
    assert refused.code != 0 and "no channel '11'" in refused.err and "10 (#general)" in refused.err
    assert "tea" not in home.config.read_text()
    done = home.do(*add, "10")
    assert done.code == 0 and done.out.startswith("Added tea  @daily  next ")


def test_words_say_when_and_one_time_is_written_as_what_they_mean(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.configure("http://127.0.0.1:9/v1", rest="# Ours.\n")
    add = ("schedules", "add", "--zone", "Europe/Berlin", "--prompt", "Tea.")
    done = home.do(*add, "tea", "--when", "every Monday at 9")
    assert done.out.startswith("Added tea  every Monday at 9 (0 9 * * mon)  next Mon ") and "Berlin" in done.out
    done = home.do(*add, "once", "--when", "24 December 2990 at 18:30")
    assert "once  24 December 2990 at 18:30 (Fri 24 Dec 2990 18:30)  next Fri 2990-12-24 18:30 Europe" in done.out
    text = home.config.read_text()
    assert "# Ours." in text and "when: every Monday at 9" in text
    assert "at: '2990-12-24T18:30:00+01:00'" in text and "said: 24 December 2990 at 18:30" in text
    refused = home.do(*add, "other", "--when", "every other Monday at 9")
    assert refused.code != 0 and "'every other monday'" in refused.err and "every first Monday" in refused.err
    assert home.do(*add, "none").code != 0
    assert home.config.read_text() == text

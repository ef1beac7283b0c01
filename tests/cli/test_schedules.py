"""`denizen schedules`: what the operator says in a terminal holds for the schedules of members, too."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.home import Home


def test_the_operator_switches_on_what_a_member_had_switched_off(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    section = "{cron: '@daily', prompt: Tea., owner: 'platform_user:discord:7', paused: true}"
    home.configure("http://127.0.0.1:9/v1", rest=f"schedules:\n  tea: {section}\n")
    assert '"enabled": false' in home.do("schedules", "list", "--json").out
    done = home.do("schedules", "enable", "tea")
    assert (done.code, done.out.strip()) == (0, "tea is on.")
    assert '"enabled": true' in home.do("schedules", "list", "--json").out

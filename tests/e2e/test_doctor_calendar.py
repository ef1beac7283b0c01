"""`denizen doctor` asks the server of calendars."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.caldav_server import PASSWORD, USER, open_caldav_server
from tests.e2e.home import Home

pytestmark = pytest.mark.e2e


def test_the_calendars_of_the_account_are_counted_and_a_wrong_password_is_explained(tmp_path: Path) -> None:
    with open_caldav_server(tmp_path) as server:
        server.add_calendar("home", title="Home")
        home = Home(tmp_path / "home", {"CALENDAR_PASSWORD": PASSWORD})
        login = f'url: "{server.url}", user: "{USER}", password: "${{CALENDAR_PASSWORD}}"'
        home.configure("http://127.0.0.1:9/v1", rest=f"tools:\n  calendar: {{enabled: true, {login}}}\n")
        assert "ok    calendar: 1 calendars, of which Home is the default one" in home.do("doctor").out
        home.variables["CALENDAR_PASSWORD"] = "wrong word"
        told = home.do("doctor")
    assert "FAIL  calendar" in told.out and "Check tools.calendar.user and password" in told.out
    assert "wrong word" not in told.out + told.err

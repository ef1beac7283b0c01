"""The tools of a calendar, on a real server of CalDAV."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from denizen.adapters.caldav import HttpCalDavCalendars
from denizen.builtin_skills import load_builtin
from denizen.domain.json import Json
from denizen.domain.tool import ToolResult
from denizen.skill import AccountServices, InvalidInput, SkillToolset
from tests.caldav_server import PASSWORD, USER, CalDavServer, make_event, open_caldav_server
from tests.clock import ManualClock
from tests.skill_fixture import ServicesFixture, run, scope

pytestmark = pytest.mark.anyio


@dataclass
class Tools:
    server: CalDavServer
    root: Path

    async def call(self, tool: str, *, key: str = "", **args: Json) -> ToolResult:
        clock = ManualClock(datetime(2026, 10, 23, 8, tzinfo=UTC))
        services = replace(
            ServicesFixture(self.root, clock=clock).services(),
            accounts=AccountServices(open_calendars=partial(HttpCalDavCalendars, clock=clock)),
        )
        options: dict[str, Json] = {"url": self.server.url, "user": USER, "password": PASSWORD}
        toolset = SkillToolset(load_builtin("calendar"), services, {**options, "timezone": "Europe/Rome"})
        return await run(toolset, tool, args, scope(key=key))

    async def tell(self, tool: str, *, key: str = "", **args: Json) -> str:
        result = await self.call(tool, key=key, **args)
        assert not result.is_error, result.text
        return result.text


@pytest.fixture
def tools(tmp_path: Path) -> Generator[Tools]:
    with open_caldav_server(tmp_path) as server:
        server.add_calendar("home", title="Home")
        yield Tools(server, tmp_path)


async def test_events_are_made_listed_changed_and_deleted(tools: Tools) -> None:
    assert "Home [id /" in await tools.tell("list_calendars")
    made = await tools.tell("create_calendar_event", key="k", title="Tea", start="2026-10-25T01:30", place="Garden")
    assert made == "Made: Sun 2026-10-25 01:30 to 02:30: Tea (Europe/Rome)."
    again = await tools.tell("create_calendar_event", key="k", title="Tea", start="2026-10-25T01:30", place="Garden")
    assert again.startswith("It was made already")
    listed = await tools.tell("list_calendar_events", words="tea")
    assert "Sun 2026-10-25 01:30 to 02:30: Tea (Garden) [id " in listed and listed.startswith("<untrusted ")
    event = listed.partition("[id ")[2].partition("]")[0]
    changed = await tools.tell(
        "change_calendar_event", event=event, title_now="Tea", start="2026-10-25", end="2026-10-26"
    )
    assert "Sun 2026-10-25 to Mon 2026-10-26, all day: Tea (Garden)" in changed
    assert await tools.tell("delete_calendar_event", key="d", event=event, title_now="Tea") == "Deleted Tea."
    assert await tools.tell("delete_calendar_event", key="d", event=event, title_now="Tea") == "It was deleted already."
    assert (await tools.call("list_calendar_events")).is_own


async def test_one_time_of_a_recurring_event_is_deleted_by_its_id(tools: Tools) -> None:
    path = f"/{USER}/home/tea.ics"
    lines = ("SUMMARY:Tea", "DTSTART;TZID=Europe/Rome:20261024T180000", "RRULE:FREQ=DAILY;COUNT=3")
    tools.server.put(path, make_event("tea", *lines))
    listed = await tools.tell("list_calendar_events")
    assert "[id tea.ics#20261025T170000Z, recurring]" in listed
    wrong = await tools.call("delete_calendar_event", event="tea.ics#20261025T170000Z", title_now="Coffee")
    assert wrong.is_error and "another title" in wrong.text
    await tools.tell("delete_calendar_event", event="tea.ics#20261025T170000Z", title_now="Tea")
    left = await tools.tell("list_calendar_events")
    assert "2026-10-24 18:00" in left and "2026-10-25" not in left.partition("\n")[2] and "2026-10-26 18:00" in left


@pytest.mark.parametrize(
    "args",
    [
        {"title": "x", "start": "tomorrow"},
        {"title": "x", "start": "2026-10-25", "end": "2026-10-24"},
        {"title": "x", "start": "2026-10-25T10:00", "guests": "Ben"},
        {"title": "x", "start": "2026-10-25T10:00", "calendar": "none"},
    ],
)
async def test_what_cannot_be_made_is_refused_in_own_words(tools: Tools, args: dict[str, str]) -> None:
    result = await tools.call("create_calendar_event", **args)
    assert result.is_error and result.is_own
    assert (await tools.call("list_calendar_events")).text.startswith("There is no such event")


async def test_missing_settings_are_named_and_a_wrong_zone_is_refused(tmp_path: Path) -> None:
    skill = load_builtin("calendar")
    services = replace(
        ServicesFixture(tmp_path).services(),
        accounts=AccountServices(open_calendars=partial(HttpCalDavCalendars, clock=ManualClock())),
    )
    result = await run(SkillToolset(skill, services, {"url": "http://127.0.0.1:1"}), "list_calendars", {})
    assert result.is_error and "tools.calendar.user, password" in result.text
    with pytest.raises(InvalidInput, match="time zone"):
        skill.read_settings({"timezone": "Europe/Room"})

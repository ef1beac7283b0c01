"""Calendars of a real server of CalDAV."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import pytest

from denizen.adapters.caldav import HttpCalDavCalendars
from denizen.adapters.caldav.account import READ_S
from denizen.adapters.caldav.client import MAX_BYTES, is_same_domain
from denizen.domain.calendar import EventDraft, EventQuery
from denizen.domain.errors import InvalidInput, NeedsAttention, NotAllowed, NotFound, Unavailable
from denizen.ports.calendar import CalDavLogin
from tests.caldav_server import PASSWORD, USER, CalDavServer, make_event, open_caldav_server
from tests.clock import ManualClock
from tests.local_server import Exchange, serve

pytestmark = pytest.mark.anyio

ROME = ZoneInfo("Europe/Rome")
AUTUMN = EventQuery(since=datetime(2026, 10, 12, tzinfo=ROME), until=datetime(2026, 11, 12, tzinfo=ROME))
WEEKLY = ("SUMMARY:Tea", "DTSTART;TZID=Europe/Rome:20261013T180000", "DTEND;TZID=Europe/Rome:20261013T190000")


@pytest.fixture
def server(tmp_path: Path) -> Generator[CalDavServer]:
    with open_caldav_server(tmp_path) as server:
        yield server


@pytest.fixture
def login(server: CalDavServer) -> CalDavLogin:
    return CalDavLogin(url=server.url, user=USER, password=PASSWORD, zone=ROME)


@pytest.fixture
def calendars(login: CalDavLogin) -> HttpCalDavCalendars:
    return HttpCalDavCalendars(login, ManualClock())


async def test_calendars_are_found_from_the_address_of_the_server(server: CalDavServer, login: CalDavLogin) -> None:
    assert await HttpCalDavCalendars(login, ManualClock()).list_calendars() == []
    home = server.add_calendar("home", title="Ада")
    work = server.add_calendar("work", title="Work")
    server.add_calendar("todo", kind="VTODO")
    for url in (server.url, f"{server.url}/{USER}/", f"{server.url}{work}"):
        found = await HttpCalDavCalendars(replace(login, url=url), ManualClock()).list_calendars()
        named = {unquote(each.id): (each.name, each.is_writable) for each in found}
        assert named == {home: ("Ада", True), work: ("Work", True)}
    chosen = HttpCalDavCalendars(replace(login, calendar="Work"), ManualClock())
    assert [each.name for each in await chosen.list_calendars() if each.is_default] == ["Work"]
    with pytest.raises(NotFound, match="no calendar Play"):
        await HttpCalDavCalendars(replace(login, calendar="Play"), ManualClock()).list_calendars()


async def test_each_time_of_a_recurring_event_is_listed_at_its_hour_over_the_change_of_the_clocks(
    server: CalDavServer, calendars: HttpCalDavCalendars
) -> None:
    path = server.add_calendar("home")
    server.put(f"{path}tea.ics", make_event("tea", *WEEKLY, "RRULE:FREQ=WEEKLY"))
    server.put(f"{path}day.ics", make_event("day", "SUMMARY:Holiday", "DTSTART;VALUE=DATE:20261027"))
    server.put(f"{path}old.ics", make_event("old", "SUMMARY:Old", "DTSTART:20250101T100000Z", "DURATION:PT1H"))
    found = await calendars.find_events(AUTUMN)
    assert [(each.title, f"{each.start:%m-%d %H:%M}") for each in found] == [
        ("Tea", "10-13 18:00"),
        ("Tea", "10-20 18:00"),
        ("Holiday", "10-27 00:00"),
        ("Tea", "10-27 18:00"),
        ("Tea", "11-03 18:00"),
        ("Tea", "11-10 18:00"),
    ]
    assert found[3].start == datetime(2026, 10, 27, 17, tzinfo=UTC)
    few = await calendars.find_events(replace(AUTUMN, words="holi"))
    assert [(each.title, each.is_recurring) for each in few] == [("Holiday", False)]
    assert len(await calendars.find_events(replace(AUTUMN, limit=2))) == 2


async def test_an_event_is_made_once_changed_and_deleted(server: CalDavServer, calendars: HttpCalDavCalendars) -> None:
    path = server.add_calendar("home")
    start = datetime(2026, 10, 24, 18, tzinfo=ROME)
    draft = EventDraft(title="Tea", start=start, end=start + timedelta(days=1), guests=["ben@example.net"], text="x")
    assert await calendars.create_event(draft, key="call_1")
    assert not await calendars.create_event(draft, key="call_1", calendar="home")
    [event] = await calendars.find_events(AUTUMN)
    assert (event.title, event.start, event.end, event.guests) == ("Tea", start, draft.end, ("ben@example.net",))
    assert f"ORGANIZER:mailto:{USER}" in server.read(f"{path}{event.id}")
    changed = await calendars.change_event(event.id, EventDraft(title="Coffee"))
    assert (changed.title, changed.start, changed.text) == ("Coffee", start, "x")
    assert await calendars.get_event(event.id) == changed
    await calendars.delete_event(event.id)
    with pytest.raises(NotFound):
        await calendars.get_event(event.id)
    assert await calendars.find_events(AUTUMN) == []


async def test_one_time_of_a_recurring_event_is_changed_and_another_deleted(
    server: CalDavServer, calendars: HttpCalDavCalendars
) -> None:
    path = server.add_calendar("home")
    server.put(f"{path}tea.ics", make_event("tea", *WEEKLY, "RRULE:FREQ=WEEKLY;COUNT=3"))
    first, second, _ = await calendars.find_events(AUTUMN)
    changed = await calendars.change_event(second.id, EventDraft(start=date(2026, 10, 21), end=date(2026, 10, 22)))
    assert changed.start == date(2026, 10, 21)
    await calendars.delete_event(first.id)
    left = await calendars.find_events(AUTUMN)
    assert [f"{each.start:%m-%d %H:%M}" for each in left] == ["10-21 00:00", "10-27 18:00"]
    with pytest.raises(NotFound):
        await calendars.get_event(first.id)


async def test_only_calendars_of_the_account_and_resources_in_them_are_reached(
    server: CalDavServer, calendars: HttpCalDavCalendars
) -> None:
    server.add_calendar("home")
    for calendar in ("none", "/", f"/{USER}/", "http://127.0.0.1:1/"):
        with pytest.raises(NotFound):
            await calendars.find_events(AUTUMN, calendar=calendar)
    for event in ("", "..", "../home/", "none.ics", "/x"):
        with pytest.raises(NotFound):
            await calendars.get_event(event)


async def test_a_wrong_password_and_a_server_that_is_away_are_told(login: CalDavLogin) -> None:
    with pytest.raises(NeedsAttention) as caught:
        await HttpCalDavCalendars(replace(login, password="wrong word"), ManualClock()).list_calendars()
    assert "wrong word" not in repr(caught.value) + caught.value.explain()
    with pytest.raises(Unavailable):
        await HttpCalDavCalendars(replace(login, url="http://127.0.0.1:1"), ManualClock()).list_calendars()


async def test_the_password_does_not_follow_the_server_elsewhere(login: CalDavLogin) -> None:
    def lead_away(exchange: Exchange) -> None:
        exchange.redirect("http://elsewhere.example/")

    with serve({"/": lead_away}) as local, pytest.raises(NotAllowed, match="leads to another"):
        await HttpCalDavCalendars(replace(login, url=local.url("/")), ManualClock()).list_calendars()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
async def test_xml_with_a_document_type_is_refused_in_any_encoding(encoding: str, login: CalDavLogin) -> None:
    bomb = f"""<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>
<d:multistatus xmlns:d="DAV:"><d:response><d:href>/&b;</d:href></d:response></d:multistatus>"""

    with serve({"/": lambda exchange: exchange.say(bomb.encode(encoding), status=207)}) as local:
        calendars = HttpCalDavCalendars(replace(login, url=local.url("/")), ManualClock())
        with pytest.raises(Unavailable) as caught:
            await calendars.list_calendars()
        assert "is no XML" in caught.value.why


async def test_answers_that_are_too_large_or_take_too_long_to_read_are_refused_with_a_word(
    server: CalDavServer, login: CalDavLogin
) -> None:
    class SlowClock(ManualClock):
        def monotonic_s(self) -> float:
            self.advance(READ_S * 0.6)
            return super().monotonic_s()

    path = server.add_calendar("home")
    for name in ("a", "b"):
        server.put(f"{path}{name}.ics", make_event(name, *WEEKLY, "RRULE:FREQ=WEEKLY"))
    with pytest.raises(InvalidInput, match=r"The 2 events .* take too long") as caught:
        await HttpCalDavCalendars(login, SlowClock()).find_events(AUTUMN)
    assert "less time" in caught.value.fix
    with serve({"/": lambda exchange: exchange.say(b" " * (MAX_BYTES + 1), status=207)}) as local:
        calendars = HttpCalDavCalendars(replace(login, url=local.url("/")), ManualClock())
        with pytest.raises(NotFound) as refused:
            await calendars.list_calendars()
        assert "larger than 10 MB" in refused.value.why


@pytest.mark.parametrize(
    ("mine", "other", "is_same"),
    [
        ("caldav.icloud.com", "p12-caldav.icloud.com", True),
        ("cloud.example.org", "cloud.example.org", True),
        ("example.org", "dav.example.org", True),
        ("example.org", "evil.org", False),
        ("cloud.example.org", "example.org", False),
        ("cloud.example.org", "evilexample.org", False),
        ("10.0.0.1", "10.1.0.1", False),
        ("", "evil.org", False),
    ],
)
def test_the_password_goes_to_hosts_of_the_same_domain_alone(mine: str, other: str, is_same: bool) -> None:
    assert is_same_domain(mine, other) is is_same

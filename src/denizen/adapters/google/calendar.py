"""Google Calendar. https://developers.google.com/workspace/calendar/api/v3/reference"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any
from urllib.parse import quote

from denizen.adapters.google.client import CALENDAR, GoogleClient, GoogleRequest, Row, get_text, list_rows
from denizen.domain.calendar import CalendarEvent, CalendarInfo, EventDraft, EventQuery, Moment
from denizen.domain.errors import Conflict, NotFound

PRIMARY = "primary"
PAGE = 250
MAX_PAGES = 8
_NOTIFY = {"sendUpdates": "all"}


class RestGoogleCalendars:
    """Implements `ports.calendar.CalendarAccount`. One time of a recurring event has an id of its own."""

    def __init__(self, client: GoogleClient) -> None:
        self._client = client

    async def list_calendars(self) -> Sequence[CalendarInfo]:
        rows = await self._list("/users/me/calendarList", "list calendars", {"maxResults": str(PAGE)})
        return [
            CalendarInfo(
                id=get_text(row, "id"),
                name=get_text(row, "summaryOverride") or get_text(row, "summary"),
                is_default=row.get("primary") is True,
                is_writable=get_text(row, "accessRole") in ("owner", "writer"),
            )
            for row in rows
        ]

    async def find_events(self, query: EventQuery, *, calendar: str = "") -> Sequence[CalendarEvent]:
        asked = {
            "timeMin": query.since.isoformat(),
            "timeMax": query.until.isoformat(),
            "singleEvents": "true",
            "orderBy": "startTime",
            "maxResults": str(min(query.limit, PAGE)),
            **({"q": query.words} if query.words.strip() else {}),
        }
        rows = await self._list(f"{_path(calendar)}/events", "list events", asked, most=query.limit)
        return [event for event in map(_read_event, rows) if event is not None][: query.limit]

    async def get_event(self, event: str, *, calendar: str = "") -> CalendarEvent:
        path = _event_path(calendar, event)
        found = _read_event(await self._client.ask(GoogleRequest(api=CALENDAR, path=path, doing="read an event")))
        if found is None:
            raise NotFound("This event is no longer there.", code="google_not_found")
        return found

    async def create_event(self, event: EventDraft, *, key: str, calendar: str = "") -> bool:
        # The id is in base32hex, which hexadecimal digits are.
        own = {"id": hashlib.sha256(key.encode()).hexdigest()} if key else {}
        asked = GoogleRequest(
            method="POST",
            api=CALENDAR,
            path=f"{_path(calendar)}/events",
            doing="make an event",
            params=_NOTIFY,
            json=own | _write_event(event),
        )
        try:
            await self._client.ask(asked)
        except Conflict:
            return False
        return True

    async def change_event(self, event: str, change: EventDraft, *, calendar: str = "") -> CalendarEvent:
        asked = GoogleRequest(
            method="PATCH",
            api=CALENDAR,
            path=_event_path(calendar, event),
            doing="change an event",
            params=_NOTIFY,
            json=_write_event(change),
        )
        changed = _read_event(await self._client.ask(asked))
        assert changed is not None, "Google answers a change with the event"
        return changed

    async def delete_event(self, event: str, *, calendar: str = "") -> None:
        path = _event_path(calendar, event)
        await self._client.ask(
            GoogleRequest(method="DELETE", api=CALENDAR, path=path, doing="delete an event", params=_NOTIFY)
        )

    async def _list(self, path: str, doing: str, params: dict[str, str], *, most: int = PAGE * MAX_PAGES) -> list[Row]:
        found: list[Row] = []
        token = ""
        for _ in range(MAX_PAGES):
            page = params | ({"pageToken": token} if token else {})
            answer = await self._client.ask(GoogleRequest(api=CALENDAR, path=path, doing=doing, params=page))
            found += list_rows(answer, "items")
            token = get_text(answer, "nextPageToken")
            if not token or len(found) >= most:
                break
        return found


def _path(calendar: str) -> str:
    return f"/calendars/{quote(calendar or PRIMARY, safe='')}"


def _event_path(calendar: str, event: str) -> str:
    return f"{_path(calendar)}/events/{quote(event, safe='')}"


def _read_event(row: Row) -> CalendarEvent | None:
    """Returns the event; None for a cancelled one, and for one without a time."""
    start, end = _read_moment(row, "start"), _read_moment(row, "end")
    if start is None or end is None or get_text(row, "status") == "cancelled":
        return None
    return CalendarEvent(
        id=get_text(row, "id"),
        title=get_text(row, "summary") or "(no title)",
        start=start,
        end=end,
        place=get_text(row, "location"),
        text=get_text(row, "description"),
        guests=tuple(get_text(each, "email") for each in list_rows(row, "attendees")),
        is_recurring=bool(get_text(row, "recurringEventId")),
    )


def _read_moment(row: Row, key: str) -> Moment | None:
    try:
        if text := get_text(row, key, "dateTime"):
            moment = datetime.fromisoformat(text)
            return moment if moment.tzinfo else None
        return date.fromisoformat(get_text(row, key, "date"))
    except ValueError:
        return None


def _write_event(event: EventDraft) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "summary": event.title,
        "start": _write_moment(event.start),
        "end": _write_moment(event.end),
        "location": event.place,
        "description": event.text,
        "attendees": None if event.guests is None else [{"email": guest} for guest in event.guests],
    }
    return {name: value for name, value in fields.items() if value is not None}


def _write_moment(moment: Moment | None) -> dict[str, str | None] | None:
    """The other kind of time is taken out, for a change from days to times and back."""
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        return {"date": moment.isoformat(), "dateTime": None}
    zone = getattr(moment.tzinfo, "key", None)
    return {"dateTime": moment.isoformat(), "date": None, **({"timeZone": zone} if zone else {})}

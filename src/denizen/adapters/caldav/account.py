"""`HttpCalDavCalendars`: the calendars of one account, found from the address of its server."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Sequence
from datetime import UTC
from functools import partial
from heapq import nsmallest
from importlib.util import find_spec
from urllib.parse import unquote, urljoin, urlsplit

from anyio import to_thread

from denizen.adapters.caldav.client import CAL, DAV, DavAnswer, DavClient, DavRequest, DavRow
from denizen.adapters.caldav.events import EventResource, build_event
from denizen.domain.calendar import CalendarEvent, CalendarInfo, EventDraft, EventQuery, has_words, to_instant
from denizen.domain.clock import Clock
from denizen.domain.errors import Conflict, DenizenError, InvalidInput, NotFound, Unavailable
from denizen.domain.installation import build_install_command
from denizen.domain.record import record
from denizen.ports.calendar import CalDavLogin

READ_S = 20.0
"""How long the events of a list may take to read; one may take as long again."""
WELL_KNOWN = "/.well-known/caldav"
_PRINCIPAL, _HOME, _ADDRESSES = "d:current-user-principal", "c:calendar-home-set", "c:calendar-user-address-set"
_CALENDAR = ("d:resourcetype", "d:displayname", "c:supported-calendar-component-set", "d:current-user-privilege-set")
_WRITING = ("write", "write-content", "bind", "all")
_log = logging.getLogger("denizen.calendar")


@record
class _Place:
    """The folder of an account's calendars, and the address of mail under which it invites."""

    home: str
    address: str = ""


class HttpCalDavCalendars:
    """Implements `ports.calendar.CalendarAccount`. A calendar's id is the path of its address; an event's is the name
    of its resource, with the time behind `#` for one time of a recurring event.
    """

    def __init__(self, login: CalDavLogin, clock: Clock) -> None:
        self._login = login
        self._clock = clock
        self._client = DavClient(login)
        self._place: _Place | None = None

    async def list_calendars(self) -> Sequence[CalendarInfo]:
        place = await self._find_place()
        rows = await self._client.list_properties(place.home, "list calendars", _CALENDAR, depth=1)
        found = [(row, _is_writable(row)) for row in rows if _is_calendar(row)]
        infos = [
            CalendarInfo(
                id=urlsplit(row.url).path,
                name=row.find_text(f"{DAV}displayname") or unquote(urlsplit(row.url).path).rstrip("/").split("/")[-1],
                is_writable=is_writable,
            )
            for row, is_writable in found
        ]
        wanted = self._login.calendar
        chosen = next((each for each in infos if wanted and wanted in {each.id, each.name}), None)
        if wanted and chosen is None:
            raise NotFound(
                f"There is no calendar {wanted}.",
                code="calendar_not_found",
                fix=f"Write as tools.calendar.calendar one of: {', '.join(each.name for each in infos) or 'none'}.",
            )
        chosen = chosen or next((each for each in infos if each.is_writable), infos[0] if infos else None)
        return [
            CalendarInfo(id=each.id, name=each.name, is_default=each is chosen, is_writable=each.is_writable)
            for each in infos
        ]

    async def find_events(self, query: EventQuery, *, calendar: str = "") -> Sequence[CalendarEvent]:
        _check_libraries()
        url = await self._find_calendar(calendar)
        begin, end = (f"{each.astimezone(UTC):%Y%m%dT%H%M%SZ}" for each in (query.since, query.until))
        body = (
            '<?xml version="1.0" encoding="utf-8"?>'
            '<c:calendar-query xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">'
            "<d:prop><d:getetag/><c:calendar-data/></d:prop><c:filter>"
            '<c:comp-filter name="VCALENDAR"><c:comp-filter name="VEVENT">'
            f'<c:time-range start="{begin}" end="{end}"/></c:comp-filter></c:comp-filter></c:filter></c:calendar-query>'
        )
        rows = await self._client.read_rows("REPORT", url, "list events", body, depth=1)
        texts = [(_name(row.url), row.find_text(f"{CAL}calendar-data")) for row in rows]
        return await to_thread.run_sync(partial(self._select, texts, query), abandon_on_cancel=True)

    def _select(self, texts: Sequence[tuple[str, str]], query: EventQuery) -> list[CalendarEvent]:
        """Returns the first events. Raises InvalidInput where they take too long to read: others write the rules."""
        events: list[CalendarEvent] = []
        ends_s = self._clock.monotonic_s() + READ_S
        for name, text in texts:
            if self._clock.monotonic_s() > ends_s:
                raise InvalidInput(
                    f"The {len(texts)} events of that time take too long to read.",
                    code="calendar_large",
                    fix="Ask for less time.",
                )
            try:
                times = EventResource(text, self._login.zone).expand(query.since, query.until)
            except InvalidInput as error:
                _log.warning("an event cannot be read", extra={"event": name, **error.fields})
                continue
            found = [each for each in (time.to_event(name) for time in times) if has_words(each, query.words)]
            events = nsmallest(query.limit, events + found, key=lambda each: to_instant(each.start, self._login.zone))
        return events

    async def get_event(self, event: str, *, calendar: str = "") -> CalendarEvent:
        name, _, key = event.strip().partition("#")
        _, resource, _ = await self._load(name, calendar, "read an event")
        return resource.find(key).to_event(name)

    async def create_event(self, event: EventDraft, *, key: str, calendar: str = "") -> bool:
        _check_libraries()
        uid = hashlib.sha256(key.encode()).hexdigest()[:32] if key else secrets.token_hex(16)
        url = urljoin(await self._find_calendar(calendar), f"{uid}.ics")
        organizer = (await self._find_place()).address
        text = build_event(uid, event, organizer=organizer, now=self._clock.now())
        try:
            await self._put(url, text, "make an event", {"if-none-match": "*"})
        except Conflict:
            return False
        return True

    async def change_event(self, event: str, change: EventDraft, *, calendar: str = "") -> CalendarEvent:
        name, _, key = event.strip().partition("#")
        url, resource, etag = await self._load(name, calendar, "change an event")
        changed = resource.change(key, change, now=self._clock.now())
        await self._put(url, resource.to_text(), "change an event", {"if-match": etag} if etag else {})
        return changed.to_event(name)

    async def delete_event(self, event: str, *, calendar: str = "") -> None:
        name, _, key = event.strip().partition("#")
        doing = "delete an event"
        url, resource, etag = await self._load(name, calendar, doing)
        headers = {"if-match": etag} if etag else {}
        if resource.remove(key, now=self._clock.now()):
            await self._put(url, resource.to_text(), doing, headers)
        else:
            await self._client.send(DavRequest(method="DELETE", url=url, doing=doing, headers=headers))

    async def _load(self, name: str, calendar: str, doing: str) -> tuple[str, EventResource, str]:
        """Returns the address of a resource, what it holds, and the mark of its state."""
        _check_libraries()
        if not name or "/" in name or name in {".", ".."}:
            raise NotFound("There is no such event.", code="calendar_not_found", fix="List the events again.")
        url = urljoin(await self._find_calendar(calendar), name)
        answer: DavAnswer = await self._client.send(DavRequest(method="GET", url=url, doing=doing))
        return url, EventResource(answer.body.decode("utf-8", "replace"), self._login.zone), answer.etag

    async def _put(self, url: str, text: str, doing: str, headers: dict[str, str]) -> None:
        headers = {"content-type": "text/calendar; charset=utf-8", **headers}
        await self._client.send(DavRequest(method="PUT", url=url, doing=doing, body=text, headers=headers))

    async def _find_calendar(self, calendar: str) -> str:
        """Returns the address of a calendar of the account, by id or name; of the default one for an empty one. Raises
        NotFound.
        """
        wanted = calendar.strip()
        for each in await self.list_calendars():
            if wanted in {each.id, each.name} or (not wanted and each.is_default):
                path = each.id if each.id.endswith("/") else f"{each.id}/"
                return urljoin((await self._find_place()).home, path)
        raise NotFound("There is no such calendar.", code="calendar_not_found", fix="List the calendars.")

    async def _find_place(self) -> _Place:
        """Finds the folder of the calendars as RFC 6764 has it: from the server to the account, from there to it."""
        if self._place is None:
            self._place = await self._discover()
        return self._place

    async def _discover(self) -> _Place:
        doing, start = "find the calendars", self._login.url
        faults: list[DenizenError] = []
        for url in dict.fromkeys((start, urljoin(start, WELL_KNOWN))):
            try:
                rows = await self._client.list_properties(url, doing, (_PRINCIPAL, _HOME, "d:resourcetype"), depth=0)
            except (NotFound, InvalidInput) as error:
                faults.append(error)
                continue
            for row in rows:
                if principal := row.find_address(f"{DAV}current-user-principal"):
                    about = await self._client.list_properties(principal, doing, (_HOME, _ADDRESSES), depth=0)
                    for each in about:
                        if home := each.find_address(f"{CAL}calendar-home-set"):
                            return _Place(home, _read_address(each, self._login.user))
                if _is_calendar(row):
                    return _Place(row.url, self._login.user if "@" in self._login.user else "")
        raise NotFound(
            "No calendars are found on the server.",
            code="calendar_not_found",
            why="; ".join(str(each) for each in faults),
            fix="Write as tools.calendar.url the address that your provider names for CalDAV.",
        )


def _is_calendar(row: DavRow) -> bool:
    """Returns whether it is a calendar that takes events. Those that do not say what they take, take all."""
    if row.properties.find(f"{DAV}resourcetype/{CAL}calendar") is None:
        return False
    kinds = [each.get("name") for each in row.properties.iter(f"{CAL}comp")]
    return not kinds or "VEVENT" in kinds


def _is_writable(row: DavRow) -> bool:
    """Servers that tell no privileges are asked by writing."""
    privileges = row.properties.find(f"{DAV}current-user-privilege-set")
    return privileges is None or any(next(privileges.iter(f"{DAV}{name}"), None) is not None for name in _WRITING)


def _read_address(row: DavRow, user: str) -> str:
    hrefs = [(each.text or "").strip() for each in row.properties.iter(f"{DAV}href")]
    mails = [each[7:] for each in hrefs if each.lower().startswith("mailto:")]
    return mails[0] if mails else user if "@" in user else ""


def _name(url: str) -> str:
    return urlsplit(url).path.rstrip("/").rpartition("/")[2]


def _check_libraries() -> None:
    if find_spec("icalendar") is None:
        raise Unavailable(
            "Calendars need an extra.", code="calendar_missing", fix=f"Run {build_install_command('calendar')}"
        )

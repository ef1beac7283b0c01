"""The tools of a calendar, for the skills that have one: list, create, change and delete events.

Others invite to events and write into them, so reading is sensitive and taints the turn. What changes a calendar is
dangerous: people see the whole event before they say yes, and guests may get a mail.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated
from zoneinfo import ZoneInfo

from denizen.builtin_skills.attempts import find_first_attempt
from denizen.skill import (
    MAX_EVENTS,
    MAX_GUESTS,
    CalendarAccount,
    Effect,
    EventDraft,
    EventQuery,
    InvalidInput,
    NotAllowed,
    NotFound,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    describe_event,
    describe_span,
    quote_untrusted,
    read_moment,
    read_span,
    to_instant,
)

TIMEOUT_S = 60.0
AHEAD = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class CalendarZone:
    """`timezone` is the IANA zone of times without an offset, and of those that are shown."""

    timezone: str = "UTC"

    def __post_init__(self) -> None:
        """Raises ValueError for a zone that does not exist."""
        try:
            ZoneInfo(self.timezone)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError("there is no such time zone\nfix: Write its IANA name, such as Europe/Rome.") from error

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)


Calendar = Annotated[str, Param("id; empty: the default one", max_length=500)]
EventId = Annotated[str, Param("id of the event", max_length=1000)]
TitleNow = Annotated[str, Param("its title as it is now", max_length=500)]
Title = Annotated[str, Param(max_length=300)]
Time = Annotated[str, Param("2026-12-24T18:00, or a day", max_length=40)]
End = Annotated[str, Param("time or last day; empty: an hour, or one day", max_length=40)]
Since = Annotated[str, Param("time or day; empty: now", max_length=40)]
Until = Annotated[str, Param("time or last day; empty: a week later", max_length=40)]
Words = Annotated[str, Param("that it must have", max_length=200)]
Place = Annotated[str, Param(max_length=500)]
Text = Annotated[str, Param(max_length=8000)]
Guests = Annotated[str, Param("addresses of mail, divided by commas", max_length=1000)]


class CalendarTools:
    """The functions of the tools, for calendars that `open_account` opens. `add_to` declares them."""

    def __init__(self, open_account: Callable[[ToolContext], CalendarAccount]) -> None:
        self._open = open_account

    def add_to(self, skill: Skill, *, calendar: str, event: str) -> None:
        """Declares the tools; `calendar` and `event` are the words for both in their names."""
        reading = skill.tool(
            name=f"list_{calendar}s", tier=Tier.SENSITIVE, read_only=True, timeout_s=TIMEOUT_S, reads={Taint.OTHERS}
        )
        reading(self.list_calendars)
        skill.tool(
            name=f"list_{event}s", tier=Tier.SENSITIVE, read_only=True, timeout_s=TIMEOUT_S, reads={Taint.OTHERS}
        )(self.list_events)
        writing = partial(skill.tool, tier=Tier.DANGEROUS, timeout_s=TIMEOUT_S, effects={Effect.SEND}, destructive=True)
        guests = ("guests",)
        writing(name=f"create_{event}", destinations=guests)(self.create_event)
        writing(name=f"change_{event}", destinations=guests, idempotent=True, reads={Taint.OTHERS})(self.change_event)
        writing(name=f"delete_{event}", idempotent=True)(self.delete_event)

    async def list_calendars(self, context: ToolContext) -> str | ToolOutput:
        """Lists the calendars."""
        found = await self._open(context).list_calendars()
        if not found:
            return ToolOutput("There is no calendar.", is_own=True)
        rows = [
            f"{each.name} [id {each.id}]{', the default one' if each.is_default else ''}"
            f"{'' if each.is_writable else ', read only'}"
            for each in found
        ]
        return quote_untrusted("\n".join(rows), source="calendars")

    async def list_events(
        self, context: ToolContext, since: Since = "", until: Until = "", words: Words = "", calendar: Calendar = ""
    ) -> str | ToolOutput:
        """Lists events of a time, or finds some by words."""
        zone = context.settings(CalendarZone).zone
        with _refusals():
            query = _read_query(since, until, words, now=context.clock.now(), zone=zone)
            found = await self._open(context).find_events(query, calendar=calendar)
        when = f"from {query.since.astimezone(zone):%Y-%m-%d %H:%M} to {query.until.astimezone(zone):%Y-%m-%d %H:%M}"
        if not found:
            return ToolOutput(f"There is no such event {when} ({zone}).", is_own=True)
        rows = [describe_event(each, zone) for each in found]
        more = f"\nThese are the first {MAX_EVENTS}; ask for less time." if len(found) == MAX_EVENTS else ""
        return quote_untrusted("\n".join(rows), source=f"calendar, {when}, times in {zone}") + more

    async def create_event(  # noqa: PLR0913, PLR0917 - the fields of an event
        self,
        context: ToolContext,
        title: Title,
        start: Time,
        end: End = "",
        place: Place = "",
        text: Text = "",
        guests: Guests = "",
        calendar: Calendar = "",
    ) -> str:
        """Makes an event and invites its guests."""
        zone = context.settings(CalendarZone).zone
        with _refusals():
            first, last = read_span(start, end, zone)
            draft = EventDraft(
                title=title, start=first, end=last, place=place, text=text, guests=_read_guests(guests) or ()
            )
            is_new = await self._open(context).create_event(draft, key=context.idempotency_key, calendar=calendar)
        when = describe_span(first, last, zone)
        return f"{'Made' if is_new else 'It was made already'}: {when}: {title} ({zone})."

    async def change_event(  # noqa: PLR0913, PLR0917 - the fields of an event
        self,
        context: ToolContext,
        event: EventId,
        title_now: TitleNow,
        title: Title = "",
        start: Time = "",
        end: Time = "",
        place: Place = "",
        text: Text = "",
        guests: Guests = "",
        calendar: Calendar = "",
    ) -> str:
        """Changes an event, or one time of a recurring one. What is empty stays; guests replace those there are."""
        zone = context.settings(CalendarZone).zone
        if bool(start.strip()) != bool(end.strip()):
            raise ToolError("Give start and end together.", is_own=True)
        account = self._open(context)
        with _refusals():
            first, last = read_span(start, end, zone) if start.strip() else (None, None)
            change = EventDraft(
                title=title or None,
                start=first,
                end=last,
                place=place or None,
                text=text or None,
                guests=_read_guests(guests),
            )
            # When the call runs again, the event may have its new title.
            await _check_title(account, event, {title_now, title}, calendar)
            changed = await account.change_event(event, change, calendar=calendar)
        return quote_untrusted(describe_event(changed, zone), source=f"changed event, times in {zone}")

    async def delete_event(
        self, context: ToolContext, event: EventId, title_now: TitleNow, calendar: Calendar = ""
    ) -> str:
        """Deletes an event, or one time of a recurring one, and tells its guests."""
        account, again = self._open(context), await find_first_attempt(context)
        with _refusals():
            try:
                await _check_title(account, event, {title_now}, calendar)
                await account.delete_event(event, calendar=calendar)
            except NotFound:
                if not again:
                    raise
                return "It was deleted already."
        return f"Deleted {title_now}."


@contextmanager
def _refusals() -> Generator[None]:
    """Tells a refusal to the model as an error of the call, whose words are Denizen's own."""
    try:
        yield
    except ToolError:
        raise
    except (InvalidInput, NotAllowed, NotFound) as error:
        raise ToolError(error.explain(), is_own=True) from error


async def _check_title(account: CalendarAccount, event: str, titles: set[str], calendar: str) -> None:
    """People approve an event by its title, so it must be the one of that id. Raises ToolError."""
    found = await account.get_event(event, calendar=calendar)
    if found.heading not in {" ".join(title.split()) for title in titles if title}:
        raise ToolError("The event of this id has another title. List the events again.", is_own=True)


def _read_query(since: str, until: str, words: str, *, now: datetime, zone: ZoneInfo) -> EventQuery:
    """Returns what is asked for; a day is meant whole. Raises InvalidInput."""
    first = to_instant(read_moment(since, zone), zone) if since.strip() else now
    last = first + AHEAD
    if until.strip():
        end = read_moment(until, zone)
        last = end if isinstance(end, datetime) else to_instant(end + timedelta(days=1), zone)
    if last <= first:
        raise InvalidInput("The time ends before it begins.", fix="Give an `until` that is later than `since`.")
    return EventQuery(since=first, until=last, words=words, limit=MAX_EVENTS)


def _read_guests(text: str) -> list[str] | None:
    """Returns the addresses; None for none. Raises ToolError."""
    guests = [each.strip() for each in text.split(",") if each.strip()]
    if len(guests) > MAX_GUESTS or not all("@" in each and " " not in each for each in guests):
        raise ToolError(f"Guests are at most {MAX_GUESTS} addresses such as ana@example.org.", is_own=True)
    return guests or None

"""The port of calendars. Implemented by `adapters/google`, and by `adapters/caldav` for servers that speak CalDAV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import tzinfo
from typing import Protocol

from denizen.domain.calendar import CalendarEvent, CalendarInfo, EventDraft, EventQuery
from denizen.domain.record import record


@record(kw_only=True)
class CalDavLogin:
    """An account on a server that speaks CalDAV. `calendar` is the name or path of the default one, empty for the first
    that can be written; `zone` is the zone of times that name none.
    """

    url: str
    user: str
    password: str = field(repr=False)
    zone: tzinfo
    calendar: str = ""


class CalendarAccount(Protocol):
    """The calendars of one account. An empty `calendar` is the default one. Every method raises NotFound for what is
    not there, NotAllowed for what the account may not do, NeedsAttention for a sign-in that is refused, and Unavailable
    for a server that does not answer.
    """

    async def list_calendars(self) -> Sequence[CalendarInfo]: ...

    async def find_events(self, query: EventQuery, *, calendar: str = "") -> Sequence[CalendarEvent]:
        """Returns events by their beginning, recurring ones once for each time."""
        ...

    async def get_event(self, event: str, *, calendar: str = "") -> CalendarEvent:
        """Returns an event, or one time of a recurring one."""
        ...

    async def create_event(self, event: EventDraft, *, key: str, calendar: str = "") -> bool:
        """Makes an event and invites its guests. False where the one of that key is there already."""
        ...

    async def change_event(self, event: str, change: EventDraft, *, calendar: str = "") -> CalendarEvent:
        """Changes an event, or one time of a recurring one, and returns it as it is now."""
        ...

    async def delete_event(self, event: str, *, calendar: str = "") -> None:
        """Deletes an event, or one time of a recurring one."""
        ...


OpenCalendars = Callable[[CalDavLogin], CalendarAccount]
"""Returns the calendars of an account, which stays closed until it is asked."""

"""The port of calendars. Implemented by `adapters/google`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from denizen.domain.calendar import CalendarEvent, CalendarInfo, EventDraft, EventQuery


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

"""Calendars of a server that speaks CalDAV; off unless switched on."""

from __future__ import annotations

from dataclasses import dataclass, field

from denizen.builtin_skills.calendar_tools import CalendarTools, CalendarZone
from denizen.skill import CalDavLogin, CalendarAccount, Skill, ToolContext, ToolError


@dataclass(frozen=True, slots=True)
class CalendarSettings(CalendarZone):
    """`url` is the address that the provider names for CalDAV. `calendar` is the name of the one that is meant when
    none is named; empty: the first that can be written.
    """

    url: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    calendar: str = ""

    @property
    def login(self) -> CalDavLogin:
        """Raises ToolError where something is missing."""
        missing = [name for name in ("url", "user", "password") if not getattr(self, name)]
        if missing:
            raise ToolError(f"The owner has to set tools.calendar.{', '.join(missing)}.", is_own=True)
        return CalDavLogin(url=self.url, user=self.user, password=self.password, zone=self.zone, calendar=self.calendar)


skill = Skill("calendar", description="Calendars of a CalDAV server.", settings=CalendarSettings)


def _open(context: ToolContext) -> CalendarAccount:
    if context.accounts.open_calendars is None:
        raise ToolError("There are no calendars here.", is_own=True)
    return context.accounts.open_calendars(context.settings(CalendarSettings).login)


CalendarTools(_open).add_to(skill, calendar="calendar", event="calendar_event")

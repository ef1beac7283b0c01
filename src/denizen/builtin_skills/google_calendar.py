"""Calendars of a Google account; off unless switched on."""

from __future__ import annotations

from denizen.builtin_skills.calendar_tools import CalendarTools, CalendarZone
from denizen.builtin_skills.google_account import get_google
from denizen.skill import Skill

skill = Skill("google_calendar", description="Calendars of a Google account.", settings=CalendarZone)

CalendarTools(lambda context: get_google(context).calendars).add_to(
    skill, calendar="google_calendar", event="google_event"
)

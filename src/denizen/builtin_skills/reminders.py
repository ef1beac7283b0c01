"""Reminders: a message at a later time, in the place where it was asked for, that mentions the asker.

Setting one has the effect SCHEDULE, so a turn that has read text of strangers needs somebody's approval for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from denizen.skill import Effect, Param, ReminderAccess, Skill, Tier, ToolContext, ToolError, quote_untrusted


@dataclass(frozen=True, slots=True)
class ReminderSettings:
    """`timezone` is the IANA zone for times without an offset; empty for the agent's `timestamps.zone`."""

    timezone: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for a zone that does not exist."""
        if self.timezone:
            try:
                ZoneInfo(self.timezone)
            except (KeyError, OSError) as error:
                raise ValueError(f"there is no time zone {self.timezone[:60]}; Europe/Rome is one") from error


skill = Skill("reminders", description="Reminds people of things at a later time.", settings=ReminderSettings)


@skill.tool(tier=Tier.LIMITED, effects={Effect.SCHEDULE})
async def remind(
    context: ToolContext,
    when: Annotated[str, Param("in 2 hours, tomorrow 9:00, or an ISO time", max_length=100)],
    text: Annotated[str, Param(max_length=500)],
) -> str:
    """Reminds the user here, later."""
    planned = await _reminders(context).add(when, text, zone=_zone(context))
    return f"Set for {_time(planned.due_at)}. It will be said here and mentions the user. Id: {planned.id}"


@skill.tool(tier=Tier.HARMLESS, read_only=True)
async def list_reminders(context: ToolContext) -> str:
    """Lists the user's reminders."""
    planned = await _reminders(context).list(zone=_zone(context))
    here = [f"{each.id}, {_time(each.due_at)}: {each.text}" for each in planned if each.is_here]
    # Others read this room: what was asked for elsewhere is only counted.
    away = len(planned) - len(here)
    lines = [quote_untrusted("\n".join(here), source="reminders") if here else "No reminder is pending here."]
    if away:
        lines.append(f"Elsewhere: {away}. What they say is private; /reminders list shows them to the user alone.")
    return "\n".join(lines)


@skill.tool(tier=Tier.LIMITED, effects={Effect.SCHEDULE})
async def cancel_reminder(context: ToolContext, reminder: Annotated[str, "its id"]) -> str:
    """Cancels a reminder."""
    await _reminders(context).cancel(reminder.strip())
    return "Cancelled."


def _reminders(context: ToolContext) -> ReminderAccess:
    if context.reminders is None:
        raise ToolError("There are no reminders here.")
    return context.reminders


def _zone(context: ToolContext) -> str:
    return context.settings(ReminderSettings).timezone


def _time(moment: datetime) -> str:
    return f"{moment:%A, %Y-%m-%d %H:%M} {moment.tzinfo}"

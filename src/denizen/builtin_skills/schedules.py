"""Schedules: prompts that the agent gets at set times, made for the one who asks and answered where they asked.

Changing them has the effect SCHEDULE, so a turn that has read text of strangers needs somebody's approval for it; and
adding one is sensitive, since nobody asks for its runs.
"""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo

from denizen.skill import (
    Effect,
    OwnSchedule,
    Param,
    ScheduleAccess,
    Skill,
    Tier,
    ToolContext,
    ToolError,
    quote_untrusted,
)

skill = Skill("schedules", description="Runs the agent at set times, for people.")

Name = Annotated[str, Param("short, like daily-news", max_length=64)]


@skill.tool(tier=Tier.SENSITIVE, effects={Effect.SCHEDULE})
async def add_schedule(
    context: ToolContext,
    name: Name,
    when: Annotated[str, Param("every Monday at 9, in 3 hours, or cron", max_length=100)],
    prompt: Annotated[str, Param("what you are told each time", max_length=2000)],
    zone: Annotated[str, Param("IANA zone, if not yours", max_length=64)] = "",
) -> str:
    """Gives you a prompt at set times; you answer it here."""
    return f"Added. {_describe(await _schedules(context).add(name, when, prompt, zone=zone))}"


@skill.tool(tier=Tier.HARMLESS, read_only=True)
async def list_schedules(context: ToolContext) -> str:
    """Lists the user's schedules."""
    own = await _schedules(context).list()
    lines = [f"{_describe(each)} Prompt: {each.prompt}" for each in own]
    return quote_untrusted("\n".join(lines), source="schedules") if lines else "There are none."


@skill.tool(tier=Tier.LIMITED, effects={Effect.SCHEDULE})
async def remove_schedule(context: ToolContext, name: Name) -> str:
    """Removes one of the user's schedules."""
    await _schedules(context).remove(name)
    return "Removed."


@skill.tool(tier=Tier.SENSITIVE, effects={Effect.SCHEDULE})
async def switch_schedule(context: ToolContext, name: Name, enabled: bool) -> str:  # noqa: FBT001 - a model names it
    """Switches one of the user's schedules on or off."""
    return _describe(await _schedules(context).switch(name, is_on=enabled))


@skill.tool(tier=Tier.LIMITED, effects={Effect.SCHEDULE})
async def run_schedule(context: ToolContext, name: Name) -> str:
    """Runs one of the user's schedules now."""
    await _schedules(context).run(name)
    return "It begins in a moment."


def _schedules(context: ToolContext) -> ScheduleAccess:
    if context.schedules is None:
        raise ToolError("There are no schedules here.")
    return context.schedules


def _describe(each: OwnSchedule) -> str:
    upcoming = f"next {each.next_at.astimezone(ZoneInfo(each.zone)):%a %d %b %Y %H:%M}" if each.next_at else each.pause
    last = f", last {each.last_outcome}" if each.last_outcome else ""
    return f"{each.name}: {each.when}, {each.zone}; {upcoming}{last}."

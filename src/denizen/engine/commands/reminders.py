"""`/reminders`: one's own pending reminders, with every agent, and their cancelling."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from denizen.domain.errors import NotAllowed
from denizen.domain.reminder import MAX_PENDING, Reminder
from denizen.domain.room import RoomKind
from denizen.engine.commands.scene import Command, Given
from denizen.engine.commands.words import cut, matching, say
from denizen.engine.prompt.marks import zone_of
from denizen.engine.reminders import not_pending
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec

_SHOWN_CHARS = 60
_REMINDER_HINT = "/reminders cancel reminder: ID cancels one."


async def _reminders(given: Given) -> CommandReply:
    return await (_cancel_reminder(given) if given.command.group == "cancel" else _list_reminders(given))


async def _list_reminders(given: Given) -> CommandReply:
    if not given.command.ticket and given.command.room.kind is not RoomKind.DIRECT:
        raise NotAllowed(
            "Others would read this here.",
            code="reminders_public",
            fix="Choose /reminders list from the menu of commands, or write it to me in a direct message.",
        )
    pending = await _load_reminders(given)
    if not pending:
        return say("You have no reminders.")
    return say(*(_reminder_line(given, each) for each in pending), _REMINDER_HINT)


async def _cancel_reminder(given: Given) -> CommandReply:
    key = given.option("reminder").partition(" ")[0]
    async with given.on.services.store.work() as work:
        if not await work.reminders.remove(key, asker=given.at.principal.key):
            raise not_pending(key)
    return say("Cancelled.")


async def _suggest_reminder(given: Given, typed: str) -> Sequence[str]:
    return matching(typed, [f"{each.id} {_cut(each)}" for each in await _load_reminders(given)])


async def _load_reminders(given: Given) -> Sequence[Reminder]:
    async with given.on.services.store.work(write=False) as work:
        return await work.reminders.list_of(given.at.principal.key, limit=MAX_PENDING)


def _reminder_line(given: Given, reminder: Reminder) -> str:
    zone = ZoneInfo(zone_of(given.agent))
    return f"- `{reminder.id}` {reminder.due_at.astimezone(zone):%Y-%m-%d %H:%M} {zone}: {_cut(reminder)}"


def _one_line(reminder: Reminder) -> str:
    """On one line."""
    return cut(" ".join(reminder.text.split()), _SHOWN_CHARS)


REMINDERS = Command(
    CommandSpec(
        "reminders",
        "See or cancel your reminders.",
        groups=(
            CommandSpec("list", "See what you will be reminded of."),
            CommandSpec(
                "cancel", "Cancel a reminder.", (CommandOption("reminder", "Its id.", required=True, suggests=True),)
            ),
        ),
    ),
    _reminders,
    {"reminder": _suggest_reminder},
)

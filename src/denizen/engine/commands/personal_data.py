"""The data that is stored about the caller, and its deletion: `/memory` and `/reminders`. They never show the data of
somebody else.

`StoredUserData` finds and deletes the user's words wherever they are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.domain.memory import Memory
from denizen.domain.prompt_messages import agent_timezone
from denizen.domain.record import record
from denizen.domain.reminder import MAX_PENDING, Reminder
from denizen.domain.room import RoomKind
from denizen.domain.words import truncate
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.removal import ArchiveRemoval
from denizen.engine.commands.command import CommandContext, CommandDefinition, UserDataSummary
from denizen.engine.commands.text import count_noun, join_names, private_reply, rank_suggestions
from denizen.engine.outbox.reminders import not_pending
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec
from denizen.ports.store import Store

MAX_MEMORIES = 5000
_MEMORY_HINT = "/memory forget memory: ID deletes one of them."


async def _memory(context: CommandContext) -> CommandReply:
    match context.command.group:
        case "forget":
            return await _forget(context)
        case "opt-out":
            return await _opt_out(context)
        case "opt-in":
            await context.deps.user_data.opt_in(context.command.room.platform, context.command.author_id)
            return private_reply("What you write is archived again from now on.")
        case "list":
            return await _list_memories(context)
        case _:
            return await _show_kept(context)


async def _show_kept(context: CommandContext) -> CommandReply:
    kept = await context.deps.user_data.describe(context.command.room.platform, context.command.author_id)
    async with context.store.work(write=False) as work:
        settings = await work.user_settings.get(context.caller.principal.key)
        memories = await work.memories.list_memories(
            owner=context.caller.principal.key, history=True, limit=MAX_MEMORIES
        )
        reminders = await work.reminders.list_for(context.caller.principal.key)
    chosen = join_names(f"{name}: {value}" for name, value in settings.items())
    return private_reply(
        "Stored about you:",
        f"- archive: {count_noun(kept.posts, 'post')}{'; you are not archived any more' if kept.is_opted_out else ''}",
        f"- sessions with agents: {count_noun(kept.messages, 'message')}",
        f"- memories of agents: {count_noun(len(memories), 'memory', 'memories')}; /memory list shows them",
        f"- reminders: {len(reminders)} pending; /reminders list shows them",
        f"- settings: {chosen}",
        "/memory forget deletes all of it; /memory opt-out also keeps you out of the archive.",
    )


def _check_private(context: CommandContext, *, code: str) -> None:
    """Only the reply to a command from the menu is private; one that was typed is answered in the room."""
    if not context.command.ticket and context.command.room.kind is not RoomKind.DIRECT:
        raise NotAllowed(
            "Others would read this here.",
            code=code,
            fix=f"Choose /{context.command.name} list from the menu of commands, or write it to me in a direct "
            "message.",
        )


async def _list_memories(context: CommandContext) -> CommandReply:
    _check_private(context, code="memory_public")
    async with context.store.work(write=False) as work:
        memories = await work.memories.list_memories(
            owner=context.caller.principal.key, history=True, limit=MAX_MEMORIES
        )
    if not memories:
        return private_reply("Nothing is remembered about you.")
    lines = [f"- `{each.id}` {each.agent}, {_dates(each)}: {truncate(each.text, 200)}" for each in memories]
    # 40 characters are for the line that counts the older memories.
    limit, shown = context.message_limit - len(_MEMORY_HINT) - 40, list[str]()
    while lines and len(lines[0]) + 1 <= limit:
        limit -= len(lines[0]) + 1
        shown.append(lines.pop(0))
    more = [f"… and {len(lines)} older ones"] if lines else []
    return private_reply(*shown, *more, _MEMORY_HINT)


def _dates(memory: Memory) -> str:
    """When it was told, and of what agents do not use any more, since when."""
    until = f" to {memory.superseded_at:%Y-%m-%d}" if memory.superseded_at is not None else ""
    return f"{memory.created_at:%Y-%m-%d}{until}"


async def _opt_out(context: CommandContext) -> CommandReply:
    await context.deps.user_data.opt_out(context.command.room.platform, context.command.author_id)
    return private_reply(
        "Nothing that you write is archived any more; what was archived, and what agents remember of you, is deleted.",
        "What you ask me is still kept in its session. /memory opt-in lets new posts be archived again.",
    )


async def _forget(context: CommandContext) -> CommandReply:
    key, now = context.caller.principal.key, context.now()
    if memory_id := context.option("memory").strip():
        async with context.store.work() as work:
            memory = await work.memories.find(memory_id)
            # Somebody else's memory and one that does not exist give the same answer: an id must not be probed.
            if memory is None or key not in (memory.owner, memory.told_by):
                raise NotFound(
                    "You have no such memory.", code="memory_not_found", fix="/memory list shows those you have."
                )
            await work.memories.remove([memory.id])
        return private_reply("Forgotten.")
    if context.option("confirm") != "yes":
        raise InvalidInput(
            "Nothing was deleted.",
            code="memory_confirm",
            why="This deletes your posts in the archive, what you said in sessions, what agents remember of you, "
            "your reminders and your settings, for good.",
            fix="Write /memory forget confirm: yes. With memory: and an id only that memory is deleted.",
        )
    async with context.store.work() as work:
        memories = await work.memories.list_memories(owner=key, history=True, limit=MAX_MEMORIES)
        await work.memories.forget_teller(key)
        await work.reminders.forget_asker(key)
        settings = await work.user_settings.get(key)
        for name in settings:
            await work.user_settings.put(key, name, None, now=now)
    posts = await context.deps.user_data.forget(context.command.room.platform, context.command.author_id)
    return private_reply(
        f"Forgotten: {count_noun(posts, 'post')} with their earlier texts, your words in sessions, "
        f"{count_noun(len(settings), 'setting')}.",
        f"Agents remembered {count_noun(len(memories), 'thing')} about you; no more. Reminders: none are left.",
        "New posts are archived as before; /memory opt-out stops that.",
    )


MEMORY = CommandDefinition(
    CommandSpec(
        "memory",
        "See or delete what is stored about you.",
        groups=(
            CommandSpec("show", "See what is stored about you."),
            CommandSpec("list", "See what agents remember about you."),
            CommandSpec(
                "forget",
                "Delete what is stored about you, for good.",
                (
                    CommandOption("confirm", "Write yes if you mean everything.", choices=("yes",)),
                    CommandOption("memory", "The id of one memory, to delete only that."),
                ),
            ),
            CommandSpec("opt-out", "Delete your posts and what agents remember of you, and archive no more."),
            CommandSpec("opt-in", "Let your posts be archived again."),
        ),
    ),
    _memory,
)


_SHOWN_CHARS = 60
_REMINDER_HINT = "/reminders cancel reminder: ID cancels one."


async def _reminders(context: CommandContext) -> CommandReply:
    return await (_cancel_reminder(context) if context.command.group == "cancel" else _list_reminders(context))


async def _list_reminders(context: CommandContext) -> CommandReply:
    _check_private(context, code="reminders_public")
    pending = await _load_reminders(context)
    if not pending:
        return private_reply("You have no reminders.")
    return private_reply(*(_reminder_line(context, each) for each in pending), _REMINDER_HINT)


async def _cancel_reminder(context: CommandContext) -> CommandReply:
    # A suggestion is the id and the beginning of the text.
    key = context.option("reminder").partition(" ")[0]
    async with context.store.work() as work:
        if not await work.reminders.remove(key, asker=context.caller.principal.key):
            raise not_pending(key)
    return private_reply("Cancelled.")


async def _suggest_reminder(context: CommandContext, typed: str) -> Sequence[str]:
    return rank_suggestions(typed, [f"{each.id} {_one_line(each)}" for each in await _load_reminders(context)])


async def _load_reminders(context: CommandContext) -> Sequence[Reminder]:
    async with context.store.work(write=False) as work:
        return await work.reminders.list_for(context.caller.principal.key, limit=MAX_PENDING)


def _reminder_line(context: CommandContext, reminder: Reminder) -> str:
    zone = ZoneInfo(agent_timezone(context.agent))
    return f"- `{reminder.id}` {reminder.due_at.astimezone(zone):%Y-%m-%d %H:%M} {zone}: {_one_line(reminder)}"


def _one_line(reminder: Reminder) -> str:
    """On one line."""
    return truncate(" ".join(reminder.text.split()), _SHOWN_CHARS)


REMINDERS = CommandDefinition(
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


@record
class StoredUserData:
    """The words of a platform's users in the archive and in sessions."""

    store: Store
    mirror: ArchiveMirror
    privacy: ArchiveRemoval

    async def describe(self, platform: str, user_id: str) -> UserDataSummary:
        chosen = await self.mirror.load_opt_outs(platform)
        async with self.store.work(write=False) as work:
            kept = await work.archive.count_author(platform, user_id)
        is_out = user_id in chosen.users or user_id in self.mirror.policy.opt_outs.users
        return UserDataSummary(kept.posts, kept.messages, is_out)

    async def forget(self, platform: str, user_id: str) -> int:
        return await self.privacy.forget_user(platform, user_id)

    async def opt_out(self, platform: str, user_id: str) -> None:
        await self.privacy.opt_out_user(platform, user_id)

    async def opt_in(self, platform: str, user_id: str) -> None:
        await self.privacy.opt_in_user(platform, user_id)

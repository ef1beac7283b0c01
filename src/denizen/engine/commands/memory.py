"""`/memory`: what is kept about oneself, and its end. Always about who gives the command."""

from __future__ import annotations

from denizen.domain.errors import InvalidInput
from denizen.engine.commands.scene import Command, Given
from denizen.engine.commands.words import counted, listed, say
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec


async def _memory(given: Given) -> CommandReply:
    match given.command.group:
        case "forget":
            return await _forget(given)
        case "opt-out":
            return await _opt_out(given)
        case "opt-in":
            await given.on.privacy.opt_in(given.command.room.platform, given.command.author_id)
            return say("What you write is archived again from now on.")
        case _:
            return await _show(given)


async def _show(given: Given) -> CommandReply:
    kept = await given.on.privacy.describe(given.command.room.platform, given.command.author_id)
    async with given.on.services.store.work(write=False) as work:
        settings = await work.user_settings.get(given.at.principal.key)
    chosen = listed(f"{name}: {value}" for name, value in settings.items())
    return say(
        "Kept about you:",
        f"- archive: {counted(kept.posts, 'post')}{'; you are not archived any more' if kept.is_opted_out else ''}",
        f"- sessions with agents: {counted(kept.messages, 'message')}",
        f"- settings: {chosen}",
        "/memory forget deletes all of it; /memory opt-out also keeps you out of the archive.",
    )


async def _opt_out(given: Given) -> CommandReply:
    await given.on.privacy.opt_out(given.command.room.platform, given.command.author_id)
    return say(
        "Nothing that you write is archived any more, and what was archived is deleted.",
        "What you ask me is still kept in its session. /memory opt-in lets new posts be archived again.",
    )


async def _forget(given: Given) -> CommandReply:
    if given.option("confirm") != "yes":
        raise InvalidInput(
            "Nothing was deleted.",
            code="memory_confirm",
            why="This deletes your posts in the archive, what you said in sessions and your settings, for good.",
            fix="Write /memory forget confirm: yes.",
        )
    forgotten = await given.on.privacy.forget(given.command.room.platform, given.command.author_id)
    key, now = given.at.principal.key, given.on.services.clock.now()
    async with given.on.services.store.work() as work:
        settings = await work.user_settings.get(key)
        for name in settings:
            await work.user_settings.put(key, name, None, now=now)
    return say(
        f"Forgotten: {counted(forgotten.posts, 'post')} with their earlier texts, your words in sessions, "
        f"{counted(len(settings), 'setting')}.",
        "New posts are archived as before; /memory opt-out stops that.",
    )


MEMORY = Command(
    CommandSpec(
        "memory",
        "See or delete what is kept about you.",
        groups=(
            CommandSpec("show", "See what is kept about you."),
            CommandSpec(
                "forget",
                "Delete what is kept about you, for good.",
                (CommandOption("confirm", "Write yes if you mean it.", choices=("yes",)),),
            ),
            CommandSpec("opt-out", "Delete your posts from the archive, and archive none any more."),
            CommandSpec("opt-in", "Let your posts be archived again."),
        ),
    ),
    _memory,
)

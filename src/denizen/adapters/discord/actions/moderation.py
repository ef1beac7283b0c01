"""Actions against members and messages: warnings, time-outs, kicks, bans, purges, slow mode.

The skill records warnings; here they are checked and delivered.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeAlias, cast

import discord

from denizen.adapters.discord.actions.context import ActionContext
from denizen.adapters.discord.actions.lookup import find_channel, find_member, parse_id, pick_by_name
from denizen.adapters.discord.actions.members import describe_name, send_dm
from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.json import Json, JsonObject

# A purge reads so many messages at most: each page of a hundred is a request.
_SCANNED = 1000
# Discord's limit for one bulk deletion.
_AT_ONCE = 100
_BANS_A_PAGE = 50

Purgeable: TypeAlias = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread


async def judge_member(context: ActionContext, member: str = "") -> JsonObject:
    """Tells whether the asker moderates this member, or members at all for an empty text. Changes nothing."""
    context.require_asker("moderate_members")
    if not member:
        return {}
    target = await _find_here(context, member)
    return {"id": str(target), "name": ""} if isinstance(target, int) else describe_name(target)


async def warn_member(context: ActionContext, member: str, reason: str) -> JsonObject:
    """Warns a member in a direct message. `told` is whether it reached them."""
    context.require_asker("moderate_members")
    target = await find_member(context, member)
    context.require_above(target)
    words = f"You were warned in {context.guild.name} by {context.asker.display_name}: {reason}"
    try:
        await send_dm(context, target, words)
    except discord.Forbidden:
        return describe_name(target) | {"told": False}
    return describe_name(target) | {"told": True}


async def timeout_member(context: ActionContext, member: str, until: str, reason: str = "") -> JsonObject:
    """Times a member out. `until` is an ISO time with its zone, at most 28 days ahead."""
    context.require("moderate_members")
    target = await find_member(context, member)
    context.require_above(target)
    if target.guild_permissions.administrator:
        raise NotAllowed("Discord lets nobody time out administrators.", code="discord_protected")
    await target.timeout(datetime.fromisoformat(until), reason=context.reason(reason))
    return describe_name(target)


async def end_timeout(context: ActionContext, member: str, reason: str = "") -> JsonObject:
    context.require("moderate_members")
    target = await find_member(context, member)
    context.require_above(target)
    await target.timeout(None, reason=context.reason(reason))
    return describe_name(target)


async def kick_member(context: ActionContext, member: str, reason: str = "") -> JsonObject:
    """Kicks a member. `was_gone` is true when nobody with that id is a member."""
    context.require("kick_members")
    target = await _find_here(context, member)
    if isinstance(target, int):
        return {"id": str(target), "name": "", "was_gone": True}
    context.require_above(target)
    await target.kick(reason=context.reason(reason))
    return describe_name(target)


async def ban_member(context: ActionContext, member: str, delete_days: int = 0, reason: str = "") -> JsonObject:
    """Bans a member, or by id also somebody who is none. Banning again changes nothing."""
    context.require("ban_members")
    target = await _find_here(context, member)
    if isinstance(target, discord.Member):
        context.require_above(target)
    number = target if isinstance(target, int) else target.id
    await context.guild.ban(
        discord.Object(number), delete_message_seconds=delete_days * 86400, reason=context.reason(reason)
    )
    return {"id": str(number), "name": ""} if isinstance(target, int) else describe_name(target)


async def unban_member(context: ActionContext, user: str, reason: str = "") -> JsonObject:
    """Lifts a ban, by the id or the name of the banned person. `was_free` is true when they were not banned."""
    context.require("ban_members")
    number = parse_id(user)
    if number is None:
        banned = [entry.user async for entry in context.guild.bans(limit=None)]
        number = pick_by_name(user.strip().lstrip("@"), banned, lambda each: each.name, "ban").id
    try:
        await context.guild.unban(discord.Object(number), reason=context.reason(reason))
    except discord.NotFound:
        return {"id": str(number), "was_free": True}
    return {"id": str(number)}


async def list_bans(context: ActionContext, after: str = "") -> JsonObject:
    """Lists the bans after the user with the id `after`. `next` is the `after` of the next page."""
    context.require("ban_members")
    start = discord.Object(parse_id(after) or 0)
    entries = [entry async for entry in context.guild.bans(limit=_BANS_A_PAGE, after=start)]
    rows: list[Json] = [
        {"id": str(each.user.id), "name": each.user.name, "reason": each.reason or ""} for each in entries
    ]
    return {"bans": rows, "next": str(entries[-1].user.id) if len(entries) == _BANS_A_PAGE else ""}


async def choose_messages(
    context: ActionContext, since: str, channel: str = "", count: int = 10, author: str = "", words: str = ""
) -> JsonObject:
    """Returns the ids of the newest messages that a purge would delete.

    `since` is an ISO time with its zone; Discord deletes in bulk only what is younger than two weeks. Pinned
    messages stay, Discord's own notices, the question that asked for the purge, and the account's messages unless it
    is the named author.
    """
    place = _purgeable(context, channel)
    writer = (parse_id(author) or (await find_member(context, author)).id) if author.strip() else None
    folded = words.casefold().split()
    if folded and not context.client.intents.message_content:
        raise NotAllowed(
            "I cannot see what is written here, so I cannot choose messages by their words.",
            code="discord_content_missing",
            fix="The Message Content intent has to be switched on in the developer portal.",
        )
    oldest, asked, found = datetime.fromisoformat(since), place.id != context.here.id, list[Json]()
    async for message in place.history(limit=_SCANNED):
        if message.created_at < oldest or len(found) >= count:
            break
        if not asked and message.author.id == context.asker.id:
            asked = True
            continue
        if message.pinned or not message.type.is_deletable():
            continue
        fits = message.author.id == writer if writer is not None else message.author.id != context.me.id
        if fits and all(word in message.content.casefold() for word in folded):
            found.append(str(message.id))
    return {"messages": found, "channel": str(place.id)}


async def purge_messages(context: ActionContext, messages: Sequence[str], channel: str) -> JsonObject:
    """Deletes the messages. Those that are gone already count as deleted."""
    place = _purgeable(context, channel)
    numbers = [number for each in messages if (number := parse_id(each)) is not None]
    for start in range(0, len(numbers), _AT_ONCE):
        some = [discord.Object(number) for number in numbers[start : start + _AT_ONCE]]
        with suppress(discord.NotFound):  # somebody else may have deleted the last one
            await place.delete_messages(some, reason=context.reason())
    return {"deleted": len(numbers), "channel": str(place.id)}


async def set_slow_mode(context: ActionContext, seconds: int, channel: str = "") -> JsonObject:
    place = find_channel(context, channel)
    context.require("manage_threads" if isinstance(place, discord.Thread) else "manage_channels", place)
    if isinstance(place, discord.CategoryChannel):
        raise InvalidInput("A category has no slow mode.", code="discord_wrong_channel", fix="Name a channel.")
    await cast("Any", place).edit(slowmode_delay=seconds, reason=context.reason())  # each kind has its own signature
    return {"channel": str(place.id)}


def _purgeable(context: ActionContext, channel: str) -> Purgeable:
    place = find_channel(context, channel)
    if not isinstance(place, Purgeable):
        raise InvalidInput("There are no messages in that channel.", code="discord_wrong_channel")
    context.require("manage_messages", place)
    context.require("read_message_history", place)
    return place


async def _find_here(context: ActionContext, text: str) -> discord.Member | int:
    """Returns the current member, or the id of somebody who is certainly none. Unlike `find_member` it does not treat a
    failed request as absence: a rank that cannot be checked must not be bypassed.
    """
    number = parse_id(text)
    if number is None:
        return await find_member(context, text)
    try:
        return await context.guild.fetch_member(number)
    except discord.NotFound:
        return number

"""Actions against members and messages: warnings, time-outs, kicks, bans, purges, slow mode.

Where a warning is recorded is the skill's business; here it is checked and told.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeAlias, cast

import discord

from denizen.adapters.discord.actions.context import Hand
from denizen.adapters.discord.actions.lookup import find_channel, find_member, id_of, pick
from denizen.adapters.discord.actions.members import name_of, tell
from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.json import Json, JsonObject

_SCANNED = 1000
_AT_ONCE = 100
_BANS_A_PAGE = 50

Purgeable: TypeAlias = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread


async def judge_member(hand: Hand, member: str = "") -> JsonObject:
    """Whether the asker moderates this member, or, for an empty text, members at all; changes nothing."""
    hand.require_of_asker("moderate_members")
    if not member:
        return {}
    target = await _find_here(hand, member)
    return {"id": str(target), "name": ""} if isinstance(target, int) else name_of(target)


async def warn_member(hand: Hand, member: str, reason: str) -> JsonObject:
    """`told` says whether the direct message reached them."""
    hand.require_of_asker("moderate_members")
    target = await find_member(hand, member)
    hand.require_above(target)
    words = f"You were warned in {hand.guild.name} by {hand.asker.display_name}: {reason}"
    try:
        await tell(hand, target, words)
    except discord.Forbidden:
        return name_of(target) | {"told": False}
    return name_of(target) | {"told": True}


async def timeout_member(hand: Hand, member: str, until: str, reason: str = "") -> JsonObject:
    """`until` is an ISO time with its zone, at most 28 days ahead."""
    hand.require("moderate_members")
    target = await find_member(hand, member)
    hand.require_above(target)
    if target.guild_permissions.administrator:
        raise NotAllowed("Discord lets nobody time out administrators.", code="discord_protected")
    await target.timeout(datetime.fromisoformat(until), reason=hand.reason(reason))
    return name_of(target)


async def end_timeout(hand: Hand, member: str, reason: str = "") -> JsonObject:
    hand.require("moderate_members")
    target = await find_member(hand, member)
    hand.require_above(target)
    await target.timeout(None, reason=hand.reason(reason))
    return name_of(target)


async def kick_member(hand: Hand, member: str, reason: str = "") -> JsonObject:
    """`was_gone` when nobody with that id is a member (any more)."""
    hand.require("kick_members")
    target = await _find_here(hand, member)
    if isinstance(target, int):
        return {"id": str(target), "name": "", "was_gone": True}
    hand.require_above(target)
    await target.kick(reason=hand.reason(reason))
    return name_of(target)


async def ban_member(hand: Hand, member: str, delete_days: int = 0, reason: str = "") -> JsonObject:
    """By id also somebody who is no member. Who is banned already stays so."""
    hand.require("ban_members")
    target = await _find_here(hand, member)
    if isinstance(target, discord.Member):
        hand.require_above(target)
    number = target if isinstance(target, int) else target.id
    await hand.guild.ban(discord.Object(number), delete_message_seconds=delete_days * 86400, reason=hand.reason(reason))
    return {"id": str(number), "name": ""} if isinstance(target, int) else name_of(target)


async def unban_member(hand: Hand, user: str, reason: str = "") -> JsonObject:
    """By id, or by the name of somebody who is banned. `was_free` when they were not."""
    hand.require("ban_members")
    number = id_of(user)
    if number is None:
        banned = [entry.user async for entry in hand.guild.bans(limit=None)]
        number = pick(user.strip().lstrip("@"), banned, lambda each: each.name, "ban").id
    try:
        await hand.guild.unban(discord.Object(number), reason=hand.reason(reason))
    except discord.NotFound:
        return {"id": str(number), "was_free": True}
    return {"id": str(number)}


async def list_bans(hand: Hand, after: str = "") -> JsonObject:
    """Those after the user with that id; `next` goes into `after` for more."""
    hand.require("ban_members")
    start = discord.Object(id_of(after) or 0)
    entries = [entry async for entry in hand.guild.bans(limit=_BANS_A_PAGE, after=start)]
    rows: list[Json] = [
        {"id": str(each.user.id), "name": each.user.name, "reason": each.reason or ""} for each in entries
    ]
    return {"bans": rows, "next": str(entries[-1].user.id) if len(entries) == _BANS_A_PAGE else ""}


async def choose_messages(
    hand: Hand, since: str, channel: str = "", count: int = 10, author: str = "", words: str = ""
) -> JsonObject:
    """The ids of the newest messages that a purge would delete. `since` is an ISO time with its zone: Discord deletes
    no older ones than two weeks. What stays: pinned messages, Discord's own notes, the question by which it was asked
    for, and what the account said, unless it is named as the author.
    """
    place = _purgeable(hand, channel)
    writer = (id_of(author) or (await find_member(hand, author)).id) if author.strip() else None
    folded = words.casefold().split()
    if folded and not hand.client.intents.message_content:
        raise NotAllowed(
            "I cannot see what is written here, so I cannot choose messages by their words.",
            code="discord_content_missing",
            fix="The Message Content intent has to be switched on in the developer portal.",
        )
    oldest, asked, found = datetime.fromisoformat(since), place.id != hand.here.id, list[Json]()
    async for message in place.history(limit=_SCANNED):
        if message.created_at < oldest or len(found) >= count:
            break
        if not asked and message.author.id == hand.asker.id:
            asked = True
            continue
        if message.pinned or not message.type.is_deletable():
            continue
        fits = message.author.id == writer if writer is not None else message.author.id != hand.me.id
        if fits and all(word in message.content.casefold() for word in folded):
            found.append(str(message.id))
    return {"messages": found, "channel": str(place.id)}


async def purge_messages(hand: Hand, messages: Sequence[str], channel: str) -> JsonObject:
    """Those that are gone already count as deleted."""
    place = _purgeable(hand, channel)
    numbers = [number for each in messages if (number := id_of(each)) is not None]
    for start in range(0, len(numbers), _AT_ONCE):
        some = [discord.Object(number) for number in numbers[start : start + _AT_ONCE]]
        with suppress(discord.NotFound):  # the last one of a pack may be gone
            await place.delete_messages(some, reason=hand.reason())
    return {"deleted": len(numbers), "channel": str(place.id)}


async def set_slow_mode(hand: Hand, seconds: int, channel: str = "") -> JsonObject:
    place = find_channel(hand, channel)
    hand.require("manage_threads" if isinstance(place, discord.Thread) else "manage_channels", place)
    if isinstance(place, discord.CategoryChannel):
        raise InvalidInput("A category has no slow mode.", code="discord_wrong_channel", fix="Name a channel.")
    await cast("Any", place).edit(slowmode_delay=seconds, reason=hand.reason())  # each kind has its own signature
    return {"channel": str(place.id)}


def _purgeable(hand: Hand, channel: str) -> Purgeable:
    place = find_channel(hand, channel)
    if not isinstance(place, Purgeable):
        raise InvalidInput("There are no messages in that channel.", code="discord_wrong_channel")
    hand.require("manage_messages", place)
    hand.require("read_message_history", place)
    return place


async def _find_here(hand: Hand, text: str) -> discord.Member | int:
    """The member as Discord has them now, or the id of somebody who surely is none: unlike `find_member`, it does not
    take silence for absence, for a rank that cannot be seen must not be passed over.
    """
    number = id_of(text)
    if number is None:
        return await find_member(hand, text)
    try:
        return await hand.guild.fetch_member(number)
    except discord.NotFound:
        return number

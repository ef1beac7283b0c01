"""Lookup of what an action is about: people, roles, channels and messages, by id, mention, link or name.

Nothing that the asker cannot see is found. An ambiguous name is an error that lists the candidates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

import anyio
import discord
from discord.abc import Snowflake
from discord.utils import snowflake_time

from denizen.adapters.discord.actions.context import ActionContext, GuildPlace
from denizen.adapters.discord.guild.members import find_member as load_member
from denizen.adapters.discord.guild.members import knows_all_members
from denizen.adapters.discord.messages.conversion import get_channel
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.domain.names import quote_name

K = TypeVar("K", bound=Snowflake)

_LINK = re.compile(r"https?://[^/\s]+/channels/(\d+)/(\d+)/(\d+)")
_MENTION = re.compile(r"<(?:@!?|@&|#)(\d+)>")
# An error lists so many candidates for an ambiguous name.
_MAX_CHOICES = 10
_QUERY_LIMIT = 20
# The query goes through the gateway, which does not answer while it reconnects.
_QUERY_TIMEOUT_S = 5.0


def parse_id(text: str) -> int | None:
    """Returns the id in a mention or a plain id; None for a name."""
    found = _MENTION.fullmatch(text.strip())
    digits = found[1] if found else text.strip()
    return int(digits) if digits.isdecimal() and len(digits) <= 20 else None


def find_channel(context: ActionContext, text: str = "") -> GuildPlace:
    """Finds a channel or thread that the asker can see. An empty text means the one in which they asked."""
    if not text.strip():
        return context.here
    places: list[GuildPlace] = [*context.guild.channels, *context.guild.threads]
    seen = [place for place in places if context.sees(place)]
    number = parse_id(text)
    if number is not None:
        found = next((place for place in seen if place.id == number), None)
        if found is None:
            raise _no_channel(number)
        return found
    return pick_by_name(text.strip().lstrip("#"), seen, lambda place: place.name, "channel")


async def load_channel(context: ActionContext, text: str = "") -> GuildPlace:
    """Like `find_channel`, but also finds an archived thread by its id."""
    number = parse_id(text)
    if number is None or context.guild.get_channel_or_thread(number) is not None:
        return find_channel(context, text)
    try:
        found = await get_channel(context.client, number)
    except (NotFound, NotAllowed):
        raise _no_channel(number) from None
    if not isinstance(found, discord.Thread) or found.guild.id != context.guild.id or not context.sees(found):
        raise _no_channel(number)
    return found


def _no_channel(number: int) -> NotFound:
    return NotFound(f"There is no channel {number} that you can see.", code="discord_no_channel")


def find_role(context: ActionContext, text: str) -> discord.Role:
    number = parse_id(text)
    found = context.guild.get_role(number) if number is not None else None
    return found or pick_by_name(text.strip().lstrip("@"), context.guild.roles, lambda role: role.name, "role")


async def find_member(context: ActionContext, text: str) -> discord.Member:
    """Finds a member by id, mention, user name or display name."""
    number = parse_id(text)
    if number is not None:
        member = await load_member(context.client, context.guild, number)
        if member is None:
            raise NotFound(f"There is no member {number} in this server.", code="discord_no_member")
        return member
    name = text.strip().lstrip("@").strip('"')
    known = context.guild.members
    if name and not knows_all_members(context.client, context.guild):
        with anyio.fail_after(_QUERY_TIMEOUT_S):
            known = await context.guild.query_members(name, limit=_QUERY_LIMIT, cache=False)
    exact = [m for m in known if name.casefold() in (m.name.casefold(), m.display_name.casefold())]
    return (
        exact[0]
        if len(exact) == 1
        else pick_by_name(name, exact or known, lambda member: member.display_name, "member")
    )


async def find_message(context: ActionContext, text: str, channel: str = "", *, named: bool = False) -> discord.Message:
    """Finds a message by link, or by id in the named channel or the one in which the action was asked for.

    Raises NotFound also for a message in a channel that the asker cannot see. With `named`, a link into another
    channel than the named one raises InvalidInput: the channel's name is what the gate decided about.
    """
    link = _LINK.fullmatch(text.strip())
    place = await load_channel(context, link[2] if link else channel)
    if link and named and place.id != (await load_channel(context, channel)).id:
        raise InvalidInput(
            "The link leads to another channel.", code="discord_other_channel", fix=f"Give its `channel`: {place.id}."
        )
    number = int(link[3]) if link else parse_id(text)
    if number is None:
        raise InvalidInput(f"'{text[:60]}' is no id and no link of a message.", code="discord_bad_id")
    held = place.permissions_for(context.asker)
    is_closed = isinstance(place, discord.VoiceChannel | discord.StageChannel) and not held.connect
    if not held.read_message_history or is_closed or not isinstance(place, discord.abc.Messageable):
        raise NotFound("There is no such message that you can read.", code="discord_no_message")
    return await place.fetch_message(number)


def get_guild_place(message: discord.Message) -> GuildPlace:
    """Returns the channel or thread of a message that `find_message` returned."""
    if not isinstance(message.channel, (discord.abc.GuildChannel, discord.Thread)):
        raise NotFound("There is no such message that you can read.", code="discord_no_message")
    return message.channel


def find_created(items: Iterable[K], name: str, since: str) -> K | None:
    """Returns the item of this name that an earlier try created: the first one that is not older than `since` (ISO).

    The items come from Discord itself: the gateway may not have told discord.py's cache of one that is a moment old.
    """
    start = datetime.fromisoformat(since)
    return next((x for x in items if getattr(x, "name", "") == name and snowflake_time(x.id) >= start), None)


def pick_by_name(wanted: str, among: Iterable[K], name: Callable[[K], str], kind: str) -> K:
    """Returns the item of exactly that name, or the only one whose name contains it. The name may stand in quotes, as
    agents read it.
    """
    folded = wanted.strip('"').casefold()
    like = [each for each in among if folded and folded in name(each).casefold()]
    for found in ([each for each in like if name(each).casefold() == folded], like):
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(f"{quote_name(name(each)) or 'a long name'} ({each.id})" for each in found[:_MAX_CHOICES])
            raise InvalidInput(
                f"Several are called '{wanted[:60]}': {names}.", code="discord_ambiguous", fix="Give the id."
            )
    raise NotFound(f"There is no {kind} '{wanted[:60]}' that you can see.", code=f"discord_no_{kind}")

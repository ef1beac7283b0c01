"""Actions on reactions: adding, removing and reading them."""

from __future__ import annotations

import re

import discord

from denizen.adapters.discord.actions.context import ActionContext
from denizen.adapters.discord.actions.lookup import find_message, get_guild_place
from denizen.adapters.discord.actions.posting import describe_message
from denizen.domain.errors import NotFound
from denizen.domain.json import JsonObject

_NAMED = re.compile(r":?(\w{2,32}):?", re.ASCII)
_MAX_NAMES = 50


async def add_reaction(context: ActionContext, message: str, emoji: str, channel: str = "") -> JsonObject:
    found = await find_message(context, message, channel, named=True)
    where = get_guild_place(found)
    context.require("read_message_history", where)
    sign = await read_emoji(context, emoji)
    if not any(_is_same(each.emoji, sign) for each in found.reactions):
        context.require("add_reactions", where)
    await found.add_reaction(sign)
    return describe_message(context, where.id, found.id)


async def remove_reaction(context: ActionContext, message: str, emoji: str, channel: str = "") -> JsonObject:
    """Removes the account's own reaction. Whoever may add reactions may ask for it."""
    found = await find_message(context, message, channel, named=True)
    context.require("add_reactions", get_guild_place(found))
    await found.remove_reaction(await read_emoji(context, emoji), context.me)
    return describe_message(context, found.channel.id, found.id)


async def read_reactions(context: ActionContext, message: str, channel: str = "", emoji: str = "") -> JsonObject:
    """Counts the reactions of a message; with an emoji, lists who chose it."""
    found = await find_message(context, message, channel)
    await context.require_open(get_guild_place(found))
    if not emoji:
        return {"reactions": {str(each.emoji): each.count for each in found.reactions}}
    sign = await read_emoji(context, emoji)
    reaction = next((each for each in found.reactions if _is_same(each.emoji, sign)), None)
    if reaction is None:
        return {"reactions": {str(sign): 0}, "names": []}
    names = [user.display_name async for user in reaction.users(limit=_MAX_NAMES)]
    return {"reactions": {str(sign): reaction.count}, "names": [*names]}


async def read_emoji(context: ActionContext, text: str) -> discord.PartialEmoji:
    """Parses an emoji, `<:name:id>`, or the name of an emoji of the guild. Raises NotFound for an unknown name, and
    NotAllowed for an emoji of another server unless both may use those. Emojis are fetched, since discord.py's cache
    holds none here.
    """
    sign = discord.PartialEmoji.from_str(text.strip())
    named = _NAMED.fullmatch(text.strip())
    if sign.id is None and named is None:
        return sign
    for own in await context.guild.fetch_emojis():
        if own.id == sign.id or (named is not None and own.name == named[1]):
            return discord.PartialEmoji(name=own.name, id=own.id, animated=own.animated)
    if sign.id is None:
        raise NotFound(f"There is no emoji '{text[:60]}' here.", code="discord_no_emoji", fix="Give the emoji itself.")
    context.require("use_external_emojis", context.here)
    return sign


def _is_same(emoji: discord.PartialEmoji | discord.Emoji | str, sign: discord.PartialEmoji) -> bool:
    if isinstance(emoji, str):
        return sign.id is None and emoji == sign.name
    return emoji.id == sign.id if sign.id is not None else emoji.name == sign.name

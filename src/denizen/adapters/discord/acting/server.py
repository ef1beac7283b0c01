"""Actions on a guild as a whole: what it is, and its emojis."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from datetime import datetime

import discord

from denizen.adapters.discord.acting.hand import Hand
from denizen.adapters.discord.acting.lookup import id_of, pick
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json, JsonObject

_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_MAX_PICTURE_BYTES = 256 * 1024


async def server_info(hand: Hand) -> JsonObject:
    """Nothing that a member could not see; how many channels there are counts only those that the asker sees."""
    guild = hand.guild
    kinds = Counter(str(each.type) for each in guild.channels if hand.sees(each))
    return {
        "id": str(guild.id),
        "name": guild.name,
        "description": guild.description or "",
        "owner": str(guild.owner_id or ""),
        "created_at": guild.created_at.isoformat(timespec="minutes"),
        "members": guild.member_count or 0,
        "roles": len(guild.roles) - 1,
        "channels": dict[str, Json](sorted(kinds.items())),
        "boosts": guild.premium_subscription_count,
        "emojis": list[Json](sorted(each.name for each in await guild.fetch_emojis())),
    }


async def create_emoji(hand: Hand, name: str, picture: str, since: str = "") -> JsonObject:
    """`picture` is base64 of a PNG, JPEG, GIF or WebP file of at most 256 KB. With `since`, an ISO time, an emoji of
    that name that is younger is taken for the one that an earlier try made.
    """
    hand.require("create_expressions")
    try:
        data = base64.b64decode(picture, validate=True)
    except binascii.Error:
        raise InvalidInput("The picture is not base64.", code="discord_bad_picture") from None
    is_webp = data[:4] == b"RIFF" and data[8:12] == b"WEBP"
    if not is_webp and not data.startswith(_PICTURES):
        raise InvalidInput("An emoji is made of a PNG, JPEG, GIF or WebP picture.", code="discord_bad_picture")
    if len(data) > _MAX_PICTURE_BYTES:
        raise InvalidInput("A picture for an emoji has at most 256 KB.", code="discord_bad_picture")
    made = await _find_created_emoji(hand, name, since) if since else None
    if made is None:
        made = await hand.guild.create_custom_emoji(name=name, image=data, reason=hand.reason())
    return {"id": str(made.id), "name": made.name}


async def delete_emoji(hand: Hand, emoji: str, reason: str = "") -> JsonObject:
    """By name, id, or as it is written in messages."""
    hand.require("manage_expressions")
    parsed = discord.PartialEmoji.from_str(emoji.strip())
    number = parsed.id or id_of(emoji)
    emojis = await hand.guild.fetch_emojis()
    found = next((each for each in emojis if each.id == number), None)
    found = found or pick(parsed.name.strip(":"), emojis, lambda each: each.name, "emoji")
    await found.delete(reason=hand.reason(reason))
    return {"id": str(found.id), "name": found.name}


async def _find_created_emoji(hand: Hand, name: str, since: str) -> discord.Emoji | None:
    start = datetime.fromisoformat(since)
    emojis = await hand.guild.fetch_emojis()
    return next((each for each in emojis if each.created_at >= start and each.name == name), None)

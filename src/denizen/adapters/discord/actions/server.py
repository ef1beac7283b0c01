"""Actions on a guild as a whole: its description, emojis and scheduled events."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from datetime import datetime
from typing import Any

import discord

from denizen.adapters.discord.actions.channels import list_tellable_rooms
from denizen.adapters.discord.actions.context import ActionContext
from denizen.adapters.discord.actions.lookup import find_channel, find_created, parse_id, pick_by_name
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json, JsonObject

_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_MAX_PICTURE_BYTES = 256 * 1024
_EMOJI_NAME = re.compile(r"[A-Za-z0-9_]{2,32}")


async def server_info(context: ActionContext) -> JsonObject:
    """Describes the guild as any member sees it. Only channels that the asker sees are counted."""
    guild = context.guild
    kinds = Counter(str(each.type) for each in guild.channels if context.sees(each))
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


async def check_emoji(context: ActionContext, name: str) -> JsonObject:
    """Raises what is wrong with a new emoji, whatever its picture: a right, its name, or that no place is left."""
    _require_emoji(context, name)
    kinds = Counter(each.animated for each in await context.guild.fetch_emojis())
    limit = context.guild.emoji_limit
    if min(kinds[False], kinds[True]) >= limit:
        raise InvalidInput(
            f"This server has {limit} emojis of each kind, and can have no more.",
            code="discord_emojis_full",
            fix="Delete one first.",
        )
    return {}


async def create_emoji(context: ActionContext, name: str, picture: str, since: str = "") -> JsonObject:
    """Creates an emoji. `picture` is base64 of a PNG, JPEG, GIF or WebP file of at most 256 KB. `since` (an ISO time)
    makes a retry safe: a younger emoji of the same name counts as the one that an earlier try created.
    """
    _require_emoji(context, name)
    try:
        data = base64.b64decode(picture, validate=True)
    except binascii.Error:
        raise InvalidInput("The picture is not base64.", code="discord_bad_picture") from None
    is_webp = data[:4] == b"RIFF" and data[8:12] == b"WEBP"
    if not is_webp and not data.startswith(_PICTURES):
        raise InvalidInput("An emoji is made of a PNG, JPEG, GIF or WebP picture.", code="discord_bad_picture")
    if len(data) > _MAX_PICTURE_BYTES:
        raise InvalidInput("A picture for an emoji has at most 256 KB.", code="discord_bad_picture")
    made = find_created(await context.guild.fetch_emojis(), name, since) if since else None
    if made is None:
        made = await context.guild.create_custom_emoji(name=name, image=data, reason=context.reason())
    return {"id": str(made.id), "name": made.name}


def _require_emoji(context: ActionContext, name: str) -> None:
    context.require("create_expressions")
    if not _EMOJI_NAME.fullmatch(name):
        raise InvalidInput(
            f"'{name[:50]}' cannot be the name of an emoji.",
            code="discord_bad_name",
            fix="Use 2 to 32 letters from A to Z, digits and underscores.",
        )


async def delete_emoji(context: ActionContext, emoji: str, reason: str = "") -> JsonObject:
    """Deletes an emoji by name, id, or as it is written in messages."""
    context.require("manage_expressions")
    parsed = discord.PartialEmoji.from_str(emoji.strip())
    number = parsed.id or parse_id(emoji)
    emojis = await context.guild.fetch_emojis()
    found = next((each for each in emojis if each.id == number), None)
    found = found or pick_by_name(parsed.name.strip(":"), emojis, lambda each: each.name, "emoji")
    await found.delete(reason=context.reason(reason))
    return {"id": str(found.id), "name": found.name}


async def create_event(  # noqa: PLR0913 - as Discord's own form
    context: ActionContext,
    name: str,
    start: str,
    *,
    end: str = "",
    location: str = "",
    channel: str = "",
    description: str = "",
    since: str = "",
) -> JsonObject:
    """Schedules an event in a voice or stage channel, or at a location, which needs an end. Times are ISO with their
    zone. `since` (an ISO time) makes a retry safe: a younger event of the same name counts as the one that an
    earlier try created.
    """
    if bool(location.strip()) == bool(channel.strip()) or (location.strip() and not end):
        raise InvalidInput(
            "An event is either in a voice channel, or at a place in words and with an end.",
            code="discord_bad_event",
            fix="Give channel, or location and end.",
        )
    options: dict[str, Any] = {"location": location.strip(), "entity_type": discord.EntityType.external}
    place = find_channel(context, channel) if channel.strip() else None
    if place is not None:
        if not isinstance(place, discord.VoiceChannel | discord.StageChannel):
            raise InvalidInput("Events take place in voice and stage channels.", code="discord_wrong_channel")
        context.require("connect", place)
        options = {"channel": place}
    context.require("create_events", place)
    made = find_created(await context.guild.fetch_scheduled_events(), name, since) if since else None
    if made is None:
        made = await context.guild.create_scheduled_event(
            name=name,
            start_time=datetime.fromisoformat(start),
            end_time=datetime.fromisoformat(end) if end else discord.utils.MISSING,
            description=description,
            privacy_level=discord.PrivacyLevel.guild_only,
            reason=context.reason(),
            **options,
        )
    return {"id": str(made.id), "name": made.name, "url": made.url}


async def list_events(context: ActionContext) -> JsonObject:
    """Lists scheduled and active events; of those in channels only what every reader of the answer may see."""
    seen = await list_tellable_rooms(context)
    events = [each for each in await context.guild.fetch_scheduled_events() if _is_told(each, seen)]
    rows: list[Json] = [
        {
            "id": str(each.id),
            "name": each.name,
            "start": each.start_time.isoformat(timespec="minutes"),
            "end": each.end_time.isoformat(timespec="minutes") if each.end_time else "",
            "where": each.location or (f"<#{each.channel_id}>" if each.channel_id else ""),
            "description": (each.description or "")[:300],
            "interested": each.user_count or 0,
        }
        for each in sorted(events, key=lambda each: each.start_time)
    ]
    return {"events": rows}


async def cancel_event(context: ActionContext, event: str, reason: str = "") -> JsonObject:
    """Cancels an event by id or name; an active one is ended."""
    context.require("manage_events")
    events = await context.guild.fetch_scheduled_events()
    there = [each for each in events if each.channel_id is None or (each.channel and context.sees(each.channel))]
    number = parse_id(event)
    found = next((each for each in there if each.id == number), None)
    found = found or pick_by_name(event.strip(), there, lambda each: each.name, "event")
    if found.channel is not None:
        context.require("manage_events", found.channel)
    if found.status is discord.EventStatus.active:
        await found.end(reason=context.reason(reason))
    else:
        await found.cancel(reason=context.reason(reason))
    return {"id": str(found.id), "name": found.name}


def _is_told(event: discord.ScheduledEvent, seen: frozenset[int]) -> bool:
    is_ahead = event.status in (discord.EventStatus.scheduled, discord.EventStatus.active)
    return is_ahead and (event.channel_id is None or event.channel_id in seen)

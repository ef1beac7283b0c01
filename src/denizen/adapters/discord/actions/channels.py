"""Actions on channels and categories, and on their permission overwrites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, cast

import discord

from denizen.adapters.discord.actions.context import (
    ActionContext,
    GuildPlace,
    read_permissions,
    require_administrators,
    require_held,
)
from denizen.adapters.discord.actions.lookup import (
    find_channel,
    find_member,
    find_role,
    load_channel,
    parse_id,
    pick_by_name,
)
from denizen.adapters.discord.guild.audience import list_visible_rooms
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json, JsonObject

_MAX_LISTED = 200


async def list_channels(context: ActionContext, name: str = "") -> JsonObject:
    """Lists the channels that the asker and every reader of the answer see, in the sidebar's order, without threads."""
    seen = await list_tellable_rooms(context)
    folded = name.strip().lstrip("#").casefold()
    rows: list[Json] = [
        {
            "id": str(each.id),
            "name": each.name,
            "kind": str(each.type),
            "category": each.category.name if each.category and context.sees(each.category) else "",
            "topic": getattr(each, "topic", None) or "",
        }
        for _, inside in context.guild.by_category()
        for each in inside
        if each.id in seen and folded in each.name.casefold()
    ]
    return {"channels": rows[:_MAX_LISTED], "total": len(rows)}


async def create_channel(
    context: ActionContext,
    name: str,
    *,
    kind: str = "text",
    category: str = "",
    topic: str = "",
    private_to: Sequence[str] = (),
    since: str = "",
) -> JsonObject:
    """Creates a channel of a `kind`: text, voice, stage, forum, announcement or category.

    `private_to` names the roles and members who alone see it, besides the asker and the account. `since` (an ISO
    time) makes a retry safe: a younger channel of the same name and kind counts as the one that an earlier try
    created.
    """
    inside = _find_category(context, category) if category.strip() else None
    context.require("manage_channels", inside)
    made = await _find_created_channel(context, name, kind, since) if since else None
    if made is None:
        options: dict[str, Any] = {"reason": context.reason()}
        if inside is not None:
            options["category"] = inside
        if topic:
            options["topic"] = topic
        if private_to:
            options["overwrites"] = await _build_private_overwrites(context, private_to)
        made = await _create(context, kind, name, options)
    return {"id": str(made.id), "name": made.name}


async def edit_channel(
    context: ActionContext,
    channel: str,
    *,
    name: str = "",
    topic: str | None = None,
    category: str | None = None,
    nsfw: bool | None = None,
) -> JsonObject:
    """Changes the given fields of a channel. An empty category moves it out of its category; its permissions stay."""
    place = find_channel(context, channel)
    if isinstance(place, discord.Thread):
        raise InvalidInput("That is a thread, not a channel.", code="discord_wrong_channel")
    context.require("manage_channels", place)
    changes: dict[str, Any] = {}
    if name.strip():
        changes["name"] = name.strip()
    if topic is not None:
        changes["topic"] = topic
    if nsfw is not None:
        changes["nsfw"] = nsfw
    if category is not None:
        changes["category"] = _find_category(context, category) if category.strip() else None
        if changes["category"] is not None:
            context.require("manage_channels", changes["category"])
    unfit = {"topic", "nsfw", "category"} & set(changes) if isinstance(place, discord.CategoryChannel) else set[str]()
    if unfit or not changes:
        what = f"has no {' or '.join(sorted(unfit))}" if unfit else "would stay as it is"
        raise InvalidInput(f"{place.mention} {what}.", code="discord_nothing_to_do", fix="Say what is to be changed.")
    await cast("Any", place).edit(**changes, reason=context.reason())  # each kind of channel has its own signature
    return {"id": str(place.id), "name": changes.get("name", place.name)}


async def delete_channel(context: ActionContext, channel: str, reason: str = "") -> JsonObject:
    """Deletes a channel, a thread, or a category, whose channels stay."""
    place = await load_channel(context, channel)
    context.require("manage_threads" if isinstance(place, discord.Thread) else "manage_channels", place)
    name = place.name
    await place.delete(reason=context.reason(reason))
    return {"id": str(place.id), "name": name}


async def set_channel_permission(
    context: ActionContext,
    channel: str,
    who: str,
    *,
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    clear: Sequence[str] = (),
) -> JsonObject:
    """Sets permission overwrites for a role or a member in one channel or category; `clear` removes an overwrite.

    The asker and the account must both hold every permission named, and the target must rank below both.
    """
    place = find_channel(context, channel)
    if isinstance(place, discord.Thread):
        raise InvalidInput("A thread has the permissions of its channel.", code="discord_wrong_channel")
    context.require("manage_roles", place)
    target = await _find_role_or_member(context, who)
    if isinstance(target, discord.Member):
        context.require_above(target)
    elif not target.is_default():
        context.require_below(target)
    changed = read_permissions([*allow, *deny, *clear])
    if not changed.value or len({*allow, *deny, *clear}) < len([*allow, *deny, *clear]):
        raise InvalidInput(
            "Each permission goes into one of allow, deny and clear.", code="discord_nothing_to_do", fix="Name one."
        )
    if changed.manage_roles or changed.administrator:
        require_administrators(context, "hand out the right to hand out rights")
    require_held(context, changed, place)
    overwrite = place.overwrites_for(target)
    for names, value in ((allow, True), (deny, False), (clear, None)):
        overwrite.update(**{name: value for name, on in read_permissions(names) if on})
    await place.set_permissions(target, overwrite=None if overwrite.is_empty() else overwrite, reason=context.reason())
    return {"id": str(place.id), "name": place.name, "who": str(target.id)}


async def list_tellable_rooms(context: ActionContext) -> frozenset[int]:
    """Returns the channels that may be mentioned in the answer: those that the asker and all its readers can see."""
    rooms = await list_visible_rooms(context.client, context.warrant.place, context.warrant.asker)
    return frozenset(map(int, rooms))


async def _find_role_or_member(context: ActionContext, text: str) -> discord.Role | discord.Member:
    """Finds a role by mention, id or full name; otherwise a member."""
    name, number = text.strip().lstrip("@").strip('"').casefold(), parse_id(text)
    if name == "everyone":
        return context.guild.default_role
    if text.strip().startswith("<@&") or (number is not None and context.guild.get_role(number) is not None):
        return find_role(context, text)
    if any(role.name.casefold() == name for role in context.guild.roles):
        return find_role(context, text)
    return await find_member(context, text)


def _find_category(context: ActionContext, text: str) -> discord.CategoryChannel:
    found = find_channel(context, text) if parse_id(text) is not None else None
    if isinstance(found, discord.CategoryChannel):
        return found
    seen = [each for each in context.guild.categories if context.sees(each)]
    return pick_by_name(text.strip(), seen, lambda each: each.name, "category")


async def _find_created_channel(
    context: ActionContext, name: str, kind: str, since: str
) -> discord.abc.GuildChannel | None:
    """Asks Discord itself, since the gateway may not have told discord.py's cache of a channel created a moment ago."""
    start, wanted = datetime.fromisoformat(since), _KINDS.get(kind)
    fitting = (
        each
        for each in await context.guild.fetch_channels()
        if each.created_at >= start
        and each.type is wanted
        and _normalize_channel_name(each.name) == _normalize_channel_name(name)
        and context.sees(each)
    )
    return next(fitting, None)


def _normalize_channel_name(name: str) -> str:
    """Returns the name as Discord writes names of text channels: in lower case, with dashes."""
    return "-".join(name.casefold().split())


async def _build_private_overwrites(
    context: ActionContext, private_to: Sequence[str]
) -> dict[discord.Role | discord.Member | discord.Object, discord.PermissionOverwrite]:
    """Builds the overwrites of a channel that only these people see.

    The channel is new, so nothing that was hidden becomes visible, and the rank of the targets does not matter. The
    asker must hold the permission to see channels.
    """
    require_held(context, discord.Permissions(view_channel=True))
    seeing = discord.PermissionOverwrite(view_channel=True)
    closed: dict[discord.Role | discord.Member | discord.Object, discord.PermissionOverwrite] = {
        context.guild.default_role: discord.PermissionOverwrite(view_channel=False),
        context.me: seeing,
        context.asker: seeing,
    }
    for each in private_to:
        closed[await _find_role_or_member(context, each)] = seeing
    return closed


_KINDS = {
    "text": discord.ChannelType.text,
    "voice": discord.ChannelType.voice,
    "stage": discord.ChannelType.stage_voice,
    "forum": discord.ChannelType.forum,
    "announcement": discord.ChannelType.news,
    "category": discord.ChannelType.category,
}


async def _create(context: ActionContext, kind: str, name: str, options: dict[str, Any]) -> GuildPlace:
    makers: dict[str, Callable[..., Any]] = {
        "text": context.guild.create_text_channel,
        "voice": context.guild.create_voice_channel,
        "stage": context.guild.create_stage_channel,
        "forum": context.guild.create_forum,
        "announcement": context.guild.create_text_channel,
        "category": context.guild.create_category,
    }
    if kind not in makers:
        raise InvalidInput(
            f"There is no kind of channel '{kind}'.", code="discord_wrong_channel", fix=f"Kinds: {', '.join(makers)}."
        )
    unfit = {"topic"} & set(options) if kind in ("voice", "category") else set[str]()
    unfit |= {"category"} & set(options) if kind == "category" else set[str]()
    if unfit:
        raise InvalidInput(f"A {kind} has no {' or '.join(sorted(unfit))}.", code="discord_wrong_channel")
    if kind == "announcement":
        options["news"] = True
    return cast("GuildPlace", await makers[kind](name, **options))

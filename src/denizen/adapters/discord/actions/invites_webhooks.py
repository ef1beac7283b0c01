"""Actions on invitations and webhooks: the ways into a guild from outside.

Whoever has the address of a webhook can write there. So the address goes to the asker in a button of a direct
message, and appears in no result, text or log.
"""

from __future__ import annotations

from typing import TypeAlias

import discord

from denizen.adapters.discord.actions.channels import list_tellable_rooms
from denizen.adapters.discord.actions.context import ActionContext, GuildPlace
from denizen.adapters.discord.actions.lookup import find_channel, find_created, parse_id, pick_by_name
from denizen.adapters.discord.actions.members import send_dm
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.domain.json import Json, JsonObject

WebhookChannel: TypeAlias = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.ForumChannel


async def create_invite(context: ActionContext, channel: str = "", hours: int = 24, uses: int = 0) -> JsonObject:
    """Creates an invitation, or returns a valid one of the same kind. `hours` and `uses` of 0 mean no limit."""
    place = _find_channel_or_parent(context, channel)
    if isinstance(place, discord.Thread | discord.CategoryChannel):
        raise InvalidInput("Nobody is invited to a category.", code="discord_wrong_channel", fix="Name a channel.")
    context.require("create_instant_invite", place)
    made = await place.create_invite(max_age=hours * 3600, max_uses=uses, unique=False, reason=context.reason())
    return {"url": made.url, "channel": str(place.id)}


async def list_invites(context: ActionContext) -> JsonObject:
    context.require("manage_guild")
    seen = await list_tellable_rooms(context)
    rows: list[Json] = [
        {
            "code": each.code,
            "channel": str(each.channel.id),
            "by": str(each.inviter.id) if each.inviter else "",
            "uses": each.uses or 0,
            "max_uses": each.max_uses or 0,
            "expires_at": each.expires_at.isoformat(timespec="minutes") if each.expires_at else "",
        }
        for each in await context.guild.invites()
        if each.channel is not None and each.channel.id in seen
    ]
    return {"invites": rows}


async def delete_invite(context: ActionContext, invite: str, reason: str = "") -> JsonObject:
    """Deletes an invitation by its code or address."""
    found = await context.client.fetch_invite(invite.strip(), with_counts=False)
    where = found.channel
    if found.guild is None or found.guild.id != context.guild.id or where is None:
        raise NotFound("There is no such invitation to this server.", code="discord_no_invite")
    context.require("manage_channels", find_channel(context, str(where.id)))
    await found.delete(reason=context.reason(reason))
    return {"code": found.code}


async def create_webhook(context: ActionContext, name: str, channel: str = "", since: str = "") -> JsonObject:
    """Creates a webhook, and sends its address to the asker in a direct message. An asker who takes no direct messages
    gets no webhook. `since` (an ISO time) makes a retry safe: a younger webhook of the same name counts as the one
    that an earlier try created.
    """
    place = _find_channel_or_parent(context, channel)
    if not isinstance(place, WebhookChannel):
        raise InvalidInput("That channel has no webhooks.", code="discord_wrong_channel", fix="Name a channel.")
    context.require("manage_webhooks", place)
    made = None
    if since:
        mine = [each for each in await place.webhooks() if each.user == context.me and each.token is not None]
        made = find_created(mine, name, since)
    made = made or await place.create_webhook(name=name, reason=context.reason())
    view = discord.ui.View()
    view.add_item(discord.ui.Button[discord.ui.View](label="Address of the webhook", url=made.url))
    words = (
        f"The webhook '{made.name}' of #{place.name} in {context.guild.name} is ready. Its address is behind the "
        "button: copy the link, and keep it secret. Whoever has it can write there."
    )
    try:
        await send_dm(context, context.asker, words, view)
    except discord.Forbidden:
        await made.delete(reason=context.reason())
        raise NotAllowed(
            "I made no webhook: I could not send you its address.",
            code="discord_no_direct",
            fix="Allow direct messages from members of this server, and ask again.",
        ) from None
    return {"id": str(made.id), "name": made.name or name, "channel": str(place.id)}


async def list_webhooks(context: ActionContext) -> JsonObject:
    context.require("manage_webhooks")
    seen = await list_tellable_rooms(context)
    rows: list[Json] = [
        {
            "id": str(each.id),
            "name": each.name or "",
            "channel": str(each.channel_id),
            "by": str(each.user.id) if each.user else "",
        }
        for each in await context.guild.webhooks()
        if each.channel_id in seen
    ]
    return {"webhooks": rows}


async def delete_webhook(context: ActionContext, webhook: str, reason: str = "") -> JsonObject:
    """Deletes a webhook by id or name."""
    context.require("manage_webhooks")
    there = [each for each in await context.guild.webhooks() if each.channel is not None and context.sees(each.channel)]
    number = parse_id(webhook)
    found = next((each for each in there if each.id == number), None)
    found = found or pick_by_name(webhook.strip(), there, lambda each: each.name or "", "webhook")
    context.require("manage_webhooks", find_channel(context, str(found.channel_id)))
    await found.delete(reason=context.reason(reason))
    return {"id": str(found.id), "name": found.name or ""}


def _find_channel_or_parent(context: ActionContext, channel: str) -> GuildPlace:
    """Finds a channel; for a thread its channel, since invitations and webhooks belong to channels."""
    place = find_channel(context, channel)
    return place.parent if isinstance(place, discord.Thread) and place.parent is not None else place

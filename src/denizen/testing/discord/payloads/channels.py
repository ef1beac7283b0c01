"""Payloads of channels, threads, direct messages, overwrites and invites."""

from __future__ import annotations

from typing import Any

from denizen.testing.discord.payloads.people import Payload, member_payload, user_payload
from denizen.testing.discord.state.access import is_shown
from denizen.testing.discord.state.channels import FORUMS, SimChannel, SimOverwrite, SimThreadState
from denizen.testing.discord.state.clock import format_optional_timestamp, format_timestamp, snowflake_time
from denizen.testing.discord.state.people import SimUser
from denizen.testing.discord.state.permissions import NONE, DiscordPermission
from denizen.testing.discord.state.store import SimInvite, SimStore

HIDDEN_NAME = "___hidden___"
CHANNEL_OBFUSCATED = 1 << 17


def id_or_none(snowflake: int | None) -> str | None:
    return None if snowflake is None else str(snowflake)


def overwrite_payload(overwrite: SimOverwrite) -> Payload:
    return {
        "id": str(overwrite.id),
        "type": overwrite.kind,
        "allow": str(overwrite.allow.value),
        "deny": str(overwrite.deny.value),
    }


def channel_payload(channel: SimChannel, viewer: SimUser) -> Payload:
    """Returns any channel for `viewer`: a direct message names the other side, a thread the viewer's membership."""
    if channel.is_dm:
        return _dm_payload(channel, viewer)
    if channel.thread is not None:
        return _thread_payload(channel, channel.thread, viewer)
    payload: Payload = {
        "id": str(channel.id),
        "type": int(channel.kind),
        "guild_id": str(channel.guild_id),
        "name": channel.name,
        "position": channel.position,
        "flags": 0,
        "parent_id": id_or_none(channel.parent.id if channel.parent else None),
        "topic": channel.settings.topic,
        "nsfw": channel.settings.nsfw,
        "rate_limit_per_user": channel.settings.slowmode_s,
        "last_message_id": id_or_none(channel.history.last_id),
        "last_pin_timestamp": format_optional_timestamp(channel.history.last_pin_at),
        "default_auto_archive_duration": channel.settings.default_auto_archive_min,
        "permission_overwrites": [overwrite_payload(each) for each in channel.overwrites.values()],
    }
    if channel.kind in FORUMS:
        payload |= _forum_fields(channel)
    if channel.kind.name in ("VOICE", "STAGE"):
        payload |= {"bitrate": 64000, "user_limit": 0, "rtc_region": None, "video_quality_mode": 1}
    return payload


def gateway_channel_payload(store: SimStore, channel: SimChannel, viewer: SimUser) -> Payload:
    """Returns a guild channel as the gateway sends it since 2026-11-16: of a hidden one only id, type and place are
    true. REST leaves such a channel out.
    """
    payload = channel_payload(channel, viewer)
    if channel.is_thread or is_shown(store, viewer, channel):
        return payload
    closed = SimOverwrite(channel.guild_id or 0, 0, NONE, DiscordPermission.VIEW_CHANNEL)
    hidden: Payload = {
        "name": HIDDEN_NAME,
        "topic": None,
        "nsfw": False,
        "rate_limit_per_user": 0,
        "last_message_id": None,
        "last_pin_timestamp": None,
        "flags": CHANNEL_OBFUSCATED,
        "permission_overwrites": [overwrite_payload(closed)],
    }
    return payload | hidden | ({"available_tags": []} if channel.kind in FORUMS else {})


def thread_member_payload(store: SimStore, thread: SimChannel, user: SimUser, *, with_member: bool = False) -> Payload:
    if thread.thread is None:
        raise ValueError(f"{thread!r} is not a thread")
    payload: Payload = {
        "id": str(thread.id),
        "user_id": str(user.id),
        "join_timestamp": format_timestamp(thread.thread.members[user.id].joined_at),
        "flags": 0,
    }
    guild = store.get_guild_for(thread)
    member = guild.members.get(user.id) if guild else None
    return payload | {"member": member_payload(member)} if with_member and member else payload


def invite_payload(store: SimStore, invite: SimInvite) -> Payload:
    guild = store.guilds[invite.channel.guild_id or 0]
    return {
        "type": 0,
        "code": invite.code,
        "inviter": user_payload(invite.inviter),
        "max_age": invite.max_age_s,
        "max_uses": invite.max_uses,
        "uses": 0,
        "temporary": invite.temporary,
        "created_at": format_timestamp(snowflake_time(invite.created)),
        "expires_at": None,
        "guild_id": str(guild.id),
        "guild": {
            "id": str(guild.id),
            "name": guild.name,
            "splash": None,
            "banner": None,
            "description": None,
            "icon": None,
            "features": [],
            "verification_level": 0,
            "vanity_url_code": None,
            "nsfw_level": 0,
            "nsfw": False,
            "premium_subscription_count": 0,
        },
        "channel": {"id": str(invite.channel.id), "type": int(invite.channel.kind), "name": invite.channel.name},
        "approximate_member_count": len(guild.members),
        "approximate_presence_count": len(guild.members),
    }


def _dm_payload(channel: SimChannel, viewer: SimUser) -> Payload:
    return {
        "id": str(channel.id),
        "type": int(channel.kind),
        "flags": 0,
        "last_message_id": id_or_none(channel.history.last_id),
        "recipients": [user_payload(each) for each in channel.recipients if each is not viewer],
    }


def _thread_payload(channel: SimChannel, state: SimThreadState, viewer: SimUser) -> Payload:
    metadata: dict[str, Any] = {
        "archived": state.archived,
        "archive_timestamp": format_timestamp(state.archive_at),
        "auto_archive_duration": state.auto_archive_min,
        "locked": state.locked,
        "create_timestamp": format_timestamp(state.created_at),
    }
    if channel.kind.name == "PRIVATE_THREAD":
        metadata["invitable"] = state.invitable
    payload: Payload = {
        "id": str(channel.id),
        "type": int(channel.kind),
        "guild_id": str(channel.guild_id),
        "name": channel.name,
        "parent_id": id_or_none(channel.parent.id if channel.parent else None),
        "owner_id": str(state.owner.id),
        "flags": 0,
        "last_message_id": id_or_none(channel.history.last_id),
        "rate_limit_per_user": channel.settings.slowmode_s,
        "thread_metadata": metadata,
        "message_count": max(0, state.sent),
        "member_count": min(50, len(state.members)),
        "total_message_sent": state.sent,
    }
    if channel.parent is not None and channel.parent.kind in FORUMS:
        payload["applied_tags"] = [str(each) for each in state.tags]
    own = state.members.get(viewer.id)
    if own is not None:
        joined = format_timestamp(own.joined_at)
        payload["member"] = {"id": str(channel.id), "user_id": str(viewer.id), "join_timestamp": joined, "flags": 0}
    return payload


def _forum_fields(channel: SimChannel) -> Payload:
    tags = [
        {
            "id": str(tag.id),
            "name": tag.name,
            "moderated": tag.moderated,
            "emoji_id": id_or_none(tag.emoji.id if tag.emoji else None),
            "emoji_name": tag.emoji.name if tag.emoji and tag.emoji.id is None else None,
        }
        for tag in channel.settings.tags
    ]
    return {
        "available_tags": tags,
        "default_reaction_emoji": None,
        "default_sort_order": None,
        "default_forum_layout": 0,
        "default_thread_rate_limit_per_user": 0,
    }

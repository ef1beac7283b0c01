"""Payloads of guilds, roles, emojis, stickers and scheduled events, over REST and in GUILD_CREATE."""

from __future__ import annotations

from denizen.testing.discord.payloads.channels import channel_payload, gateway_channel_payload, id_or_none
from denizen.testing.discord.payloads.people import Payload, member_payload, presence_payload, user_payload
from denizen.testing.discord.state.access import can_see, permissions_in_guild
from denizen.testing.discord.state.channels import ChannelKind, SimScheduledEvent
from denizen.testing.discord.state.clock import format_optional_timestamp, format_timestamp
from denizen.testing.discord.state.guilds import SimGuild, SimRole, SimVoiceState
from denizen.testing.discord.state.messages import SimEmoji, SimSticker
from denizen.testing.discord.state.people import GatewayIntent, SimApplication, SimUser
from denizen.testing.discord.state.store import SimStore

STAGE, VOICE, EXTERNAL = 1, 2, 3
"""Discord's numbers for the places of events."""


def scheduled_event_payload(event: SimScheduledEvent) -> Payload:
    kind = EXTERNAL
    if event.channel is not None:
        kind = STAGE if event.channel.kind is ChannelKind.STAGE else VOICE
    return {
        "id": str(event.id),
        "guild_id": str(event.guild_id),
        "name": event.name,
        "description": event.description,
        "channel_id": id_or_none(event.channel.id if event.channel else None),
        "creator_id": str(event.creator.id),
        "creator": user_payload(event.creator),
        "image": None,
        "scheduled_start_time": format_timestamp(event.starts_at),
        "scheduled_end_time": format_optional_timestamp(event.ends_at),
        "status": int(event.status),
        "entity_type": kind,
        "entity_id": None,
        "recurrence_rule": None,
        "user_count": 0,
        "privacy_level": 2,
        "guild_scheduled_event_exceptions": [],
        "entity_metadata": {"location": event.location} if event.channel is None else None,
    }


def role_payload(role: SimRole) -> Payload:
    payload: Payload = {
        "id": str(role.id),
        "name": role.name,
        "permissions": str(role.permissions.value),
        "position": role.position,
        "color": role.color,
        "colors": {"primary_color": role.color, "secondary_color": None, "tertiary_color": None},
        "hoist": role.hoist,
        "managed": role.managed,
        "mentionable": role.mentionable,
        "icon": None,
        "unicode_emoji": None,
        "flags": 0,
    }
    return payload | {"tags": {"bot_id": str(role.bot_id)}} if role.bot_id else payload


def emoji_payload(emoji: SimEmoji) -> Payload:
    return {
        "id": str(emoji.id),
        "name": emoji.name,
        "roles": [],
        "require_colons": True,
        "managed": False,
        "animated": emoji.animated,
        "available": True,
    }


def sticker_payload(sticker: SimSticker) -> Payload:
    return {
        "id": str(sticker.id),
        "name": sticker.name,
        "tags": sticker.tags,
        "type": 2,
        "format_type": sticker.format,
        "description": sticker.description,
        "available": True,
        "guild_id": str(sticker.guild_id),
    }


def guild_payload(guild: SimGuild) -> Payload:
    return {
        "id": str(guild.id),
        "name": guild.name,
        "icon": None,
        "description": None,
        "home_header": None,
        "splash": None,
        "discovery_splash": None,
        "features": [],
        "banner": None,
        "owner_id": str(guild.owner.id),
        "application_id": None,
        "region": "us-east",
        "afk_channel_id": None,
        "afk_timeout": 300,
        "system_channel_id": None,
        "system_channel_flags": 0,
        "widget_enabled": False,
        "widget_channel_id": None,
        "verification_level": 0,
        "roles": [role_payload(each) for each in guild.roles.values()],
        "default_message_notifications": 0,
        "mfa_level": 0,
        "explicit_content_filter": 0,
        "max_presences": None,
        "max_members": 500000,
        "max_stage_video_channel_users": 50,
        "max_video_channel_users": 25,
        "vanity_url_code": None,
        "premium_tier": 0,
        "premium_subscription_count": 0,
        "preferred_locale": "en-US",
        "rules_channel_id": None,
        "safety_alerts_channel_id": None,
        "public_updates_channel_id": None,
        "premium_progress_bar_enabled": False,
        "nsfw": False,
        "nsfw_level": 0,
        "emojis": [emoji_payload(each) for each in guild.expressions.emojis.values()],
        "stickers": [sticker_payload(each) for each in guild.expressions.stickers.values()],
        "incidents_data": None,
    }


def own_guild_payload(store: SimStore, guild: SimGuild, user: SimUser) -> Payload:
    """Returns an entry of a bot's own list of guilds."""
    return {
        "id": str(guild.id),
        "name": guild.name,
        "icon": None,
        "banner": None,
        "owner": guild.owner is user,
        "permissions": str(permissions_in_guild(store, guild, user).value),
        "features": [],
    }


def guild_create_payload(
    store: SimStore, guild: SimGuild, application: SimApplication, intents: GatewayIntent
) -> Payload:
    """Returns a guild that becomes available: every channel (of hidden ones little more than the id) and the visible
    active threads. Without the intents it has no presences, and among the members only the bot itself and those in
    voice channels.
    """
    bot = application.user
    everybody = bool(intents & GatewayIntent.GUILD_MEMBERS and intents & GatewayIntent.GUILD_PRESENCES)
    present = {bot.id, *guild.voice}
    members = [
        each for key, each in guild.members.items() if (everybody and len(guild.members) < 250) or key in present
    ]
    shows_presences = bool(intents & GatewayIntent.GUILD_PRESENCES)
    return guild_payload(guild) | {
        "joined_at": format_timestamp(guild.members[bot.id].joined_at),
        "large": len(guild.members) >= 250,
        "unavailable": False,
        "member_count": len(guild.members),
        "members": [member_payload(each) for each in members],
        "channels": [gateway_channel_payload(store, each, bot) for each in guild.channels.values()],
        "threads": [
            channel_payload(each, bot)
            for each in guild.threads.values()
            if each.thread and not each.thread.archived and can_see(store, bot, each)
        ],
        "presences": [
            presence_payload(each.user, guild.id)
            for each in guild.members.values()
            if shows_presences and each.user.presence is not None
        ],
        "voice_states": [voice_state_payload(guild, each) for each in guild.voice.values()],
        "stage_instances": [],
        "guild_scheduled_events": [
            scheduled_event_payload(each)
            for each in guild.events.values()
            if each.channel is None or can_see(store, bot, each.channel)
        ],
        "soundboard_sounds": [],
    }


def voice_state_payload(guild: SimGuild, state: SimVoiceState) -> Payload:
    member = guild.members.get(state.user.id)
    return {
        "guild_id": str(guild.id),
        "channel_id": None if state.channel is None else str(state.channel.id),
        "user_id": str(state.user.id),
        **({"member": member_payload(member)} if member else {}),
        "session_id": state.session_id,
        "deaf": False,
        "mute": False,
        "self_deaf": state.self_deaf,
        "self_mute": state.self_mute,
        "self_video": False,
        "suppress": False,
        "request_to_speak_timestamp": None,
    }


def ban_payload(user: SimUser, reason: str | None) -> Payload:
    return {"user": user_payload(user), "reason": reason}

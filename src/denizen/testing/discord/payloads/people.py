"""Payloads of users, members, presences, applications and webhooks."""

from __future__ import annotations

from typing import Any

from denizen.testing.discord.state.clock import format_optional_timestamp, format_timestamp
from denizen.testing.discord.state.guilds import SimMember
from denizen.testing.discord.state.people import SimApplication, SimPresence, SimUser, application_flags
from denizen.testing.discord.state.permissions import DiscordPermission
from denizen.testing.discord.state.store import SimStore, SimWebhook

Payload = dict[str, Any]


def user_payload(user: SimUser) -> Payload:
    payload: Payload = {
        "id": str(user.id),
        "username": user.name,
        "avatar": None,
        "discriminator": f"{user.id % 9999 + 1:04}" if user.bot else "0",
        "public_flags": 0,
        "flags": 0,
        "banner": None,
        "accent_color": None,
        "global_name": None if user.bot else user.display_name,
        "avatar_decoration_data": None,
        "collectibles": None,
        "primary_guild": None,
    }
    return payload | {"bot": True} if user.bot else payload


def own_user_payload(user: SimUser) -> Payload:
    """Returns what a bot gets about itself."""
    private = {"mfa_enabled": True, "locale": "en-US", "premium_type": 0, "email": None, "verified": True}
    return user_payload(user) | private


def webhook_user_payload(webhook_id: int, name: str) -> Payload:
    return user_payload(SimUser(webhook_id, name, name)) | {"discriminator": "0000", "bot": True, "global_name": None}


def member_payload(member: SimMember) -> Payload:
    return partial_member_payload(member) | {"user": user_payload(member.user)}


def partial_member_payload(member: SimMember) -> Payload:
    """Returns a member without the user, as in messages."""
    return {
        "avatar": None,
        "banner": None,
        "communication_disabled_until": format_optional_timestamp(member.timeout_until),
        "flags": 0,
        "joined_at": format_timestamp(member.joined_at),
        "nick": member.nick,
        "pending": False,
        "premium_since": None,
        "roles": [str(each) for each in member.roles],
        "mute": False,
        "deaf": False,
    }


def acting_member_payload(member: SimMember, granted: DiscordPermission) -> Payload:
    """Returns a member for interactions, with the permissions in that channel."""
    return member_payload(member) | {"permissions": str(granted.value)}


def application_payload(store: SimStore, application: SimApplication) -> Payload:
    guilds = sum(application.id in guild.members for guild in store.guilds.values())
    flags = application_flags(application.intents)
    return {
        "id": str(application.id),
        "name": application.name,
        "icon": None,
        "description": application.description,
        "type": None,
        "bot": user_payload(application.user),
        "bot_public": True,
        "bot_require_code_grant": False,
        "integration_types_config": {"0": {}},
        "verify_key": f"{application.id:064x}",
        "flags": flags,
        "flags_new": str(flags),
        "redirect_uris": [],
        "interactions_endpoint_url": None,
        "role_connections_verification_url": None,
        "owner": user_payload(application.owner),
        "approximate_guild_count": guilds,
        "approximate_user_install_count": 0,
        "approximate_user_authorization_count": 0,
        "event_webhooks_url": None,
        "event_webhooks_status": 1,
        "event_webhooks_types": [],
        "explicit_content_filter": 0,
        "team": None,
        "eligible_oauth2_scopes": [],
        "tags": [],
    }


def webhook_payload(webhook: SimWebhook) -> Payload:
    return {
        "id": str(webhook.id),
        "type": 1,
        "name": webhook.name,
        "avatar": None,
        "application_id": None if webhook.application_id is None else str(webhook.application_id),
        "channel_id": str(webhook.channel.id),
        "guild_id": str(webhook.channel.guild_id),
        "user": user_payload(webhook.creator),
        "token": webhook.token,
    }


def presence_payload(user: SimUser, guild_id: int) -> Payload:
    presence = user.presence or SimPresence()
    status = presence.status
    return {
        "user": {"id": str(user.id)},
        "guild_id": str(guild_id),
        "status": "offline" if status == "invisible" else status,
        "activities": list(presence.activities),
        "client_status": {} if status in ("offline", "invisible") else {"web": status},
    }

"""Routes that libraries read and nothing here changes: a server as it is fresh, with its bots as its integrations."""

from __future__ import annotations

from denizen.testing.discord.payloads.people import Payload, user_payload
from denizen.testing.discord.rest.call import RestCall, RestRoute
from denizen.testing.discord.state.access import require_guild_permission
from denizen.testing.discord.state.errors import missing_access
from denizen.testing.discord.state.people import SimApplication
from denizen.testing.discord.state.permissions import P

_GUILD = "/guilds/{guild_id}"
_AUDIT_LOG = (
    *("audit_log_entries", "users", "integrations", "webhooks", "guild_scheduled_events", "threads"),
    *("application_commands", "auto_moderation_rules"),
)
_REGIONS = (("us-east", "US East"), ("rotterdam", "Rotterdam"), ("singapore", "Singapore"))


def read_audit_log(call: RestCall) -> object:
    require_guild_permission(call.store, call.bot, call.guild(), P.VIEW_AUDIT_LOG)
    return {key: list[Payload]() for key in _AUDIT_LOG}


def list_moderation_rules(call: RestCall) -> object:
    require_guild_permission(call.store, call.bot, call.guild(), P.MANAGE_GUILD)
    return []


def list_integrations(call: RestCall) -> object:
    guild = call.guild()
    require_guild_permission(call.store, call.bot, guild, P.MANAGE_GUILD)
    return [_integration_payload(each) for each in call.store.applications.values() if each.id in guild.members]


def _integration_payload(application: SimApplication) -> Payload:
    about = {"id": str(application.id), "name": application.name}
    bot = user_payload(application.user)
    return about | {
        "type": "discord",
        "account": about,
        "enabled": True,
        "application": about | {"icon": None, "description": application.description, "type": None, "bot": bot},
        "scopes": ["applications.commands", "bot"],
        "user": user_payload(application.owner),
    }


def read_onboarding(call: RestCall) -> object:
    guild_id = str(call.guild().id)
    return {"guild_id": guild_id, "prompts": [], "default_channel_ids": [], "enabled": False, "mode": 0}


def list_application_emojis(call: RestCall) -> object:
    if call.id("application_id") != call.application.id:
        raise missing_access()
    return {"items": []}


def list_regions(call: RestCall) -> object:
    call.application  # noqa: B018 - raises without a token
    return [
        {"id": key, "name": name, "custom": False, "deprecated": False, "optimal": key == _REGIONS[0][0]}
        for key, name in _REGIONS
    ]


ROUTES = (
    RestRoute("GET", f"{_GUILD}/audit-logs", read_audit_log),
    RestRoute("GET", f"{_GUILD}/auto-moderation/rules", list_moderation_rules),
    RestRoute("GET", f"{_GUILD}/integrations", list_integrations),
    RestRoute("GET", f"{_GUILD}/onboarding", read_onboarding),
    RestRoute("GET", f"{_GUILD}/regions", list_regions),
    RestRoute("GET", "/voice/regions", list_regions),
    RestRoute("GET", "/applications/{application_id}/emojis", list_application_emojis),
)

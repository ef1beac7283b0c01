"""Payloads of application commands and interactions."""

from __future__ import annotations

from typing import Any

from denizen.testing.discord.payloads.channels import channel_payload
from denizen.testing.discord.payloads.guilds import role_payload
from denizen.testing.discord.payloads.messages import attachment_payload, gateway_message_payload, message_payload
from denizen.testing.discord.payloads.people import Payload, acting_member_payload, partial_member_payload, user_payload
from denizen.testing.discord.state.access import permissions_in
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.guilds import SimGuild, SimRole
from denizen.testing.discord.state.interactions import CallbackKind, InteractionKind, SimCommand, SimInteraction
from denizen.testing.discord.state.messages import SimAttachment, SimMessage
from denizen.testing.discord.state.people import GatewayIntent, SimApplication, SimUser
from denizen.testing.discord.state.store import SimStore


def command_payload(command: SimCommand) -> Payload:
    fields = command.fields
    needed = fields.get("default_member_permissions")
    payload: Payload = {
        "id": str(command.id),
        "application_id": str(command.application_id),
        "version": str(command.version),
        "type": command.kind,
        "name": command.name,
        "name_localizations": fields.get("name_localizations"),
        "description": fields.get("description") or "",
        "description_localizations": fields.get("description_localizations"),
        "default_member_permissions": None if needed is None else str(needed),
        "dm_permission": fields.get("dm_permission") is not False,
        "contexts": fields.get("contexts"),
        "integration_types": fields.get("integration_types") or [0],
        "nsfw": bool(fields.get("nsfw")),
    }
    if command.guild_id is not None:
        payload["guild_id"] = str(command.guild_id)
    if fields.get("options"):
        payload["options"] = [_option_payload(each) for each in fields["options"]]
    return payload


def _option_payload(option: dict[str, Any]) -> Payload:
    kept: Payload = {key: value for key, value in option.items() if value is not None}
    if kept.get("choices") == []:
        del kept["choices"]
    if "options" in kept:
        kept["options"] = [_option_payload(each) for each in kept["options"]]
    return kept


Thing = SimUser | SimChannel | SimRole | SimAttachment | SimMessage


def interaction_payload(store: SimStore, interaction: SimInteraction) -> Payload:
    """Returns the body of INTERACTION_CREATE."""
    channel, user, application = interaction.channel, interaction.user, interaction.application
    guild = store.get_guild_for(channel)
    granted = permissions_in(store, channel, user)
    owner = "0" if guild is None else str(guild.id)
    payload: Payload = {
        "id": str(interaction.id),
        "application_id": str(application.id),
        "type": int(interaction.kind),
        "token": interaction.token,
        "version": 1,
        "data": interaction.data,
        "channel_id": str(channel.id),
        "channel": channel_payload(channel, application.user) | {"permissions": str(granted.value)},
        "app_permissions": str(permissions_in(store, channel, application.user).value),
        "locale": "en-US",
        "entitlements": [],
        "entitlement_sku_ids": [],
        "authorizing_integration_owners": {"0": owner},
        "context": 0 if guild else 1,
        "attachment_size_limit": store.rules.file_size_bytes,
    }
    if guild is None:
        payload["user"] = user_payload(user)
    else:
        payload |= {
            "guild_id": str(guild.id),
            "guild": {"id": str(guild.id), "locale": "en-US", "features": []},
            "guild_locale": "en-US",
            "member": acting_member_payload(guild.members[user.id], granted),
        }
    if interaction.message is not None:
        payload["message"] = gateway_message_payload(
            store, interaction.message, application, GatewayIntent.MESSAGE_CONTENT
        )
    return payload


def metadata_payload(interaction: SimInteraction) -> Payload:
    """Returns the `interaction_metadata` of the messages that answer it."""
    payload: Payload = {
        "id": str(interaction.id),
        "type": int(interaction.kind),
        "user": user_payload(interaction.user),
        "authorizing_integration_owners": {"0": str(interaction.channel.guild_id or 0)},
    }
    if interaction.kind is InteractionKind.COMPONENT and interaction.message is not None:
        payload["interacted_message_id"] = str(interaction.message.id)
    if interaction.kind is InteractionKind.MODAL and interaction.source is not None:
        payload["triggering_interaction_metadata"] = metadata_payload(interaction.source)
    if interaction.kind is InteractionKind.COMMAND:
        payload |= {"name": interaction.data["name"], "command_type": interaction.data["type"]}
    return payload


def callback_payload(store: SimStore, interaction: SimInteraction) -> Payload:
    """Returns the answer to a callback `with_response`."""
    about: Payload = {"id": str(interaction.id), "type": int(interaction.kind)}
    kind = interaction.response.kind
    message = interaction.message if kind is CallbackKind.UPDATE else interaction.response.original
    if message is None:
        return {"interaction": about}
    about |= {
        "response_message_id": str(message.id),
        "response_message_loading": message.loading,
        "response_message_ephemeral": message.ephemeral,
        "channel_id": str(interaction.channel.id),
    }
    if kind is not CallbackKind.MESSAGE and kind is not CallbackKind.UPDATE:
        return {"interaction": about}
    shown = message_payload(store, message, interaction.application, GatewayIntent.MESSAGE_CONTENT)
    return {"interaction": about, "resource": {"type": int(kind), "message": shown}}


def resolved_payload(
    store: SimStore, guild: SimGuild | None, application: SimApplication, things: list[Thing]
) -> Payload:
    """Returns the objects that the values of options and selects refer to."""
    resolved: dict[str, dict[str, Any]] = {}

    def put(group: str, number: int, payload: Payload) -> None:
        resolved.setdefault(group, {})[str(number)] = payload

    for thing in things:
        match thing:
            case SimUser():
                put("users", thing.id, user_payload(thing))
                if guild is not None and (member := guild.members.get(thing.id)):
                    granted = {"permissions": "0"}
                    put("members", thing.id, partial_member_payload(member) | granted)
            case SimChannel():
                granted = str(permissions_in(store, thing, application.user).value)
                put("channels", thing.id, channel_payload(thing, application.user) | {"permissions": granted})
            case SimRole():
                put("roles", thing.id, role_payload(thing))
            case SimAttachment():
                put("attachments", thing.id, attachment_payload(store, 0, thing) | {"ephemeral": True})
            case SimMessage():
                put(
                    "messages",
                    thing.id,
                    gateway_message_payload(store, thing, application, GatewayIntent.MESSAGE_CONTENT),
                )
    return resolved

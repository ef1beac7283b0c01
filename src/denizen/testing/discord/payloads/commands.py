"""Application commands as they are listed."""

from __future__ import annotations

from typing import Any

from denizen.testing.discord.payloads.people import Payload
from denizen.testing.discord.state.commands import Command


def command_payload(command: Command) -> Payload:
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

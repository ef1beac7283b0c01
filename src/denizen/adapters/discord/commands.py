"""Our commands in Discord's form, and back: what is registered, and what somebody gave. Pure.

Called by `command_sync` and `interactions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from denizen.domain.errors import InvalidInput
from denizen.ports.channel import CommandOption, CommandSpec

_CHAT_INPUT = 1
_SUBCOMMAND = 1
_STRING = 3

NAME_CHARS = 32
TEXT_CHARS = 100
MOST = 25
"""Options of a command, subcommands, choices, completions."""

_NAME = re.compile(r"[-_\w]{1,32}")

Payload = dict[str, Any]


def to_payload(spec: CommandSpec) -> Payload:
    """Raises InvalidInput for what Discord would refuse. `admin_only` is not part of it: Discord would hide such a
    command from all who may not manage the server, and so lock out owners who are configured by id. The listener
    refuses instead, which it has to do for typed commands anyway.
    """
    _check(spec)
    return {
        "type": _CHAT_INPUT,
        "name": spec.name,
        "description": spec.description,
        "options": [_to_group(each) for each in spec.groups] or _to_options(spec.options),
    }


def normalize(data: Mapping[str, Any]) -> Payload:
    """What matters of a command that Discord gave, as `to_payload` has it: Discord leaves out what is at its default,
    and adds ids, versions and names in other languages.
    """
    return {
        "type": data.get("type", _CHAT_INPUT),
        "name": data["name"],
        "description": data.get("description", ""),
        "options": [_normalize_option(each) for each in data.get("options") or ()],
    }


@dataclass(frozen=True, slots=True)
class Given:
    """A command as it was given. `focused` is the option that is being typed, with its text so far."""

    name: str
    group: str
    options: Mapping[str, str]
    focused: str = ""


def read_given(data: Mapping[str, Any]) -> Given:
    """From the data of an interaction."""
    rows: Sequence[Mapping[str, Any]] = data.get("options") or ()
    group = ""
    if rows and rows[0]["type"] == _SUBCOMMAND:
        group, rows = rows[0]["name"], rows[0].get("options") or ()
    focused = next((row["name"] for row in rows if row.get("focused")), "")
    return Given(data["name"], group, {row["name"]: str(row["value"]) for row in rows}, focused)


def _to_group(spec: CommandSpec) -> Payload:
    return {
        "type": _SUBCOMMAND,
        "name": spec.name,
        "description": spec.description,
        "options": _to_options(spec.options),
    }


def _to_options(options: Sequence[CommandOption]) -> list[Payload]:
    """Discord wants those that are required first."""
    return [_to_option(each) for each in sorted(options, key=lambda option: not option.required)]


def _to_option(option: CommandOption) -> Payload:
    return {
        "type": _STRING,
        "name": option.name,
        "description": option.description,
        "required": option.required,
        "choices": [{"name": each, "value": each} for each in option.choices],
        "autocomplete": option.suggests and not option.choices,
    }


def _normalize_option(data: Mapping[str, Any]) -> Payload:
    row: Payload = {"type": data["type"], "name": data["name"], "description": data.get("description", "")}
    if data["type"] == _SUBCOMMAND:
        row["options"] = [_normalize_option(each) for each in data.get("options") or ()]
        return row
    row["required"] = bool(data.get("required"))
    row["choices"] = [{"name": each["name"], "value": each["value"]} for each in data.get("choices") or ()]
    row["autocomplete"] = bool(data.get("autocomplete"))
    return row


def _check(spec: CommandSpec) -> None:
    """Names, descriptions and numbers (inventory T35)."""
    rows: list[CommandSpec | CommandOption] = [spec, *spec.groups, *spec.options]
    rows += [option for group in spec.groups for option in group.options]
    for row in rows:
        if not _NAME.fullmatch(row.name) or row.name != row.name.lower():
            raise _refuse(spec, f"'{row.name}' is not 1 to {NAME_CHARS} small letters, digits, '-' and '_'.")
        if not 1 <= len(row.description) <= TEXT_CHARS:
            raise _refuse(spec, f"The description of '{row.name}' has not 1 to {TEXT_CHARS} characters.")
    for part in (spec, *spec.groups):
        if max(len(part.options), len(part.groups)) > MOST:
            raise _refuse(spec, f"'{part.name}' has more than {MOST} options.")
        for option in part.options:
            if len(option.choices) > MOST or not all(1 <= len(each) <= TEXT_CHARS for each in option.choices):
                raise _refuse(spec, f"'{option.name}' needs at most {MOST} choices of 1 to {TEXT_CHARS} characters.")


def _refuse(spec: CommandSpec, why: str) -> InvalidInput:
    return InvalidInput(f"The command '/{spec.name}' cannot be registered.", code="discord_bad_command", why=why)

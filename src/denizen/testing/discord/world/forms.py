"""The forms that people fill in: options of commands, values of selects, fields of modals, checked as clients do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from denizen.testing.discord.actions.embeds import find_component
from denizen.testing.discord.payloads.interactions import Thing
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.errors import bad_field
from denizen.testing.discord.state.guilds import SimRole
from denizen.testing.discord.state.interactions import SimCommand
from denizen.testing.discord.state.messages import SimAttachment
from denizen.testing.discord.state.people import SimUser

_THINGS = (SimUser, SimChannel, SimRole, SimAttachment)
_KINDS: Mapping[int, tuple[type, ...]] = {
    3: (str,),
    4: (int,),
    5: (bool,),
    6: (SimUser,),
    7: (SimChannel,),
    8: (SimRole,),
    9: (SimUser, SimRole),
    10: (int, float),
    11: (SimAttachment,),
}


def fill_options(
    command: SimCommand, path: Sequence[str], values: Mapping[str, Any], *, focused: str | None = None
) -> tuple[list[dict[str, Any]], list[Thing]]:
    """Returns the options as they are sent, in their groups, and the objects that they refer to. Raises 50035."""
    groups = _find_groups(command, path)
    definitions: list[dict[str, Any]] = (groups[-1] if groups else command.fields).get("options") or []
    known = {each["name"]: each for each in definitions if each["type"] not in (1, 2)}
    for name in values:
        if name not in known:
            raise bad_field(f"options.{name}", "APPLICATION_COMMAND_UNKNOWN_OPTION", "There is no such option")
    filled: list[dict[str, Any]] = []
    things: list[Thing] = []
    for name, definition in known.items():
        if name not in values:
            if definition.get("required") and focused is None:
                raise bad_field(f"options.{name}", "BASE_TYPE_REQUIRED", "This field is required")
            continue
        value = values[name]
        if focused is None:
            _check_value(name, definition, value)
        if isinstance(value, _THINGS):
            things.append(value)
            value = str(value.id)
        entry = {"name": name, "type": definition["type"], "value": value}
        filled.append(entry | {"focused": True} if name == focused else entry)
    for group in reversed(groups):
        filled = [{"name": group["name"], "type": group["type"], "options": filled}]
    return filled, things


def _find_groups(command: SimCommand, path: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the subcommand group and the subcommand that the path names, the outer one first."""
    groups: list[dict[str, Any]] = []
    for name in path:
        inside: list[dict[str, Any]] = (groups[-1] if groups else command.fields).get("options") or []
        group = next((each for each in inside if each["name"] == name and each["type"] in (1, 2)), None)
        if group is None:
            raise bad_field("options", "APPLICATION_COMMAND_UNKNOWN_SUBCOMMAND", f"No subcommand {name}")
        groups.append(group)
    return groups


def _check_value(name: str, definition: Mapping[str, Any], value: object) -> None:
    place = f"options.{name}"
    fits = isinstance(value, _KINDS[definition["type"]]) and isinstance(value, bool) == (definition["type"] == 5)
    if not fits:
        raise bad_field(place, "BASE_TYPE_COERCE", f"{value!r} is not what this option takes")
    offered: list[dict[str, Any]] = definition.get("choices") or []
    choices = [each["value"] for each in offered]
    if choices and value not in choices:
        raise bad_field(place, "BASE_TYPE_CHOICES", f"Value must be one of {choices}")
    size = len(value) if isinstance(value, str) else value
    bounds = ("min_length", "max_length") if isinstance(value, str) else ("min_value", "max_value")
    low, high = (definition.get(each) for each in bounds)
    if isinstance(size, int | float) and ((low is not None and size < low) or (high is not None and size > high)):
        raise bad_field(place, "BASE_TYPE_BAD_LENGTH", f"Must be between {low} and {high}.")


def find_values(component: Mapping[str, Any], values: Sequence[Any]) -> tuple[list[str], list[Thing]]:
    """Returns the values of a select as they are sent, and the objects that they refer to. Raises 50035."""
    things: list[Thing] = [each for each in values if isinstance(each, _THINGS)]
    chosen = [str(each.id) if isinstance(each, _THINGS) else str(each) for each in values]
    low, high = component.get("min_values", 1), component.get("max_values", 1)
    if not low <= len(chosen) <= high:
        raise bad_field("data.values", "BASE_TYPE_BAD_LENGTH", f"Must be between {low} and {high} in length.")
    if component["type"] == 3:
        offered = {each["value"] for each in component["options"]}
        if any(each not in offered for each in chosen):
            raise bad_field("data.values", "BASE_TYPE_CHOICES", f"Value must be one of {sorted(offered)}")
    return chosen, things


def fill_modal(modal: Mapping[str, Any], values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the fields of a modal as they are sent: rows with text inputs, or labels with anything. Raises 50035."""
    for name in values:
        if find_component(modal["components"], name) is None:
            raise bad_field(f"data.{name}", "COMPONENT_VALIDATION_FAILED", "There is no such field")
    return [_fill_row(index, each, values) for index, each in enumerate(modal["components"], 1)]


def _fill_row(number: int, row: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    filled: dict[str, Any] = {"type": row["type"], "id": row.get("id") or number}
    if row["type"] == 18:
        return filled | {"component": _fill_field(row["component"], values)}
    if row["type"] == 10:
        return filled
    return filled | {"components": [_fill_field(each, values) for each in row["components"]]}


def _fill_field(field: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    name = field["custom_id"]
    filled: dict[str, Any] = {"type": field["type"], "custom_id": name, "id": field.get("id") or 1}
    if field["type"] != 4:
        given = values.get(name, [])
        chosen, _ = find_values(field, [given] if isinstance(given, str) else list(given))
        return filled | {"values": chosen}
    text = str(values.get(name, field.get("value") or ""))
    low = max(field.get("min_length") or 0, 1 if field.get("required", True) else 0)
    high = field.get("max_length") or 4000
    if not low <= len(text) <= high:
        raise bad_field(f"data.{name}", "BASE_TYPE_BAD_LENGTH", f"Must be between {low} and {high} in length.")
    return filled | {"value": text}

"""Registering application commands: checks, ids that stay with their name, and a record of each write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from denizen.testing.discord.state.commands import Command, CommandWrite
from denizen.testing.discord.state.people import Application
from denizen.testing.discord.state.realm import Realm
from denizen.testing.discord.state.refusals import bad, bad_form, unknown

_NAME = re.compile(r"[-_'\w]{1,32}")
_MAX_COMMANDS = 100
_MAX_OPTIONS = 25
_GROUPS = (1, 2)
Fault = tuple[str, str, str]


class Commands:
    """The commands of every application of a realm."""

    def __init__(self, realm: Realm) -> None:
        self._realm = realm

    def list(self, application: Application, guild_id: int | None) -> list[Command]:
        """Those of one guild, or the global ones."""
        own = (each for each in self._realm.commands.values() if each.application_id == application.id)
        return [each for each in own if each.guild_id == guild_id]

    def get(self, application: Application, guild_id: int | None, command_id: int) -> Command:
        for command in self.list(application, guild_id):
            if command.id == command_id:
                return command
        raise unknown("application command")

    def create(self, application: Application, guild_id: int | None, fields: Mapping[str, Any]) -> tuple[Command, bool]:
        """The command, and whether it is new: one of the same name and kind is overwritten."""
        check_command("", fields)
        self._note(application, guild_id, "create", [fields])
        existing = {(each.name, each.kind): each for each in self.list(application, guild_id)}
        command = existing.get((fields["name"], int(fields.get("type") or 1)))
        if command is None and len(existing) >= _MAX_COMMANDS:
            raise bad(30032, f"Maximum number of application commands reached ({_MAX_COMMANDS})")
        new = command is None
        return self._keep(application, guild_id, fields, command), new

    def edit(self, application: Application, command: Command, fields: Mapping[str, Any]) -> Command:
        changed = command.fields | dict(fields)
        check_command("", changed)
        self._note(application, command.guild_id, "edit", [changed])
        return self._keep(application, command.guild_id, changed, command)

    def delete(self, application: Application, command: Command) -> None:
        self._note(application, command.guild_id, "delete", [command.fields])
        del self._realm.commands[command.id]

    def overwrite(
        self, application: Application, guild_id: int | None, bodies: Sequence[Mapping[str, Any]]
    ) -> list[Command]:
        """All of them at once: what is not named is gone, what stays keeps its id."""
        faults = [fault for index, fields in enumerate(bodies) for fault in command_faults(f"{index}", fields)]
        keys = [(str(fields.get("name")), int(fields.get("type") or 1)) for fields in bodies]
        faults += [
            (f"{index}", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
            for index, key in enumerate(keys)
            if key in keys[:index]
        ]
        if faults:
            raise bad_form(faults)
        if len(bodies) > _MAX_COMMANDS:
            raise bad(30032, f"Maximum number of application commands reached ({_MAX_COMMANDS})")
        self._note(application, guild_id, "overwrite", bodies)
        before = {(each.name, each.kind): each for each in self.list(application, guild_id)}
        for key, command in before.items():
            if key not in keys:
                del self._realm.commands[command.id]
        return [
            self._keep(application, guild_id, fields, before.get(key)) for fields, key in zip(bodies, keys, strict=True)
        ]

    def _keep(
        self, application: Application, guild_id: int | None, fields: Mapping[str, Any], command: Command | None
    ) -> Command:
        kept = {key: value for key, value in fields.items() if key != "id"}
        if command is None:
            number = self._realm.ids.fresh()
            command = Command(number, application.id, guild_id, number, kept)
        elif command.fields != kept:
            command.fields, command.version = kept, self._realm.ids.fresh()
        self._realm.commands[command.id] = command
        return command

    def _note(
        self, application: Application, guild_id: int | None, how: str, bodies: Sequence[Mapping[str, Any]]
    ) -> None:
        names = tuple(str(each["name"]) for each in bodies)
        self._realm.command_writes.append(CommandWrite(application.id, guild_id, how, names))


def check_command(path: str, fields: Mapping[str, Any]) -> None:
    """Raises 50035."""
    faults = list(command_faults(path, fields))
    if faults:
        raise bad_form(faults)


def command_faults(path: str, fields: Mapping[str, Any]) -> Iterator[Fault]:
    place = f"{path}." if path else ""
    kind = int(fields.get("type") or 1)
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        yield (f"{place}name", "BASE_TYPE_REQUIRED", "This field is required")
    elif kind == 1 and (not _NAME.fullmatch(name) or name != name.lower()):
        yield (f"{place}name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
    elif len(name) > 32:
        yield (f"{place}name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 32 in length.")
    description = fields.get("description")
    if kind == 1 and not 1 <= len(str(description or "")) <= 100:
        yield (f"{place}description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
    yield from _option_faults(place, fields.get("options") or [])


def _option_faults(place: str, options: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    if len(options) > _MAX_OPTIONS:
        yield (f"{place}options", "BASE_TYPE_MAX_LENGTH", f"Must be {_MAX_OPTIONS} or fewer in length.")
    optional = False
    for index, option in enumerate(options):
        here = f"{place}options.{index}"
        yield from command_faults(here, {**option, "type": 1})
        if option.get("type") in _GROUPS:
            continue
        if option.get("required") and optional:
            yield (
                here,
                "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
                "Required options must be placed before non-required options",
            )
        optional = optional or not option.get("required")
        if len(option.get("choices") or []) > _MAX_OPTIONS:
            yield (f"{here}.choices", "BASE_TYPE_MAX_LENGTH", f"Must be {_MAX_OPTIONS} or fewer in length.")

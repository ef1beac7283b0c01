"""Slash commands: conversion to Discord's form and back, and their registration. Only what differs is written, one
command after another, and nothing is cleared first.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import field
from typing import Any

import anyio
import discord
from discord.http import Route

from denizen.adapters.discord.client.errors import RESPONSE_TIMEOUT_S, translate_errors
from denizen.domain.errors import DenizenError, InvalidInput, NotFound
from denizen.domain.record import record
from denizen.ports.channel import CommandOption, CommandSpec

# Discord's numbers for types of commands and options.
_CHAT_INPUT = 1
_SUBCOMMAND = 1
_STRING = 3

NAME_CHARS = 32
TEXT_CHARS = 100
MOST = 25
"""Discord's limit on the options of a command, its subcommands, choices and completions."""

_NAME = re.compile(r"[-_\w]{1,32}")

Payload = dict[str, Any]


def to_payload(spec: CommandSpec) -> Payload:
    """Returns a command in Discord's form. Raises InvalidInput for what Discord would reject.

    `admin_only` is left out: Discord would hide such a command from everybody who may not manage the server, and so
    lock out owners who are configured by id. The listener refuses instead, as it does for typed commands.
    """
    _check(spec)
    return {
        "type": _CHAT_INPUT,
        "name": spec.name,
        "description": spec.description,
        "options": [
            {"type": _SUBCOMMAND, "name": g.name, "description": g.description, "options": _to_options(g.options)}
            for g in spec.groups
        ]
        or _to_options(spec.options),
    }


def normalize(data: Mapping[str, Any]) -> Payload:
    """Returns the parts of a registered command that `to_payload` writes. Discord omits fields at their default, and
    adds ids, versions and translated names.
    """
    return {
        "type": data.get("type", _CHAT_INPUT),
        "name": data["name"],
        "description": data.get("description", ""),
        "options": [_normalize_option(each) for each in data.get("options") or ()],
    }


@record
class CommandInvocation:
    """A command as somebody gave it. `focused` is the option that is being typed, with its text so far."""

    name: str
    group: str
    options: Mapping[str, str]
    focused: str = ""


def parse_invocation(data: Mapping[str, Any]) -> CommandInvocation:
    """Parses the data of an interaction."""
    rows: Sequence[Mapping[str, Any]] = data.get("options") or ()
    group = ""
    if rows and rows[0]["type"] == _SUBCOMMAND:
        group, rows = rows[0]["name"], rows[0].get("options") or ()
    focused = next((row["name"] for row in rows if row.get("focused")), "")
    return CommandInvocation(data["name"], group, {row["name"]: str(row["value"]) for row in rows}, focused)


def _to_options(options: Sequence[CommandOption]) -> list[Payload]:
    """Returns the options with the required ones first, as Discord demands."""
    return [
        {
            "type": _STRING,
            "name": each.name,
            "description": each.description,
            "required": each.required,
            "choices": [{"name": choice, "value": choice} for choice in each.choices],
            "autocomplete": each.suggests and not each.choices,
        }
        for each in sorted(options, key=lambda option: not option.required)
    ]


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
    """Checks names, descriptions and counts against Discord's limits."""
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


_log = logging.getLogger("denizen.discord")


@record
class CommandSyncPlan:
    """The writes that a sync takes. `edits` and `deletions` are by the ids that Discord gave."""

    creations: Sequence[Payload] = ()
    edits: Mapping[str, Payload] = field(default_factory=dict[str, Payload])
    deletions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Ids of commands to their names, for the log."""
    is_first: bool = False
    """Nothing is registered yet, so one bulk write suffices."""


def plan_sync(
    wanted: Sequence[Payload], existing: Sequence[Mapping[str, Any]], owned: frozenset[str]
) -> CommandSyncPlan:
    """Compares the wanted commands with the registered ones. Unwanted ones are deleted only if they are ours: the
    application may have others' commands.
    """
    by_name = {row["name"]: row for row in existing if row.get("type", 1) == 1}
    names = {payload["name"] for payload in wanted}
    return CommandSyncPlan(
        creations=[payload for payload in wanted if payload["name"] not in by_name],
        edits={
            str(by_name[payload["name"]]["id"]): payload
            for payload in wanted
            if payload["name"] in by_name and normalize(by_name[payload["name"]]) != payload
        },
        deletions={str(row["id"]): name for name, row in by_name.items() if name in owned and name not in names},
        is_first=not existing,
    )


class CommandSync:
    """Registers the commands of one login, in one `guild` or, if that is empty, in all. What was registered in all
    before goes when they are kept to one.

    A command is ours if its name is in `owned`, or if this object registered it.
    """

    def __init__(self, client: discord.Client, application_id: str, *, guild: str, owned: frozenset[str]) -> None:
        everywhere = _CommandRegistry(client, int(application_id), None)
        self._registry = _CommandRegistry(client, int(application_id), int(guild)) if guild else everywhere
        self._former = everywhere if guild else None
        self._owned = owned
        self._done: list[Payload] | None = None
        self._lock = anyio.Lock()

    async def sync(self, specs: Sequence[CommandSpec]) -> int:
        """Registers the commands and returns the number of writes. A failing command does not stop the others: the
        first error is raised at the end, and the next sync tries again.
        """
        async with self._lock:
            wanted, failures = _to_payloads(specs)
            if wanted == self._done:
                return 0
            plan = plan_sync(wanted, await self._registry.list_all(), self._owned)
            writes = await _apply(self._registry, plan, failures)
            self._owned |= {payload["name"] for payload in wanted}
            if self._former is not None and not failures:
                plan = plan_sync([], await self._former.list_all(), self._owned)
                writes += await _apply(self._former, plan, failures)
            if failures:
                raise failures[0]
            self._done = wanted
            return writes


async def _apply(registry: _CommandRegistry, plan: CommandSyncPlan, failures: list[DenizenError]) -> int:
    """Makes the writes of the plan and returns their number; what fails is added to `failures`."""
    if plan.is_first and len(plan.creations) > 1:
        try:
            await registry.create_all(plan.creations)
        except InvalidInput:
            _log.info("the slash commands are refused together, and are registered one by one")
        else:
            return 1
    for payload in plan.creations:
        await _attempt(registry.create(payload), failures)
    for command_id, payload in plan.edits.items():
        await _attempt(registry.edit(command_id, payload), failures)
    for command_id, name in plan.deletions.items():
        _log.info("a slash command is not wanted any more", extra={"command": name})
        await _attempt(registry.delete(command_id), failures)
    return len(plan.creations) + len(plan.edits) + len(plan.deletions)


def _to_payloads(specs: Sequence[CommandSpec]) -> tuple[list[Payload], list[DenizenError]]:
    """Converts the commands. One that Discord would reject is reported, and the others are registered."""
    payloads: list[Payload] = []
    failures: list[DenizenError] = []
    for spec in specs:
        try:
            payloads.append(to_payload(spec))
        except InvalidInput as error:
            failures.append(error)
    return payloads, failures


async def _attempt(write: Awaitable[None], failures: list[DenizenError]) -> None:
    try:
        await write
    except DenizenError as error:
        failures.append(error)


class _CommandRegistry:
    """The commands that Discord keeps for an application, in all guilds or in one. discord.py paces the writes."""

    def __init__(self, client: discord.Client, application_id: int, guild_id: int | None) -> None:
        self._client = client
        self._application_id = application_id
        self._guild_id = guild_id

    async def list_all(self) -> Sequence[Mapping[str, Any]]:
        return await self._request("GET", "")

    async def create_all(self, payloads: Sequence[Payload]) -> None:
        await self._request("PUT", "", list(payloads))

    async def create(self, payload: Payload) -> None:
        await self._request("POST", "", payload)

    async def edit(self, command_id: str, payload: Payload) -> None:
        await self._request("PATCH", "/{command_id}", payload, command_id=command_id)

    async def delete(self, command_id: str) -> None:
        """Deletes a command. One that is gone already is no error."""
        try:
            await self._request("DELETE", "/{command_id}", command_id=command_id)
        except NotFound:
            return

    async def _request(
        self, method: str, path: str, body: Payload | list[Payload] | None = None, *, command_id: str = ""
    ) -> Any:  # noqa: ANN401 - any JSON value
        guild = "" if self._guild_id is None else "/guilds/{guild_id}"
        route = Route(
            method,
            "/applications/{application_id}" + guild + "/commands" + path,
            application_id=self._application_id,
            guild_id=self._guild_id,
            command_id=command_id,
        )
        with translate_errors("register its slash commands"), anyio.fail_after(RESPONSE_TIMEOUT_S):
            if body is None:
                return await self._client.http.request(route)
            return await self._client.http.request(route, json=body)

"""Registering slash commands: only what differs is written, one after another, and nothing is cleared first.

So there is no moment without commands (inventory TW18), and a restart writes nothing at all: Discord counts what is
created, and an application that registers everything at each start has none left by the evening.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import discord
from discord.http import Route

from denizen.adapters.discord.commands import Payload, normalize, to_payload
from denizen.adapters.discord.faults import RESPONSE_TIMEOUT_S, speaking
from denizen.domain.errors import DenizenError, InvalidInput, NotFound
from denizen.ports.channel import CommandSpec

_log = logging.getLogger("denizen.discord")


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to be written. `edits` and `deletions` are by the ids that Discord gave."""

    creations: Sequence[Payload] = ()
    edits: Mapping[str, Payload] = field(default_factory=dict[str, Payload])
    deletions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Id to name."""
    is_first: bool = False
    """There is nothing at all yet: one write does it."""


def plan_sync(wanted: Sequence[Payload], existing: Sequence[Mapping[str, Any]], owned: frozenset[str]) -> Plan:
    """What is there and not wanted is deleted only where it is ours: the application may have others' commands."""
    by_name = {row["name"]: row for row in existing if row.get("type", 1) == 1}
    names = {payload["name"] for payload in wanted}
    return Plan(
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
    """Of one login. `guild` is the only one that gets the commands; empty for all.

    Ours are the commands whose names are in `owned`, and those that this object registered.
    """

    def __init__(self, client: discord.Client, application_id: str, *, guild: str, owned: frozenset[str]) -> None:
        self._registry = _Registry(client, int(application_id), int(guild) if guild else None)
        self._owned = owned
        self._done: list[Payload] | None = None
        self._lock = anyio.Lock()

    async def sync(self, specs: Sequence[CommandSpec]) -> int:
        """Returns how many writes it took. What fails for one command does not keep the others; the first error is
        raised at the end, and the next sync tries again.
        """
        async with self._lock:
            wanted, failures = _to_payloads(specs)
            if wanted == self._done:
                return 0
            plan = plan_sync(wanted, await self._registry.list_all(), self._owned)
            writes = await self._apply(plan, failures)
            self._owned |= {payload["name"] for payload in wanted}
            if failures:
                raise failures[0]
            self._done = wanted
            return writes

    async def _apply(self, plan: Plan, failures: list[DenizenError]) -> int:
        if plan.is_first and len(plan.creations) > 1:
            try:
                await self._registry.create_all(plan.creations)
            except InvalidInput:
                _log.info("the slash commands are refused together, and are registered one by one")
            else:
                return 1
        for payload in plan.creations:
            await _attempt(self._registry.create(payload), failures)
        for command_id, payload in plan.edits.items():
            await _attempt(self._registry.edit(command_id, payload), failures)
        for command_id, name in plan.deletions.items():
            _log.info("a slash command is not wanted any more", extra={"command": name})
            await _attempt(self._registry.delete(command_id), failures)
        return len(plan.creations) + len(plan.edits) + len(plan.deletions)


def _to_payloads(specs: Sequence[CommandSpec]) -> tuple[list[Payload], list[DenizenError]]:
    """A command that Discord would refuse is told about, and the others are registered."""
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


class _Registry:
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
        """One that is gone already is no error."""
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
        with speaking("register its slash commands"), anyio.fail_after(RESPONSE_TIMEOUT_S):
            if body is None:
                return await self._client.http.request(route)
            return await self._client.http.request(route, json=body)

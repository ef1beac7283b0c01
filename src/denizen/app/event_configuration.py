"""Listeners and sources of events of the open home folder (`denizen.ports.event_configuration`).

`${NAME}` stands for a secret only where the operator wrote it. What is set from here is written as it is meant, and an
entry in which the operator named a variable cannot be changed from here: else its secret could be led elsewhere.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from denizen.app.configuration import HomeConfiguration
from denizen.app.settings.fields import as_variable
from denizen.app.settings.interpolation import escape, references
from denizen.app.settings.problem import KeyPath
from denizen.domain.errors import Conflict, InvalidInput, NotAllowed, NotFound
from denizen.domain.json import Json
from denizen.domain.principal import Principal
from denizen.ports.event_configuration import EventEntryKind

PATHS: Mapping[EventEntryKind, KeyPath] = {
    EventEntryKind.LISTENER: ("listeners",),
    EventEntryKind.WEBSOCKET: ("events", "websockets"),
    EventEntryKind.POLL: ("events", "polls"),
    EventEntryKind.WEBHOOK: ("webhooks", "routes"),
}
_GUARDED = ("headers", "private")
"""The keys of a source that its address has to be trusted for."""
_SECRET = "secret"  # noqa: S105 - the key of a route that signs what comes in and goes nowhere
_ENABLED: KeyPath = ("webhooks", "enabled")


class HomeEvents:
    """Implements `denizen.ports.event_configuration.EventConfiguration`."""

    def __init__(self, configuration: HomeConfiguration) -> None:
        self._configuration = configuration

    async def list_entries(self) -> Mapping[EventEntryKind, Mapping[str, Json]]:
        return {kind: await self._read(path) for kind, path in PATHS.items()}

    async def put(self, by: Principal, kind: EventEntryKind, name: str, values: Mapping[str, Json]) -> str:
        path, known = PATHS[kind], await self._read(PATHS[kind])
        section = known.get(name)
        written: Mapping[str, Json] = section if isinstance(section, Mapping) else {}
        if why := _find_guard(written):
            raise NotAllowed(
                f"The {kind} '{name}' cannot be changed from here.",
                code="event_entry_guarded",
                why=f"{why}, and who runs this server decides where that goes",
                fix="Change it in denizen.yaml.",
            )
        plain = {key: _escape(value) for key, value in values.items()}
        changed: dict[KeyPath, Json] = {(*path, name, key): value for key, value in plain.items() if key in written}
        made: dict[str, str] = {}
        if not written:
            new = {key: value for key, value in plain.items() if value is not None}
            if kind is EventEntryKind.WEBHOOK:
                variable = f"WEBHOOK_{as_variable(name)}_SECRET"
                await self._check_free(variable)
                made[variable] = secrets.token_urlsafe(32)
                new["secret"] = f"${{{variable}}}"
                if "enabled" not in await self._read(_ENABLED[:1]):
                    changed[_ENABLED] = True
            changed[*path, name] = new
        else:
            changed |= {
                (*path, name, key): value for key, value in plain.items() if key not in written and value is not None
            }
        return await self._write(by, changed, made)

    async def switch(self, by: Principal, kind: EventEntryKind, name: str, *, is_on: bool) -> str:
        if kind is EventEntryKind.WEBHOOK:
            raise InvalidInput("A route for webhooks has no switch.", code="event_entry_switch", fix="Remove it.")
        await self._find(kind, name)
        return await self._write(by, {(*PATHS[kind], name, "enabled"): None if is_on else False})

    async def remove(self, by: Principal, kind: EventEntryKind, name: str) -> str:
        await self._find(kind, name)
        return await self._write(by, {(*PATHS[kind], name): None})

    async def _write(
        self, by: Principal, changed: Mapping[KeyPath, Json], made: Mapping[str, str] | None = None
    ) -> str:
        plan = await self._configuration.plan_values(changed, secrets=made or {})
        await self._configuration.put_values(by, changed, secrets=made or {}, expected=plan.digest)
        return plan.diff

    async def _check_free(self, variable: str) -> None:
        """Raises Conflict for a variable that the configuration names: whatever uses it would get another secret."""
        if f"${{{variable}" in (await self._configuration.read()).text:
            raise Conflict(
                f"The secret of this route would take the place of {variable}, which is in use.",
                code="event_secret_taken",
                fix="Choose another name for the route.",
            )

    async def _find(self, kind: EventEntryKind, name: str) -> None:
        if name not in await self._read(PATHS[kind]):
            raise NotFound(
                f"There is no {kind} '{name[:64]}'.", code="event_entry_unknown", fix="List the setup to see the names."
            )

    async def _read(self, path: KeyPath) -> Mapping[str, Json]:
        try:
            found = await self._configuration.find_value(".".join(map(str, path)))
        except NotFound:
            return {}
        return found if isinstance(found, Mapping) else {}


def _find_guard(written: Mapping[str, Json]) -> str:
    """Returns why an entry cannot be changed from here; empty where it can."""
    if any(written.get(key) for key in _GUARDED):
        return "it has headers or may reach the own network"
    if any(_names_variable(value) for key, value in written.items() if key != _SECRET):
        return "it names a variable, which may hold a secret"
    return ""


def _names_variable(value: Json) -> bool:
    if isinstance(value, Mapping):
        return any(_names_variable(each) for each in value.values())
    if isinstance(value, list | tuple):
        return any(_names_variable(each) for each in value)
    return isinstance(value, str) and bool(references(value))


def _escape(value: Json) -> Json:
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, Mapping):
        return {key: _escape(each) for key, each in value.items()}
    return [_escape(each) for each in value] if isinstance(value, list | tuple) else value

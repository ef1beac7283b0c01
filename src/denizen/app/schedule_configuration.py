"""The schedules of the open home folder, written to its configuration (`denizen.ports.schedule_configuration`)."""

from __future__ import annotations

from collections.abc import Mapping

from denizen.adapters.discord.client.settings import PLATFORM
from denizen.app.configuration import HomeConfiguration
from denizen.app.settings.interpolation import escape, references
from denizen.app.settings.problem import KeyPath
from denizen.app.settings.schedules import WEBHOOK
from denizen.domain.errors import Conflict
from denizen.domain.json import Json
from denizen.domain.principal import Principal
from denizen.domain.schedule import PlannedTimes
from denizen.engine.schedules.catalog import ScheduleCatalog
from denizen.ports.configuration import ConfigurationChange

SCHEDULES: KeyPath = ("schedules",)
_KEPT_OF_WEBHOOKS = ("secret", "private_hosts")
"""The keys of a webhook's delivery that stay unless others are given, since no form shows them."""


class HomeSchedules:
    """Implements `denizen.ports.schedule_configuration.ScheduleConfiguration`.

    The texts of a schedule with an owner are written as they are meant: a `${NAME}` that a person thought of names no
    secret, whoever changes the schedule.
    """

    def __init__(self, catalog: ScheduleCatalog, configuration: HomeConfiguration) -> None:
        self._catalog = catalog
        self._configuration = configuration

    def delivers_to(self, platform: str) -> bool:
        return platform == PLATFORM

    async def add(
        self, by: Principal, name: str, values: Mapping[str, Json], *, is_plain: bool = False
    ) -> ConfigurationChange:
        if self._catalog.has(name):
            raise schedule_exists(name)
        is_plain = is_plain or bool(values.get("owner"))
        zone, agent = str(values.get("zone") or ""), str(values.get("agent") or "")
        values = self._read_when(values, zone, agent, is_plain=is_plain)
        section = {key: value for key, value in values.items() if value is not None}
        if is_plain:
            section = _escape(section)
        await self._check_delivery(section)
        await self._check_call(section)
        return await self._configuration.put_values(by, {(*SCHEDULES, name): section})

    async def edit(self, by: Principal, name: str, values: Mapping[str, Json]) -> ConfigurationChange:
        known = self._catalog.find(name)
        section = await self._configuration.find_value(f"schedules.{name}")
        written: Mapping[str, Json] = section if isinstance(section, Mapping) else {}
        zone = str(values.get("zone", written.get("zone")) or "")
        if zone and zone == written.get("zone"):
            zone = known.zone  # which may stand in a variable
        agent = str(values.get("agent") or known.agent)
        # Words for one time say another moment in another zone; times that come again move by themselves.
        has_moved = known.at is not None and known.words and self._catalog.find_zone(zone, agent) != known.zone
        if values.get("when") == known.said and not has_moved:
            values = {key: value for key, value in values.items() if key != "when"}
        values = self._read_when(values, zone, agent, is_plain=bool(known.owner))
        if known.owner:
            values = _escape(values)
        if values.get("enabled"):
            values = {**values, "paused": None}  # it is on then, whoever had switched it off
        delivery, old = values.get("delivery"), written.get("delivery")
        if (
            isinstance(delivery, Mapping)
            and isinstance(old, Mapping)
            and delivery.get("to") == old.get("to") == WEBHOOK
        ):
            kept = {key: old[key] for key in _KEPT_OF_WEBHOOKS if key in old}
            values = {**values, "delivery": {**kept, **delivery}}
        wanted = {key: value for key, value in values.items() if value is not None or key in written}
        changed: dict[KeyPath, Json] = {
            (*SCHEDULES, name, key): value for key, value in wanted.items() if written.get(key) != value
        }
        await self._check_delivery(values)
        if {"tool", "workflow", "args"} & values.keys():
            await self._check_call({**written, **values})
        return await self._configuration.put_values(by, changed)

    def _read_when(self, values: Mapping[str, Json], zone: str, agent: str, *, is_plain: bool) -> Mapping[str, Json]:
        """Returns the values with what the words of `when` mean from now on: they may say one time, or be an
        expression. A variable stands for an expression.
        """
        text = values.get("when")
        if not isinstance(text, str):
            return values
        if not is_plain and references(text):
            planned = PlannedTimes(cron=text)
        else:
            planned = self._catalog.plan_times(text, zone=zone, agent=agent)
        keys = planned.list_keys(self._catalog.find_zone(zone, agent))
        return {**keys, **{key: value for key, value in values.items() if key not in keys}}

    async def _check_delivery(self, section: Mapping[str, Json]) -> None:
        """Raises NotFound for a channel that no account sees. What a variable stands for is not looked up."""
        delivery = section.get("delivery")
        if isinstance(delivery, Mapping) and delivery.get("to") == PLATFORM:
            target = str(delivery.get("target", ""))
            if target.isdecimal():
                await self._catalog.check_channel(PLATFORM, target)

    async def _check_call(self, section: Mapping[str, Json]) -> None:
        """Raises NotFound for an unknown workflow, and InvalidInput for arguments that do not fit it or the tool."""
        tool, workflow, args = section.get("tool"), section.get("workflow"), section.get("args") or {}
        if isinstance(tool, str) and isinstance(args, Mapping):
            await self._catalog.check_call(tool, {**args})
        if isinstance(workflow, str) and isinstance(args, Mapping):
            self._catalog.check_workflow(workflow, {**args})

    async def remove(self, by: Principal, name: str) -> ConfigurationChange:
        self._catalog.find(name)
        return await self._configuration.put_values(by, {(*SCHEDULES, name): None})


def _escape(values: Mapping[str, Json]) -> dict[str, Json]:
    return {key: escape(value) if isinstance(value, str) else value for key, value in values.items()}


def schedule_exists(name: str) -> Conflict:
    """For a name that is taken."""
    return Conflict(
        f"There is a schedule '{name}' already.", code="schedule_exists", fix="Choose another name, or change that one."
    )

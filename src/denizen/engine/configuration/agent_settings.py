"""Settings of assistants in the store, and agents as they are with them.

A change holds at once in this process, and everywhere within `KEPT_S`: that long the active set of an agent is
remembered. Asked by turns through `EngineServices.configured`; changed over HTTP (`web/api/agents`) and by
`denizen agents settings`. Who changed what is in the audit log, without the words.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from denizen.domain.agent import Agent
from denizen.domain.agent_settings import (
    DEFAULT_SET,
    AgentOverrides,
    SettingsSet,
    apply_overrides,
    change_set,
    check_set_name,
)
from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.routing import AUTO
from denizen.engine.audit.audit_log import settings_event
from denizen.engine.configuration.generation import Generation
from denizen.ports.model import Models
from denizen.ports.store import Store, UnitOfWork

KEPT_S = 60.0

_log = logging.getLogger("denizen.assistant")


@record
class _LoadedSet:
    active: SettingsSet | None
    until_s: float


class AgentSettingsOverlay:
    """For all generations of the configuration."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[AgentName, _LoadedSet] = {}

    async def apply(self, generation: Generation, name: AgentName) -> Generation:
        """The generation in which that agent has its active set over it. One without the agent stays as it is."""
        agent = generation.agents.get(name)
        active = await self._find_active(name) if agent is not None else None
        if agent is None or active is None:
            return generation
        changed = apply_overrides(agent, active.chosen, with_model=_may_choose(generation, active))
        return replace(generation, agents={**generation.agents, name: changed})

    async def agent(self, generation: Generation, name: str) -> Agent:
        """The agent with its active set; the default one for an empty name. Raises NotFound."""
        known = generation.agent(name).name
        return (await self.apply(generation, known)).agent(known)

    async def load_active(self, agent: AgentName) -> SettingsSet | None:
        """As it is in the store now."""
        async with self._store.work(write=False) as work:
            return await work.agent_settings.find_active(agent)

    async def list_sets(self, agent: AgentName) -> Sequence[SettingsSet]:
        async with self._store.work(write=False) as work:
            return await work.agent_settings.list_sets(agent)

    async def save(
        self,
        by: Principal,
        generation: Generation,
        given: Mapping[str, Json],
        *,
        to: AgentName,
        name: str = "",
        activate: bool = True,
    ) -> SettingsSet:
        """Changes the given fields of a set of that agent, which is made when it is not there: the named one, or the
        active one.

        Raises InvalidInput for a field that does not exist, or a value that it cannot have.
        """
        wanted = check_set_name(name) if name else ""
        async with self._store.work() as work:
            active = await work.agent_settings.find_active(to)
            wanted = wanted or (active.name if active else DEFAULT_SET)
            now, known = self._clock.now(), await work.agent_settings.list_sets(to)
            row = next((each for each in known if each.name == wanted), SettingsSet(to, wanted, now, now))
            chosen = change_set(row.chosen, given)
            if chosen.default_model != row.chosen.default_model:
                _check_model(generation.models, chosen)
            row = replace(row, chosen=chosen, updated_at=now, is_active=row.is_active or activate)
            await work.agent_settings.put(row)
            await work.audit.add([settings_event(by, row, "save", given, now)])
        self._known.pop(to, None)
        return row

    async def reset(self, by: Principal, agent: AgentName, *, name: str = "") -> SettingsSet | None:
        """Empties the named set, or the active one, so that the configuration holds. None when there is none to empty.

        Raises NotFound for a name that no set has.
        """
        async with self._store.work() as work:
            row = await _get(work, agent, name) if name else await work.agent_settings.find_active(agent)
            if row is not None:
                now, named = self._clock.now(), row.chosen.names
                row = replace(row, chosen=AgentOverrides(), updated_at=now)
                await work.agent_settings.put(row)
                await work.audit.add([settings_event(by, row, "reset", named, now)])
        self._known.pop(agent, None)
        return row

    async def activate(self, by: Principal, agent: AgentName, name: str) -> SettingsSet:
        """Raises NotFound."""
        now = self._clock.now()
        async with self._store.work() as work:
            row = replace(await _get(work, agent, name), is_active=True, updated_at=now)
            await work.agent_settings.put(row)
            await work.audit.add([settings_event(by, row, "activate", row.chosen.names, now)])
        self._known.pop(agent, None)
        return row

    async def remove(self, by: Principal, agent: AgentName, name: str) -> None:
        """After an active one the configuration holds. Raises NotFound."""
        async with self._store.work() as work:
            row = await _get(work, agent, name)
            await work.agent_settings.remove(agent, name)
            await work.audit.add([settings_event(by, row, "remove", row.chosen.names, self._clock.now())])
        self._known.pop(agent, None)

    async def _find_active(self, agent: AgentName) -> SettingsSet | None:
        now_s, known = self._clock.monotonic_s(), self._known.get(agent)
        if known is None or now_s >= known.until_s:
            known = self._known[agent] = _LoadedSet(await self.load_active(agent), now_s + KEPT_S)
        return known.active


def _may_choose(generation: Generation, active: SettingsSet) -> bool:
    """The command line goes before a set. A model that is not configured any more must not end every turn."""
    model = active.chosen.default_model
    if generation.is_model_chosen or model is None or model == AUTO:
        return not generation.is_model_chosen
    try:
        generation.models.get(model)
    except NotFound as error:
        _log.warning(
            "the model of an agent's settings is not there: %s",
            error.message,
            extra={"agent": active.agent, "set": active.name, **error.fields},
        )
        return False
    return True


def _check_model(models: Models, chosen: AgentOverrides) -> None:
    """Raises InvalidInput."""
    if chosen.default_model in (None, AUTO):
        return
    try:
        models.get(chosen.default_model)
    except NotFound as error:
        raise InvalidInput(
            "'default_model' cannot be that.", code="settings_invalid", why=error.message, fix=error.fix
        ) from error


async def _get(work: UnitOfWork, agent: AgentName, name: str) -> SettingsSet:
    rows = await work.agent_settings.list_sets(agent)
    found = next((each for each in rows if each.name == name), None)
    if found is None:
        names = [each.name for each in rows]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"There are: {', '.join(names) or 'none'}."
        raise NotFound(f"{agent} has no settings named '{name[:100]}'.", code="settings_not_found", fix=hint)
    return found

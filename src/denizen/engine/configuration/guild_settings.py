"""Settings of communities (guilds) in the store, and the configuration as it is in one of them.

A turn takes them with its generation (`apply`), the gate asks which tools are off, the listener where agents answer,
and the archive how long posts stay. Only what the operator leaves to communities now counts; what was set before stays
stored. A change holds at once in this process, and everywhere within `KEPT_S`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from denizen.domain.audit import AuditEvent, AuditKind
from denizen.domain.clock import Clock
from denizen.domain.guild_settings import GuildField, GuildSettings, settings_from_json, settings_to_json
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.principal import Principal
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.ports.store import Store

KEPT_S = 30.0
MAX_KEPT = 1000
_PREFIX = "guild"


class GuildSettingsOverlay:
    """One for a process."""

    def __init__(self, store: Store, clock: Clock, runtime: Runtime) -> None:
        self._store = store
        self._clock = clock
        self._runtime = runtime
        self._known: dict[str, tuple[float, GuildSettings]] = {}
        self._retention: dict[str, tuple[float, Mapping[str, int]]] = {}

    @property
    def allowed(self) -> frozenset[GuildField]:
        """The settings that the operator leaves to communities now."""
        return self._runtime.current.guild_fields

    async def load(self, platform: str, guild: str) -> GuildSettings:
        """Returns what holds in a community now."""
        key, now_s = name_guild(platform, guild), self._clock.monotonic_s()
        known = self._known.get(key)
        if known is None or known[0] <= now_s:
            async with self._store.work(write=False) as work:
                settings = settings_from_json(await work.user_settings.get(key))
            if len(self._known) >= MAX_KEPT:
                self._known.clear()
            known = self._known[key] = (now_s + KEPT_S, settings)
        return known[1].keep(self.allowed)

    async def load_retention(self, platform: str) -> Mapping[str, int]:
        """Returns the days for which communities keep posts, by their id."""
        if GuildField.RETENTION not in self.allowed:
            return {}
        now_s, known, prefix = self._clock.monotonic_s(), self._retention.get(platform), name_guild(platform, "")
        if known is None or known[0] <= now_s:
            async with self._store.work(write=False) as work:
                stored = await work.user_settings.list_values(GuildField.RETENTION)
            days = {key.removeprefix(prefix): value for key, value in stored.items() if key.startswith(prefix)}
            found = {guild: value for guild, value in days.items() if isinstance(value, int) and value > 0}
            known = self._retention[platform] = (now_s + KEPT_S, found)
        return known[1]

    async def apply(self, generation: Generation, agent: AgentName, platform: str, guild: str) -> Generation:
        """Returns the generation as it is for that agent in a community: the agent's language and words, and the
        smaller budget.
        """
        if not guild or agent not in generation.agents:
            return generation
        settings = await self.load(platform, guild)
        if settings == GuildSettings():
            return generation
        return replace(
            generation,
            agents={**generation.agents, agent: settings.apply_to_agent(generation.agents[agent])},
            budgets=settings.apply_to_budgets(generation.budgets, f"{platform}:{guild}"),
        )

    async def save(self, by: Principal, platform: str, guild: str, settings: GuildSettings) -> None:
        """Stores the settings that are left to communities; the others stay as they are. In the audit log stands which
        ones changed, without what they say. Whoever calls has checked the right to do so.
        """
        key, now, values = name_guild(platform, guild), self._clock.now(), settings_to_json(settings)
        async with self._store.work() as work:
            old = await work.user_settings.get(key)
            changed = [each for each in GuildField if each in self.allowed and old.get(each) != values[each]]
            for each in changed:
                await work.user_settings.put(key, each, values[each], now=now)
            if changed:
                names: list[Json] = [each.value for each in changed]
                await work.audit.add(
                    [AuditEvent(AuditKind.SETTINGS, now, by.key, key, {"done": "save", "fields": names})]
                )
        self._known.pop(key, None)
        self._retention.clear()


def name_guild(platform: str, guild: str) -> str:
    """Returns the name of a community in the audit log, and among what is stored."""
    return f"{_PREFIX}:{platform}:{guild}"

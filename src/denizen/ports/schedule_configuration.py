"""The schedules of the configuration, for people and tools that change them.

Implemented by `app/schedule_configuration`: it writes `denizen.yaml`, whose comments stay, and loads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from denizen.domain.json import Json
from denizen.domain.principal import Principal
from denizen.ports.configuration import ConfigurationChange


class ScheduleConfiguration(Protocol):
    """All raise InvalidInput (`config_invalid`) for what cannot run, with the reason, and write nothing then."""

    def delivers_to(self, platform: str) -> bool:
        """Returns whether answers can be delivered to the channels and people of a platform."""
        ...

    async def add(
        self, by: Principal, name: str, values: Mapping[str, Json], *, is_plain: bool = False
    ) -> ConfigurationChange:
        """Adds a schedule with these keys of its section. `when` may also say one time, counted from now, or be an
        expression. In one with an owner, and with `is_plain`, all texts are plain, also `${NAME}`. Raises Conflict when
        there is one of that name.
        """
        ...

    async def edit(self, by: Principal, name: str, values: Mapping[str, Json]) -> ConfigurationChange:
        """Sets these keys, None takes one out; others stay. Texts are as in `add`; a `when` that is what the schedule
        says already changes nothing, unless it says one time and the zone is a new one. Raises NotFound.
        """
        ...

    async def remove(self, by: Principal, name: str) -> ConfigurationChange:
        """Takes the schedule out. The history of its runs stays. Raises NotFound."""
        ...

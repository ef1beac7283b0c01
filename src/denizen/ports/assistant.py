"""The store's part for settings of assistants: named sets for each agent, of which at most one is active."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from denizen.domain.agent_settings import SettingsSet
from denizen.domain.ids import AgentName


class AgentSettings(Protocol):
    async def put(self, row: SettingsSet) -> None:
        """In place of the one of its agent and name, if there is one, which keeps when it was created. When it is
        active, no other one of its agent is any more.
        """
        ...

    async def list_sets(self, agent: AgentName) -> Sequence[SettingsSet]:
        """By name."""
        ...

    async def find_active(self, agent: AgentName) -> SettingsSet | None: ...

    async def remove(self, agent: AgentName, name: str) -> bool:
        """False when there is none."""
        ...

"""The accounts that are connected now, for whoever has to act through one.

The one who runs an account adds it when it is ready and removes it when it is gone; nothing here waits or connects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from denizen.domain.errors import Conflict
from denizen.domain.ids import AgentName
from denizen.ports.channel import Channel


class Channels:
    """At most one account for an agent on a platform."""

    def __init__(self) -> None:
        self._channels: dict[tuple[str, AgentName], Channel] = {}
        self._told: list[Callable[[], None]] = []

    def add(self, channel: Channel) -> None:
        """Adding the same again changes nothing. Raises Conflict when the agent has another account there."""
        known = self._channels.setdefault((channel.platform, channel.agent), channel)
        if known is not channel:
            raise Conflict(f"The agent {channel.agent} is connected to {channel.platform} already.", code="connected")
        for tell in self._told:
            tell()

    def tell_of_added(self, tell: Callable[[], None]) -> None:
        """Calls it whenever an account is there again, for what waits for one. It must neither wait nor fail."""
        self._told.append(tell)

    def remove(self, channel: Channel) -> None:
        """Removing what is not there is no error: an account may end before it was ready."""
        if self.find(channel.platform, channel.agent) is channel:
            del self._channels[channel.platform, channel.agent]

    def find(self, platform: str, agent: AgentName) -> Channel | None:
        return self._channels.get((platform, agent))

    def list_platform(self, platform: str) -> Sequence[Channel]:
        """In the order in which they were added."""
        return [channel for (name, _), channel in self._channels.items() if name == platform]

    def list_all(self) -> Sequence[Channel]:
        """In the order in which they were added."""
        return list(self._channels.values())

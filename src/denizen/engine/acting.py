"""Doing things on a platform for tools: through the account that answers, in the name of the one who asked."""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from denizen.domain.action import Action, Warrant
from denizen.domain.errors import NotAllowed, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import PrincipalKind
from denizen.engine.channels import Channels
from denizen.ports.channel import Channel
from denizen.ports.toolset import CallScope
from denizen.skill import PlatformActions

PATIENCE_S = 20.0
"""How long an account may take to connect: a call that runs again after a restart is there before it."""


class Acting:
    """One for a process."""

    def __init__(self, channels: Channels, *, patience_s: float = PATIENCE_S) -> None:
        self._channels = channels
        self._patience_s = patience_s
        self._waiting: set[anyio.Event] = set()
        channels.tell_of_added(self._wake)

    def open(self, scope: CallScope) -> PlatformActions:
        """The platform for the call of this scope."""
        return _ScopedPlatform(self, scope)

    async def find_channel(self, platform: str, agent: AgentName) -> Channel | None:
        """Waits a while for one that is not there yet."""
        with anyio.move_on_after(self._patience_s):
            while (channel := self._channels.find(platform, agent)) is None:
                added = anyio.Event()
                self._waiting.add(added)
                try:
                    await added.wait()
                finally:
                    self._waiting.discard(added)
            return channel
        return None

    def _wake(self) -> None:
        for each in self._waiting:
            each.set()


@dataclass(frozen=True, slots=True)
class _ScopedPlatform:
    acting: Acting
    scope: CallScope

    async def act(self, action: str, /, **details: Json) -> JsonObject:
        scope = self.scope
        if scope.account is None or scope.principal.kind is not PrincipalKind.PLATFORM_USER:
            raise NotAllowed(
                "This can only be asked for on a platform, by somebody who is there.",
                code="no_platform",
                fix="Ask in a channel of the Discord server in which it is to be done.",
            )
        channel = await self.acting.find_channel(scope.place.platform, scope.account)
        if channel is None:
            raise Unavailable("The account is not connected at the moment.", code="not_connected", fix="Try again.")
        warrant = Warrant(scope.principal, scope.place, scope.idempotency_key)
        return await channel.act(Action(action, details), warrant)

"""Doing things on a platform for tools: through the account that answers, in the name of the one who asked."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.domain.action import Action, Warrant
from denizen.domain.errors import NotAllowed, Unavailable
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import PrincipalKind
from denizen.engine.channels import Channels
from denizen.ports.toolset import CallScope
from denizen.skill import Platform


class Acting:
    """One for a process."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    def open(self, scope: CallScope) -> Platform:
        """The platform for the call of this scope."""
        return _ScopedPlatform(self._channels, scope)


@dataclass(frozen=True, slots=True)
class _ScopedPlatform:
    channels: Channels
    scope: CallScope

    async def act(self, action: str, /, **details: Json) -> JsonObject:
        scope = self.scope
        if scope.account is None or scope.principal.kind is not PrincipalKind.PLATFORM_USER:
            raise NotAllowed(
                "This can only be asked for on a platform, by somebody who is there.",
                code="no_platform",
                fix="Ask in a channel of the Discord server in which it is to be done.",
            )
        channel = self.channels.find(scope.place.platform, scope.account)
        if channel is None:
            raise Unavailable("The account is not connected at the moment.", code="not_connected", fix="Try again.")
        warrant = Warrant(scope.principal, scope.place, scope.idempotency_key)
        return await channel.act(Action(action, details), warrant)

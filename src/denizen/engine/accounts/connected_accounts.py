"""The accounts that are connected now, and actions on a platform through one of them, in the name of an asker.

The one who runs an account adds it when it is ready and removes it when it is gone; nothing here waits or connects.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

import anyio

from denizen.domain.action import OnBehalfOf, PlatformAction
from denizen.domain.conversation import Place
from denizen.domain.errors import Conflict, NotAllowed, Unavailable
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import PrincipalKind
from denizen.domain.record import record
from denizen.engine.events.signal import Signal
from denizen.ports.channel import Channel
from denizen.ports.toolset import CallScope
from denizen.skill import PlatformActions


@record
class AccountState:
    """How an agent's account on a platform stands: whether it hears what is said now, and `told`, which explains it.
    `shards` are how many of its connections stand, and of how many, where a platform divides them.
    """

    platform: str
    agent: AgentName
    is_listening: bool
    told: str
    shards: tuple[int, int] | None = None


class ConnectedAccounts:
    """At most one account for an agent on a platform."""

    def __init__(self) -> None:
        self._channels: dict[tuple[str, AgentName], Channel] = {}
        self.added = Signal()
        """Sent whenever an account is there again, for what waits for one."""

    def add(self, channel: Channel) -> None:
        """Adding the same again changes nothing. Raises Conflict when the agent has another account there."""
        known = self._channels.setdefault((channel.platform, channel.agent), channel)
        if known is not channel:
            raise Conflict(f"The agent {channel.agent} is connected to {channel.platform} already.", code="connected")
        self.added.send()

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


PATIENCE_S = 20.0
"""How long an account may take to connect: a call that runs again after a restart is there before it."""
ROOM_PATIENCE_S = 10.0
"""How long the message of a tool waits for the answers that are being posted in its room."""

EnterRoomFor = Callable[[Place, TurnId], AbstractAsyncContextManager[None]]
"""`RoomOrder.enter`, for a message of that turn."""


class PlatformActionRunner:
    """One for a process. What actions post has its place in the order of its room (`enter_room`)."""

    def __init__(
        self, channels: ConnectedAccounts, enter_room: EnterRoomFor, *, patience_s: float = PATIENCE_S
    ) -> None:
        self._channels = channels
        self._enter_room = enter_room
        self._patience_s = patience_s

    def open(self, scope: CallScope) -> PlatformActions:
        """The platform for the call of this scope."""
        return _ScopedPlatform(self, scope)

    async def find_channel(self, platform: str, agent: AgentName) -> Channel | None:
        """Waits a while for one that is not there yet."""
        with anyio.move_on_after(self._patience_s):
            while True:
                added = self._channels.added.next
                if channel := self._channels.find(platform, agent):
                    return channel
                await added.wait()
        return None

    @asynccontextmanager
    async def enter(self, place: Place, turn_id: TurnId) -> AsyncGenerator[None]:
        """The place where the call of that turn posts. Nothing is waited for without end, since a call has a time limit
        and an answer may be stuck: after a while it is posted all the same.
        """
        async with AsyncExitStack() as entered:
            with anyio.move_on_after(ROOM_PATIENCE_S):
                await entered.enter_async_context(self._enter_room(place, turn_id))
            yield


@record
class _ScopedPlatform:
    runner: PlatformActionRunner
    scope: CallScope

    async def act(self, action: str, /, **details: Json) -> JsonObject:
        channel, asker = await self._find()
        turn_id = self.scope.turn_id
        return await channel.act(
            PlatformAction(action, details), asker, enter=lambda place: self.runner.enter(place, turn_id)
        )

    async def check(self, action: str, /, **details: Json) -> None:
        channel, asker = await self._find()
        await channel.check_action(PlatformAction(action, details), asker)

    async def _find(self) -> tuple[Channel, OnBehalfOf]:
        """Returns the account, and in whose name it acts."""
        scope, operated = self.scope, self.scope.operated
        if scope.account is not None and operated is not None:
            channel = await self.runner.find_channel(operated.platform, scope.account)
            return _require_connected(channel), OnBehalfOf(
                scope.principal, scope.place, scope.options.idempotency_key, operated.id
            )
        if scope.account is None or scope.principal.kind is not PrincipalKind.PLATFORM_USER:
            raise NotAllowed(
                "This can only be asked for on a platform, by somebody who is there.",
                code="no_platform",
                fix="Ask in a channel of the Discord server in which it is to be done.",
            )
        channel = await self.runner.find_channel(scope.place.platform, scope.account)
        return _require_connected(channel), OnBehalfOf(scope.principal, scope.place, scope.options.idempotency_key)


def _require_connected(channel: Channel | None) -> Channel:
    if channel is None:
        raise Unavailable("The account is not connected at the moment.", code="not_connected", fix="Try again.")
    return channel

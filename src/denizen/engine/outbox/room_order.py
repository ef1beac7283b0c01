"""Who posts in a room: one answer after another, so that the pieces of each stand together."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import anyio

from denizen.domain.conversation import Place
from denizen.domain.delivery import PIECES, Delivery, DeliveryState
from denizen.domain.ids import TurnId
from denizen.engine.configuration.generation import Runtime
from denizen.engine.intake.turn_queue import TurnQueues
from denizen.ports.store import Store

PATIENCE_S = 30.0
"""How long others wait for the rest of an answer that cannot be sent: its account may be off."""
LOOK_EVERY_S = 0.2


class RoomOrder:
    """One for all accounts of a process: the room is the unit of order, whoever posts there."""

    def __init__(self, runtime: Runtime, store: Store) -> None:
        self._runtime = runtime
        self._store = store
        self._rooms = TurnQueues()
        self._abandoned: set[TurnId] = set()
        """Turns whose answer was waited for in vain."""

    @asynccontextmanager
    async def enter(self, place: Place, turn_id: TurnId) -> AsyncGenerator[None]:
        """Waits until nobody else posts in the room, and keeps others waiting until the block ends.

        The answer of another turn that stands there in part goes first: a crash or a failure has cut it off.
        """
        began_s = anyio.current_time()
        while True:
            async with self._rooms.turn(place.conversation_id):
                async with self._store.work(write=False) as work:
                    due = [
                        delivery
                        for platform, agent in self._runtime.current.account_policies
                        if platform == place.platform
                        for delivery in await work.outbox.list_due(agent, platform)
                        if delivery.target.place == place
                    ]
                begun = find_begun(due) - self._abandoned - {turn_id}
                if not begun or anyio.current_time() - began_s >= PATIENCE_S:
                    self._abandoned |= begun
                    yield
                    return
            await anyio.sleep(LOOK_EVERY_S)


def find_begun(due: Iterable[Delivery]) -> set[TurnId]:
    """Returns the turns whose answer may stand in part: further pieces are due, and the first was tried."""
    pieces = [each for each in due if each.kind in PIECES]
    untried = {each.turn_id for each in pieces if not each.position and each.state is DeliveryState.PENDING}
    return {each.turn_id for each in pieces if each.position} - untried

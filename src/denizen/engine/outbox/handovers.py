"""Rooms that were handed to another agent for a while (`domain/handover`): beginning it, counting, and the end.

Each beginning and end is one line in the room, said by the account that is there. A hand-over is in the store, so it
goes on after a restart; `run` ends those whose time is over, as long as it runs.
"""

from __future__ import annotations

import anyio

from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.handover import Handover
from denizen.domain.ids import AgentName
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.configuration.choices import find_agent_choice
from denizen.engine.configuration.generation import Runtime
from denizen.engine.configuration.handovers import find_handover, list_handovers, put_handover
from denizen.engine.events.signal import Signal
from denizen.engine.outbox.outbox import DeliveryOutbox
from denizen.engine.outbox.plan import Announcement
from denizen.ports.channel import Channel
from denizen.ports.store import Store

LAST_MESSAGE = "That was the last message"
IDLE_S = 30.0
"""How often one looks for hand-overs that another process may have begun or ended."""


class RoomHandovers:
    """One for a process."""

    def __init__(
        self, runtime: Runtime, store: Store, clock: Clock, channels: ConnectedAccounts, outbox: DeliveryOutbox
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._channels = channels
        self._outbox = outbox
        self._changed = Signal(channels.added)

    # --- who has a room ----------------------------------------------------------------------------------------------

    async def find(self, account: AgentName, place: Place) -> Handover | None:
        """Returns who has the room now, whichever process gave it to them; None where nobody was given it, and for an
        agent that was switched off or removed since.
        """
        async with self._store.work(write=False) as work:
            found = await find_handover(work, account, place.conversation_id)
        if found is None or found.is_over(self._clock.now()):
            return None
        return found if found.agent in self._runtime.current.enabled_agents else None

    # --- beginning, counting, ending ---------------------------------------------------------------------------------

    async def begin(self, channel: Channel, place: Place, handover: Handover, *, key: str) -> None:
        """Gives the room to the agent and says so there. The same `key` again says it once."""
        async with self._store.work() as work:
            await put_handover(work, channel.agent, place, handover, now=self._clock.now())
        minutes = round((handover.until - self._clock.now()).total_seconds() / 60)
        text = (
            f"{handover.agent} answers here from now on, for {minutes} minutes or {handover.messages_left} messages. "
            "Write `!exit` to end it."
        )
        await self._say(channel, place, text, key=f"handover:{key}")
        self._changed.send()

    async def take_message(self, channel: Channel, place: Place, post_id: str) -> None:
        """Counts a message that the agent has taken; the last one ends the hand-over."""
        async with self._store.work() as work:
            found = await find_handover(work, channel.agent, place.conversation_id)
            if found is None or found.is_over(self._clock.now()):
                return
            left = found.after_message
            await put_handover(work, channel.agent, place, left, now=self._clock.now())
        if left.messages_left <= 0:
            await self.end(channel, place, LAST_MESSAGE, key=post_id)

    async def end(self, channel: Channel, place: Place, why: str, *, key: str) -> bool:
        """Takes the room back and says why. Returns False where nobody had it."""
        now, account = self._clock.now(), channel.agent
        async with self._store.work() as work:
            found = await find_handover(work, account, place.conversation_id)
            if found is None:
                return False
            await put_handover(work, account, place, None, now=now)
            known = self._runtime.current.enabled_agents
            back = await find_agent_choice(work, account, place.conversation_id, known=known, now=now)
        text = f"{why}: {found.agent} does not answer here any more, {back} does."
        await self._say(channel, place, text, key=f"handover:end:{key}")
        return True

    async def _say(self, channel: Channel, place: Place, text: str, *, key: str) -> None:
        await self._outbox.say(channel, Announcement(place, "", text, key=key))

    # --- time --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Ends what is over, until it is cancelled."""
        while True:
            changed = self._changed.next
            wait_s = await self.end_due()
            with anyio.move_on_after(wait_s):
                await changed.wait()

    async def end_due(self) -> float:
        """Ends hand-overs that are over, at the accounts of this process. Returns the seconds until the next look."""
        wait_s, now = IDLE_S, self._clock.now()
        for channel in self._channels.list_all():
            async with self._store.work(write=False) as work:
                given = await list_handovers(work, channel.agent)
            for place, handover in given.items():
                if place.platform != channel.platform:
                    continue
                if not handover.is_over(now):
                    wait_s = min(wait_s, (handover.until - now).total_seconds())
                    continue
                # After its last message, a process has died before it ended it.
                why = LAST_MESSAGE if handover.messages_left <= 0 else "Its time is over"
                await self.end(channel, place, why, key=f"{place.conversation_id}:{handover.until.isoformat()}")
        return wait_s

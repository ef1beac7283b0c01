"""Rooms that were handed to another agent for a while (`domain/handover`): beginning it, counting, and the end.

On a platform each beginning and end is one line in the room, said by the account that is there. In a session of one
person, such as a chat of the web, the page or the terminal shows who answers; one that is over stays until the next
message, which goes to the session's own agent again. A hand-over is in the store, so it goes on after a restart; `run`
ends those on platforms whose time is over, as long as it runs.
"""

from __future__ import annotations

from dataclasses import replace

import anyio

from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed
from denizen.domain.handover import Handover, is_own_session
from denizen.domain.ids import AgentName
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.configuration.choices import find_agent_choice
from denizen.engine.configuration.generation import Runtime
from denizen.engine.configuration.handovers import (
    SessionHandover,
    find_handover,
    find_session_handover,
    list_handovers,
    put_handover,
)
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
        return found if found is not None and self.is_in_force(found) else None

    def is_in_force(self, handover: Handover) -> bool:
        """Whether the agent has the room still: one that was switched off or removed has none."""
        return not handover.is_over(self._clock.now()) and handover.agent in self._runtime.current.enabled_agents

    async def get_account(self, place: Place, account: AgentName | None, agent: AgentName) -> AgentName:
        """Returns whose hand-over one of that place is: the account's on a platform; in a session of one person that of
        the agent which answers there otherwise, `agent` unless it was handed over before. Raises NotAllowed elsewhere.
        """
        found = await self.find_account(place, account, agent)
        if found is None:
            raise NotAllowed(
                "No room is handed over here.",
                code="handover_place",
                why="only rooms on a platform, chats of the web and `denizen chat` are",
                fix="Give the other agent a task instead.",
            )
        return found

    async def find_account(self, place: Place, account: AgentName | None, agent: AgentName) -> AgentName | None:
        """Returns the same; None where no room is handed over."""
        if account is not None and self._outbox.find_channel(place.platform, account) is not None:
            return account
        if not is_own_session(place):
            return None
        found = await self.find_in_session(place)
        return agent if found is None else found.own

    # --- beginning, counting, ending ---------------------------------------------------------------------------------

    async def begin(self, account: AgentName, place: Place, handover: Handover, *, key: str) -> str:
        """Gives the room to the agent. Returns what the room is told: on a platform it is said there, once for the same
        `key`.
        """
        async with self._store.work() as work:
            await put_handover(work, account, place, handover, now=self._clock.now())
        minutes = round((handover.until - self._clock.now()).total_seconds() / 60)
        text = (
            f"{handover.agent} answers here from now on, for {minutes} minutes or {handover.messages_left} messages. "
            "Write `!exit` to end it."
        )
        await self._say(account, place, text, key=f"handover:{key}")
        self._changed.send()
        return text

    async def take_message(self, channel: Channel, place: Place, post_id: str) -> None:
        """Counts a message that the agent has taken; the last one ends the hand-over."""
        async with self._store.work() as work:
            found = await find_handover(work, channel.agent, place.conversation_id)
            if found is None or found.is_over(self._clock.now()):
                return
            left = found.after_message
            await put_handover(work, channel.agent, place, left, now=self._clock.now())
        if left.messages_left <= 0:
            await self.end(channel.agent, place, LAST_MESSAGE, key=post_id)

    async def end(self, account: AgentName, place: Place, why: str, *, key: str) -> str:
        """Takes the room back. Returns what the room is told, as `begin` does; empty where nobody had it."""
        now = self._clock.now()
        async with self._store.work() as work:
            found = await find_handover(work, account, place.conversation_id)
            if found is None or (is_own_session(place) and found.is_over(now)):
                return ""
            left = replace(found, messages_left=0) if is_own_session(place) else None
            await put_handover(work, account, place, left, now=now)
            known = self._runtime.current.enabled_agents
            back = await find_agent_choice(work, account, place.conversation_id, known=known, now=now)
        text = _describe_end(why, found.agent, back)
        await self._say(account, place, text, key=f"handover:end:{key}")
        return text

    async def _say(self, account: AgentName, place: Place, text: str, *, key: str) -> None:
        channel = self._outbox.find_channel(place.platform, account)
        if channel is not None:
            await self._outbox.say(channel, Announcement(place, "", text, key=key))

    # --- sessions of one person --------------------------------------------------------------------------------------

    async def find_in_session(self, place: Place) -> SessionHandover | None:
        """Returns the hand-over of a session of one person, also one that is over."""
        async with self._store.work(write=False) as work:
            return await find_session_handover(work, place.conversation_id)

    def choose_agent(self, found: SessionHandover | None, named: AgentName) -> AgentName:
        """Returns who answers the next message of a session that names this agent: who has the session; and its own
        agent in place of one that had it, unless that is off or gone by now.
        """
        if found is None:
            return named
        if self.is_in_force(found.handover):
            return found.handover.agent
        takes_back = named == found.handover.agent and found.own in self._runtime.current.enabled_agents
        return found.own if takes_back else named

    async def take_session_message(self, place: Place, agent: AgentName) -> None:
        """Counts a message that the agent has taken; one to another agent removes a hand-over that is over."""
        async with self._store.work() as work:
            found = await find_session_handover(work, place.conversation_id)
            if found is None:
                return
            handover = found.handover
            left = handover.after_message if agent == handover.agent else handover
            if agent != handover.agent and not self.is_in_force(handover):
                left = None
            await put_handover(work, found.own, place, left, now=self._clock.now())

    def describe_end(self, found: SessionHandover) -> str:
        """Tells why a session that was handed over has its own agent again."""
        if found.handover.agent not in self._runtime.current.enabled_agents:
            why = f"{found.handover.agent} is off"
        else:
            why = _why_over(found.handover)
        return _describe_end(why, found.handover.agent, found.own)

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
                # Of one without messages left, a process has died before it ended it.
                key = f"{place.conversation_id}:{handover.until.isoformat()}"
                await self.end(channel.agent, place, _why_over(handover), key=key)
        return wait_s


def _why_over(handover: Handover) -> str:
    return LAST_MESSAGE if handover.messages_left <= 0 else "Its time is over"


def _describe_end(why: str, agent: AgentName, back: AgentName) -> str:
    return f"{why}: {agent} does not answer here any more, {back} does."

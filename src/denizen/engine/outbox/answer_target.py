"""The places of answers that nobody asked for: of schedules, events and the task watcher, into a channel or to a
person.
"""

from __future__ import annotations

from denizen.domain.approval import AskerReach
from denizen.domain.conversation import Place
from denizen.domain.errors import NeedsAttention, NotFound, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.record import record
from denizen.domain.schedule import DeliveryRoute, ScheduleDelivery
from denizen.domain.turn import ReplyTarget
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.configuration.generation import Runtime
from denizen.ports.channel import Channel
from denizen.ports.store import Store


@record
class AnswerTarget:
    """Where a turn is answered: the place, the account that speaks there, what is owed, and how people can be asked
    about calls.
    """

    place: Place
    channel: Channel | None = None
    owed: ReplyTarget | None = None
    reach: AskerReach = AskerReach.ELSEWHERE


@record
class AnswerTargets:
    """Finds targets on the accounts that are connected now."""

    runtime: Runtime
    store: Store
    channels: ConnectedAccounts

    async def find(self, delivery: ScheduleDelivery, agent: AgentName) -> AnswerTarget:
        """Returns the target of a delivery that is not into the log. Raises as `find_room` does, and NeedsAttention
        where nobody is told.
        """
        if delivery.to is not DeliveryRoute.DIRECT:
            return await self.find_room(agent, delivery.platform, delivery.target)
        channel = self.find_account(agent, delivery.platform)
        person = delivery.target or min(self._list_owners(delivery, agent), default="")
        if not person:
            raise NeedsAttention(
                "Nobody is the owner of this account.",
                code="owner_unknown",
                fix="Name a person as the target of the delivery, or the owners of the account.",
            )
        owed = ReplyTarget(agent, may_be_silent=True)
        return AnswerTarget(await channel.open_direct(person), channel, owed, AskerReach.OTHERS)

    def is_to_owner(self, delivery: ScheduleDelivery, agent: AgentName) -> bool:
        """Whether nobody but an owner of the account reads what is delivered."""
        is_owner = not delivery.target or delivery.target in self._list_owners(delivery, agent)
        return delivery.to is DeliveryRoute.DIRECT and is_owner

    async def find_room(self, agent: AgentName, platform: str, room_id: str) -> AnswerTarget:
        """Returns a room as the target. Raises Unavailable (`account_away`) while the account is not connected, and
        NotFound for a room that it does not see.
        """
        channel = self.find_account(agent, platform)
        async with self.store.work(write=False) as work:
            room = await work.archive.find_room(platform, room_id)
        if room is None:
            raise NotFound(
                f"The account of {agent} sees no channel {room_id} on {platform}.",
                code="channel_unknown",
                fix="Name a channel that it may read and write in.",
            )
        owed = ReplyTarget(agent, may_be_silent=True, guild=room.guild)
        return AnswerTarget(room.place, channel, owed, AskerReach.OTHERS)

    def _list_owners(self, delivery: ScheduleDelivery, agent: AgentName) -> frozenset[str]:
        return self.runtime.current.account_policy_for(delivery.platform, agent).staff.owners

    def find_account(self, agent: AgentName, platform: str) -> Channel:
        """Raises Unavailable (`account_away`) while it is not connected."""
        channel = self.channels.find(platform, agent)
        if channel is None:
            raise Unavailable(
                f"The account of {agent} is not connected to {platform}.",
                code="account_away",
                fix="Look at its token, or deliver to the log.",
            )
        return channel

"""The context that the parts of an account's listener share, and the count of bot replies."""

from __future__ import annotations

from denizen.domain.attention import AccountPolicy, assign_roles
from denizen.domain.clock import Clock
from denizen.domain.ids import AgentName
from denizen.domain.message import Author
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.record import record
from denizen.engine.configuration.generation import Runtime
from denizen.engine.configuration.guild_settings import GuildSettingsOverlay
from denizen.engine.listener.community_events import CommunityEvents
from denizen.engine.outbox.handovers import RoomHandovers
from denizen.engine.outbox.outbox import DeliveryOutbox
from denizen.engine.turn import TurnRunner
from denizen.ports.channel import Channel
from denizen.ports.store import Store


class BotReplyCounter:
    """Counts, in the store, how many replies of agents stand in a row in a room. All accounts of a process share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Rooms whose count is known to be zero: a message of a human need not write that again.
        self._zero: set[tuple[str, str]] = set()

    async def count(self, platform: str, room: str) -> int:
        async with self._store.work(write=False) as work:
            return await work.inbox.count_bot_replies(platform, room)

    async def add(self, platform: str, room: str, *, limit: int | None) -> bool:
        """Counts one more reply of an agent. Returns False, and counts nothing, when `limit` are counted already."""
        async with self._store.work() as work:
            added = await work.inbox.take_bot_reply(platform, room, limit=limit)
        self._zero.discard((platform, room))
        return added

    async def take_back(self, platform: str, room: str) -> None:
        """Uncounts a reply that was never given."""
        async with self._store.work() as work:
            await work.inbox.give_back_bot_reply(platform, room)

    async def reset(self, platform: str, room: str) -> None:
        """Starts from zero: a human has written."""
        if (platform, room) in self._zero:
            return
        async with self._store.work() as work:
            await work.inbox.reset_bot_replies(platform, room)
        self._zero.add((platform, room))


@record(kw_only=True)
class AccountContext:
    """One account, and the parts of the engine that its listener works with."""

    channel: Channel
    runtime: Runtime
    store: Store
    clock: Clock
    turns: TurnRunner
    outbox: DeliveryOutbox
    bot_replies: BotReplyCounter
    handovers: RoomHandovers
    guilds: GuildSettingsOverlay | None = None
    """The settings of communities; None where there are none."""

    events: CommunityEvents | None = None
    """Takes what happens; None where nobody waits for events."""

    @property
    def account(self) -> AgentName:
        return self.channel.agent

    @property
    def platform(self) -> str:
        return self.channel.platform

    @property
    def account_policy(self) -> AccountPolicy:
        """The policy of the current configuration: it may change while the account is connected."""
        return self.runtime.current.account_policy_for(self.platform, self.account)

    def principal(self, author: Author, roles: frozenset[str]) -> Principal:
        """Returns the user of the platform with their roles in Denizen."""
        names = assign_roles(author.id, roles, self.account_policy.staff)
        # A bot is never an admin, whatever role people gave it: it says what others made it say.
        if author.is_bot:
            names -= {RoleName.OWNER.value, RoleName.ADMIN.value}
        return Principal(PrincipalKind.PLATFORM_USER, f"{self.platform}:{author.id}", author.name, names)

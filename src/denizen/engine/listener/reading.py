"""Reading one message for one account: the facts that decide about it, and what was decided about it before.

Called for each message by `messages.py`, and by `arbiter.py` for the messages of other accounts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from denizen.domain.attention import AllowedPeople, Attention, AuthorFacts, MessageFacts, decide_attention
from denizen.domain.ids import TurnId
from denizen.domain.room import Room
from denizen.engine.listener.context import AccountContext
from denizen.engine.listener.cursors import ReadCursors
from denizen.ports.channel import Channel, IncomingMessage
from denizen.ports.inbox import AllowedKind

MAX_EDITS = 9
"""How often a question may be edited and answered anew."""


class MessageReader:
    """Reads messages as one account sees them. `list_accounts` gives the accounts of this process on the platform."""

    def __init__(
        self, context: AccountContext, cursors: ReadCursors, list_accounts: Callable[[], Sequence[Channel]]
    ) -> None:
        self.context = context
        self._cursors = cursors
        self._list_accounts = list_accounts
        self.followed: set[str] = set()
        """Ids of the threads that the agent follows."""

    async def load(self) -> None:
        """Reads which threads are followed, which outlives a restart."""
        context = self.context
        async with context.store.work(write=False) as work:
            self.followed |= await work.inbox.list_followed(context.account, context.platform)

    # --- attention ---------------------------------------------------------------------------------------------------

    async def decide(self, message: IncomingMessage) -> Attention:
        """Decides about a message that the account received."""
        return await self._decide(self._read(message))

    async def decide_as_other(self, message: IncomingMessage) -> Attention:
        """Decides about a message that another account received."""
        me = self.context.channel.user_id
        # `mentions_me` and the like are told from that account's side, so they are worked out anew for this one.
        return await self._decide(
            replace(
                self._read(message),
                mentions_me=me in message.mentions.users,
                mentions_others=any(user != me for user in message.mentions.users),
                replies_to_me=message.mentions.replies_to == me != "",
            )
        )

    async def decide_request(self, facts: MessageFacts) -> Attention:
        """Decides about a command or a pressed button: it counts as a mention, whatever the policy says of these."""
        policy = self.context.account_policy
        policy = replace(policy, triggers=replace(policy.triggers, mentions=True))
        if not await self._is_admitted(facts.room):
            return Attention()
        return decide_attention(await self._complete(replace(facts, mentions_me=True)), policy)

    async def _decide(self, facts: MessageFacts) -> Attention:
        """Reads little of the store for messages that are not for the agent: whether the room was handed to another."""
        policy = self.context.account_policy
        handover = await self.context.handovers.find(self.context.account, facts.room.place)
        facts = replace(facts, is_handed=handover is not None)
        attention = decide_attention(facts, policy)
        if attention.trigger is None or not await self._is_admitted(facts.room):
            return Attention()
        return decide_attention(await self._complete(facts), policy)

    async def _is_admitted(self, room: Room) -> bool:
        """Whether those who manage the community let agents answer there."""
        guilds = self.context.guilds
        if guilds is None or not room.guild:
            return True
        return (await guilds.load(room.platform, room.guild)).admits(room.id, room.channel)

    def _read(self, message: IncomingMessage) -> MessageFacts:
        """The facts that are known without the store."""
        author = message.post.author
        return MessageFacts(
            room=message.room,
            author=AuthorFacts(
                id=author.id,
                # Somebody else may have edited an unsure message, so its author's roles do not count.
                roles=frozenset() if message.is_unsure else message.roles,
                is_bot=author.is_bot,
                is_own_account=any(account.user_id == author.id for account in self._list_accounts()),
            ),
            text=message.question,
            mentions_me=message.mentions.me,
            mentions_others=message.mentions.others,
            mentioned_roles=message.mentions.roles,
            replies_to_me=message.mentions.replies_to_me,
            is_followed=message.room.id in self.followed,
        )

    async def _complete(self, facts: MessageFacts) -> MessageFacts:
        """The facts with those of the store."""
        context, platform = self.context, self.context.platform
        async with context.store.work(write=False) as work:
            return replace(
                facts,
                bot_replies=await work.inbox.count_bot_replies(platform, facts.room.id),
                allowed=AllowedPeople(
                    await work.inbox.list_allowed(context.account, platform, AllowedKind.USER),
                    await work.inbox.list_allowed(context.account, platform, AllowedKind.ROLE),
                ),
            )

    def is_beside(self, other: MessageReader, room: str) -> bool:
        """Whether both accounts listen in that room."""
        return self.context.platform == other.context.platform and self._cursors.find(room) is not None

    # --- claims ------------------------------------------------------------------------------------------------------

    async def find_claimed(self, post_ids: Collection[str]) -> frozenset[str]:
        """Returns those of the messages that were decided about: answered or refused."""
        context = self.context
        async with context.store.work(write=False) as work:
            return frozenset(await work.inbox.find_claims(context.account, context.platform, post_ids))

    async def is_claimed(self, post_id: str) -> bool:
        return post_id in await self.find_claimed([post_id])

    async def find_turn(self, post_id: str) -> tuple[int, TurnId] | None:
        """Returns the number of the message's latest text that has a turn, counted from 0, and that turn."""
        context = self.context
        keys = [edit_key(post_id, number) for number in range(MAX_EDITS + 1)]
        async with context.store.work(write=False) as work:
            claims = await work.inbox.find_claims(context.account, context.platform, keys)
        found = [(number, claims[key].turn_id) for number, key in enumerate(keys) if key in claims]
        return next(((number, turn) for number, turn in reversed(found) if turn is not None), None)


def edit_key(post_id: str, number: int) -> str:
    """Returns the key under which a text of the message is claimed: the first text, number 0, has the message's id."""
    return f"{post_id}~{number}" if number else post_id

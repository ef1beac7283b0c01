"""Rooms in which the account may read and not post: no turn is started there, and people hear of it in another way.

The asker gets a sign on the message, or a direct message where the account may not react either. Owners are told in the
alert channel. Both are best effort: what could not be told is in the log.
"""

from __future__ import annotations

import logging

from denizen.domain.attention import RefusalReason, ThreadMode
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, NotAllowed
from denizen.domain.names import quote_name
from denizen.domain.rate_limit import DAY_S, RateLimit
from denizen.domain.room import Room, RoomKind
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.engine.listener.context import AccountContext
from denizen.engine.outbox.plan import Announcement
from denizen.ports.channel import IncomingMessage

ONCE_A_DAY = (RateLimit(1, DAY_S),)

_log = logging.getLogger("denizen.listener")


class BlockedRooms:
    """Knows where one account may not post, and tells of it."""

    def __init__(self, context: AccountContext) -> None:
        self._context = context
        self._limiter = RateLimiter(context.store, context.clock)

    async def is_blocked(self, message: IncomingMessage) -> bool:
        """Whether the account may post neither in the room nor in a thread that it would open for the answer."""
        channel, place = self._context.channel, message.room.place
        if await channel.may_post(place):
            return False
        return not (self.opens_thread(message) and await channel.may_post(place, in_new_thread=True))

    def opens_thread(self, message: IncomingMessage) -> bool:
        """Whether the answer to the message gets a thread of its own."""
        mode = self._context.account_policy.triggers.threads
        return mode is ThreadMode.OPEN and message.room.kind is RoomKind.CHANNEL and not message.post.author.is_bot

    async def tell(self, message: IncomingMessage, *, is_addressed: bool) -> None:
        """Remembers that the message was refused, and tells the owners, and the author if that is who asked."""
        context, room, post = self._context, message.room, message.post
        refused = Announcement(room.place, post.id, refusal=RefusalReason.CANNOT_POST, is_first=True)
        if not await context.outbox.say(context.channel, refused):
            return
        if is_addressed and not post.author.is_bot:
            await self._tell_asker(message)
        if await self._is_due(room.channel):
            _log.warning(
                "the account may not post where it is asked", extra={"agent": context.account, "room": room.id}
            )
            alert_place = context.runtime.current.policy.observer.alert_place
            if alert_place is not None and alert_place.platform == context.platform:
                text = (
                    f"I am asked in {_describe(room)}, but may not write there. Let me write there, or take the room "
                    "out of those that I listen to."
                )
                await self._say(alert_place, text, key=f"{post.id}:owners")

    async def _tell_asker(self, message: IncomingMessage) -> None:
        channel, room, post = self._context.channel, message.room, message.post
        sign = self._context.account_policy.style.reactions.failed
        try:
            if sign and await self._react(message, sign):
                return
            if await self._is_due(f"{room.channel}\x00{post.author.id}"):
                text = f"I may not write in {_describe(room)}, so I cannot answer you there."
                await self._say(await channel.open_direct(post.author.id), text, key=f"{post.id}:asker")
        except DenizenError as error:
            _log.info("the asker is not told", extra={"room": room.id, "post": post.id, **error.fields})

    async def _is_due(self, about: str) -> bool:
        """Whether nobody was told about it within the day; they are now."""
        context = self._context
        key = f"blocked\x00{context.platform}\x00{context.account}\x00{about}"
        return await self._limiter.take(key, ONCE_A_DAY) is None

    async def _react(self, message: IncomingMessage, sign: str) -> bool:
        try:
            await self._context.channel.react(message.room.place, message.post.id, sign)
        except NotAllowed:
            return False
        return True

    async def _say(self, place: Place, text: str, *, key: str) -> None:
        await self._context.outbox.say(self._context.channel, Announcement(place, "", text, key=key))


def _describe(room: Room) -> str:
    """Members name threads, and owners of other servers those: words that could mislead whoever reads it are not
    repeated.
    """
    channel, guild = quote_name(room.parent_name if room.is_thread else room.name), quote_name(room.guild_name)
    where = f"#{channel}" if channel else f"the channel {room.channel}"
    return f"{where} of {guild}" if guild else where

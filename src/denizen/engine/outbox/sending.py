"""Whether a piece that was tried has arrived: asked of the platform after a crash or a lost connection."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime

import anyio

from denizen.domain.conversation import Place
from denizen.domain.delivery import Delivery, DeliveryKind, DeliveryState, DeliveryTarget, MessageContent, delivery_id
from denizen.domain.errors import DenizenError
from denizen.domain.ids import TurnId
from denizen.domain.room import Post
from denizen.engine.outbox.room_order import RoomOrder
from denizen.ports.channel import Channel
from denizen.ports.store import Store

_FORM = re.compile(r"<(?:@[!&]?|#|a?:|t:|/)[^<>\n]+>")
"""Text that reads differently when it comes back: a mention as a name, an emoji, a time."""
_CARD = "[embed:"
_SHOWN = (DeliveryKind.CARD, DeliveryKind.PREVIEW)
"""Messages that stand before the answer: they are recognised by their text."""
_PAGE = 100
_MAX_PAGES = 20


async def find_sent(store: Store, channel: Channel, delivery: Delivery) -> str:
    """The id of the account's message that is this piece; empty when there is none.

    Among the account's own messages after the one that it answers: where the platform keeps nonces, the one with that
    of the piece; elsewhere a first piece replies to the question, and the others have the text. A message that another
    piece became already is not taken, nor one that reads like a card or a preview of the turn.
    """
    async with store.work(write=False) as work:
        pieces = await work.outbox.list_for_turn(delivery.turn_id)
    after = next((piece.target.reply_to for piece in pieces if piece.target.reply_to), "")
    shown = [piece.content for piece in pieces if piece.kind in _SHOWN]
    async with aclosing(
        _list_own(channel, delivery.target.place.thread or delivery.target.place.channel, after)
    ) as own:
        async for post in own:
            if post.nonce:
                if post.nonce == delivery.nonce:
                    return post.id
                continue
            if delivery.kind not in _SHOWN and any(post_matches(post.text, content) for content in shown):
                continue
            asked = delivery.target.reply_to if delivery.kind is not DeliveryKind.CARD else ""
            if asked and post.reply_to != asked:
                continue
            if (not asked or delivery.kind in _SHOWN) and not post_matches(post.text, delivery.content):
                continue
            async with store.work(write=False) as work:
                other = await work.outbox.find_by_platform_id(channel.platform, post.id)
            if other is None or other.id == delivery.id:
                return post.id
    return ""


async def _list_own(channel: Channel, room: str, after: str) -> AsyncGenerator[Post]:
    """Oldest first; without a message to begin at, those among the newest."""
    for _ in range(_MAX_PAGES if after else 1):
        posts = await channel.list_posts(room, after=after, limit=_PAGE)
        for post in posts:
            if post.author.id == channel.user_id:
                yield post
        if len(posts) < _PAGE:
            return
        after = posts[-1].id


def post_matches(text: str, content: MessageContent) -> bool:
    """Whether a message that reads like that has this content: the same but for spaces, mentions and the like."""
    read = _squeezed(text.partition(_CARD)[0] if content.embeds else text)
    first, *others = (_squeezed(part) for part in _FORM.split(content.text))
    if not others:
        return read == first
    if not read.startswith(first):
        return False
    *between, last = others
    at = len(first)
    for part in between:
        found = read.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return read.endswith(last) and len(read) - len(last) >= at


def _squeezed(text: str) -> str:
    return "".join(text.split())


_log = logging.getLogger("denizen.outbox")


class LivePreview:
    """One for a turn. `stop` ends it: no edit of it comes after that."""

    def __init__(
        self, store: Store, channel: Channel, rooms: RoomOrder, turn_id: TurnId, place: Place, *, reply_to: str
    ) -> None:
        self._store = store
        self._channel = channel
        self._rooms = rooms
        self._turn_id = turn_id
        self._place = place
        self._reply_to = reply_to
        self._lock = anyio.Lock()
        self._stopped = False
        self._message = ""

    async def show(self, text: str, *, now: datetime) -> None:
        """Posts or edits it. A fault of the platform ends the preview, never the turn."""
        try:
            if self._message:
                async with self._lock:
                    if not self._stopped:
                        await self._channel.edit(self._place, self._message, MessageContent(text))
                return
            # The room comes first: who has it may wait for the preview to stop.
            async with self._rooms.enter(self._place, self._turn_id), self._lock:
                if not self._stopped:
                    await self._begin(text, now)
        except DenizenError as error:
            _log.info("preview ended", extra={"turn": self._turn_id, **error.fields})
            self._stopped = True

    async def _begin(self, text: str, now: datetime) -> None:
        delivery = Delivery(
            id=delivery_id(self._turn_id, DeliveryKind.PREVIEW, 0),
            turn_id=self._turn_id,
            position=0,
            kind=DeliveryKind.PREVIEW,
            agent=self._channel.agent,
            target=DeliveryTarget(self._place, self._reply_to),
            content=MessageContent(text),
            created_at=now,
            state=DeliveryState.SENDING,
        )
        async with self._store.work() as work:
            if (await work.turns.get(self._turn_id)).status.is_final:
                self._stopped = True
                return
            earlier = [d for d in await work.outbox.list_for_turn(self._turn_id) if d.id == delivery.id]
            await work.outbox.add([delivery])
        if earlier:  # begun before a restart
            await self._take_up(earlier[0], text)
            return
        self._message = await self._channel.post(
            self._place, MessageContent(text), nonce=delivery.nonce, reply_to=self._reply_to, is_preview=True
        )
        async with self._store.work() as work:
            await work.outbox.update(replace(delivery, state=DeliveryState.SENT, platform_id=self._message))

    async def _take_up(self, earlier: Delivery, text: str) -> None:
        """Goes on with the message of an earlier process, wherever that got to; one that is over is not begun anew."""
        self._message = earlier.platform_id or await find_sent(self._store, self._channel, earlier)
        if not self._message or earlier.state is DeliveryState.WITHDRAWN:
            self._stopped = True
            return
        await self._channel.edit(self._place, self._message, MessageContent(text))
        async with self._store.work() as work:
            await work.outbox.update(replace(earlier, state=DeliveryState.SENT, platform_id=self._message))

    async def stop(self) -> None:
        """Waits for an edit that is under way."""
        self._stopped = True
        async with self._lock:
            pass

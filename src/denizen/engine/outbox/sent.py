"""Whether a piece that was tried has arrived: asked of the platform after a crash or a lost connection."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from denizen.domain.delivery import Content, Delivery, DeliveryKind
from denizen.domain.room import Post
from denizen.ports.channel import Channel
from denizen.ports.store import Store

_FORM = re.compile(r"<(?:@[!&]?|#|a?:|t:|/)[^<>\n]+>")
"""What reads differently when it comes back: a mention as a name, an emoji, a time."""
_CARD = "[embed:"
_PAGE = 100
_MAX_PAGES = 20


async def find_sent(store: Store, channel: Channel, delivery: Delivery) -> str:
    """The id of the account's message that is this piece; empty when there is none.

    Among the account's own messages after the one that it answers: where the platform keeps nonces, the one with that
    of the piece; elsewhere a first piece replies to the question, and the others have the text. A message that another
    piece became already is not taken.
    """
    async with store.work(write=False) as work:
        pieces = await work.outbox.list_for_turn(delivery.turn_id)
    after = next((piece.reply_to for piece in pieces if piece.reply_to), "")
    cards = [piece.content for piece in pieces if piece.kind is DeliveryKind.CARD]
    async with aclosing(_list_own(channel, delivery.place.thread or delivery.place.channel, after)) as own:
        async for post in own:
            if post.nonce:
                if post.nonce == delivery.nonce:
                    return post.id
                continue
            if delivery.kind is not DeliveryKind.CARD and any(says(post.text, card) for card in cards):
                continue
            if delivery.reply_to and delivery.kind is not DeliveryKind.CARD:
                if post.reply_to != delivery.reply_to:
                    continue
            elif not says(post.text, delivery.content):
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


def says(text: str, content: Content) -> bool:
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

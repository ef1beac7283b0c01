"""Whether a piece that was tried has arrived: asked of the platform after a crash or a lost connection."""

from __future__ import annotations

import re

from denizen.domain.delivery import Delivery
from denizen.ports.channel import Channel
from denizen.ports.store import Store

_MENTION = re.compile(r"<@[!&]?\d+>|@\S+")
_LOOK_AT = 100


async def find_sent(store: Store, channel: Channel, delivery: Delivery) -> str:
    """The id of the account's message that is this piece; empty when there is none.

    Among the account's own messages after the one that it answers: a first piece replies to it; the others have the
    text. A message that another piece became already is not taken.
    """
    place = delivery.place
    room = place.thread or place.channel
    async with store.work(write=False) as work:
        pieces = await work.outbox.list_of_turn(delivery.turn_id)
    after = next((piece.reply_to for piece in pieces if piece.reply_to), "")
    if not after:
        posts = await channel.list_posts(room, limit=_LOOK_AT)
    else:
        posts = await channel.list_posts(room, after=after, limit=_LOOK_AT)
    for post in posts:
        if post.author.id != channel.user_id:
            continue
        if delivery.reply_to:
            if post.reply_to != delivery.reply_to:
                continue
        elif _plain(post.text) != _plain(delivery.content.text):
            continue
        async with store.work(write=False) as work:
            other = await work.outbox.find_by_platform_id(channel.platform, post.id)
        if other is None:
            return post.id
    return ""


def _plain(text: str) -> str:
    """Without mentions, which read differently when they come back, and without spaces."""
    return "".join(_MENTION.sub("", text).split())

"""The changes that open pages receive, as server-sent events.

Changes are noted when they happen and rendered when they are sent: a message that is edited ten times in a row is
sent once, in its last state. Events:

    world    {...}                          everything but the messages: at the beginning, and when it has changed
    message  {...}                          a message that is new or has changed
    gone     {"channel_id", "ids"}          messages that were deleted
    typing   {"channel_id", "person_id"}    somebody is typing
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import anyio

from denizen.testing.discord.page.view import PersonView, View
from denizen.testing.discord.state import changes
from denizen.testing.discord.state.access import can_see
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.messages import SimMessage
from denizen.testing.discord.state.people import SimUser
from denizen.testing.discord.state.store import SimStore

Event = tuple[str, View]

_STRUCTURE = (
    changes.ChannelChanged,
    changes.ThreadChanged,
    changes.ThreadMembersChanged,
    changes.GuildChanged,
    changes.GuildAvailability,
    changes.MemberChanged,
    changes.BanChanged,
    changes.RoleChanged,
    changes.PresenceChanged,
)


class PageFeed:
    """The feed of one open page. `closed` ends it."""

    def __init__(self, store: SimStore, viewer: SimUser) -> None:
        self.closed = False
        self.view = PersonView(store, viewer)
        self._store = store
        self._world = True
        self._messages: dict[int, SimMessage] = {}
        self._gone: list[SimMessage] = []
        self._typing: dict[tuple[int, int], tuple[SimChannel, SimUser]] = {}
        self._stir = anyio.Event()

    def note(self, change: changes.SimChange) -> None:
        match change:
            case changes.MessageSent(channel, message):
                self._messages[message.id] = message
                self._world = self._world or channel.is_dm
                starter = channel.parent.find(channel.id) if channel.parent is not None else None
                if starter is not None:
                    self._messages[starter.id] = starter  # it shows the number of messages in the thread
            case (
                changes.MessageEdited(_, message)
                | changes.ReactionsChanged(_, message)
                | changes.ReactionsCleared(_, message)
                | changes.VoteChanged(_, message)
            ):
                self._messages[message.id] = message
            case changes.MessagesDeleted(_, messages):
                self._gone += messages
            case changes.TypingStarted(channel, user):
                self._typing[channel.id, user.id] = channel, user
            case _ if isinstance(change, _STRUCTURE):
                self._world = True
            case _:
                return
        self._stir.set()

    def close(self) -> None:
        self.closed = True
        self._stir.set()

    async def wait(self, timeout_s: float) -> list[Event]:
        """Waits for changes and returns them; none after `timeout_s`."""
        if not self._world:
            with anyio.move_on_after(timeout_s):
                await self._stir.wait()
        self._stir = anyio.Event()
        return list(self._take())

    def _take(self) -> Iterator[Event]:
        messages, gone, typing = self._messages, self._gone, self._typing
        self._messages, self._gone, self._typing = {}, [], {}
        if self._world:
            self._world = False
            yield "world", self.view.see_world()
        yield from (("message", self.view.see_message(each)) for each in messages.values() if self.view.sees(each))
        for message in gone:
            if not message.ephemeral or message.origin.seen_by is self.view.viewer:
                yield "gone", {"channel_id": str(message.channel_id), "ids": [str(message.id)]}
        for channel, user in typing.values():
            if user is not self.view.viewer and can_see(self._store, self.view.viewer, channel):
                yield "typing", {"channel_id": str(channel.id), "person_id": str(user.id)}


class PageFeeds:
    """The feeds of all open pages of one store."""

    def __init__(self, store: SimStore) -> None:
        self._store = store
        self._open: list[PageFeed] = []
        store.subscribe(self._note)

    def open(self, viewer: SimUser) -> tuple[PageFeed, Callable[[], None]]:
        """Returns the feed of a new page, and a function that removes it."""
        feed = PageFeed(self._store, viewer)
        self._open.append(feed)
        return feed, lambda: self._open.remove(feed)

    def close_all(self) -> None:
        for feed in self._open:
            feed.close()

    def _note(self, change: changes.SimChange) -> None:
        for feed in self._open:
            feed.note(change)


def frame(event: Event) -> bytes:
    """Returns an event in the wire format."""
    name, body = event
    return f"event: {name}\ndata: {json.dumps(body)}\n\n".encode()

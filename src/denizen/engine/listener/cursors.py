"""How far an account has read each room. The cursors live in memory and are written every few seconds.

A cursor that lags is harmless: a message that is read again was claimed already. A cursor that runs ahead would lose a
message, so it moves only when a message was decided about.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping

import anyio

from denizen.domain.errors import DenizenError
from denizen.domain.ids import AgentName
from denizen.domain.room import is_newer
from denizen.ports.store import Store

WRITE_EVERY_S = 2.0

_log = logging.getLogger("denizen.listener")


class ReadCursors:
    """The cursors of one account, by room id. A cursor is the id of a post."""

    def __init__(self, store: Store, account: AgentName, platform: str) -> None:
        self._store = store
        self._account = account
        self._platform = platform
        self._known: dict[str, str] = {}
        self._unwritten: dict[str, str] = {}
        self._ahead: dict[str, str] = {}
        """Rooms whose cursor is held, with the newest message that was decided about meanwhile."""
        self._holds: Counter[str] = Counter()

    async def load(self) -> None:
        async with self._store.work(write=False) as work:
            stored = await work.inbox.list_cursors(self._account, self._platform)
        # A message may arrive before the stored cursors are read; its cursor is newer than the stored one.
        newer = {room: at for room, at in self._known.items() if is_newer(at, stored.get(room, ""))}
        self._known = {**stored, **newer}

    @property
    def rooms(self) -> Mapping[str, str]:
        return self._known

    @property
    def is_behind(self) -> bool:
        """Whether any cursor is held: some room is being caught up."""
        return bool(self._ahead)

    @property
    def newest(self) -> str:
        """The newest message that was decided about in any room; empty before the first."""
        # Ids are numbers as text, so the longer one is the newer one.
        return max(self._known.values(), key=lambda post: (len(post), post), default="")

    def find(self, room: str) -> str | None:
        return self._known.get(room)

    def mark_decided(self, room: str, post: str) -> None:
        """Notes that the post was decided about. While the cursor is held, it moves only when it is released."""
        if room not in self._ahead:
            self.advance(room, post)
        elif is_newer(post, self._ahead[room]):
            self._ahead[room] = post

    def advance(self, room: str, post: str) -> None:
        """Moves the cursor: everything up to that post was decided about. It never goes back."""
        if is_newer(post, self._known.get(room, "")):
            self._known[room] = self._unwritten[room] = post

    def hold(self, room: str) -> None:
        """Keeps the cursor where it is: a message before the newest one still waits to be decided about.

        Each hold is released once, because a room may be read again before an earlier reading of it has ended.
        """
        self._holds[room] += 1
        self._ahead.setdefault(room, "")

    def release(self, room: str) -> None:
        """Ends one hold. With the last one the cursor moves to what was decided about meanwhile."""
        self._holds[room] -= 1
        if self._holds[room] > 0:
            return
        del self._holds[room]
        ahead = self._ahead.pop(room, "")
        if ahead:
            self.advance(room, ahead)

    def forget(self, room: str) -> None:
        """Drops the cursor of a room that is gone. The holds stay: who reads the room still releases its own."""
        for cursors in (self._known, self._unwritten):
            cursors.pop(room, None)

    async def write(self) -> None:
        if not self._unwritten:
            return
        batch, self._unwritten = self._unwritten, {}
        try:
            async with self._store.work() as work:
                await work.inbox.put_cursors(self._account, self._platform, batch)
        except DenizenError as error:  # a locked database or a full disk: the next write takes these along
            _log.warning("read cursors are not written", extra={"agent": self._account, **error.fields})
            self._unwritten = {**batch, **self._unwritten}

    async def keep_writing(self) -> None:
        """Writes every few seconds until it is cancelled, and then once more."""
        try:
            while True:
                await anyio.sleep(WRITE_EVERY_S)
                await self.write()
        finally:
            with anyio.CancelScope(shield=True):
                await self.write()


def before(post_id: str) -> str:
    """Returns the cursor right before a message: from there the message is read again."""
    return str(int(post_id) - 1) if post_id.isdecimal() else "0"

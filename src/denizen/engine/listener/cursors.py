"""How far each room was read by an account. Kept in memory and written now and then.

A position that lags is harmless: what is read again is claimed already. One that runs ahead would lose a message, so it
moves only when a message was decided about.
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

_log = logging.getLogger("denizen.resident")


class ReadCursors:
    def __init__(self, store: Store, account: AgentName, platform: str) -> None:
        self._store = store
        self._account = account
        self._platform = platform
        self._known: dict[str, str] = {}
        self._unwritten: dict[str, str] = {}
        self._ahead: dict[str, str] = {}
        """Rooms that are being caught up, with the newest message that came meanwhile."""
        self._holds: Counter[str] = Counter()

    async def load(self) -> None:
        async with self._store.work(write=False) as work:
            stored = await work.reception.list_positions(self._account, self._platform)
        self._known = {**stored, **{room: at for room, at in self._known.items() if is_newer(at, stored.get(room, ""))}}

    @property
    def rooms(self) -> Mapping[str, str]:
        return self._known

    @property
    def is_behind(self) -> bool:
        """Some room is being caught up."""
        return bool(self._ahead)

    @property
    def newest(self) -> str:
        """The newest message that was decided about in any room; empty before the first."""
        return max(self._known.values(), key=lambda post: (len(post), post), default="")

    def find(self, room: str) -> str | None:
        return self._known.get(room)

    def note(self, room: str, post: str) -> None:
        """That post was decided about. While the room is being caught up, the position waits."""
        if room not in self._ahead:
            self.advance(room, post)
        elif is_newer(post, self._ahead[room]):
            self._ahead[room] = post

    def advance(self, room: str, post: str) -> None:
        """Everything up to that post was decided about. Never goes back."""
        if is_newer(post, self._known.get(room, "")):
            self._known[room] = self._unwritten[room] = post

    def hold(self, room: str) -> None:
        """Something was missed there: messages that come now must not move the position past it. Each hold is released
        once: a room may be read again before an earlier reading of it has ended.
        """
        self._holds[room] += 1
        self._ahead.setdefault(room, "")

    def release(self, room: str) -> None:
        """What it was held for is not missing any more."""
        self._holds[room] -= 1
        if self._holds[room] > 0:
            return
        del self._holds[room]
        ahead = self._ahead.pop(room, "")
        if ahead:
            self.advance(room, ahead)

    def forget(self, room: str) -> None:
        """The room is gone; one that is still being read forgets itself when that ends."""
        for positions in (self._known, self._unwritten):
            positions.pop(room, None)

    async def write(self) -> None:
        if not self._unwritten:
            return
        batch, self._unwritten = self._unwritten, {}
        try:
            async with self._store.work() as work:
                await work.reception.put_positions(self._account, self._platform, batch)
        except DenizenError as error:  # locked, or a full disk: what is not written now is written later
            _log.warning("positions are not written", extra={"agent": self._account, "code": error.code})
            self._unwritten = {**batch, **self._unwritten}

    async def keep_writing(self) -> None:
        """Until it is cancelled; then once more."""
        try:
            while True:
                await anyio.sleep(WRITE_EVERY_S)
                await self.write()
        finally:
            with anyio.CancelScope(shield=True):
                await self.write()


def before(post_id: str) -> str:
    """The position right before a message: from there on it is read again."""
    return str(int(post_id) - 1) if post_id.isdecimal() else "0"

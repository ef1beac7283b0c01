"""The rooms of an account as they come and go: what is kept of them, and from where on they are read.

A room that is deleted takes along what was said in it (promise 3); one that the account only left does not. What is
said there is the business of `resident`, which calls this.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from denizen.domain.errors import Unavailable
from denizen.domain.room import Room, RoomKind
from denizen.engine.archive.backfill import BackfillPace
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.resident.positions import Positions, before
from denizen.engine.resident.proposing import Proposing
from denizen.engine.resident.receiver import Desk
from denizen.ports.archive import CountBy

_log = logging.getLogger("denizen.resident")


class Rooms:
    """One for each account."""

    def __init__(self, desk: Desk, positions: Positions, mirror: ArchiveMirror, proposing: Proposing) -> None:
        self._desk = desk
        self._positions = positions
        self._mirror = mirror
        self._proposing = proposing
        self._new_talks: set[str] = set()

    async def come(self, room: Room) -> None:
        """It is new, or has another name."""
        await self._mirror.rooms([room])
        if self._positions.find(room.id) is None:
            self._positions.advance(room.id, room.latest_post or "0")
            await self._positions.write()

    async def go(self, room_id: str, *, is_deleted: bool) -> None:
        self._positions.forget(room_id)
        if is_deleted:
            gone = await self._mirror.delete_room(self._desk.channel.platform, room_id)
            await self._proposing.forget_room(self._desk, room_id)
            _log.info("a room was deleted", extra={"room": room_id, "posts": gone})
        else:
            await self._mirror.close_room(self._desk.channel.platform, room_id)

    async def close_deleted(self, there: Sequence[Room]) -> None:
        """Those in which something was said and that were deleted while the account was away. What is `there` is not
        asked for; whatever cannot be known stays.
        """
        pace = BackfillPace(self._desk.clock)
        while True:
            try:
                for room_id in await self._find_deleted({room.id for room in there}):
                    await self.go(room_id, is_deleted=True)
            except Unavailable as error:
                await pace.fail(error)
            else:
                return

    async def _find_deleted(self, there: Collection[str]) -> Collection[str]:
        channel = self._desk.channel
        async with self._desk.store.work(write=False) as work:
            known = {room.id: room for room in await work.archive.list_rooms(channel.platform)}
            absent = [key for key, room in known.items() if key not in there and room.guild]
            counts = await work.archive.count(CountBy.ROOM, platform=channel.platform, rooms=absent, limit=len(absent))
        spoken = [known[each.key] for each in counts]
        above = {room.parent: known[room.parent] for room in spoken if room.parent in known}
        asked = {room.id: room for room in (*above.values(), *spoken) if room.id not in there}
        return await channel.find_deleted(list(asked.values())) if asked else ()

    def meet(self, room: Room, post_id: str) -> None:
        """Something is said there; in a room that nobody told of it is read from that on."""
        if self._positions.find(room.id) is None:
            self._positions.advance(room.id, before(post_id))
            if room.kind is RoomKind.DIRECT:
                self._new_talks.add(room.id)

    async def remember(self, room: Room) -> None:
        """Nobody lists direct talks, so one is written down before its first message is looked at."""
        if room.id in self._new_talks:
            async with self._desk.store.work() as work:
                await work.archive.put_room(room)
            await self._positions.write()
            self._new_talks.discard(room.id)

"""How much is mirrored and how far back: for the command line and the web."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.domain.archiving import OptOuts
from denizen.engine.archive.meaning import PostMeaning
from denizen.engine.archive.mirror import Mirror
from denizen.ports.store import Store


@dataclass(frozen=True, slots=True)
class RoomStatus:
    """One room with what the backfill fetched of it."""

    name: str
    fetched: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class ArchiveStatus:
    """`posts` does not count deleted ones; `meant` are found by meaning too. `opt_outs` are those that people and
    operators stored.
    """

    is_enabled: bool
    posts: int
    meant: int
    rooms: tuple[RoomStatus, ...]
    opt_outs: OptOuts


async def load_status(store: Store, mirror: Mirror, meaning: PostMeaning, platform: str) -> ArchiveStatus:
    opt_outs, meant = await mirror.load_opt_outs(platform), await meaning.count()
    async with store.work(write=False) as work:
        backfills = {row.room: row for row in await work.archive.list_backfills(platform)}
        rooms = tuple(
            RoomStatus(
                f"{room.parent_name} > {room.name}" if room.is_thread else room.name,
                backfills[room.id].fetched if room.id in backfills else 0,
                room.id in backfills and backfills[room.id].is_complete,
            )
            for room in await work.archive.list_rooms(platform)
        )
        total = await work.archive.total(platform)
    return ArchiveStatus(mirror.policy.enabled, total, meant, rooms, opt_outs)

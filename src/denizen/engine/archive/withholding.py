"""Talk is withheld from agents in the same unit of work in which something of it goes (promise 3).

A source that reads a channel of which something was deleted, closed or forgotten has nothing that may be published
until it is read anew, which is due at once (`reader.is_urgent`). So a process that dies right after does not lose that:
the next one publishes without it (`knowledge/snapshots`). Called by `mirror` and `privacy`, and when a source is
changed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from denizen.domain.ids import fresh
from denizen.domain.room import Post
from denizen.domain.source import Source, SourceKind, SourceState
from denizen.ports.store import UnitOfWork

CLOCKS_DIFFER = timedelta(minutes=1)
"""The time of a post is the platform's."""


async def withhold(work: UnitOfWork, platform: str, rooms: Collection[str] = ()) -> bool:
    """What was read of these channels, or of those that these threads are in; without rooms of all. False when no
    source reads any of them.
    """
    sources = await _find_sources(work, platform, await _with_channels(work, platform, rooms))
    for source in sources:
        await work.sources.put_state(withheld(source.id))
    return bool(sources)


async def withhold_posts(work: UnitOfWork, platform: str, posts: Sequence[Post]) -> bool:
    """Likewise of the channels in which these are, unless all of them are too new to have been read. A reading that
    goes on meanwhile begins anew in any case: the state is not what it was.
    """
    if not posts:
        return False
    is_withheld = False
    rooms = {room for post in posts for room in (post.room, post.parent) if room}
    states = {state.source_id: state for state in await work.sources.list_states()}
    for source in await _find_sources(work, platform, await _with_channels(work, platform, rooms)):
        state = states.get(source.id)
        if state is None or state.taken is None or _is_read(state, min(post.created_at for post in posts)):
            is_withheld = True
            await work.sources.put_state(withheld(source.id))
        else:
            await work.sources.put_state(replace(state, revision=fresh("gone")))
    return is_withheld


def withheld(source_id: str) -> SourceState:
    """Different each time, so that a reading that has begun before notices it."""
    return SourceState(source_id=source_id, revision=fresh("gone"))


def _is_read(state: SourceState, said_at: datetime) -> bool:
    return state.synced_at is None or said_at <= state.synced_at + CLOCKS_DIFFER


async def _with_channels(work: UnitOfWork, platform: str, rooms: Collection[str]) -> set[str]:
    known = [await work.archive.find_room(platform, room) for room in rooms]
    return {*rooms, *(room.channel for room in known if room is not None)}


async def _find_sources(work: UnitOfWork, platform: str, rooms: Collection[str]) -> list[Source]:
    return [
        source
        for source in await work.sources.list_sources()
        if source.kind is SourceKind.ARCHIVE
        and source.location.partition(":")[0] == platform
        and (not rooms or source.location.partition(":")[2] in rooms)
    ]

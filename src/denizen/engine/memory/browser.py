"""The memories of all agents, for the people who run the place: found, corrected and deleted, each change audited.

An agent reads only what may come up where it answers (`keeper`); here nothing is limited but private talk, which
owners alone may read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from denizen.domain.audit import AuditEvent, AuditKind, digest_text
from denizen.domain.clock import Clock
from denizen.domain.errors import Conflict, NotFound
from denizen.domain.ids import fresh
from denizen.domain.json import Json
from denizen.domain.memory import ID_CHARS, Memory
from denizen.domain.principal import Principal, RoleName
from denizen.domain.room import RoomKind
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.ports.memory import MemorySearch
from denizen.ports.store import Store


class MemoryBrowser:
    """Used by the command line and the web, which decide who may come here. `keeper` writes what is corrected."""

    def __init__(self, store: Store, clock: Clock, keeper: MemoryKeeper) -> None:
        self._store = store
        self._clock = clock
        self._keeper = keeper

    async def count(self, viewer: Principal, wanted: MemorySearch) -> int:
        """Returns how many memories the search has that the viewer may read."""
        async with self._store.work(write=False) as work:
            return await work.memories.count(_limit(viewer, wanted))

    async def search(self, viewer: Principal, wanted: MemorySearch) -> Sequence[Memory]:
        async with self._store.work(write=False) as work:
            return await work.memories.search(_limit(viewer, wanted))

    async def get(self, viewer: Principal, memory_id: str) -> Memory:
        """Raises NotFound, for a private one too unless the viewer is an owner."""
        async with self._store.work(write=False) as work:
            found = await work.memories.find(memory_id)
        if found is None or (found.told_at.private and not _reads_private(viewer)):
            raise NotFound(
                "There is no such memory.", code="memory_not_found", fix="It may be forgotten. List them again."
            )
        return found

    async def name_rooms(self, memories: Sequence[Memory]) -> Mapping[tuple[str, str], str]:
        """Returns the names of the rooms where they were told, by platform and id, of those that have one."""
        places = {(each.told_at.platform, each.told_at.room) for each in memories}
        async with self._store.work(write=False) as work:
            rooms = [await work.archive.find_room(*place) for place in sorted(places)]
        return {
            (room.platform, room.id): " · ".join(filter(None, (room.guild_name, f"#{room.name}")))
            for room in rooms
            if room is not None and room.kind is not RoomKind.DIRECT
        }

    async def rewrite(self, actor: Principal, memory_id: str, text: str) -> Memory:
        """Has another text told instead, to the same people, and by the same person, whose forgetting takes it along.
        Raises NotFound, InvalidInput for a text that cannot be remembered, and Conflict for a memory that is history.
        """
        old = await self.get(actor, memory_id)
        if old.superseded_at is not None:
            raise Conflict(
                "This memory is history already.", code="memory_superseded", fix=f"Change {old.superseded_by} instead."
            )
        if " ".join(text.split()) == old.text:
            return old
        fields = {"id": fresh("mem")[:ID_CHARS], "text": text, "created_at": self._clock.now()}
        new = await self._keeper.add(replace(old, **fields), replaces=(old.id,))
        async with self._store.work() as work:
            details: dict[str, Json] = {"act": "rewrite", "by": new.id, "text": digest_text(new.text)}
            await work.audit.add([self._event(actor, old.id, details)])
        return new

    async def forget(self, actor: Principal, memory_id: str) -> int:
        """Deletes the memory with its history. Returns how many texts went. Raises NotFound."""
        found = await self.get(actor, memory_id)
        async with self._store.work() as work:
            gone = await work.memories.remove([found.id])
            await work.audit.add([self._event(actor, found.id, {"act": "forget", "texts": gone})])
        return gone

    async def forget_teller(self, actor: Principal, teller: str) -> int:
        """Deletes everything that this principal told, by its key. Returns how many memories went."""
        async with self._store.work() as work:
            gone = await work.memories.forget_teller(teller)
            await work.audit.add([self._event(actor, teller, {"act": "forget", "texts": gone})])
        return gone

    def _event(self, actor: Principal, subject: str, details: dict[str, Json]) -> AuditEvent:
        return AuditEvent(AuditKind.DATA, self._clock.now(), actor.key, subject, details)


def _reads_private(viewer: Principal) -> bool:
    return RoleName.OWNER in viewer.roles


def _limit(viewer: Principal, wanted: MemorySearch) -> MemorySearch:
    return replace(wanted, private=wanted.private and _reads_private(viewer))

"""The rooms of platforms as the archive has them, for those who look after an instance: posts, blocks, transcripts.

Owners see every room. Admins see those that everybody of a community may read now: what cannot be known counts as
private, and a room that somebody may not see is not found.
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.errors import DenizenError, NotFound
from denizen.domain.principal import Principal, RoleName
from denizen.domain.record import record
from denizen.domain.room import Post, Room, RoomKind
from denizen.domain.transcript import TranscriptBlock
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.configuration.generation import Runtime
from denizen.engine.prompt.room_transcript import RoomTranscript, TranscriptRequest, look_at_room_transcript
from denizen.ports.store import Store


@record
class RoomListing:
    """A room and how many closed blocks its transcript has."""

    room: Room
    blocks: int


@record
class RoomInspection:
    """Reads, and forgets closed blocks on request. All raise NotFound for a room that the reader may not see."""

    runtime: Runtime
    store: Store
    channels: ConnectedAccounts

    async def list_rooms(self, reader: Principal, platform: str) -> Sequence[RoomListing]:
        async with self.store.work(write=False) as work:
            rooms = await work.archive.list_rooms(platform)
            blocks = {room.id: len(await work.transcripts.list_blocks(room.place)) for room in rooms}
        return [RoomListing(room, blocks[room.id]) for room in rooms if await self._may_read(reader, room)]

    async def count_posts(self, platform: str) -> int:
        async with self.store.work(write=False) as work:
            return await work.archive.total(platform)

    async def find_room(self, reader: Principal, platform: str, room_id: str) -> Room | None:
        """Returns None for a room that the reader may not see, too."""
        async with self.store.work(write=False) as work:
            room = await work.archive.find_room(platform, room_id)
        return room if room is not None and await self._may_read(reader, room) else None

    async def get_room(self, reader: Principal, platform: str, room_id: str) -> RoomListing:
        async with self.store.work(write=False) as work:
            room = await work.archive.find_room(platform, room_id)
            blocks = await work.transcripts.list_blocks(room.place) if room is not None else ()
        if room is None or not await self._may_read(reader, room):
            raise NotFound(
                f"There is no room {room_id} on {platform}.",
                code="room_not_found",
                why="it is not mirrored, or not open to everybody",
                fix="GET /api/inspect/channels lists those that you may see.",
            )
        return RoomListing(room, len(blocks))

    async def list_posts(
        self, reader: Principal, platform: str, room_id: str, *, before: str = "", limit: int = 50
    ) -> Sequence[Post]:
        """Returns the newest posts before that one, oldest first."""
        await self.get_room(reader, platform, room_id)
        async with self.store.work(write=False) as work:
            return await work.archive.list_posts(platform, room_id, before=before, limit=limit)

    async def list_blocks(self, reader: Principal, platform: str, room_id: str) -> Sequence[TranscriptBlock]:
        """Returns where the closed blocks begin and end, oldest first."""
        found = await self.get_room(reader, platform, room_id)
        async with self.store.work(write=False) as work:
            return await work.transcripts.list_blocks(found.room.place)

    async def load_transcript(self, reader: Principal, platform: str, room_id: str, agent: str) -> RoomTranscript:
        """Returns the transcript as the agent would read it now. Nothing is closed by looking."""
        found, current = await self.get_room(reader, platform, room_id), self.runtime.current
        budget = current.agent(agent).history.transcript
        asked = TranscriptRequest(found.room.place, budget, budget, accounts=tuple(current.agents))
        return await look_at_room_transcript(self.store, asked)

    async def reset_blocks(self, reader: Principal, platform: str, room_id: str) -> int:
        """Forgets the closed blocks of a room, which its next turn cuts anew. Returns how many there were."""
        found = await self.get_room(reader, platform, room_id)
        return await reset_blocks(self.store, found.room)

    async def _may_read(self, reader: Principal, room: Room) -> bool:
        if RoleName.OWNER in reader.roles:
            return True
        if room.kind in (RoomKind.DIRECT, RoomKind.PRIVATE_THREAD):
            return False
        for channel in self.channels.list_platform(room.platform):
            try:
                if await channel.is_open(room):
                    return True
            except DenizenError:
                continue
        return False


async def reset_blocks(store: Store, room: Room) -> int:
    """Forgets the closed blocks of a room. Its posts stay, and the next turn there cuts blocks anew, for which the
    provider's cache is written once more. Returns how many there were.
    """
    async with store.work() as work:
        blocks = await work.transcripts.list_blocks(room.place)
        await work.transcripts.remove_blocks(room.place, [block.number for block in blocks])
    return len(blocks)

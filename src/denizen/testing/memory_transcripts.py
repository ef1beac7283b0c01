"""Closed blocks of transcripts in the memory store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from denizen.domain.conversation import Place
from denizen.domain.room import Post, is_newer
from denizen.domain.transcript import Archived, Block
from denizen.ports.transcripts import PostRange
from denizen.testing.memory_unit import Unit


class MemoryTranscripts:
    """`denizen.ports.transcripts.TranscriptBlocks`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def list_blocks(self, place: Place) -> Sequence[Block]:
        rows = self._unit.tables.blocks.items()
        return sorted((block for (at, _), block in rows if at == place), key=lambda block: block.number)

    async def add_blocks(self, place: Place, closed: Sequence[Block]) -> int:
        self._unit.check_writes()
        for added, block in enumerate(closed):
            known = await self.list_blocks(place)
            if any(block.number == other.number or block.first == other.first for other in known):
                return added
            self._unit.put(self._unit.tables.blocks, (place, block.number), block)
        return len(closed)

    async def renew_block(self, place: Place, block: Block, *, digest: str) -> bool:
        self._unit.check_writes()
        rows, key = self._unit.tables.blocks, (place, block.number)
        if key not in rows or rows[key].digest != digest:
            return False
        self._unit.put(rows, key, block)
        return True

    async def remove_blocks(self, place: Place, numbers: Collection[int]) -> None:
        self._unit.check_writes()
        self._unit.remove(self._unit.tables.blocks, *((place, number) for number in numbers))

    async def list_range(self, stretch: PostRange, *, changed: bool = False) -> Sequence[Archived]:
        found = [self._archived(post) for post in self._within(stretch)]
        return [each for each in found if not changed or each.post.edited_at or each.post.deleted_at]

    async def count_range(self, stretch: PostRange) -> int:
        return len(self._within(stretch))

    async def find_archived(self, platform: str, post_ids: Collection[str]) -> Sequence[Archived]:
        rows = self._unit.tables.posts
        found = [rows[platform, key] for key in set(post_ids) if (platform, key) in rows]
        return [self._archived(post) for post in _in_order(found)]

    def _within(self, stretch: PostRange) -> list[Post]:
        rows = self._unit.tables.posts.values()
        return _in_order(
            post
            for post in rows
            if (post.platform, post.room) == (stretch.platform, stretch.room)
            and not is_newer(stretch.first, post.id)
            and not is_newer(post.id, stretch.last)
        )

    def _archived(self, post: Post) -> Archived:
        versions = self._unit.tables.versions.get((post.platform, post.id), ())
        return Archived(post, tuple(version.text for version in versions))


def _in_order(posts: Iterable[Post]) -> list[Post]:
    return sorted(posts, key=lambda post: (len(post.id), post.id))

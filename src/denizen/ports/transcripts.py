"""Transcripts in the store: where the closed blocks of a place begin and end, and what lies in them. Part of a unit of
work.

The text of a block is not kept: it is built from the archive, and its hash tells whether it is still the same. All
agents of a place share its blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from denizen.domain.conversation import Place
from denizen.domain.transcript import Archived, Block


@dataclass(frozen=True, slots=True)
class PostRange:
    """The posts of a room from one id to another, both of them included."""

    platform: str
    room: str
    first: str
    last: str


class TranscriptBlocks(Protocol):
    async def list_blocks(self, place: Place) -> Sequence[Block]:
        """Oldest first."""
        ...

    async def add_blocks(self, place: Place, closed: Sequence[Block]) -> int:
        """Returns how many were added: one whose number or first post is taken already (another process was faster)
        ends it.
        """
        ...

    async def renew_block(self, place: Place, block: Block, *, digest: str) -> bool:
        """Replaces the block of that number, if it still has that digest."""
        ...

    async def remove_blocks(self, place: Place, numbers: Collection[int]) -> None: ...

    async def list_range(self, stretch: PostRange, *, changed: bool = False) -> Sequence[Archived]:
        """Its posts in order, deleted ones too; with `changed` only those that were edited or deleted."""
        ...

    async def count_range(self, stretch: PostRange) -> int:
        """How many posts lie in it, deleted ones too. Cheap."""
        ...

    async def find_archived(self, platform: str, post_ids: Collection[str]) -> Sequence[Archived]:
        """Those that are here, deleted ones too."""
        ...

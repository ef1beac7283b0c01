"""The transcript blocks of places in the store: where closed blocks begin and end, and what lies in them. Part of a
unit of work.

The text of a block is not stored: it is built from the archive, and its hash tells whether it is still the same. All
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
    """The posts of a room from one id to another, both included."""

    platform: str
    room: str
    first: str
    last: str


class TranscriptBlocks(Protocol):
    """The closed blocks of transcripts."""

    async def list_blocks(self, place: Place) -> Sequence[Block]:
        """Returns the blocks, oldest first."""
        ...

    async def add_blocks(self, place: Place, closed: Sequence[Block]) -> int:
        """Adds blocks in order and returns how many were added. It stops at a block whose number or first post is
        taken already, because another process was faster.
        """
        ...

    async def renew_block(self, place: Place, block: Block, *, digest: str) -> bool:
        """Replaces the block with that number, if it still has that digest. Returns whether it did."""
        ...

    async def remove_blocks(self, place: Place, numbers: Collection[int]) -> None: ...

    async def list_range(self, stretch: PostRange, *, changed: bool = False) -> Sequence[Archived]:
        """Returns the posts in order, deleted ones too; with `changed` only those that were edited or deleted."""
        ...

    async def count_range(self, stretch: PostRange) -> int:
        """Returns how many posts lie in the range, deleted ones too. Cheap."""
        ...

    async def find_archived(self, platform: str, post_ids: Collection[str]) -> Sequence[Archived]:
        """Returns those of the posts that are archived, deleted ones too."""
        ...

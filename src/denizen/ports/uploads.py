"""The ports of uploads: their bytes, and pictures in a form that is safe to show."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

from denizen.domain.upload import UploadPath

EncodeImage: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Returns a picture as WebP, at most `MAX_IMAGE_EDGE` pixels wide and high and without anything else that was in the
file. Raises InvalidInput for one that cannot be read or is too large, NeedsAttention where pictures cannot be read.
"""


class UploadFiles(Protocol):
    """The bytes of uploads. All methods raise Unavailable when the disk fails."""

    async def write(self, path: UploadPath, data: bytes) -> None:
        """Stores the file, or replaces one that has its path."""
        ...

    async def read(self, path: UploadPath) -> bytes | None:
        """Returns the bytes; None where there is no such file."""
        ...

    async def remove(self, path: UploadPath) -> bool:
        """Removes the file. False where there is none."""
        ...

    async def remove_chat(self, owner: str, chat: str) -> None:
        """Removes the files of a chat, by the names of the two folders."""
        ...

    async def list_paths(self, owner: str) -> Sequence[UploadPath]:
        """Returns all files of an owner, by the name of the folder."""
        ...

    async def remove_owner(self, owner: str) -> None:
        """Removes all files of an owner, by the name of the folder."""
        ...

    async def total_bytes(self, owner: str) -> int:
        """Returns the size of all files of an owner, by the name of the folder."""
        ...

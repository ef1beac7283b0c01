"""The folder of answers learned from people: one Markdown file each, read as a source like any other.

Implemented by `adapters/files`. Raises NeedsAttention when the disk cannot be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class LearnedAnswerFiles(Protocol):
    """The files of learned answers. Files that somebody else put into the folder are left alone."""

    @property
    def location(self) -> str:
        """The location of the folder, as a source has it."""
        ...

    async def list_files(self) -> Mapping[str, str]:
        """Returns file names with the id of the proposal that each was made of; empty ids for other files."""
        ...

    async def read(self, name: str) -> str:
        """Returns the text of a file; empty when there is none."""
        ...

    async def write(self, name: str, text: str) -> None:
        """Writes a file atomically, readable by its owner only."""
        ...

    async def remove(self, name: str) -> None:
        """Removes a file. Removing one that is gone is no error."""
        ...

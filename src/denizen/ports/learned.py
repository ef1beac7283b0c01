"""The folder of answers that were learned from people: a file of Markdown each, read as a source like any other.

Implemented by `adapters/files`. Errors: NeedsAttention when the disk cannot be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class LearnedAnswerFiles(Protocol):
    """Files that somebody else put there are left alone."""

    @property
    def location(self) -> str:
        """Of the folder, as a source has it."""
        ...

    async def list_files(self) -> Mapping[str, str]:
        """Names to the ids of the proposals that the files were made of; all others with an empty id."""
        ...

    async def read(self, name: str) -> str:
        """Empty when there is none."""
        ...

    async def write(self, name: str, text: str) -> None:
        """At once or not at all, for the owner of the home folder only."""
        ...

    async def remove(self, name: str) -> None:
        """Removing what is gone is no error."""
        ...

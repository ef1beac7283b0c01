"""The port of the log that is kept, so that administrators can search it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from denizen.domain.log import LogEntry, LogFilter, LogStatistics


class LogArchive(Protocol):
    """The entries of the last days. Raises Unavailable where they cannot be read or written."""

    async def search(self, wanted: LogFilter, *, limit: int) -> Sequence[LogEntry]:
        """Returns the newest entries that pass, newest first."""
        ...

    async def count(self, wanted: LogFilter) -> int: ...

    async def sum_up(self, wanted: LogFilter) -> LogStatistics: ...

    async def measure(self) -> int:
        """Returns how many bytes the entries take."""
        ...

    async def purge(self, wanted: LogFilter) -> int:
        """Deletes the entries that pass, and returns how many there were."""
        ...

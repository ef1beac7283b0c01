"""The port of read-only SQL over the store, for questions of administrators that no other query answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from denizen.domain.json import Json
from denizen.domain.record import record


@record
class SqlRows:
    """The rows that a query gave, cut to what a reader may return. `is_cut`: there are more."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Json]]
    is_cut: bool = False


class SqlReader(Protocol):
    """Runs a SELECT over views that hold no secrets."""

    def describe(self) -> str:
        """Returns the views and their columns, one view a line."""
        ...

    async def select(self, query: str) -> SqlRows:
        """Raises InvalidInput for anything but one SELECT on the views, with the reason; LimitExceeded for a query that
        takes too long; Unavailable when the database does not answer.
        """
        ...

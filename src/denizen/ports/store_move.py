"""Moving the store to another database while it is in use, and telling what it holds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from denizen.domain.store_move import MoveProgress, StoreStatus


class StoreMove(Protocol):
    """The move of the store of this process to the database that the configuration names (`store.move_to`)."""

    @property
    def progress(self) -> MoveProgress: ...

    async def status(self) -> StoreStatus:
        """Counts the rows of every table."""
        ...

    async def find_target(self) -> str:
        """Returns where the configuration has the store moved to, without a password; empty for nowhere. Raises
        InvalidInput when what it says there cannot be used.
        """
        ...

    async def start(self) -> None:
        """Begins to move in the background, or goes on with a move. Raises InvalidInput when the configuration names no
        target or a secret is missing, Conflict while a move is under way and when the store is there already,
        NotAllowed where nothing runs for long enough.
        """
        ...

    def cancel(self) -> None:
        """Stops a move before its switch; the store stays where it is. Raises Conflict when it is too late, or when
        nothing is moved.
        """
        ...

    def follow(self) -> AsyncGenerator[MoveProgress]:
        """Yields how far the move is, now and then, and last how it ended."""
        ...

"""The store: the database in use with the rows of each table, and moving everything to another. For owners."""

from __future__ import annotations

from denizen_sdk.calls import ClientCalls
from denizen_sdk.records import from_json, record


@record
class StoreTable:
    """A table and the number of its rows."""

    table: str
    rows: int


@record(kw_only=True)
class StoreMoveInfo:
    """How far a move is. `stage` is idle, copying, following changes, comparing, switching, done, failed or cancelled;
    `done` and `total` count rows while it copies and tables while it compares; `problem` explains a failure.
    """

    stage: str
    target: str
    table: str
    done: int
    total: int
    pause_s: float
    problem: str


@record(kw_only=True)
class StoreInfo:
    """The database in use, `sqlite` or `postgresql`, and where it is, without a password. `begun` is where a move goes
    that has begun and not ended, in this process or another.
    """

    backend: str
    place: str
    tables: tuple[StoreTable, ...]
    move: StoreMoveInfo
    begun: str


class StoreCalls(ClientCalls):
    """The calls of `/api/store`. All raise NetworkError, and ApiError (403 for everybody but owners, 400 where
    `store.move_to` names no usable database, 409 for a move that is under way, done, or cannot be stopped any more).
    """

    async def get_store(self) -> StoreInfo:
        """Counts the rows of every table."""
        return await self._get(StoreInfo, "/api/store")

    async def start_store_move(self) -> StoreMoveInfo:
        """Begins to move everything to the database of `store.move_to`, or goes on with that. `get_store` tells how far
        it is; at the end the server restarts itself.
        """
        return from_json(StoreMoveInfo, await self._connection.request("POST", "/api/store/move"))

    async def cancel_store_move(self) -> StoreMoveInfo:
        """Stops a move before its switch. The store stays where it is."""
        return from_json(StoreMoveInfo, await self._connection.request("POST", "/api/store/move/cancel"))

"""Moving the whole store from one database to another: how far it is, and what a store holds."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from denizen.domain.record import record

STORE_MOVED = "store_moved"
"""The code of the error of a write to a database whose data is elsewhere now."""


class MoveStage(StrEnum):
    """The step of a move. It goes through these in their order, unless it fails or is cancelled."""

    IDLE = "idle"
    COPYING = "copying"
    FOLLOWING = "following changes"
    VERIFYING = "comparing"
    SWITCHING = "switching"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@record(kw_only=True)
class MoveProgress:
    """How far a move is. `done` and `total` count rows in COPYING and tables in VERIFYING; `pause_s` is how long nobody
    could write, once it is DONE; `problem` explains a failure.
    """

    stage: MoveStage = MoveStage.IDLE
    target: str = ""
    table: str = ""
    done: int = 0
    total: int = 0
    pause_s: float = 0.0
    problem: str = ""

    @property
    def is_running(self) -> bool:
        return self.stage not in {MoveStage.IDLE, MoveStage.DONE, MoveStage.FAILED, MoveStage.CANCELLED}


@record
class TableRows:
    """A table and the number of its rows."""

    table: str
    rows: int


@record(kw_only=True)
class StoreStatus:
    """The database in use (`sqlite` or `postgresql`), where it is without a password, its tables, and a move. `begun`
    is where a move goes that has begun and not ended, in this process or another.
    """

    backend: str
    place: str
    tables: Sequence[TableRows]
    move: MoveProgress
    begun: str = ""

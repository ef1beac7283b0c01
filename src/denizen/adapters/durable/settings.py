"""The settings of durable execution."""

from __future__ import annotations

from pathlib import Path

from denizen.domain.record import record

SCHEMA = "denizen_durable"
"""The Postgres schema of the log. In SQLite the log has a file of its own."""


@record
class DurableSettings:
    """`database` is the SQLite file (`<home>/durable.db`) or a Postgres URL.

    Every `heartbeat_s` a process renews its lease and looks for runs of dead processes. On Postgres a process that was
    silent for `expiry_s` counts as dead (one on the same machine at once, when its pid is gone); on SQLite a file lock
    tells at once. `rescue` is off for short commands that should not take over other processes' work. `patience_s`
    limits how long starting, submitting and reading wait for the database. Ended runs are forgotten after `keep_days`;
    until then their ids cannot be started again.

    Several processes on one Postgres can share the work: one that does not `execute` hands all its runs in, and one
    that `claims` takes up what is handed in, while it works on fewer than `max_claimed`; what runs in a lane is always
    handed in there. One that is alone takes up what such processes have left.
    """

    database: Path | str
    schema: str = SCHEMA
    heartbeat_s: float = 10.0
    expiry_s: float = 30.0
    rescue: bool = True
    patience_s: float = 30.0
    keep_days: float = 30.0
    execute: bool = True
    claims: bool = False
    max_claimed: int = 200

    @property
    def inherits(self) -> bool:
        """Whether the process runs alone and takes up what several processes have left."""
        return self.rescue and self.execute and not self.claims and not isinstance(self.database, Path)

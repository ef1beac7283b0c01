"""The database under the log: opening it, waiting for it, closing it, and explaining its faults.

The differences between SQLite and Postgres are here and in `lease`. It imports the vendors, so import it only when a
log is opened. Called by `recovery` and `log`.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from dbos._error import DBOSException
from dbos._migration import get_migration_versions, get_sqlite_migration_versions
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from denizen.adapters.durable.settings import DurableSettings
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, Unavailable

_REFUSALS = {"authentication failed": "28P01", "no pg_hba.conf entry": "28000", "does not exist": "3D000"}

FAULTS = (SQLAlchemyError, DBOSException, OSError)
"""The exceptions that `explain` translates."""


def explain(error: BaseException) -> DenizenError:
    """Translates a fault of the database to an error; the vendor's words go into the context, for the log."""
    fault: BaseException | None = error
    while fault is not None and not isinstance(fault, (*FAULTS, DenizenError)):
        fault = fault.__context__
    if isinstance(fault, DenizenError):
        return fault
    cause: object = fault.orig if isinstance(fault, DBAPIError) else fault or error
    detail = {"detail": str(cause)}
    if isinstance(cause, sqlite3.Error):
        return _explain_sqlite(getattr(cause, "sqlite_errorname", ""), detail)
    if isinstance(cause, psycopg.Error):
        return _explain_postgres(cause.sqlstate or _guess_state(cause), detail)
    if isinstance(fault, (OperationalError, PoolTimeoutError)):
        return _unreachable(detail)
    return _unusable(detail)


def _explain_sqlite(name: str, detail: dict[str, Any]) -> DenizenError:
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Unavailable(
            "The durable log is in use by another process.",
            code="durable_locked",
            why="Another process holds the database locked.",
            fix="Wait until it is done, or end the program that has durable.db open.",
            **detail,
        )
    if name.startswith("SQLITE_FULL"):
        return _disk_full(detail)
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return NeedsAttention(
            "The durable log is damaged.",
            code="durable_damaged",
            why="durable.db is not a readable SQLite database.",
            fix="Restore it from a backup, or move it away: work that was under way is lost then.",
            **detail,
        )
    return _unusable(detail)


def _unusable(detail: dict[str, Any]) -> NeedsAttention:
    return NeedsAttention(
        "The durable log cannot be used.",
        code="durable_unusable",
        why="Its database cannot be opened, read or written.",
        fix="Look in the log for the reason. durable.db must belong to the user that runs Denizen.",
        **detail,
    )


def _guess_state(error: psycopg.Error) -> str:
    """Guesses the state from the server's words: while it connects, libpq gives no state."""
    words = str(error)
    return next((state for hint, state in _REFUSALS.items() if hint in words), "")


def _explain_postgres(state: str, detail: dict[str, Any]) -> DenizenError:
    if state == "53100":
        return _disk_full(detail)
    if state.startswith(("28", "3D", "42501")):
        return NeedsAttention(
            "The database refuses Denizen.",
            code="durable_refused",
            why="Postgres does not accept the user, the password, or the database name, or the user lacks a right.",
            fix="Check the database URL; the user needs the right to create a schema.",
            **detail,
        )
    return _unreachable(detail)


def _disk_full(detail: dict[str, Any]) -> NeedsAttention:
    return NeedsAttention(
        "The disk is full.",
        code="disk_full",
        why="The durable log cannot be written.",
        fix="Free some space; work that was under way goes on by itself.",
        **detail,
    )


def _unreachable(detail: dict[str, Any]) -> Unavailable:
    return Unavailable(
        "The database does not answer.",
        code="durable_unreachable",
        why="The durable log cannot be reached.",
        fix="Check that the database runs and that the URL is right; Denizen goes on by itself when it is back.",
        **detail,
    )


_logger = logging.getLogger("denizen.durable")

CLOSED = "The durable log is closed."

_POOL_SIZE = 8
_POOL_TIMEOUT_S = 3600.0
"""Longer than any outage that work should wait for. Closing the database ends the wait."""
_BUSY_TIMEOUT_S = 5.0
_CONNECT_TIMEOUT_S = 5
_RECONNECT_S = 1.0
_IDLE_IN_TRANSACTION_TIMEOUT_MS = 60_000
"""Ends the transaction of a process that froze, so that it does not hold its locks for ever."""


class DurableDatabase:
    """The engine that DBOS and the lease share.

    Once the database was reachable, everything that needs a connection waits for it as long as it takes: a run pauses
    while its database is away. DBOS would also wait, but in threads that nothing can wake, and the process could not
    end.
    """

    def __init__(self, settings: DurableSettings) -> None:
        self._settings = settings
        self._closed = threading.Event()
        self._patient = False
        self._away = False
        self.is_sqlite = isinstance(settings.database, Path)
        if isinstance(settings.database, Path):
            settings.database.parent.mkdir(parents=True, exist_ok=True)
            # What people say is in it.
            settings.database.touch(mode=0o600)
            self.engine = _sqlite_engine(settings.database, min(_BUSY_TIMEOUT_S, settings.patience_s))
        else:
            if not settings.database.startswith(("postgresql:", "postgresql+", "postgres:")):
                raise InvalidInput(
                    "The database of the durable log is not known.",
                    code="durable_database",
                    why="It is neither a file for SQLite nor the URL of a Postgres database.",
                    fix="Use a URL that begins with postgresql://.",
                )
            self.engine = _postgres_engine(settings.database)
            event.listen(self.engine, "do_connect", self._connect)
        event.listen(self.engine, "checkout", self._refuse_when_closed)

    def needs_migration(self) -> bool:
        """Connects and tells whether the schema of DBOS must be upgraded.

        Raises NeedsAttention when a newer version wrote the log, and faults of the database.
        """
        if self.is_sqlite:
            self.check_write()  # DBOS would wait for ever while another process holds it locked
            found, known = get_sqlite_migration_versions(self.engine)
        else:
            found, known = get_migration_versions(self.engine, self._settings.schema, use_listen_notify=False)
        if found > known:
            raise NeedsAttention(
                "The durable log was written by a newer version of Denizen.",
                code="durable_newer",
                why=f"Its schema is version {found}; this program knows up to {known}.",
                fix="Start the newer version again, or restore the log from before the upgrade.",
            )
        self._patient = True
        return found < known

    def check_write(self) -> None:
        """Connects, and begins to write. Raises faults of the database, and waits while it is away."""
        with self.engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE" if self.is_sqlite else "SELECT 1")
            connection.exec_driver_sql("ROLLBACK")

    def refuse(self) -> None:
        """Makes every query fail from now on, including those that wait for a connection."""
        self._closed.set()

    def close(self) -> None:
        self.refuse()
        self.engine.dispose()

    def _refuse_when_closed(self, *_: object) -> None:
        if self._closed.is_set():
            raise Unavailable(CLOSED, code="durable_closed")

    def _connect(self, dialect: sa.Dialect, _record: object, args: tuple[Any, ...], options: dict[str, Any]) -> object:
        while True:
            self._refuse_when_closed()
            try:
                connection = dialect.connect(*args, **options)
            except psycopg.OperationalError as error:
                if not self._patient:
                    raise
                if not self._away:
                    self._away = True
                    _logger.warning("the database of the durable log is away, work waits for it: %s", error)
                self._closed.wait(_RECONNECT_S)
                continue
            self._away = False
            return connection


def _enter_wal(connection: sqlite3.Connection, patience_s: float) -> None:
    """Switches the file to WAL mode and waits for other processes.

    SQLite does not wait by itself here: without this, two processes that open a new file at once would fail.
    """
    until_s = time.monotonic() + patience_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until_s:
                raise
            time.sleep(0.01)
        else:
            return


def _sqlite_engine(path: Path, busy_timeout_s: float) -> sa.Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)), pool_size=_POOL_SIZE, max_overflow=0, pool_timeout=_POOL_TIMEOUT_S
    )

    def configure(connection: sqlite3.Connection, _record: object) -> None:
        # A transaction that reads before it writes must not find a second writer in between.
        connection.isolation_level = "IMMEDIATE"
        connection.execute(f"PRAGMA busy_timeout={int(busy_timeout_s * 1000)}")
        _enter_wal(connection, busy_timeout_s)
        for pragma in ("synchronous=NORMAL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    event.listen(engine, "connect", configure)
    return engine


def _postgres_engine(url: str) -> sa.Engine:
    return sa.create_engine(
        sa.make_url(url).set(drivername="postgresql+psycopg"),
        pool_size=_POOL_SIZE,
        max_overflow=0,
        pool_timeout=_POOL_TIMEOUT_S,
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": _CONNECT_TIMEOUT_S,
            "application_name": "denizen-durable",
            # A connection whose other end is gone must not hold up the heartbeat until others take over.
            "keepalives_idle": 5,
            "keepalives_interval": 5,
            "keepalives_count": 2,
            "tcp_user_timeout": 15_000,
            "options": f"-c idle_in_transaction_session_timeout={_IDLE_IN_TRANSACTION_TIMEOUT_MS}",
        },
    )

"""Faults of the database under the log, as errors that say who has to act.

Imports the vendors, so it is imported where one of them has raised, or when a log is opened.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg
from dbos._error import DBOSException
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from denizen.domain.errors import DenizenError, NeedsAttention, Unavailable

_REFUSALS = {"authentication failed": "28P01", "no pg_hba.conf entry": "28000", "does not exist": "3D000"}

FAULTS = (SQLAlchemyError, DBOSException, OSError)
"""What `explain` is for."""


def explain(error: BaseException) -> DenizenError:
    """What a fault of the database means for who has to act; the vendor's words are in the context, for the log."""
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
    """While it connects, libpq gives no state, only the server's words."""
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

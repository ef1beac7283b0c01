"""Durable execution: in memory, on SQLite and on Postgres it is the same."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import psycopg
import pytest

from denizen.adapters.durable.durable import DbosExecution
from denizen.adapters.durable.settings import DurableSettings
from denizen.ports.durable import DurableExecution
from denizen.testing.memory_durable import MemoryDurable, MemoryLog
from tests.contracts.durable.contract import DurableContract
from tests.contracts.durable.processes import Processes

pytest_plugins = ["tests.postgres"]


class MemoryProcesses:
    def __init__(self) -> None:
        self.log = MemoryLog()

    def create(self) -> DurableExecution:
        return MemoryDurable(self.log)

    async def kill(self, durable: DurableExecution) -> None:
        assert isinstance(durable, MemoryDurable)
        await durable.crash()


class DbosProcesses:
    """Killed as far as this is possible from within; `test_kill` does it to real processes."""

    def __init__(self, settings: DurableSettings) -> None:
        self.settings = settings
        self.created: list[DbosExecution] = []

    def create(self) -> DurableExecution:
        self.created.append(DbosExecution(self.settings))
        return self.created[-1]

    async def kill(self, durable: DurableExecution) -> None:
        await durable.aclose()

    async def aclose(self) -> None:
        for durable in self.created:
            await durable.aclose()


@pytest.mark.anyio
class TestMemory(DurableContract):
    @pytest.fixture
    def processes(self) -> Processes:
        return MemoryProcesses()


@pytest.mark.anyio
class TestSQLite(DurableContract):
    @pytest.fixture
    async def processes(self, tmp_path: Path) -> AsyncGenerator[Processes]:
        processes = DbosProcesses(DurableSettings(database=tmp_path / "durable.db"))
        yield processes
        await processes.aclose()


@pytest.fixture(scope="module")
def shared_url(postgres_server: str) -> Generator[str]:
    """One database for all tests: making a log takes longer than most of them."""
    from tests.postgres import new_database

    with new_database(postgres_server) as url:
        yield url


@pytest.mark.anyio
@pytest.mark.xdist_group("postgres")
class TestPostgres(DurableContract):
    @pytest.fixture
    async def processes(self, shared_url: str) -> AsyncGenerator[Processes]:
        processes = DbosProcesses(DurableSettings(database=shared_url))
        yield processes
        await processes.aclose()
        with psycopg.connect(shared_url, autocommit=True) as connection:
            for table in ("workflow_status", "workflow_input", "workflow_output", "operation_outputs"):
                connection.execute(f"TRUNCATE denizen_durable.{table} CASCADE")

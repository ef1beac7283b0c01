"""A store on a new database of any dialect."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from denizen.adapters.store.database import SqlStore
from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.migrator import migrate
from denizen.domain.clock import Clock, SystemClock


@asynccontextmanager
async def open_store_on(dialect: SqlDialect, clock: Clock | None = None) -> AsyncGenerator[SqlStore]:
    migrate(dialect)
    store = SqlStore(dialect, clock or SystemClock())
    yield store
    await store.aclose()

"""How long moving an archive from SQLite to Postgres takes while somebody writes, and how long nobody can.

    python -m benchmarks move [POSTGRES_URL]

The database is empty; without a URL a Postgres is started for it. `POSTS=1000000` in the environment moves more.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from benchmarks.archive import made_up_posts
from benchmarks.in_flight import open_database
from denizen.adapters.store import open_dialect, open_store
from denizen.adapters.store.plain_rows import TableDigest, digest_table, list_plain_tables
from denizen.app.settings.load import load_settings
from denizen.app.store_move import HomeStoreMove
from denizen.domain.clock import SystemClock
from denizen.domain.errors import DenizenError
from denizen.domain.store_move import STORE_MOVED
from denizen.ports.store import Store

POSTS = int(os.environ.get("POSTS", "200000"))
WRITE_EVERY_S = 0.05


@dataclass
class Writer:
    """Adds posts one by one until the store is closed for writing."""

    written: int = 0
    longest_s: float = 0.0

    async def run(self, store: Store) -> None:
        for page in made_up_posts(range(POSTS, 2 * POSTS)):
            for post in page:
                began_s = time.perf_counter()
                try:
                    async with store.work() as work:
                        await work.archive.put([post])
                except DenizenError as error:
                    if error.code != STORE_MOVED:
                        raise
                    return
                finally:
                    self.longest_s = max(self.longest_s, time.perf_counter() - began_s)
                self.written += 1
                await anyio.sleep(WRITE_EVERY_S)


def digest(url: str) -> dict[str, TableDigest]:
    with open_dialect(url).engine.connect() as connection:
        return {table.name: digest_table(connection, table) for table in list_plain_tables()}


async def measure(home: Path, database: str) -> None:
    settings, writer = load_settings(home, {}), Writer()
    moving = HomeStoreMove(settings, {})
    old = settings.store_url
    store = await open_store(old, clock=SystemClock())
    began_s = time.perf_counter()
    for page in made_up_posts(range(POSTS)):
        async with store.work() as work:
            await work.archive.put(page)
    print(f"{POSTS} posts written to SQLite in {time.perf_counter() - began_s:.0f} s", flush=True)
    began_s = time.perf_counter()
    async with anyio.create_task_group() as group:
        group.start_soon(writer.run, store)
        await moving.run(database)
    took_s = time.perf_counter() - began_s
    await store.aclose()
    before, after = await to_thread.run_sync(digest, old), await to_thread.run_sync(digest, database)
    rows = sum(each.rows for each in after.values())
    print(f"{rows} rows moved in {took_s:.0f} s ({rows / took_s:.0f}/s), {writer.written} of them written meanwhile")
    print(f"nobody could write for {moving.progress.pause_s:.2f} s; the longest write took {writer.longest_s:.2f} s")
    differing = [name for name in before if before[name] != after[name]]
    print(f"counts and hashes of {len(before)} tables: {', '.join(differing) + ' differ' if differing else 'equal'}")


def main(url: str = "") -> None:
    with open_database(url) as database, tempfile.TemporaryDirectory() as folder:
        anyio.run(measure, Path(folder), database)

"""Reads a home's databases beside the command."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import anyio

from denizen.adapters.store import open_store
from denizen.domain.clock import SystemClock
from denizen.domain.message import Role, join_text
from denizen.domain.turn import Turn

Talk = Sequence[tuple[Role, str]]


def read_turns(url: str, limit: int = 100) -> list[tuple[Turn, Talk]]:
    """The turns, newest first, with the messages of their sessions."""

    async def read() -> list[tuple[Turn, Talk]]:
        store = await open_store(url, clock=SystemClock())
        try:
            async with store.work(write=False) as work:
                turns = await work.turns.list_turns(limit=limit)
                tails = [await work.messages.list_tail(turn.session_id, limit=50) for turn in turns]
        finally:
            await store.aclose()
        talks = [[(message.role, join_text(message.parts)) for message in tail] for tail in tails]
        return list(zip(turns, talks, strict=True))

    return anyio.run(read)


def count_rows(database: Path, table: str) -> int:
    """Counts the rows of a table while a process works on the database."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


@contextmanager
def lock_database(database: Path) -> Generator[None]:
    """Another process is writing to a SQLite file, and does not come to an end."""
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")

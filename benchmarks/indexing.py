"""Indexing 40 MB of documents for search, beside the least that it could cost, while somebody else writes.

python -m benchmarks indexing                      SQLite in a temporary folder; half a minute
python -m benchmarks indexing postgresql://...     an empty database; what its server takes is not in the figures

The least is the same passages, cut already, in a bare table of SQLite with an index of full text and nothing else. The
ratio of the two is the figure to compare: both are processor time of the same run.
"""

from __future__ import annotations

import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

import anyio

from benchmarks.sources import texts
from denizen.adapters.library import ConvertedText, DocumentConverters, FileLibrary
from denizen.adapters.store import open_store
from denizen.domain.clock import SystemClock
from denizen.domain.snapshot import SnapshotPart
from denizen.domain.source import SourceKind
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.knowledge.index import DocumentIndexer
from denizen.ports.documents import IndexedDocument
from denizen.ports.source import ReadingProgress, SourceFile
from denizen.ports.store import Store

COUNT, AT_ONCE = 2000, 40
WRITE_EVERY_S = 0.02
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def run_bare(folder: Path) -> float:
    """Processor seconds of writing, without those of cutting."""
    spent_s = 0.0
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as database:
        database.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
            "CREATE TABLE passages (position INTEGER PRIMARY KEY, key TEXT, text TEXT, words TEXT);"
            "CREATE INDEX by_key ON passages (key);"
            "CREATE VIRTUAL TABLE found USING fts5("
            "words, content='passages', content_rowid='position', tokenize='porter unicode61');"
        )
        rows: list[tuple[int, str, str, str]] = []
        position = 0
        for number, text in enumerate(texts(COUNT), start=1):
            document = IndexedDocument.cut(f"docs/{number}.md", "library", "", text)
            for passage, key, words in zip(document.passages, document.keys, document.words, strict=True):
                position += 1
                rows.append((position, key, passage.text, words))
            if number % AT_ONCE == 0:
                spent_s += processor_s(lambda given=rows: _write(database, given))
                rows = []
    return spent_s


def _write(database: sqlite3.Connection, rows: Sequence[tuple[int, str, str, str]]) -> None:
    database.execute("BEGIN IMMEDIATE")
    database.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", rows)
    database.executemany("INSERT INTO found (rowid, words) VALUES (?, ?)", [(row[0], row[3]) for row in rows])
    database.execute("COMMIT")


def processor_s(act: Callable[[], None]) -> float:
    before_s = time.process_time()
    act()
    return time.process_time() - before_s


async def fill(library: FileLibrary) -> None:
    """A snapshot of all documents."""

    def files() -> Iterator[SourceFile]:
        for number, text in enumerate(texts(COUNT)):
            data = text.encode()
            yield SourceFile(f"{number}.md", len(data), lambda data=data: data)

    taken = await library.take(files(), _ignore)
    part = SnapshotPart(
        source_id="library",
        kind=SourceKind.FOLDER,
        label="library",
        folder="docs/library",
        location="/library",
        branch="",
        content_path="",
        revision="1",
        manifest=taken.manifest,
        files=taken.files,
    )
    await library.publish([part], now=NOON)


def _ignore(_progress: ReadingProgress) -> None:
    """Nobody watches."""


async def write_beside(store: Store, waits_ms: list[float]) -> None:
    """Something small, again and again, as turns do."""
    number = 0
    while True:
        begun_s = time.perf_counter()
        async with store.work() as work:
            await work.documents.put([IndexedDocument("beside.md", "beside", str(number))])
        waits_ms.append((time.perf_counter() - begun_s) * 1000)
        number += 1
        await anyio.sleep(WRITE_EVERY_S)


async def watch_loop(late_ms: list[float]) -> None:
    """How late a task runs that is due."""
    while True:
        begun_s = time.perf_counter()
        await anyio.sleep(WRITE_EVERY_S)
        late_ms.append((time.perf_counter() - begun_s - WRITE_EVERY_S) * 1000)


def _decode(data: bytes) -> ConvertedText:
    return ConvertedText(data.decode())


async def run(folder: Path, url: str) -> float:
    """Processor seconds of indexing, with those of the small writes beside it."""
    store, clock = await open_store(url or f"sqlite:///{folder}/store.db", clock=SystemClock()), SystemClock()
    plain = DocumentConverters(html=_decode, pdf=_decode)
    library = FileLibrary(folder / "library", plain, clock)
    await fill(library)
    waits_ms: list[float] = []
    late_ms: list[float] = []
    before_mb = _most_mb()
    begun_s, cpu_s = time.perf_counter(), time.process_time()
    async with anyio.create_task_group() as group:
        group.start_soon(write_beside, store, waits_ms)
        group.start_soon(watch_loop, late_ms)
        await DocumentIndexer(store, library, BudgetedEmbedder(), clock).catch_up()
        group.cancel_scope.cancel()
    cpu_s, took_s = time.process_time() - cpu_s, time.perf_counter() - begun_s
    async with store.work(write=False) as work:
        size = await work.documents.size()
    await store.aclose()
    print(f"{size.documents - 1} documents, {size.passages} passages: {cpu_s:.1f} s of processor time, {took_s:.1f} s")
    print(f"memory: {_most_mb() - before_mb:+.0f} MB at most")
    _show("small writes beside it", waits_ms)
    _show("the event loop is late by", late_ms)
    return cpu_s


def _most_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _show(name: str, values_ms: Sequence[float]) -> None:
    p95 = quantiles(values_ms, n=20)[-1]
    print(f"{name:26} median {median(values_ms):6.1f} ms  p95 {p95:6.1f} ms  most {max(values_ms):6.1f} ms")


def main(url: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        spent_s = anyio.run(run, Path(folder), url)
        least_s = run_bare(Path(folder))
    print(f"bare table with full text  {least_s:.1f} s of processor time: {spent_s / least_s:.2f} times that")

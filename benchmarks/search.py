"""Searching 100 000 passages: by words, by meaning, and both fused, beside one plain read of the same store.

python -m benchmarks search                      SQLite in a temporary folder; about a minute
python -m benchmarks search postgresql://...     an empty database; several minutes, mostly for pgvector's index

Made-up words in the proportions of a language, and vectors in clusters. The embedder's own time (20 ms a question for
the small model on this processor) is not in it.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from statistics import median, quantiles

from denizen.adapters.store import open_store
from denizen.app.knowledge import open_library
from denizen.domain.clock import SystemClock
from denizen.domain.passage import Passage, searchable_words
from denizen.domain.source import Source, SourceKind
from denizen.domain.vector import pack_vector
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.knowledge.index import DocumentSearch
from denizen.ports.documents import PASSAGE_VECTORS, IndexedDocument
from denizen.ports.embed import EmbeddingResult, EmbedKind
from denizen.ports.memory import StoredVector
from denizen.ports.store import Store

COUNT, PER_DOCUMENT, WORDS = 100_000, 50, 120
DIMENSIONS, CLUSTERS = 384, 200
ROUNDS = 60
SOURCES = ("a", "b", "c")
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


class Texts:
    """Always the same ones."""

    def __init__(self) -> None:
        self.random = random.Random(1)
        letters = "abcdefghijklmnoprstuvwz"
        self.words = ["".join(self.random.choices(letters, k=self.random.randint(3, 9))) for _ in range(30_000)]
        self.weights = list(accumulate(1 / (place + 1) for place in range(len(self.words))))
        self.centres = [[self.random.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(CLUSTERS)]

    @property
    def name(self) -> str:
        return "made-up"

    def some(self, count: int) -> str:
        return " ".join(self.random.choices(self.words, cum_weights=self.weights, k=count))

    def vector(self) -> list[float]:
        centre = self.centres[self.random.randrange(CLUSTERS)]
        return [value + self.random.gauss(0, 0.6) for value in centre]

    async def estimate_cost_usd(self, tokens: int) -> Decimal | None:
        return tokens * Decimal(0)

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
        """As an embedder, without the time that one takes."""
        del kind
        return EmbeddingResult([self.vector() for _ in texts])

    async def aclose(self) -> None:
        """Nothing is open."""


async def fill(store: Store, texts: Texts) -> None:
    async with store.work() as work:
        for name in SOURCES:
            source = Source(id=name, kind=SourceKind.FOLDER, location=f"/{name}", created_at=NOON, updated_at=NOON)
            await work.sources.put(source)
    for start in range(0, COUNT, 40 * PER_DOCUMENT):
        documents: list[IndexedDocument] = []
        vectors: list[StoredVector] = []
        for first in range(start, min(start + 40 * PER_DOCUMENT, COUNT), PER_DOCUMENT):
            source = SOURCES[first // PER_DOCUMENT % 3]
            keys = [f"{first + number}" for number in range(PER_DOCUMENT)]
            passages = [
                Passage(number, ("Chapter",), number, number, texts.some(WORDS)) for number in range(PER_DOCUMENT)
            ]
            path = f"docs/{source}/{first}.md"
            words = [searchable_words(path, passage) for passage in passages]
            documents.append(IndexedDocument(path, source, "d", passages, keys, words))
            vectors += [
                StoredVector(PASSAGE_VECTORS, source, key, texts.name, pack_vector(texts.vector())) for key in keys
            ]
        async with store.work() as work:
            await work.documents.put(documents)
            await work.vectors.put(vectors)
    async with store.work() as work:
        await work.documents.mark_indexed("snapshot")


async def measure(name: str, aim_ms: float, ask: Callable[[], Awaitable[object]]) -> None:
    await ask()
    took: list[float] = []
    cpu = time.process_time()
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        await ask()
        took.append((time.perf_counter() - begun) * 1000)
    cpu = (time.process_time() - cpu) * 1000 / ROUNDS
    aim = f"aim {aim_ms:.0f}" if aim_ms else ""
    times = f"median {median(took):6.1f} ms  p95 {quantiles(took, n=20)[-1]:6.1f} ms  own cpu {cpu:5.1f} ms"
    print(f"{name:34} {times}  {aim}")


async def run(url: str, home: Path) -> None:
    clock, texts = SystemClock(), Texts()
    store, library = await open_store(url, clock=clock), open_library(home, clock)
    begun = time.perf_counter()
    await fill(store, texts)
    print(f"{COUNT:,} passages written and indexed in {time.perf_counter() - begun:.0f} s")
    by_words = DocumentSearch(store, library, BudgetedEmbedder())
    fused = DocumentSearch(store, library, BudgetedEmbedder(lambda: texts))

    async def read() -> None:
        async with store.work(write=False) as work:
            await work.documents.find_indexed()

    await measure("a plain read", 0, read)
    await measure("by words", 20, lambda: by_words(texts.some(6)))
    await measure("by words and meaning", 60, lambda: fused(texts.some(6)))
    await measure("by words and meaning, one source", 60, lambda: fused(texts.some(6), sources=["b"]))
    await store.aclose()


def main(url: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(url or f"sqlite:///{folder}/store.db", Path(folder)))

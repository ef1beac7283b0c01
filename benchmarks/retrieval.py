"""How often a search finds the passage that a question was made of, beside plain BM25 and plain dense search.

python -m benchmarks retrieval                      2,000 and 20,000 passages, and 20,000 messages; SQLite
python -m benchmarks retrieval_large                180,000 passages; 5 minutes
python -m benchmarks retrieval_embedded             20,000 passages with vectors; half an hour of two processors
python -m benchmarks retrieval postgresql://...     an empty database

Texts and questions are in `benchmarks.corpus`: six words of a passage, a title with one word, the six words within a
sentence, and the first paragraph of docstrings for the rest of them. Plain BM25 is FTS5 over all words of the question,
in a bare table of the same texts; plain dense search compares whole vectors one by one. Up to EMBEDDED_PASSAGES have
vectors, made by the small model in about 45 ms each at most; the time for the question is in no figure. `cpu` is the
median of this process's processor time, which hardly changes on a machine that others use, too.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from statistics import median

from benchmarks.corpus import SOURCE, KnownItem, load_documents, load_paraphrases, make_questions
from denizen.adapters.embed import MINILM, EmbeddingPlaces, LocalEmbedder
from denizen.adapters.store import open_store
from denizen.app.knowledge import open_library
from denizen.domain.clock import SystemClock
from denizen.domain.message import Author
from denizen.domain.room import Post
from denizen.domain.source import Source, SourceKind
from denizen.domain.vector import pack_vector
from denizen.domain.words import split_words
from denizen.engine.archive.lookup import ArchiveQuery
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.knowledge.index import EMBEDDED_CHARS, DocumentSearch
from denizen.ports.archive import PostQuery
from denizen.ports.documents import PASSAGE_VECTORS, IndexedDocument
from denizen.ports.embed import EmbeddingResult, EmbedKind
from denizen.ports.memory import StoredVector
from denizen.ports.store import Store
from tests.contracts.store.records import PLATFORM, at

SIZES, LARGE, EMBEDDED = (2_000, 20_000), 180_000, 20_000
QUESTIONS = 150
PARAPHRASES = 600
EMBEDDED_PASSAGES = 2_500
SENTENCE = "How can I find something about {} in the manual, please?"
SHOWN = 10
ROOMS, AUTHORS = 12, 40
PUT_AT_ONCE = 40

Find = Callable[[str], Awaitable[Sequence[str]]]


@dataclass
class RecordedEmbedder:
    """The small model, whose vectors are made once: what is recorded before anything is measured costs nothing then."""

    model: LocalEmbedder
    vectors: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    @property
    def name(self) -> str:
        return self.model.name

    async def record(self, texts: Sequence[str]) -> None:
        if not texts:
            return
        made = await self.model.embed(texts, EmbedKind.DOCUMENT)
        self.vectors |= {text: list(vector) for text, vector in zip(texts, made.vectors, strict=True)}

    async def estimate_cost_usd(self, tokens: int) -> Decimal | None:
        return tokens * Decimal(0)

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
        del kind
        await self.record([text for text in texts if text not in self.vectors])
        return EmbeddingResult([self.vectors[text] for text in texts])

    async def aclose(self) -> None:
        await self.model.aclose()


class PlainBm25:
    """A bare table of FTS5, asked for any of the words."""

    def __init__(self, texts: Mapping[str, str], limit: int = SHOWN) -> None:
        self._keys = list(texts)
        self._limit = limit
        self._database = sqlite3.connect(":memory:")
        self._database.execute("CREATE VIRTUAL TABLE bare USING fts5(words, tokenize='porter unicode61')")
        self._database.executemany(
            "INSERT INTO bare (rowid, words) VALUES (?, ?)", enumerate(" ".join(split_words(t)) for t in texts.values())
        )

    async def __call__(self, question: str) -> list[str]:
        query = " OR ".join(f'"{word}"' for word in dict.fromkeys(split_words(question)))
        asked = "SELECT rowid FROM bare WHERE words MATCH ? ORDER BY rank LIMIT ?"
        return [self._keys[row[0]] for row in self._database.execute(asked, (query, self._limit))]


async def measure(name: str, questions: Sequence[KnownItem], find: Find) -> None:
    first = found = 0
    took_ms: list[float] = []
    cpu_ms: list[float] = []
    for asked in questions:
        begun, cpu = time.perf_counter(), time.process_time()
        keys = list(dict.fromkeys(await find(asked.question)))[:SHOWN]
        took_ms.append((time.perf_counter() - begun) * 1000)
        cpu_ms.append((time.process_time() - cpu) * 1000)
        first += keys[:1] == [asked.key]
        found += asked.key in keys
    count = len(questions)
    hits = f"hit@1 {first / count:.3f}  hit@{SHOWN} {found / count:.3f}"
    print(f"  {name:24} {hits}  p50 {median(took_ms):6.1f} ms  cpu {median(cpu_ms):6.1f} ms", flush=True)


async def fill(store: Store, documents: Sequence[IndexedDocument]) -> None:
    now = at(0)
    async with store.work() as work:
        await work.sources.put(
            Source(id=SOURCE, kind=SourceKind.FOLDER, location="/texts", created_at=now, updated_at=now)
        )
        await work.documents.remove(list(await work.documents.list_digests()))
    for start in range(0, len(documents), PUT_AT_ONCE):
        async with store.work() as work:
            await work.documents.put(documents[start : start + PUT_AT_ONCE])
    async with store.work() as work:
        await work.documents.mark_indexed(str(len(documents)))


async def embed(
    store: Store, documents: Sequence[IndexedDocument], asked: Sequence[KnownItem], embedder: RecordedEmbedder
) -> dict[str, list[float]]:
    """Gives every passage its vector, and returns them by key."""
    described = {
        key: passage.described[:EMBEDDED_CHARS]
        for document in documents
        for key, passage in zip(document.keys, document.passages, strict=True)
    }
    await embedder.record([*described.values(), *(each.question for each in asked)])
    vectors = {key: embedder.vectors[text] for key, text in described.items()}
    async with store.work() as work:
        await work.vectors.put(
            [
                StoredVector(PASSAGE_VECTORS, SOURCE, key, embedder.name, pack_vector(vector))
                for key, vector in vectors.items()
            ]
        )
    return vectors


async def search_passages(store: Store, home: Path, passages: int, embedded: int) -> None:
    documents = load_documents(passages)
    sets = {kind: make_questions(documents, QUESTIONS, of_titles=kind == "titles") for kind in ("texts", "titles")}
    sets["sentences"] = [KnownItem(SENTENCE.format(each.question), each.key) for each in sets["texts"]]
    await search_documents(store, home, documents, sets, embedded)


async def search_paraphrases(store: Store, home: Path) -> None:
    documents, questions = load_paraphrases(PARAPHRASES)
    await search_documents(store, home, documents, {"paraphrases": questions}, EMBEDDED_PASSAGES)


async def search_documents(
    store: Store,
    home: Path,
    documents: Sequence[IndexedDocument],
    sets: Mapping[str, Sequence[KnownItem]],
    embedded: int,
) -> None:
    """Makes vectors when there are no more passages than `embedded`."""
    words = {key: text for each in documents for key, text in zip(each.keys, each.words, strict=True)}
    await fill(store, documents)
    library = open_library(home, SystemClock())
    by_words = DocumentSearch(store, library, BudgetedEmbedder())
    finds: dict[str, Find] = {"words": lambda question: _list_keys(by_words, question), "plain BM25": PlainBm25(words)}
    if len(words) <= embedded:
        embedder = RecordedEmbedder(LocalEmbedder(MINILM, EmbeddingPlaces(home)))
        vectors = await embed(store, documents, [each for some in sets.values() for each in some], embedder)
        fused = DocumentSearch(store, library, BudgetedEmbedder(lambda: embedder))

        async def find_near(question: str) -> list[str]:
            asked = pack_vector(embedder.vectors[question])
            async with store.work(write=False) as work:
                near = await work.vectors.find_nearest(PASSAGE_VECTORS, [SOURCE], embedder.name, asked, limit=SHOWN)
            return [each.key for each in near]

        async def find_dense(question: str) -> list[str]:
            asked = embedder.vectors[question]
            return sorted(vectors, key=lambda key: -sum(a * b for a, b in zip(asked, vectors[key], strict=True)))

        finds |= {"meaning": find_near, "plain dense": find_dense}
        finds["words and meaning"] = lambda question: _list_keys(fused, question)
    for kind, questions in sets.items():
        print(f"{len(words):,} passages, {len(questions)} questions of {kind}")
        for name, find in finds.items():
            await measure(name, questions, find)


async def _list_keys(search: DocumentSearch, question: str) -> list[str]:
    return [each.key for each in await search(question, limit=SHOWN)]


async def search_posts(store: Store, count: int) -> None:
    """Paragraphs of the texts as messages, found by questions that have words which no message needs to have."""
    chosen = random.Random(11)
    paragraphs = dict.fromkeys(
        " ".join(part.split())
        for document in load_documents(count)
        for passage in document.passages
        for part in passage.text.split("\n\n")
        if 40 < len(part) < 400
    )
    texts = {str(10**17 + number): text for number, text in enumerate(list(paragraphs)[:count])}
    posts = [
        Post(PLATFORM, key, str(number % ROOMS), Author(str(number % AUTHORS), "somebody"), text, at(number / 60))
        for number, (key, text) in enumerate(texts.items())
    ]
    for start in range(0, len(posts), PUT_AT_ONCE * 10):
        async with store.work() as work:
            await work.archive.put(posts[start : start + PUT_AT_ONCE * 10])
    questions: list[KnownItem] = []
    for key in chosen.sample(list(texts), QUESTIONS * 2):
        words = [word for word in dict.fromkeys(split_words(texts[key])) if word.isalpha() and len(word) > 3]
        if len(words) > 5 and len(questions) < QUESTIONS:
            questions.append(KnownItem(f"Who was it that said something of {' '.join(chosen.sample(words, 4))}?", key))

    async def find(question: str) -> list[str]:
        asked = ArchiveQuery(words=question, room="", author="", since=None, until=None, limit=SHOWN)
        query = PostQuery(
            " ".join(asked.selecting),
            platform=PLATFORM,
            rooms=[str(number) for number in range(ROOMS)],
            limit=SHOWN,
            also=question,
        )
        async with store.work(write=False) as work:
            return [hit.post.id for hit in await work.archive.search(query)]

    print(f"{len(posts):,} messages, {len(questions)} questions")
    await measure("words", questions, find)
    await measure("plain BM25", questions, PlainBm25(texts))


async def run(url: str, home: Path, sizes: Sequence[int], embedded: int) -> None:
    store = await open_store(url, clock=SystemClock())
    for size in sizes:
        await search_passages(store, home, size, embedded)
    if sizes == SIZES:
        await search_paraphrases(store, home)
        await search_posts(store, SIZES[-1])
    await store.aclose()


def main(url: str = "") -> None:
    _run_in_folder(url, SIZES)


def main_large(url: str = "") -> None:
    _run_in_folder(url, (LARGE,))


def main_embedded(url: str = "") -> None:
    _run_in_folder(url, (EMBEDDED,), embedded=2 * EMBEDDED)


def _run_in_folder(url: str, sizes: Sequence[int], embedded: int = EMBEDDED_PASSAGES) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(url or f"sqlite:///{folder}/store.db", Path(folder), sizes, embedded))

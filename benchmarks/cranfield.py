"""Relevance of what a search finds on the Cranfield collection: 1,400 abstracts, 225 questions, and what people judged.

python -m benchmarks cranfield file:///FOLDER     words, meaning and both, beside plain BM25; some minutes

FOLDER holds `cran.all.1400`, `cran.qry` and `cranqrel`, as the University of Glasgow gives them away; they come with no
licence and are not part of this project. nDCG at 10, where judgements 1 to 4 count one and all others nothing.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from urllib.parse import unquote, urlsplit

from benchmarks.corpus import SOURCE, KnownItem
from benchmarks.retrieval import PlainBm25, RecordedEmbedder, embed, fill
from denizen.adapters.embed import MINILM, EmbeddingPlaces, LocalEmbedder
from denizen.adapters.store import open_store
from denizen.app.knowledge import open_library
from denizen.domain.clock import SystemClock
from denizen.domain.vector import pack_vector
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.knowledge.index import DocumentSearch
from denizen.ports.documents import PASSAGE_VECTORS, IndexedDocument
from denizen.ports.store import Store

PLACES = 10
PASSAGES = 30
"""More than places, since an abstract may be two passages."""
FILES = ("cran.all.1400", "cran.qry", "cranqrel")
RELEVANT = frozenset({"1", "2", "3", "4"})

_FIELD = re.compile(r"^\.([A-Z])[ \t]*(.*)$", re.MULTILINE)

Find = Callable[[str], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Cranfield:
    """Abstracts as Markdown, and questions, by number; `relevant` are the numbers of abstracts for each question."""

    abstracts: Mapping[str, str]
    questions: Mapping[str, str]
    relevant: Mapping[str, Collection[str]]


def load_cranfield(folder: Path) -> Cranfield:
    """Raises FileNotFoundError for a folder without one of the files."""
    texts = {name: (folder / name).read_text(encoding="latin-1") for name in FILES}
    abstracts: dict[str, str] = {}
    for number, fields in _split_records(texts["cran.all.1400"]):
        # The text of an abstract begins with its title.
        title = fields.get("T", "").rstrip(" .")
        abstracts[number] = f"# {title}\n\n{fields.get('W', '').removeprefix(fields.get('T', '')).strip()}\n"
    # Judgements count the questions, whose own numbers have gaps.
    records = enumerate(_split_records(texts["cran.qry"]), start=1)
    questions = {str(place): fields.get("W", "") for place, (_, fields) in records}
    relevant: dict[str, set[str]] = {}
    for line in texts["cranqrel"].splitlines():
        parts = line.split()
        if len(parts) == 3 and parts[2] in RELEVANT:
            relevant.setdefault(parts[0], set()).add(parts[1])
    return Cranfield(abstracts, questions, relevant)


def _split_records(text: str) -> list[tuple[str, dict[str, str]]]:
    """Records begin with `.I NUMBER`; their fields are letters, each with the lines up to the next."""
    records: list[tuple[str, dict[str, str]]] = []
    marks = list(_FIELD.finditer(text))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        if mark.group(1) == "I":
            records.append((mark.group(2).strip(), {}))
        elif records:
            value = text[mark.end() : following.start() if following else len(text)]
            records[-1][1].setdefault(mark.group(1), " ".join(value.split()))
    return records


def measure_ndcg(found: Sequence[str], relevant: Collection[str]) -> float:
    gain = sum(1 / log2(place + 1) for place, key in enumerate(found[:PLACES], start=1) if key in relevant)
    best = sum(1 / log2(place + 1) for place in range(1, min(len(relevant), PLACES) + 1))
    return gain / best if best else 0.0


async def run(collection: Cranfield, home: Path) -> None:
    documents = [
        IndexedDocument.cut(f"docs/{number}.md", SOURCE, "1", text) for number, text in collection.abstracts.items()
    ]
    numbers = {key: Path(each.path).stem for each in documents for key in each.keys}
    store = await open_store(f"sqlite:///{home}/store.db", clock=SystemClock())
    await fill(store, documents)
    asked = [KnownItem(question, "") for question in collection.questions.values()]
    embedder = RecordedEmbedder(LocalEmbedder(MINILM, EmbeddingPlaces(home)))
    await embed(store, documents, asked, embedder)
    library = open_library(home, SystemClock())
    words = {key: text for each in documents for key, text in zip(each.keys, each.words, strict=True)}
    finds: dict[str, Find] = {
        "plain BM25": PlainBm25(words, PASSAGES),
        "words": _find_with(DocumentSearch(store, library, BudgetedEmbedder())),
        "meaning": _find_near(store, embedder),
        "words and meaning": _find_with(DocumentSearch(store, library, BudgetedEmbedder(lambda: embedder))),
    }
    for name, find in finds.items():
        scores = [
            measure_ndcg([*dict.fromkeys(numbers[key] for key in await find(question))], relevant)
            for place, question in collection.questions.items()
            if (relevant := collection.relevant.get(place))
        ]
        print(f"  {name:24} nDCG@{PLACES} {sum(scores) / max(len(scores), 1):.3f}  {len(scores)} questions", flush=True)
    await store.aclose()


def _find_with(search: DocumentSearch) -> Find:
    async def find(question: str) -> list[str]:
        return [each.key for each in await search(question, limit=PASSAGES)]

    return find


def _find_near(store: Store, embedder: RecordedEmbedder) -> Find:
    async def find(question: str) -> list[str]:
        asked = pack_vector(embedder.vectors[question])
        async with store.work(write=False) as work:
            near = await work.vectors.find_nearest(PASSAGE_VECTORS, [SOURCE], embedder.name, asked, limit=PASSAGES)
        return [each.key for each in near]

    return find


def main(url: str = "") -> None:
    folder = Path(unquote(urlsplit(url).path)) if url.startswith("file://") else None
    if folder is None or not all((folder / name).is_file() for name in FILES):
        print(f"  not measured: give a folder with {', '.join(FILES)} as file:///FOLDER", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as home:
        asyncio.run(run(load_cranfield(folder), Path(home)))

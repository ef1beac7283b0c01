"""Documents and their passages in the memory store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from denizen.domain.words import words_of
from denizen.ports.documents import PASSAGE_VECTORS, IndexedDocument, IndexedPassage, IndexSize
from denizen.testing.memory_unit import Unit


class MemoryDocuments:
    """`denizen.ports.documents.DocumentRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def find_indexed(self) -> str:
        return self._unit.tables.indexed.get(PASSAGE_VECTORS, "")

    async def mark_indexed(self, snapshot: str) -> None:
        self._unit.check_writes()
        self._unit.put(self._unit.tables.indexed, PASSAGE_VECTORS, snapshot)

    async def list_digests(self) -> Mapping[str, str]:
        return {path: document.digest for path, document in self._unit.tables.documents.items()}

    async def put(self, documents: Sequence[IndexedDocument]) -> None:
        self._unit.check_writes()
        for document in documents:
            self._unit.remove(self._unit.tables.documents, document.path)
            self._unit.put(self._unit.tables.documents, document.path, document)

    async def remove(self, paths: Collection[str]) -> int:
        self._unit.check_writes()
        rows = self._unit.tables.documents
        there = [path for path in paths if path in rows]
        self._unit.remove(rows, *there)
        return len(there)

    async def find_by_words(self, words: str, *, sources: Collection[str] = (), limit: int) -> Sequence[str]:
        wanted = set(words_of(words))
        scores: Counter[str] = Counter()
        for each in self._passages():
            if not sources or each.source_id in sources:
                text = words_of(f"{each.path} {each.passage.described}")
                scores[each.key] = sum(word in wanted for word in text)
        return [key for key, score in scores.most_common() if score][: max(limit, 0)]

    async def list_passages(self, keys: Sequence[str]) -> Sequence[IndexedPassage]:
        known = list(self._passages())
        return [each for key in dict.fromkeys(keys) for each in known if each.key == key]

    async def list_without_vector(self, model: str, *, limit: int) -> Sequence[IndexedPassage]:
        known = {each.key: each for each in reversed(list(self._passages()))}
        missing = [
            known[key] for key in reversed(known) if (PASSAGE_VECTORS, key, model) not in self._unit.tables.vectors
        ]
        return missing[: max(limit, 0)]

    async def count_without_vector(self, model: str) -> int:
        return len(await self.list_without_vector(model, limit=len(list(self._passages()))))

    async def sweep_vectors(self) -> int:
        self._unit.check_writes()
        rows, known = self._unit.tables.vectors, {each.key for each in self._passages()}
        gone = [key for key in rows if key[0] == PASSAGE_VECTORS and key[1] not in known]
        self._unit.remove(rows, *gone)
        return len(gone)

    async def size(self) -> IndexSize:
        return IndexSize(len(self._unit.tables.documents), sum(1 for _ in self._passages()))

    def _passages(self) -> Iterator[IndexedPassage]:
        for document in self._unit.tables.documents.values():
            for passage, key in zip(document.passages, document.keys, strict=True):
                yield IndexedPassage(key, document.path, document.source_id, passage)

"""The port of the document index: documents of the current snapshot, cut into passages and found by words or by
embedding.

The index is made from the library, and made again whenever it is lost. Part of a unit of work. Written by the indexing
of `engine/knowledge`, read by its search. `VectorRepository` holds the vectors of passages in the collection
PASSAGE_VECTORS, under the passage's key and in the namespace of its source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from denizen.domain.embedding_progress import EmbeddingPace
from denizen.domain.passage import Passage, passage_key, searchable_words, split_passages
from denizen.domain.ranking import Match
from denizen.domain.record import record
from denizen.domain.terms import has_german
from denizen.domain.words import fold_words

PASSAGE_VECTORS = "passage"
LANGUAGE_CHARS = 2000
"""The beginning of a document, which tells its language."""


@record
class IndexedDocument:
    """A file of the snapshot with its passages. `digest` identifies its content.

    `keys` are the keys of the passages, `words` the searchable words of each (see `denizen.domain.passage`).
    """

    path: str
    source_id: str
    digest: str
    passages: Sequence[Passage] = ()
    keys: Sequence[str] = ()
    words: Sequence[str] = ()

    @classmethod
    def cut(cls, path: str, source_id: str, digest: str, text: str) -> IndexedDocument:
        """Returns the document with the passages of its text. Takes a while for a long text."""
        passages = split_passages(path, text)
        is_german = has_german(fold_words(text[:LANGUAGE_CHARS]))
        return cls(
            path=path,
            source_id=source_id,
            digest=digest,
            passages=passages,
            keys=[passage_key(source_id, each) for each in passages],
            words=[searchable_words(path, each, is_german=is_german) for each in passages],
        )


@record
class IndexedPassage:
    """A passage as the index holds it. `key` is derived from its source and text."""

    key: str
    path: str
    source_id: str
    passage: Passage


@record
class IndexSize:
    """The size of the index."""

    documents: int
    passages: int


class DocumentRepository(Protocol):
    """The indexed documents and their passages."""

    async def find_indexed(self) -> str:
        """Returns the snapshot that the index was made of, as told to `mark_indexed`; empty before the first."""
        ...

    async def mark_indexed(self, snapshot: str) -> None: ...

    async def list_digests(self) -> Mapping[str, str]:
        """Returns the digest of every document, by path."""
        ...

    async def put(self, documents: Sequence[IndexedDocument]) -> None:
        """Adds documents. Each replaces the one that had its path."""
        ...

    async def remove(self, paths: Collection[str]) -> int:
        """Removes documents with their passages. Returns how many there were."""
        ...

    async def find_by_words(
        self, words: str, *, also: str = "", sources: Collection[str] = (), limit: int
    ) -> Sequence[Match]:
        """Returns passages that contain some of these words, by key, the best first. The words in `also` count for the
        order, but find nothing by themselves. No sources means all.
        """
        ...

    async def list_passages(self, keys: Sequence[str]) -> Sequence[IndexedPassage]:
        """Returns passages in the order of the keys. The same text of one source may stand in several places."""
        ...

    async def list_without_vector(self, model: str, *, limit: int) -> Sequence[IndexedPassage]:
        """Returns passages without a vector of the model, one for each key, those that were put last first."""
        ...

    async def count_without_vector(self, model: str) -> int:
        """Returns the number of different passages without a vector of the model."""
        ...

    async def count_keys(self) -> int:
        """Returns the number of different passages."""
        ...

    async def put_pace(self, pace: EmbeddingPace) -> None:
        """Notes how quickly passages were embedded, for other processes that tell how far it is."""
        ...

    async def find_pace(self) -> EmbeddingPace | None: ...

    async def sweep_vectors(self) -> int:
        """Removes vectors whose passage is gone. Returns how many."""
        ...

    async def size(self) -> IndexSize: ...

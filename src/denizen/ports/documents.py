"""The documents of the current snapshot as search knows them: cut into passages, found by words and by meaning.

An index of what the library has, made again whenever it is lost. Part of a unit of work. Written by
`engine/knowledge/indexing`, asked by `engine/knowledge/search`. Vectors of passages are in the collection PASSAGES of
`VectorRepository`, under the passage's key, on the shelf of its source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from denizen.domain.passage import Passage, key_of, split_passages, words_in

PASSAGES = "passage"


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A file of the snapshot; `digest` stands for its content. `keys` are those of its passages (`passage.key_of`), and
    `words` what is searched of them (`passage.words_in`).
    """

    path: str
    source_id: str
    digest: str
    passages: Sequence[Passage] = ()
    keys: Sequence[str] = ()
    words: Sequence[str] = ()

    @classmethod
    def cut(cls, path: str, source_id: str, digest: str, text: str) -> IndexedDocument:
        """With the passages of its text. Takes a while for a long one."""
        passages = split_passages(path, text)
        keys = [key_of(source_id, each) for each in passages]
        return cls(path, source_id, digest, passages, keys, [words_in(path, each) for each in passages])


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    key: str
    path: str
    source_id: str
    passage: Passage


@dataclass(frozen=True, slots=True)
class IndexSize:
    documents: int
    passages: int


class DocumentRepository(Protocol):
    async def find_indexed(self) -> str:
        """What `mark_indexed` was told last: the snapshot that the index is of. Empty before."""
        ...

    async def mark_indexed(self, snapshot: str) -> None: ...

    async def list_digests(self) -> Mapping[str, str]:
        """Of every document, by path."""
        ...

    async def put(self, documents: Sequence[IndexedDocument]) -> None:
        """Each takes the place of what had its path."""
        ...

    async def remove(self, paths: Collection[str]) -> int:
        """With their passages. Returns how many were there."""
        ...

    async def find_by_words(self, words: str, *, sources: Collection[str] = (), limit: int) -> Sequence[str]:
        """Keys of the passages that have the rarer of these words, the best first. Without sources in all of them."""
        ...

    async def list_passages(self, keys: Sequence[str]) -> Sequence[IndexedPassage]:
        """In the order of the keys; the same words of one source may stand in several places."""
        ...

    async def list_without_vector(self, model: str, *, limit: int) -> Sequence[IndexedPassage]:
        """One for each key."""
        ...

    async def count_without_vector(self, model: str) -> int:
        """Different passages."""
        ...

    async def sweep_vectors(self) -> int:
        """Removes vectors whose passage is not there any more. Returns how many."""
        ...

    async def size(self) -> IndexSize: ...

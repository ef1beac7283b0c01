"""Searching documents as an engineer would: by words and by meaning, fused by rank, as passages with path and lines.

What is found is of the snapshot that is indexed, and for everybody: sources are chosen by who runs Denizen. Skills get
here through `denizen.skill.SearchDocuments`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from denizen.domain.errors import NotFound
from denizen.domain.ranking import fuse, telling_words
from denizen.engine.meaning import Meaning, usual_similarity
from denizen.ports.documents import PASSAGES, IndexedPassage
from denizen.ports.store import Store

RANKED = 50
"""Of each ranking."""
PER_DOCUMENT = 3
"""A long document must not fill the answer."""


class DocumentSearch:
    """One for a process. `similarity` is asked each time."""

    def __init__(self, store: Store, meaning: Meaning, similarity: Callable[[], float] = usual_similarity) -> None:
        self._store = store
        self._meaning = meaning
        self._similarity = similarity

    async def __call__(
        self, question: str, *, sources: Collection[str] = (), limit: int = 6
    ) -> Sequence[IndexedPassage]:
        """The best first, at most PER_DOCUMENT of a document. Raises NotFound for a source that is not there."""
        words = " ".join(telling_words(question))
        asked = await self._meaning.of_question(question) if question.strip() else None
        async with self._store.work(write=False) as work:
            known = [source.id for source in await work.sources.list_sources()]
            _check(sources, known)
            by_words = await work.documents.find_by_words(words, sources=sources, limit=RANKED)
            by_meaning: list[str] = []
            if asked is not None:
                near = await work.vectors.find_nearest(
                    PASSAGES, sources or known, asked.model, asked.vector, limit=RANKED
                )
                by_meaning = [each.key for each in near if each.similarity >= self._similarity()]
            found = await work.documents.list_passages(fuse(by_words, by_meaning))
        return _spread(found, limit)


def _check(sources: Collection[str], known: Sequence[str]) -> None:
    for each in sources:
        if each not in known:
            raise NotFound(
                f"There is no source '{each}'.",
                code="source_not_found",
                fix=f"Known sources: {', '.join(known) or 'none'}.",
            )


def _spread(found: Sequence[IndexedPassage], limit: int) -> list[IndexedPassage]:
    of_documents: Counter[str] = Counter()
    chosen: list[IndexedPassage] = []
    for each in found:
        if of_documents[each.path] < PER_DOCUMENT and len(chosen) < limit:
            of_documents[each.path] += 1
            chosen.append(each)
    return chosen

"""Searching documents as an engineer would: by words and by meaning, fused by rank, as passages with path and lines.

What is found is of the snapshot that is indexed, and for everybody: sources are chosen by who runs Denizen. Talk is
found only as it stands in the current snapshot, however far the index is: people take back what they said (promise 3).
Skills get here through `denizen.skill.SearchDocuments`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from denizen.domain.errors import NotFound
from denizen.domain.ranking import fuse, telling_words
from denizen.engine.meaning import Meaning, usual_similarity
from denizen.ports.documents import PASSAGE_VECTORS, IndexedPassage
from denizen.ports.source import Library
from denizen.ports.store import Store

RANKED = 50
"""Of each ranking."""
PER_DOCUMENT = 3
"""A long document must not fill the answer."""


class DocumentSearch:
    """One for a process. `similarity` is asked each time."""

    def __init__(
        self, store: Store, library: Library, meaning: Meaning, similarity: Callable[[], float] = usual_similarity
    ) -> None:
        self._store = store
        self._library = library
        self._meaning = meaning
        self._similarity = similarity

    async def __call__(
        self, question: str, *, sources: Collection[str] = (), limit: int = 6
    ) -> Sequence[IndexedPassage]:
        """The best first, at most PER_DOCUMENT of a document. Raises NotFound for a source that is not there."""
        words = " ".join(telling_words(question))
        asked = await self._meaning.of_question(question) if question.strip() else None
        async with self._store.work(write=False) as work:
            known = {source.id: source.is_talk for source in await work.sources.list_sources()}
            _check(sources, known)
            by_words = await work.documents.find_by_words(words, sources=sources, limit=RANKED)
            by_meaning: list[str] = []
            if asked is not None:
                near = await work.vectors.find_nearest(
                    PASSAGE_VECTORS, sources or list(known), asked.model, asked.vector, limit=RANKED
                )
                by_meaning = [each.key for each in near if each.similarity >= self._similarity()]
            found = await work.documents.list_passages(fuse(by_words, by_meaning))
        return await self._spread([each for each in found if each.source_id in known], known, limit)

    async def _spread(
        self, found: Sequence[IndexedPassage], is_talk: Mapping[str, bool], limit: int
    ) -> list[IndexedPassage]:
        of_documents: Counter[str] = Counter()
        texts: dict[str, str] = {}
        chosen: list[IndexedPassage] = []
        for each in found:
            if of_documents[each.path] == PER_DOCUMENT or len(chosen) >= limit:
                continue
            if is_talk[each.source_id]:
                if each.path not in texts:
                    document = await self._library.find_document(each.path)
                    texts[each.path] = _plain(document.text) if document else ""
                if _plain(each.passage.text) not in texts[each.path]:
                    continue
            of_documents[each.path] += 1
            chosen.append(each)
        return chosen


def _check(sources: Collection[str], known: Collection[str]) -> None:
    for each in sources:
        if each not in known:
            raise NotFound(
                f"There is no source '{each}'.",
                code="source_not_found",
                fix=f"Known sources: {', '.join(known) or 'none'}.",
            )


def _plain(text: str) -> str:
    """Line ends are not the same wherever a text was read."""
    return "\n".join(text.splitlines())

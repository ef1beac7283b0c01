"""The meaning of questions and of texts, as vectors of the embedder that is configured now.

Without one, or while it does not answer, there is none, and words have to do: callers go on. Used by `memory`,
`knowledge` and `archive`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from denizen.domain.errors import DenizenError
from denizen.domain.vector import pack
from denizen.ports.embed import Embedder, EmbedKind

QUESTION_PATIENCE_S = 5.0
"""How long a turn waits for the meaning of its question."""
TEXTS_PATIENCE_S = 5.0
"""For texts, and a second more for each."""

_log = logging.getLogger("denizen.meaning")


def no_embedder() -> None:
    """Words only."""


def usual_similarity() -> float:
    """A cosine below which texts have nothing to do with each other, as the small model has it."""
    return 0.3


@dataclass(frozen=True, slots=True)
class Question:
    """`vector` is packed; it may be compared with those of the same model."""

    model: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class Meant:
    """Texts as packed vectors, in their order."""

    model: str
    vectors: list[bytes]


class Meaning:
    """`embedder` gives the one that is configured now."""

    def __init__(self, embedder: Callable[[], Embedder | None] = no_embedder) -> None:
        self._embedder = embedder

    @property
    def model(self) -> str:
        """Under which vectors are kept; empty without an embedder."""
        embedder = self._embedder()
        return embedder.name if embedder else ""

    async def of_question(self, text: str) -> Question | None:
        found = await self._embed([text], EmbedKind.QUERY, QUESTION_PATIENCE_S)
        return Question(found.model, found.vectors[0]) if found else None

    async def of_texts(self, texts: Sequence[str]) -> Meant | None:
        return await self._embed(texts, EmbedKind.DOCUMENT, TEXTS_PATIENCE_S + len(texts))

    async def _embed(self, texts: Sequence[str], kind: EmbedKind, patience_s: float) -> Meant | None:
        embedder = self._embedder()
        if embedder is None:
            return None
        try:
            with anyio.fail_after(patience_s):
                vectors: Sequence[Sequence[float]] = await embedder.embed(texts, kind) if texts else ()
        except (DenizenError, TimeoutError) as error:
            why = error.explain() if isinstance(error, DenizenError) else "it took too long"
            _log.warning("texts are found by words only: the embedder does not answer", extra={"why": why})
            return None
        return Meant(embedder.name, [pack(vector) for vector in vectors])

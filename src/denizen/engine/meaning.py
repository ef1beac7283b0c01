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
from denizen.engine.embed_budget import EmbedBudget
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
    """`embedder` gives the one that is configured now, `budget` pays for what it asks of a provider."""

    def __init__(
        self, embedder: Callable[[], Embedder | None] = no_embedder, budget: EmbedBudget | None = None
    ) -> None:
        self._embedder = embedder
        self._budget = budget

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
        if not texts:
            return Meant(embedder.name, [])
        try:
            with anyio.fail_after(patience_s):
                vectors = await self._ask(embedder, texts, kind)
        except (DenizenError, TimeoutError) as error:
            why = error.explain() if isinstance(error, DenizenError) else "it took too long"
            _log.warning("texts are found by words only: there are no vectors now", extra={"why": why})
            return None
        return Meant(embedder.name, [pack(vector) for vector in vectors])

    async def _ask(self, embedder: Embedder, texts: Sequence[str], kind: EmbedKind) -> Sequence[Sequence[float]]:
        if self._budget is None:
            return (await embedder.embed(texts, kind)).vectors
        async with self._budget.paying(embedder, texts) as bill:
            embedded = await embedder.embed(texts, kind)
            bill.usage = embedded.usage
        return embedded.vectors

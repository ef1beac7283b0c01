"""The meaning of questions and of texts, as vectors of the embedder that is configured now.

Without one, or while it does not answer, there is none, and words have to do: callers go on. Used by `memory`,
`knowledge` and `archive`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import anyio

from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention
from denizen.domain.vector import pack
from denizen.engine.embed_budget import EmbedBudget
from denizen.ports.embed import Embedder, EmbeddingResult, EmbedKind

QUESTION_PATIENCE_S = 5.0
"""How long a turn waits for the meaning of its question."""
TEXTS_PATIENCE_S = 5.0
"""For texts, and a second more for each."""

PLAIN = "Good morning."
"""A text that nobody refuses."""

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


class _No(Enum):
    """Why there are no vectors: because of these texts, perhaps, or of nothing that has to do with them."""

    REFUSED = auto()
    NOT_NOW = auto()


class _Refused(NeedsAttention):
    """By the embedder itself, not by what pays for it."""


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
        return Question(found.model, found.vectors[0]) if isinstance(found, Meant) else None

    async def of_texts(self, texts: Sequence[str]) -> Meant | None:
        found = await self._embed_texts(texts)
        return found if isinstance(found, Meant) else None

    async def of_any_texts(self, texts: Sequence[str]) -> Meant | None:
        """A text that the embedder refuses, while it answers to others, means nothing: it must not hold up the rest.
        None as long as any other is without an answer.
        """
        found = await self._embed_texts(texts)
        if found is not _No.REFUSED:
            return found if isinstance(found, Meant) else None
        plain = await self._embed_texts([PLAIN])
        if not isinstance(plain, Meant):
            return None
        vectors: list[bytes] = []
        for text in texts:
            each = await self._embed_texts([text])
            if each is _No.NOT_NOW or (isinstance(each, Meant) and each.model != plain.model):
                return None
            vectors.append(each.vectors[0] if isinstance(each, Meant) else bytes(len(plain.vectors[0])))
        return Meant(plain.model, vectors)

    async def _embed_texts(self, texts: Sequence[str]) -> Meant | _No:
        return await self._embed(texts, EmbedKind.DOCUMENT, TEXTS_PATIENCE_S + len(texts))

    async def _embed(self, texts: Sequence[str], kind: EmbedKind, patience_s: float) -> Meant | _No:
        embedder = self._embedder()
        if embedder is None:
            return _No.NOT_NOW
        if not texts:
            return Meant(embedder.name, [])
        try:
            with anyio.fail_after(patience_s):
                vectors = await self._ask(embedder, texts, kind)
        except (DenizenError, TimeoutError) as error:
            why = error.explain() if isinstance(error, DenizenError) else "it took too long"
            _log.warning("texts are found by words only: there are no vectors now", extra={"why": why})
            return _No.REFUSED if isinstance(error, _Refused) else _No.NOT_NOW
        return Meant(embedder.name, [pack(vector) for vector in vectors])

    async def _ask(self, embedder: Embedder, texts: Sequence[str], kind: EmbedKind) -> Sequence[Sequence[float]]:
        if self._budget is None:
            return (await _ask_embedder(embedder, texts, kind)).vectors
        async with self._budget.paying(embedder, texts) as bill:
            embedded = await _ask_embedder(embedder, texts, kind)
            bill.usage = embedded.usage
        return embedded.vectors


async def _ask_embedder(embedder: Embedder, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
    try:
        return await embedder.embed(texts, kind)
    except (NeedsAttention, InvalidInput) as error:
        raise _Refused(error.message, code=error.code, why=error.why, fix=error.fix) from error

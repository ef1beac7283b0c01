"""The port of embedders, which turn texts into vectors so that similar texts lie near each other.

Implemented by `adapters/embed`: a model that runs here, and any server with OpenAI's `/v1/embeddings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from denizen.domain.record import record
from denizen.domain.usage import Usage


class EmbedKind(StrEnum):
    """The role of a text. Some models embed a question differently from a document."""

    QUERY = "query"
    DOCUMENT = "document"


@record
class EmbeddingResult:
    """One vector for each text, all of the same length, and what that took."""

    vectors: Sequence[Sequence[float]]
    usage: Usage = field(default_factory=Usage)


class Embedder(Protocol):
    """A model that turns texts into vectors."""

    @property
    def name(self) -> str:
        """The model's identity, stored with each vector: vectors of different names cannot be compared."""
        ...

    async def estimate_cost_usd(self, tokens: int) -> Decimal | None:
        """Returns the price of so many tokens: 0 for a model that runs here, None when it is unknown."""
        ...

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
        """Embeds the texts. Raises Unavailable when there is no answer now, NeedsAttention when somebody has to fix
        something.
        """
        ...

    async def aclose(self) -> None: ...

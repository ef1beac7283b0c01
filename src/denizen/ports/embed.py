"""Turning texts into vectors, so that texts of a like meaning lie near each other.

Implemented by `adapters/embed`: a model that runs here, and any server with OpenAI's `/v1/embeddings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from denizen.domain.usage import Usage


class EmbedKind(StrEnum):
    """Some models read a question otherwise than what is to be found."""

    QUERY = "query"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class Embedded:
    """One vector for each text, all of the same length, and what that took."""

    vectors: Sequence[Sequence[float]]
    usage: Usage = field(default_factory=Usage)


class Embedder(Protocol):
    @property
    def name(self) -> str:
        """Tells models apart: vectors of different names cannot be compared. Stored with each vector."""
        ...

    async def estimate_cost_usd(self, tokens: int) -> Decimal | None:
        """What so many tokens of text cost; 0 for what runs here, None when the price is unknown."""
        ...

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Embedded:
        """Raises Unavailable when there is no answer now, and NeedsAttention when somebody has to put something right
        first.
        """
        ...

    async def aclose(self) -> None: ...

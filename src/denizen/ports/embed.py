"""Turning texts into vectors, so that texts of a like meaning lie near each other.

Implemented by `adapters/embed`: a model that runs here, and any server with OpenAI's `/v1/embeddings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol


class EmbedKind(StrEnum):
    """Some models read a question otherwise than what is to be found."""

    QUERY = "query"
    DOCUMENT = "document"


class Embedder(Protocol):
    @property
    def name(self) -> str:
        """Tells models apart: vectors of different names cannot be compared. Stored with each vector."""
        ...

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Sequence[Sequence[float]]:
        """One vector for each text, all of the same length. Raises Unavailable when there is no answer now, and
        NeedsAttention when somebody has to put something right first.
        """
        ...

    async def aclose(self) -> None: ...

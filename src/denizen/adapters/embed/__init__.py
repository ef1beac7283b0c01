"""Embedding of texts: a model that runs here (`local`, with its `weights`), or a server with OpenAI's `/v1/embeddings`
(`served`). Each is a `denizen.ports.embed.Embedder`; vendors load with the first text.
"""

from denizen.adapters.embed.local import LocalEmbedder
from denizen.adapters.embed.served import EmbeddingEndpoint, ServedEmbedder
from denizen.adapters.embed.weights import (
    MINILM,
    EmbeddingFile,
    EmbeddingPlaces,
    EmbeddingWeights,
    has_embedding_weights,
    load_embedding_weights,
)

__all__ = [
    "MINILM",
    "EmbeddingEndpoint",
    "EmbeddingFile",
    "EmbeddingPlaces",
    "EmbeddingWeights",
    "LocalEmbedder",
    "ServedEmbedder",
    "has_embedding_weights",
    "load_embedding_weights",
]

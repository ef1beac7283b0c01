"""Turning texts into vectors: a model that runs here (`local`, with its `weights`), or a server with OpenAI's
`/v1/embeddings` (`served`). Each is `denizen.ports.embed.Embedder`; vendors load with the first text.
"""

from denizen.adapters.embed.local import LocalEmbedder
from denizen.adapters.embed.served import EmbedServer, ServedEmbedder
from denizen.adapters.embed.weights import MINILM, EmbedEntry, EmbedFile, EmbedPlaces, find_weights, load_weights

__all__ = [
    "MINILM",
    "EmbedEntry",
    "EmbedFile",
    "EmbedPlaces",
    "EmbedServer",
    "LocalEmbedder",
    "ServedEmbedder",
    "find_weights",
    "load_weights",
]

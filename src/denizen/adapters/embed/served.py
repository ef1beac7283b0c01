"""Embedding by a server with OpenAI's `POST /embeddings`: OpenAI itself, Ollama, llama.cpp, vLLM and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread

from denizen.domain.errors import DenizenError, NeedsAttention, Unavailable
from denizen.domain.prompt import estimate_tokens
from denizen.domain.record import record
from denizen.domain.usage import Usage
from denizen.ports.embed import EmbeddingResult, EmbedKind

if TYPE_CHECKING:
    import httpx2

BATCH = 64
"""The texts in one request."""
SHOWN_CHARS = 300
_KEPT_S = 2.0
"""Well below the 5 s after which llama.cpp and uvicorn close a connection that nobody uses."""
REFUSED = (400, 401, 403, 404, 422)


Price = Callable[[int], Decimal | None]
"""Returns the price of so many tokens, in USD. It may read a list, so it is called in a thread."""


def unknown_price(tokens: int) -> None:
    """Returns None, for servers that no list of prices has."""
    del tokens


@record
class EmbeddingEndpoint:
    """A server with an embeddings API. `provider` is its name in the configuration; `url` ends before `/embeddings`;
    `api_key` is called when needed.
    """

    provider: str
    url: str
    model: str
    api_key: Callable[[], str | None] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout_s: float = 30.0
    price: Price = unknown_price


class ServedEmbedder:
    """Embeds texts with a server."""

    def __init__(self, server: EmbeddingEndpoint) -> None:
        self._server = server
        self._client: httpx2.AsyncClient | None = None

    @property
    def name(self) -> str:
        return f"{self._server.provider}/{self._server.model}"

    async def estimate_cost_usd(self, tokens: int) -> Decimal | None:
        """Returns the price. In a thread: reading the list of prices takes a moment the first time."""
        return await to_thread.run_sync(self._server.price, tokens)

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
        """Raises NeedsAttention when the server refuses what is asked or how, Unavailable when it does not answer."""
        del kind  # the protocol does not tell
        found: list[Sequence[float]] = []
        usage = Usage()
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            answer = await self._ask(batch)
            found += answer.vectors
            tokens = answer.usage.input_tokens or sum(map(estimate_tokens, batch))
            usage += Usage(tokens, cost_usd=await self.estimate_cost_usd(tokens), requests=1)
        return EmbeddingResult(found, usage)

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _ask(self, texts: Sequence[str]) -> EmbeddingResult:
        import httpx2

        server = self._server
        if self._client is None:
            limits = httpx2.Limits(keepalive_expiry=_KEPT_S)
            self._client = httpx2.AsyncClient(timeout=server.timeout_s, limits=limits)
        key = server.api_key() if server.api_key else None
        headers = {**server.headers, **({"authorization": f"Bearer {key}"} if key else {})}
        try:
            answer = await self._client.post(
                f"{server.url.rstrip('/')}/embeddings",
                json={"model": server.model, "input": list(texts), "encoding_format": "float"},
                headers=headers,
            )
        except httpx2.HTTPError as error:
            raise self._silent(type(error).__name__) from error
        if answer.status_code != 200:
            raise self._refused(answer)
        try:
            body = answer.json()
            return EmbeddingResult(_vectors(body, len(texts)), Usage(_tokens(body)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._silent("its answer holds no vectors") from error

    def _silent(self, why: str) -> Unavailable:
        return Unavailable(f"{self.name} returned no embeddings.", code="embed_unavailable", why=why, fix="Try again.")

    def _refused(self, answer: httpx2.Response) -> DenizenError:
        why = f"{answer.status_code}: {' '.join(answer.text.split())[:SHOWN_CHARS]}"
        if answer.status_code not in REFUSED:
            return self._silent(why)
        return NeedsAttention(
            f"{self.name} refused the request for embeddings.",
            code="embed_refused",
            why=why,
            fix="Check embeddings.model, and the key and address of the provider.",
        )


def _tokens(body: object) -> int:
    """Returns the tokens as the server counted them; 0 when it does not tell."""
    told: Any = cast("dict[str, Any]", body).get("usage") or {}
    return max(int(told.get("prompt_tokens") or 0), 0)


def _vectors(body: object, wanted: int) -> Sequence[Sequence[float]]:
    """Returns the vectors in the order of the texts, whatever the order of the answer is."""
    rows = cast("list[dict[str, Any]]", cast("dict[str, Any]", body)["data"])
    found = {int(row["index"]): [float(value) for value in row["embedding"]] for row in rows}
    vectors = [found[index] for index in range(wanted)]
    if not all(vectors) or len({len(vector) for vector in vectors}) > 1:
        raise ValueError("vectors of different lengths")
    return vectors

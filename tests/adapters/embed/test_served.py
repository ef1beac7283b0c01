"""Texts to vectors by a server with OpenAI's embeddings API."""

from __future__ import annotations

from collections.abc import Generator
from decimal import Decimal
from typing import Any

import pytest

from denizen.adapters.embed import EmbeddingEndpoint, ServedEmbedder
from denizen.domain.errors import NeedsAttention, Unavailable
from denizen.domain.usage import Usage
from denizen.ports.embed import EmbedKind
from tests.embedding_server import EmbeddingServer, serve_embeddings

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Generator[EmbeddingServer]:
    with serve_embeddings() as server:
        yield server


def make_embedder(server: EmbeddingServer, **more: Any) -> ServedEmbedder:
    return ServedEmbedder(EmbeddingEndpoint("acme", server.url, "small", **more))


async def test_vectors_come_in_the_order_of_the_texts_in_bounded_requests(server: EmbeddingServer) -> None:
    embedder = make_embedder(server, api_key=lambda: "sk-1", headers={"x-team": "blue"})
    texts = ["x" * number for number in range(1, 101)]
    vectors = (await embedder.embed(texts, EmbedKind.DOCUMENT)).vectors
    assert [vector[0] for vector in vectors] == list(range(1, 101))
    assert [len(body["input"]) for _, _, body in server.asked] == [64, 36]
    path, headers, body = server.asked[0]
    assert (path, body["model"], headers["authorization"], headers["x-team"]) == (
        "/v1/embeddings",
        "small",
        "Bearer sk-1",
        "blue",
    )
    assert embedder.name == "acme/small"
    await embedder.aclose()


@pytest.mark.parametrize("status", [401, 404])
async def test_a_refusal_is_for_the_operator_and_tells_what_the_server_said(
    server: EmbeddingServer, status: int
) -> None:
    server.status, server.body = status, {"error": "no such model"}
    embedder = make_embedder(server)
    with pytest.raises(NeedsAttention) as caught:
        await embedder.embed(["a"], EmbedKind.QUERY)
    assert "no such model" in caught.value.why and str(status) in caught.value.why
    await embedder.aclose()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b"oops"),
        (200, b"<html>"),
        (200, {"data": [{"index": 0, "embedding": []}]}),
        (200, {"data": []}),
        (200, []),
    ],
)
async def test_what_is_no_answer_is_unavailable(server: EmbeddingServer, status: int, body: object) -> None:
    server.status, server.body = status, body
    embedder = make_embedder(server)
    with pytest.raises(Unavailable):
        await embedder.embed(["a"], EmbedKind.QUERY)
    await embedder.aclose()


async def test_tokens_are_those_that_the_server_counted_and_cost_what_the_list_says(server: EmbeddingServer) -> None:
    def price(tokens: int) -> Decimal:
        return Decimal(tokens) / 100

    embedder = make_embedder(server, price=price)
    used = (await embedder.embed(["one two", "three"], EmbedKind.DOCUMENT)).usage
    assert used == Usage(3, cost_usd=Decimal("0.03"), requests=1)
    server.body = {"data": [{"index": 0, "embedding": [1]}]}
    told_nothing = (await embedder.embed(["x" * 400], EmbedKind.DOCUMENT)).usage
    assert told_nothing.input_tokens == 100
    await embedder.aclose()


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    embedder = ServedEmbedder(EmbeddingEndpoint("acme", "http://127.0.0.1:9/v1", "small"))
    with pytest.raises(Unavailable) as caught:
        await embedder.embed(["a"], EmbedKind.QUERY)
    assert caught.value.why == "ConnectError"
    await embedder.aclose()

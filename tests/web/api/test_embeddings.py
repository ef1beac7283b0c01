"""`/v1/embeddings`, asked by the official client."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import openai
import pytest

from denizen.domain.errors import DenizenError, InvalidInput, Unavailable
from denizen.domain.usage import Usage
from denizen.ports.embed import EmbeddingResult, EmbedKind
from tests.web.api.test_completions import official
from tests.web_fixture import open_web

pytestmark = pytest.mark.anyio

PATH = "/v1/embeddings"


class LengthEmbedder:
    """Its vectors are the length of a text and a half."""

    name = "here/length"

    def __init__(self, failure: DenizenError | None = None) -> None:
        self._failure = failure

    async def estimate_cost_usd(self, tokens: int) -> Decimal | None:
        return Decimal(0)

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
        if self._failure is not None:
            raise self._failure
        return EmbeddingResult([[float(len(text)), 0.5] for text in texts], Usage(input_tokens=len(texts), requests=1))

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("form", ["float", "base64", None])
async def test_the_official_client_gets_vectors_in_the_order_of_the_texts(form: Any) -> None:
    async with open_web(embedder=LengthEmbedder()) as web, web.serve() as url, official(web, url=url) as client:
        more = {"encoding_format": form} if form else {}
        answer = await client.embeddings.create(model="here/length", input=["one", "three"], **more)
    found: list[Any] = [each.embedding for each in answer.data]
    if form == "base64":
        assert all(isinstance(each, str) for each in found)
    else:
        assert found == [[3.0, 0.5], [5.0, 0.5]]
    assert (answer.model, answer.usage.prompt_tokens, answer.usage.total_tokens) == ("here/length", 2, 2)


async def test_a_text_alone_has_one_vector_and_the_model_may_be_left_open() -> None:
    async with open_web(embedder=LengthEmbedder()) as web, web.client() as client:
        for model in ({}, {"model": "default"}, {"model": "length"}):
            answer = await client.post(PATH, json={"input": "four", "dimensions": 2, **model})
            assert [each["embedding"] for each in answer.json()["data"]] == [[4.0, 0.5]]


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({"model": "other"}, 404, "model_not_found"),
        ({"dimensions": 3}, 400, "dimensions_unsupported"),
        ({"input": [1, 2]}, 400, "tokens_unsupported"),
        ({"input": [[1], [2]]}, 400, "tokens_unsupported"),
        ({"input": []}, 400, "field_invalid"),
        ({"input": ""}, 400, "field_invalid"),
        ({"encoding_format": "int8"}, 400, "field_invalid"),
        ({"truncate": True}, 400, "field_unknown"),
    ],
)
async def test_what_the_embedder_cannot_do_is_refused(asked: dict[str, Any], status: int, code: str) -> None:
    async with open_web(embedder=LengthEmbedder()) as web, web.client() as client:
        answer = await client.post(PATH, json={"input": "text", **asked})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


async def test_without_an_embedder_the_client_is_told_how_to_get_one() -> None:
    async with open_web() as web, official(web) as client:
        with pytest.raises(openai.NotFoundError, match=r"embeddings\.provider"):
            await client.embeddings.create(model="any", input="text")


@pytest.mark.parametrize(
    ("failure", "status"),
    [(Unavailable("It sleeps.", code="asleep"), 503), (InvalidInput("Too long.", code="too_long"), 400)],
)
async def test_a_failure_of_the_embedder_has_the_status_of_its_family(failure: DenizenError, status: int) -> None:
    async with open_web(embedder=LengthEmbedder(failure)) as web, web.client() as client:
        answer = await client.post(PATH, json={"input": "text"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, failure.code)

"""`/v1/embeddings`: the configured embedder, for programs. Its name is the model; the server's budget pays for it."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.principal import Principal
from denizen.domain.prompt import estimate_tokens
from denizen.domain.record import record
from denizen.engine.configuration.generation import Runtime
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.intake.rate_limiter import RateLimiter, rate_error
from denizen.ports.embed import EmbedKind
from denizen.web.api.model_options import check_fields, describe_fields
from denizen.web.http.auth import get_principal
from denizen.web.http.openapi import ANY_OBJECT, NUMBER, TEXT, ApiRoute, Operation, Schema, list_schema, object_schema
from denizen.web.http.request import JsonBody, field_error, read_number, read_object, read_text
from denizen.web.http.routing import Access

MAX_TEXTS = 256
MAX_TEXT_CHARS = 100_000
_KNOWN = ("model", "input", "encoding_format", "dimensions", "user")
_MANY = 4096

_TEXTS: Schema = {**list_schema({"type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARS}), "minItems": 1}
_REQUEST: Schema = {
    **object_schema(
        "input",
        model={"type": "string", "description": "The embedder's name; empty, or `default`, for the one that there is."},
        input={"anyOf": [{"type": "string", "minLength": 1}, {**_TEXTS, "maxItems": MAX_TEXTS}]},
        encoding_format={"enum": ["float", "base64"]},
        dimensions={"type": "integer", "minimum": 1, "maximum": _MANY},
        user=TEXT,
        **describe_fields(()),
    ),
    "additionalProperties": False,
}
_VECTOR = object_schema("object", "index", "embedding", object={"const": "embedding"}, index=NUMBER)
_ANSWER = object_schema(
    *("object", "data", "model", "usage"), object=TEXT, data=list_schema(_VECTOR), model=TEXT, usage=ANY_OBJECT
)


@record
class EmbeddingRequest:
    """Texts to embed. `model` and `dimensions` are those that the client expects, empty and 0 for any."""

    texts: tuple[str, ...]
    model: str = ""
    is_base64: bool = False
    dimensions: int = 0


def parse_embeddings(body: JsonBody) -> EmbeddingRequest:
    """Returns the request in a body. Raises InvalidInput, which names the wrong field."""
    check_fields(body, _KNOWN, ())
    read_text(body, "user")
    given: Any = body.get("input")
    texts: Any = [given] if isinstance(given, str) else given
    is_list = isinstance(texts, list) and 1 <= len(cast("list[Any]", texts)) <= MAX_TEXTS
    if is_list and isinstance(texts[0], int | list):
        raise InvalidInput(
            "`input` must be text.",
            code="tokens_unsupported",
            why="tokens are numbers of one model, and this is another",
            fix="Send the texts themselves (in LangChain: `check_embedding_ctx_length=False`).",
        )
    if not is_list or not all(
        isinstance(each, str) and 0 < len(each) <= MAX_TEXT_CHARS for each in cast("list[Any]", texts)
    ):
        raise field_error("input", f"a text of 1 to {MAX_TEXT_CHARS} characters, or a list of 1 to {MAX_TEXTS}")
    form, model = read_text(body, "encoding_format", "float"), read_text(body, "model")
    if form not in {"float", "base64"}:
        raise field_error("encoding_format", "float or base64")
    return EmbeddingRequest(
        tuple(cast("list[str]", texts)),
        "" if model == "default" else model,
        form == "base64",
        int(read_number(body, "dimensions", low=1, high=_MANY) or 0),
    )


class EmbeddingRoutes:
    """The route of embeddings."""

    def __init__(self, embedder: BudgetedEmbedder, runtime: Runtime, limiter: RateLimiter) -> None:
        self._embedder = embedder
        self._runtime = runtime
        self._limiter = limiter

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "POST",
                "/v1/embeddings",
                self.embed,
                Access.MEMBER,
                Operation("Texts as vectors, by the configured embedder", _REQUEST, _ANSWER),
            )
        ]

    async def embed(self, request: Request) -> Response:
        wanted = parse_embeddings(await read_object(request))
        name = self._embedder.model
        if name and wanted.model not in {"", name, name.rpartition("/")[2]}:
            raise NotFound(
                f"There is no embedder '{wanted.model[:100]}'.", code="model_not_found", fix=f"Ask for '{name}'."
            )
        if name:
            await self._check_rate(get_principal(request))
        embedded = await self._embedder.embed(wanted.texts, EmbedKind.DOCUMENT)
        size = len(embedded.vectors[0])
        if wanted.dimensions not in {0, size}:
            raise InvalidInput(
                f"`dimensions` must be {size} here.",
                code="dimensions_unsupported",
                why="the embedder's vectors have that length",
                fix="Leave `dimensions` out.",
            )
        used = embedded.usage.input_tokens or sum(map(estimate_tokens, wanted.texts))
        return JSONResponse(
            {
                "object": "list",
                "data": [
                    {
                        "object": "embedding",
                        "index": index,
                        "embedding": _encode(vector) if wanted.is_base64 else vector,
                    }
                    for index, vector in enumerate(map(list, embedded.vectors))
                ],
                "model": name,
                "usage": {"prompt_tokens": used, "total_tokens": used},
            }
        )

    async def _check_rate(self, asker: Principal) -> None:
        limits = self._runtime.current.policy.rate_limits.of(asker)
        excess = await self._limiter.take(f"embed\x00{asker.key}", limits)
        if excess is not None:
            raise rate_error(excess)


def _encode(vector: Sequence[float]) -> str:
    """Returns 32-bit floats, little-endian, as OpenAI's servers do."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()

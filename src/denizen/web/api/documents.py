"""`GET /api/docs/search`: finds passages in what an agent knows, for programs.

Each request is a call of the agent's tool `search_docs`: an agent without it has nothing to search here either, and the
gate decides about the call and records it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.errors import InvalidInput, Unavailable, read_explanation
from denizen.domain.json import JsonObject
from denizen.engine.external.requests import DirectCall, DirectCalls
from denizen.web.http.auth import get_principal
from denizen.web.http.openapi import ApiRoute, Operation
from denizen.web.http.request import QueryParameter
from denizen.web.http.routing import Access
from denizen_sdk.knowledge import DocumentMatches, DocumentPassage
from denizen_sdk.records import from_json

SEARCH = "search_docs"
_QUESTION = QueryParameter(name="q", description="What to look for: words, or a question.", max_chars=500)
_LIMIT = QueryParameter(name="limit", description="How many passages.", default="6", low=1, high=15)
_SOURCE = QueryParameter(name="source", description="The id of a source, to look into it alone.", max_chars=63)
_AGENT = QueryParameter(name="agent", description="Another agent than the default one.", max_chars=100)


class DocumentRoutes:
    """The route of the search in documents."""

    def __init__(self, calls: DirectCalls) -> None:
        self._calls = calls

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET",
                "/api/docs/search",
                self.search,
                Access.MEMBER,
                Operation(
                    "Find passages in an agent's documents by words and meaning, the best first",
                    answer=DocumentMatches,
                    query=(_QUESTION, _LIMIT, _SOURCE, _AGENT),
                ),
            )
        ]

    async def search(self, request: Request) -> Response:
        """Answers with passages, each with its path and lines; with none where nothing fits."""
        source = _SOURCE.read_text(request)
        args: JsonObject = {"query": _QUESTION.read_text(request).strip(), "limit": _LIMIT.read_number(request)}
        if not args["query"]:
            raise InvalidInput("'q' is empty.", code="field_invalid", fix="Say what to look for.", field="q")
        if source:
            args = {**args, "source": source}
        wanted = DirectCall(get_principal(request), SEARCH, args, agent=_AGENT.read_text(request))
        result = (await self._calls.make(wanted)).result
        if result.is_error:
            told = read_explanation(result.text)
            if source:
                raise InvalidInput(told.message, code="search_refused", why=told.why, fix=told.fix)
            raise Unavailable(told.message, code="search_unavailable", why=told.why, fix=told.fix)
        rows = cast("list[Mapping[str, Any]]", result.data.get("passages", []))
        return JSONResponse(asdict(DocumentMatches(tuple(from_json(DocumentPassage, row) for row in rows))))

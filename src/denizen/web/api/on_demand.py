"""The routes of `listings`, which FastAPI serves, without FastAPI until the first request for one of them.

It describes all routes in `/api/openapi.json`, those of the application around it too. To import it takes 0.15 s and
7 MB, at a start that should take less than a second, and most servers are never asked for a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from denizen.web.http.dependencies import WebDependencies

if TYPE_CHECKING:
    from fastapi import FastAPI

PATHS = (
    "/api/agents",
    "/api/models",
    "/api/tools",
    "/api/sessions/{name:path}/messages",
    "/api/turns/{turn_id}",
    "/api/approvals",
    "/api/stats",
    "/api/stats/me",
    "/api/openapi.json",
)
"""A test holds them against what `listings` serves."""


class Listings:
    """An ASGI application that makes the real one when it is called."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._app: FastAPI | None = None
        self._lock = anyio.Lock()

    @property
    def routes(self) -> list[Route]:
        return [Route(path, self, methods=["GET"]) for path in PATHS]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app or await self._make(scope["app"].routes)
        await app(scope, receive, send)

    async def _make(self, routes: Sequence[BaseRoute]) -> FastAPI:
        others = [route for route in routes if not isinstance(getattr(route, "endpoint", None), Listings)]
        async with self._lock:
            if self._app is None:
                self._app = await to_thread.run_sync(_import_and_make, self._deps, others)
            return self._app


def _import_and_make(deps: WebDependencies, others: Sequence[BaseRoute]) -> FastAPI:
    from denizen.web.api.listings import create_listings

    return create_listings(deps, others)

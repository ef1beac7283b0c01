"""`GET /health` and `GET /api/openapi.json`: the server's account of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import anyio
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from denizen.web.api.records import find_model
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.openapi import OPENAPI_PATH, Document, build_openapi
from denizen_sdk.agents import HealthReport


class ServiceRoutes:
    """The routes that tell about the server. Its uptime counts from when the application was made."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._started_s = deps.clock.monotonic_s()
        self._document: Document | None = None
        self._lock = anyio.Lock()

    @property
    def routes(self) -> Sequence[Route]:
        return [Route("/health", self.health, methods=["GET"]), Route(OPENAPI_PATH, self.describe, methods=["GET"])]

    async def health(self, _: Request) -> Response:
        """Answers whether the server is alive, since when, and with which model. Needs no key and tells no secrets."""
        deps, generation = self._deps, self._deps.engine.runtime.current
        agent = generation.agent("")
        model = find_model(generation.models, agent.model)
        tools: int | None = None
        # A source of tools may hang, and whoever watches the server would take that for a dead server.
        with anyio.move_on_after(deps.timing.tools_deadline_s):
            tools = len(await deps.engine.queries.list_tools())
        report = HealthReport(
            status="ok",
            version=deps.version,
            uptime_s=round(deps.clock.monotonic_s() - self._started_s, 3),
            generation=generation.number,
            agents=len(generation.agents),
            provider=model.provider if model else "",
            model=model.name if model else agent.model,
            tools=tools,
        )
        return JSONResponse(asdict(report), headers={"Cache-Control": "no-store"})

    async def describe(self, request: Request) -> Response:
        """Answers with the OpenAPI document of the routes of this application."""
        async with self._lock:
            if self._document is None:
                # In a thread, since importing pydantic and building the schemas would stall all other requests.
                routes = request.app.routes
                self._document = await to_thread.run_sync(build_openapi, routes, self._deps.version)
            return JSONResponse(self._document)

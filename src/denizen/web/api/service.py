"""`/health`, `/ready` and `/api/openapi.json`: the server's account of itself.

`/health` answers 200 while the process is alive. `/ready` answers 200 while it can do its work: the store, the durable
log and the disk can be written, and all accounts are connected; else 503. Neither needs a key; without one, `/health`
tells nothing else, and `/ready` only names the parts that are not ready.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import anyio
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.web.api.records import find_model
from denizen.web.http.auth import HEALTH_PATH, READY_PATH, find_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.openapi import OPENAPI_PATH, ApiRoute, Document, Operation, build_openapi
from denizen.web.http.routing import Access, AccessRoute
from denizen_sdk.agents import HealthReport, ReadinessReport

_UNCACHED = {"Cache-Control": "no-store"}


class ServiceRoutes:
    """The routes that tell about the server. Its uptime counts from when the application was made."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._started_s = deps.clock.monotonic_s()
        self._document: Document | None = None
        self._lock = anyio.Lock()

    @property
    def routes(self) -> Sequence[AccessRoute]:
        return [
            ApiRoute(
                "GET",
                HEALTH_PATH,
                self.health,
                Access.PUBLIC,
                Operation("Whether the process is alive", answer=HealthReport),
            ),
            ApiRoute(
                "GET",
                READY_PATH,
                self.ready,
                Access.PUBLIC,
                Operation(
                    "Whether the process can do its work: 200 if so, else 503",
                    answer=ReadinessReport,
                    others={503: ReadinessReport},
                ),
            ),
            AccessRoute("GET", OPENAPI_PATH, self.describe, Access.MEMBER),
        ]

    async def ready(self, request: Request) -> Response:
        """Answers whether the process can do its work, and names the parts that are not ready."""
        problems = await self._deps.instance.find_problems()
        report = ReadinessReport("not_ready" if problems else "ready", tuple(problems))
        if find_principal(request) is not None:
            report = replace(report, reasons=problems)
        return JSONResponse(asdict(report), 503 if problems else 200, _UNCACHED)

    async def health(self, request: Request) -> Response:
        """Answers that the server is alive, and those with a key since when, and with which model."""
        if find_principal(request) is None:
            return JSONResponse({"status": "ok"}, headers=_UNCACHED)
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
        return JSONResponse(asdict(report), headers=_UNCACHED)

    async def describe(self, request: Request) -> Response:
        """Answers with the OpenAPI document of the routes of this application."""
        async with self._lock:
            if self._document is None:
                # In a thread, since importing pydantic and building the schemas would stall all other requests.
                routes = request.app.routes
                self._document = await to_thread.run_sync(build_openapi, routes, self._deps.version)
            return JSONResponse(self._document)

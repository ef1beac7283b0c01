"""`GET /health`: is it alive, since when, on what. No key needed, no secrets told (inventory 4.11)."""

from __future__ import annotations

from dataclasses import asdict

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from denizen.web.api.chat import find_model
from denizen.web.http.dependencies import WebDependencies
from denizen_sdk.agents import HealthReport


class HealthRoutes:
    """The route. Its uptime counts from when the application was made."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._started_s = deps.clock.monotonic_s()

    @property
    def routes(self) -> list[Route]:
        return [Route("/health", self.health, methods=["GET"])]

    async def health(self, _: Request) -> Response:
        deps, generation = self._deps, self._deps.runtime.current
        agent = generation.agent("")
        model = find_model(generation.models, agent.model)
        health = HealthReport(
            status="ok",
            version=deps.version,
            uptime_s=round(deps.clock.monotonic_s() - self._started_s, 3),
            generation=generation.number,
            agents=len(generation.agents),
            provider=model.provider if model else "",
            model=model.name if model else agent.model,
            tools=await self._count_tools(),
        )
        return JSONResponse(asdict(health), headers={"Cache-Control": "no-store"})

    async def _count_tools(self) -> int | None:
        with anyio.move_on_after(self._deps.timing.tools_deadline_s):
            return len(await self._deps.queries.list_tools())
        return None

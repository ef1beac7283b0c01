"""`POST /api/hooks/{route}`: webhooks of anybody who has the secret of a route.

It needs no API key, and looks at none. The answer comes once the event is stored.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.engine.event_bus.webhooks import WebhookIntake, WebhookOutcome
from denizen.web.http.openapi import ApiRoute, Operation
from denizen.web.http.request import WebhookBodyReader
from denizen.web.http.routing import Access

MAX_HOOK_BYTES = 1_000_000


class HookRoutes:
    """The route for webhooks of the configuration."""

    def __init__(self, intake: WebhookIntake) -> None:
        self._intake = intake
        self._bodies = WebhookBodyReader()

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "POST",
                "/api/hooks/{route}",
                self.receive,
                Access.SIGNED,
                Operation(
                    "A webhook, signed with the secret of its route: 202 if its event is new, else 200", status=0
                ),
            )
        ]

    async def receive(self, request: Request) -> Response:
        """Takes a webhook. Answers 202 if its event is stored now, 200 if it was before or needs no action."""
        route = self._intake.find_route(request.path_params["route"])
        body = await self._bodies.read(request, limit=MAX_HOOK_BYTES)
        answer = await self._intake.take(route, request.headers, body)
        told = {"status": answer.outcome.value, "event": answer.event, "challenge": answer.challenge}
        shown = {name: value for name, value in told.items() if value}
        return JSONResponse(shown, 202 if answer.outcome is WebhookOutcome.TAKEN else 200)

"""`POST /api/webhooks/{platform}` and `GET /api/github/repos`: what platforms tell, and what they host (inventory 2.7).

A webhook needs no key: its signature shows who sent it. It is answered once what it tells of is in the store.
"""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from denizen.ports.hosting import Hosting, Receipt
from denizen.web.api.chat import may_see_all
from denizen.web.http.request import WebhookBodyReader
from denizen.web.http.auth import WEBHOOKS, get_principal
from denizen_sdk.knowledge import RepositoryInfo

MAX_WEBHOOK_BYTES = 2_000_000
"""Anybody can send one, and what tells of a comment is smaller. GitHub's largest, of pushes, concern nobody here."""


class WebhookRoutes:
    """The routes."""

    def __init__(self, hosting: Hosting) -> None:
        self._hosting = hosting
        self._strangers = WebhookBodyReader()

    @property
    def routes(self) -> list[Route]:
        return [
            Route(WEBHOOKS + "{platform}", self.take, methods=["POST"]),
            Route("/api/github/repos", self.list_repositories, methods=["GET"]),
        ]

    async def take(self, request: Request) -> Response:
        """A platform's webhook, with that platform's signature. 202 when it is taken, 200 where nothing is to do."""
        body = await self._strangers.read(request, limit=MAX_WEBHOOK_BYTES)
        receipt = await self._hosting.take_webhook(request.path_params["platform"], request.headers, body)
        return JSONResponse({"status": receipt.value}, 202 if receipt is Receipt.TAKEN else 200)

    async def list_repositories(self, request: Request) -> Response:
        """GitHub repositories that can become sources. Private ones are for owners and admins."""
        sees_all = may_see_all(get_principal(request))
        found = await self._hosting.list_repositories("github")
        rows = [
            asdict(
                RepositoryInfo(each.name, each.address, each.branch, each.is_private, each.description, each.updated_at)
            )
            for each in found
            if sees_all or not each.is_private
        ]
        return JSONResponse(rows)

"""`POST /api/webhooks/{platform}` and `GET /api/github/repos`: webhooks of platforms, and the repositories they host.

A webhook needs no key: its signature shows who sent it. The answer comes once its content is stored.
"""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.ports.hosting import RepositoryHosts, WebhookReceipt
from denizen.web.http.auth import get_principal, may_see_all
from denizen.web.http.openapi import ApiRoute, Operation
from denizen.web.http.request import WebhookBodyReader
from denizen.web.http.routing import Access
from denizen_sdk.knowledge import RepositoryInfo

MAX_WEBHOOK_BYTES = 2_000_000
"""Anybody can send one, and those about comments are smaller. GitHub's largest, about pushes, have no use here."""


class WebhookRoutes:
    """The routes for webhooks and repositories of platforms."""

    def __init__(self, hosting: RepositoryHosts) -> None:
        self._hosting = hosting
        self._bodies = WebhookBodyReader()

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "POST",
                "/api/webhooks/{platform}",
                self.receive,
                Access.SIGNED,
                Operation(
                    "A platform's webhook, signed by the platform: 202 if it is stored, 200 if it needs no action",
                    status=0,
                ),
            ),
            ApiRoute(
                "GET",
                "/api/github/repos",
                self.list_repositories,
                Access.MEMBER,
                Operation(
                    "GitHub repositories that can become sources; private ones for owners and admins",
                    answer=list[RepositoryInfo],
                ),
            ),
        ]

    async def receive(self, request: Request) -> Response:
        """Takes a webhook. Answers 202 if it is stored, 200 if it needs no action."""
        platform = request.path_params["platform"]
        self._hosting.check_headers(platform, request.headers)
        body = await self._bodies.read(request, limit=MAX_WEBHOOK_BYTES)
        receipt = await self._hosting.take_webhook(platform, request.headers, body)
        return JSONResponse({"status": receipt.value}, 202 if receipt is WebhookReceipt.TAKEN else 200)

    async def list_repositories(self, request: Request) -> Response:
        sees_all = may_see_all(get_principal(request))
        found = await self._hosting.list_repositories("github")
        rows = [
            asdict(
                RepositoryInfo(
                    name=each.name,
                    location=each.address,
                    branch=each.branch,
                    private=each.is_private,
                    description=each.description,
                    updated_at=each.updated_at,
                )
            )
            for each in found
            if sees_all or not each.is_private
        ]
        return JSONResponse(rows)

"""A site that people sign in with, for tests: GitHub's and Discord's side of OAuth over real HTTP on loopback.

It lets in whoever is its `person`, and checks what real sites check: the client and its secret, the address of the way
back, the code (which works once) and the verifier that belongs to the challenge.
"""

from __future__ import annotations

import base64
import hashlib
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from denizen.adapters.sign_in import DISCORD, GITHUB, OAuthApplication

CLIENT_ID, CLIENT_SECRET = "client", "the-secret-of-the-client"


@dataclass
class Grant:
    challenge: str
    redirect_uri: str
    person: dict[str, Any]


@dataclass
class OAuthServer:
    """`person` is who sits at the browser, as GitHub and Discord describe people; `emails` is GitHub's list."""

    url: str = ""
    person: dict[str, Any] = field(default_factory=dict[str, Any])
    emails: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    is_broken: bool = False
    grants: dict[str, Grant] = field(default_factory=dict[str, Grant])

    def be(self, login: str, *, subject: int = 1, email: str = "", verified: bool = True) -> None:
        """Lets another person sit at the browser."""
        self.person = {"id": subject, "login": login, "username": login, "name": login.title(), "global_name": None}
        self.person |= {"email": email, "verified": verified}
        self.emails = [
            {"email": "old@example.org", "primary": False, "verified": True},
            {"email": email, "primary": True, "verified": verified},
        ]

    @property
    def github(self) -> OAuthApplication:
        site = replace(
            GITHUB,
            authorize_url=f"{self.url}/authorize",
            token_url=f"{self.url}/token",
            profile_urls=(f"{self.url}/user", f"{self.url}/emails"),
        )
        return OAuthApplication(site, CLIENT_ID, CLIENT_SECRET)

    @property
    def discord(self) -> OAuthApplication:
        site = replace(
            DISCORD,
            authorize_url=f"{self.url}/authorize",
            token_url=f"{self.url}/token",
            profile_urls=(f"{self.url}/user",),
        )
        return OAuthApplication(site, CLIENT_ID, CLIENT_SECRET)

    async def authorize(self, request: Request) -> Response:
        query = request.query_params
        if query["client_id"] != CLIENT_ID or query["code_challenge_method"] != "S256":
            return Response("no", 400)
        code = f"code-{len(self.grants)}"
        self.grants[code] = Grant(query["code_challenge"], query["redirect_uri"], dict(self.person))
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}")

    async def trade(self, request: Request) -> Response:
        if self.is_broken:
            return Response("down", 502)
        fields = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        grant = self.grants.pop(fields.get("code", ""), None)
        verifier = fields.get("code_verifier", "")
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        is_right = (
            request.headers.get("authorization") == f"Basic {basic}"
            and grant is not None
            and grant.challenge == challenge
            and grant.redirect_uri == fields.get("redirect_uri")
        )
        if not is_right:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse({"access_token": "t", "token_type": "Bearer"})

    async def show_user(self, request: Request) -> Response:
        if request.headers.get("authorization") != "Bearer t":
            return Response("no", 401)
        return JSONResponse(self.person)

    async def list_emails(self, _: Request) -> Response:
        return JSONResponse(self.emails)


@asynccontextmanager
async def open_oauth_server() -> AsyncGenerator[OAuthServer]:
    oauth = OAuthServer()
    app = Starlette(
        routes=[
            Route("/authorize", oauth.authorize),
            Route("/token", oauth.trade, methods=["POST"]),
            Route("/user", oauth.show_user),
            Route("/emails", oauth.list_emails),
        ]
    )
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        oauth.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, timeout_graceful_shutdown=1))
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                await server.serve([listener])
                tasks.cancel_scope.cancel()

            tasks.start_soon(run)
            try:
                yield oauth
            finally:
                server.should_exit = True


def read_callback(location: str) -> str:
    """Returns the path with the query of an address of the way back."""
    parts = urlsplit(location)
    return f"{parts.path}?{parts.query}"

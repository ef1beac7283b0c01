"""People at a server of a test: their accounts, and browsers in which they are signed in."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2

from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.user import User
from denizen.engine.users.credentials import Browser
from denizen.engine.users.registration import Admission, SignUpForm
from denizen.web.http.auth import LOGIN_COOKIE, make_csrf_token
from tests.web_fixture import WebFixture

PASSWORD = "correct horse battery"
OPERATOR = Principal(PrincipalKind.LOCAL, "operator", "operator", frozenset({RoleName.OWNER}))


@dataclass
class SignedIn:
    """A person in a browser: `client` has the cookie, and sends the token of the page along as pages do."""

    user: User
    token: str
    client: httpx2.AsyncClient

    @property
    def csrf_token(self) -> str:
        return make_csrf_token(self.token)

    async def submit(self, path: str, **fields: str) -> httpx2.Response:
        """Sends a form of a page."""
        return await self.client.post(path, data={"csrf_token": self.csrf_token, **fields})


async def add_user(web: WebFixture, name: str, role: RoleName = RoleName.MEMBER, *, password: str = PASSWORD) -> User:
    """Makes an account: the first person becomes the owner, whoever comes later is invited to the role."""
    email = f"{name}@example.org"
    form = SignUpForm(email=email, name=name.title(), password=password)
    if not await web.users.credentials.any_user():
        return await web.users.registration.sign_up(form, Admission(at_open_machine=True))
    text, _ = await web.users.registration.invite(OPERATOR, role=role, email=email)
    return await web.users.registration.sign_up(form, Admission(text))


@asynccontextmanager
async def sign_in(web: WebFixture, user: User, agent: str = "Firefox") -> AsyncGenerator[SignedIn]:
    """A browser in which that person is signed in."""
    token = await web.users.credentials.open(user, Browser(agent, "127.0.0.1"))
    async with open_browser(web) as client:
        client.cookies.set(LOGIN_COOKIE, token)
        client.headers["x-csrf-token"] = make_csrf_token(token)
        yield SignedIn(user, token, client)


def open_browser(web: WebFixture) -> httpx2.AsyncClient:
    """A browser of the server's own pages."""
    return web.client(**{"sec-fetch-site": "same-origin"})

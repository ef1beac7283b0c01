"""Routes that state who may call them.

Every route of the application is an `AccessRoute` (or a `PublicMount` of files), so none can forget its check: the
guard lets nobody in without credentials unless the route says so, and the route refuses whoever lacks the role.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import StrEnum
from itertools import takewhile

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from denizen.domain.errors import NotAllowed
from denizen.domain.principal import RoleName
from denizen.web.http.auth import find_principal

Handler = Callable[[Request], Awaitable[Response]]


PATTERN = "denizen.path_pattern"
"""The key of a request's scope for the path of its route, such as `/api/turns/{turn_id}`."""


class Access(StrEnum):
    """Who may call a route."""

    PUBLIC = "public"
    """Anybody."""
    SIGNED = "signed"
    """Whoever sends a secret or a signature that the route itself checks."""
    MEMBER = "member"
    """Everybody with a key or a sign-in."""
    ADMIN = "admin"
    """Admins and owners."""
    OWNER = "owner"


_ROLES = {Access.ADMIN: frozenset({RoleName.ADMIN, RoleName.OWNER}), Access.OWNER: frozenset({RoleName.OWNER})}
_REFUSALS = {
    Access.ADMIN: ("This is for owners and admins.", "admin_only", "Use a key or an account with the role admin."),
    Access.OWNER: ("This is for owners.", "owner_only", "Use a key or an account with the role owner."),
}


def check_access(connection: HTTPConnection, access: Access) -> None:
    """Raises NotAllowed for an unknown caller, and for one whose roles do not suffice."""
    if access in (Access.PUBLIC, Access.SIGNED):
        return
    principal = find_principal(connection)
    if principal is None:
        raise credentials_missing()
    if access in _ROLES and not principal.roles & _ROLES[access]:
        message, code, fix = _REFUSALS[access]
        raise NotAllowed(message, code=code, fix=fix)


def credentials_missing() -> NotAllowed:
    return NotAllowed(
        "This needs an API key or a sign-in.",
        code="credentials_missing",
        fix="Send a key as `Authorization: Bearer KEY` or `x-api-key: KEY`, or sign in on the page.",
    )


class AccessRoute(Route):
    """A route with its access. `handler` may be an ASGI application, too."""

    def __init__(self, method: str, path: str, handler: Handler | ASGIApp, access: Access) -> None:
        super().__init__(path, handler, methods=[method])
        if (
            ":path}" in path
        ):  # it takes everything, line breaks too: else another route of that path would answer with 405
            self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)
        self.access = access

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[PATTERN] = self.path
        check_access(HTTPConnection(scope), self.access)
        await super().handle(scope, receive, send)


class SitePageRoute(AccessRoute):
    """The route of a page for people. Without a sign-in it leads to the sign-in instead of answering with an error."""


class PublicMount(Mount):
    """Files that anybody may read."""

    def __init__(self, path: str, app: ASGIApp) -> None:
        super().__init__(path, app)
        self.access = Access.PUBLIC


class IndexedRouter(Router):
    """A router that compares a request with those routes only that begin as its path does. Starlette's compares it with
    one after another, and there are hundreds.
    """

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        super().__init__(routes)
        heads: list[tuple[tuple[str, ...], BaseRoute]] = []
        for route in routes:
            segments = str(getattr(route, "path", "")).split("/")[1 : _HEAD + 1]
            heads.append((tuple(takewhile(lambda segment: "{" not in segment, segments)), route))
        self._routers = {
            head: Router([route for fixed, route in heads if head[: len(fixed)] == fixed])
            for head in {(), *(fixed for fixed, _ in heads)}
        }
        """Routers by the beginning of a path. Each has the routes that fit it, in their order."""

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.narrow(scope).app(scope, receive, send)

    def narrow(self, scope: Scope) -> Router:
        """Returns the router of all routes that a request may be for."""
        path = str(scope["path"]).removeprefix(scope.get("root_path", ""))
        head = tuple(path.split("/", _HEAD + 1)[1 : _HEAD + 1])
        while head not in self._routers:
            head = head[:-1]
        return self._routers[head]


_HEAD = 2
"""How many segments of a path tell its routes apart well enough."""


def list_routes(routes: Iterable[BaseRoute], access: Access) -> Sequence[BaseRoute]:
    """Returns the routes with exactly this access."""
    return [route for route in routes if getattr(route, "access", None) is access]


def find_pattern(routes: Iterable[BaseRoute], scope: Scope) -> str:
    """Returns the path pattern of a request's route, which need not have run; empty where there is none."""
    if PATTERN in scope:
        return str(scope[PATTERN])
    found = (route for route in routes if isinstance(route, AccessRoute))
    return next((route.path for route in found if route.matches(scope)[0] is not Match.NONE), "")


def is_among(routes: Iterable[BaseRoute], scope: Scope) -> bool:
    """Tells whether a request is for the path of one of these routes."""
    return any(route.matches(scope)[0] is not Match.NONE for route in routes)

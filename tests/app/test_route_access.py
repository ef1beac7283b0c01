"""Every route of a server states who may call it, and holds to it."""

from __future__ import annotations

import re

import pytest

from denizen.web.http.routing import Access, AccessRoute, PublicMount, SitePageRoute
from tests.app.home_folder import LAB, Home
from tests.app.server_fixture import ServerFixture, open_server

pytestmark = [pytest.mark.anyio, pytest.mark.proves("SW4", "T-http-auth")]

PUBLIC = {
    "GET /health",
    "GET /ready",
    "GET /login",
    "POST /login",
    "GET /login/{provider}",
    "GET /login/{provider}/callback",
    "GET /sign-up",
    "POST /sign-up",
    "GET /api/shared/{token}",
    "GET /shared/{token}",
}
SIGNED = {"POST /api/hooks/{route}", "POST /api/sync/webhook/{source}", "POST /api/webhooks/{platform}"}
FOR_ADMINS = {
    "POST /api/sources",
    "POST /api/sources/ocr",
    "PUT /api/sources/{source}",
    "DELETE /api/sources/{source}",
    "POST /api/sync",
    "POST /api/sync/{source}",
    "POST /api/snapshot/sync",
    "POST /api/sandbox/snapshot",
    "GET /api/snapshot/status",
    "GET /api/snapshot/config",
    "PUT /api/snapshot/config",
    "GET /api/agent-config",
    "PUT /api/agent-config",
    "POST /api/agent-config/reset",
    "GET /api/stats",
    "POST /api/stats/compute",
    "GET /api/admin/users",
    "PATCH /api/admin/users/{user}",
    "DELETE /api/admin/users/{user}",
    "GET /api/admin/api-keys",
    "POST /api/admin/api-keys",
    "DELETE /api/admin/api-keys/{key}",
    "GET /api/admin/logs/count",
    "GET /api/admin/logs/stats",
    "DELETE /api/admin/logs",
}
"""The routes that only admins may call by the documents of the system that they come from."""
KEYS = """
server:
  api_keys:
  - {name: ann, key: "${ANN}", roles: [member]}
  - {name: ada, key: "${ADA}", roles: [admin]}
"""


def list_routes(server: ServerFixture) -> list[tuple[str, str, AccessRoute]]:
    """Method, path and route of each, without the files of the pages."""
    for route in server.app.routes:
        assert isinstance(route, AccessRoute | PublicMount), f"{route} does not state its access"
    routes = [route for route in server.app.routes if isinstance(route, AccessRoute)]
    return [(method, route.path, route) for route in routes for method in (route.methods or set()) - {"HEAD"}]


async def test_every_route_states_its_access_and_few_are_public(home: Home) -> None:
    async with open_server(home) as server:
        by_access: dict[Access, set[str]] = {access: set() for access in Access}
        for method, path, route in list_routes(server):
            by_access[route.access].add(f"{method} {path}")
    assert by_access[Access.PUBLIC] == PUBLIC
    assert by_access[Access.SIGNED] == SIGNED
    assert by_access[Access.ADMIN] | by_access[Access.OWNER] >= FOR_ADMINS


@pytest.mark.proves("TW3")
async def test_no_route_answers_without_the_access_that_it_states(home: Home) -> None:
    home.add_file("secrets.env", "ANN=the-key-of-ann\nADA=the-key-of-ada\n", 0o600)
    async with open_server(home, LAB + KEYS) as server, server.client() as client:
        pages = {path for _, path, route in list_routes(server) if isinstance(route, SitePageRoute)}
        for method, path, route in list_routes(server):
            url = re.sub(r"{\w+(:\w+)?}", "x", path)
            if route.access not in (Access.PUBLIC, Access.SIGNED):
                unknown = await client.request(method, url)
                assert unknown.headers["x-frame-options"] == "DENY", "no other page frames it"
                is_page = path in pages  # a form that is sent too late leads to the sign-in, too
                assert unknown.status_code == (303 if is_page else 401), (method, path)
                assert is_page or unknown.json()["error"]["code"] == "credentials_missing"
            for key, refused, code in (
                ("the-key-of-ann", {Access.ADMIN, Access.OWNER}, "admin_only"),
                ("the-key-of-ada", {Access.OWNER}, "owner_only"),
            ):
                if route.access in refused:
                    answer = await client.request(method, url, headers={"x-api-key": key})
                    assert answer.status_code == 403, (method, path, key)
                    assert answer.json()["error"]["code"] in (code, f"{route.access}_only")

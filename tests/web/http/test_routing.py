"""Every route states who may call it, and holds to it."""

import re
from pathlib import Path

import pytest
from starlette.routing import Match

from denizen.adapters.log_files import LogFiles
from denizen.web.http.dependencies import InstanceServices
from denizen.web.http.routing import Access, AccessRoute, IndexedRouter, PublicMount, SitePageRoute
from tests.web.full_web_fixture import open_full_web
from tests.web_fixture import WebFixture

pytestmark = [pytest.mark.anyio, pytest.mark.proves("SW4")]

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


def list_routes(web: WebFixture) -> list[tuple[str, str, AccessRoute]]:
    """Method, path and route of each, without the files of the pages."""
    for route in web.app.routes:
        assert isinstance(route, AccessRoute | PublicMount), f"{route} does not state its access"
    routes = [route for route in web.app.routes if isinstance(route, AccessRoute)]
    return [(method, route.path, route) for route in routes for method in (route.methods or set()) - {"HEAD"}]


def with_log(folder: Path) -> InstanceServices:
    return InstanceServices(logs=LogFiles(folder / "logs"))


async def test_a_path_with_a_line_break_reaches_its_route(tmp_path: Path) -> None:
    async with open_full_web(tmp_path) as web, web.client(**{"x-api-key": "key-of-ann"}) as client:
        for method in ("GET", "DELETE"):
            answer = await client.request(method, "/api/upload/a%0Ab")
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "upload_not_found")


async def test_a_request_is_compared_with_few_routes_and_with_all_that_it_may_be_for(tmp_path: Path) -> None:
    async with open_full_web(tmp_path) as web:
        router, routes = web.app.router, web.app.routes
    assert isinstance(router, IndexedRouter)
    known = {re.sub(r"{[^}]*}", "some", getattr(route, "path", "")) for route in routes}
    unknown = {"", "/", "//", "/nothing", "/api", "/api/", "/api//chats", "/api/nothing/else", "/static/a/b/c.js"}
    longest = 0
    for path in unknown.union(*({path, f"{path}/", f"{path}/more", f"{path}/{path}"} for path in known)):
        scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": []}
        near = router.narrow(scope).routes
        fitting = [route for route in routes if route.matches(scope)[0] is not Match.NONE]
        assert [route for route in near if route.matches(scope)[0] is not Match.NONE] == fitting, path
        longest = max(longest, len(near))
    assert longest < len(routes) / 8


async def check_refusals(web: WebFixture) -> None:
    """Calls each route as everybody who may not: nobody, a member, and an admin."""
    async with web.client() as client:
        pages = {path for _, path, route in list_routes(web) if isinstance(route, SitePageRoute)}
        for method, path, route in list_routes(web):
            url = re.sub(r"{\w+(:\w+)?}", "x", path)
            if route.access not in (Access.PUBLIC, Access.SIGNED):
                unknown = await client.request(method, url)
                assert unknown.headers["x-frame-options"] == "DENY", "no other page frames it"
                is_page = path in pages  # a form that is sent too late leads to the sign-in, too
                assert unknown.status_code == (303 if is_page else 401), (method, path)
                assert is_page or unknown.json()["error"]["code"] == "credentials_missing"
            for key, refused, code in (
                ("key-of-ann", {Access.ADMIN, Access.OWNER}, "admin_only"),
                ("key-of-ada", {Access.OWNER}, "owner_only"),
            ):
                if route.access in refused:
                    answer = await client.request(method, url, headers={"x-api-key": key})
                    assert answer.status_code == 403, (method, path, key)
                    assert answer.json()["error"]["code"] in (code, f"{route.access}_only")


@pytest.mark.proves("T-http-auth")
async def test_every_route_states_its_access_and_few_are_public(tmp_path: Path) -> None:
    async with open_full_web(tmp_path, instance=with_log(tmp_path)) as web:
        by_access: dict[Access, set[str]] = {access: set() for access in Access}
        for method, path, route in list_routes(web):
            by_access[route.access].add(f"{method} {path}")
    assert by_access[Access.PUBLIC] == PUBLIC
    assert by_access[Access.SIGNED] == SIGNED
    assert by_access[Access.ADMIN] | by_access[Access.OWNER] >= FOR_ADMINS


@pytest.mark.proves("T-http-auth", "TW3")
async def test_no_route_answers_without_the_access_that_it_states(tmp_path: Path) -> None:
    async with open_full_web(tmp_path, instance=with_log(tmp_path)) as web:
        await check_refusals(web)

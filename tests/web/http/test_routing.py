"""Requests find the route that they are for."""

import re
from pathlib import Path

import pytest
from starlette.routing import Match

from denizen.web.http.routing import IndexedRouter
from tests.web.full_web_fixture import open_full_web

pytestmark = pytest.mark.anyio


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

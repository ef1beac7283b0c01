"""The description of the API: every route and no other, with its errors; and that the server keeps to it."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from anyio import to_thread
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Err
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.routing import Route

from denizen.domain.principal import RoleName
from denizen.web.http.auth import LOGIN_COOKIE
from denizen.web.http.openapi import ApiRoute
from denizen.web.http.routing import Access, AccessRoute
from tests.web.full_web_fixture import open_full_web
from tests.web.people import add_user, sign_in
from tests.web_fixture import WebFixture, open_web

pytestmark = pytest.mark.anyio

EXAMPLES = int(os.environ.get("DENIZEN_OPENAPI_EXAMPLES", "0"))
"""For a longer run by hand: so many requests for each operation and mode, made up anew. By default they are few, and
the same ones at every run.
"""
NOT_SENT = re.compile(r"/api/sync")
"""What would have the server read somebody's site for a source that was made up."""
CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)


async def describe(web: WebFixture) -> dict[str, Any]:
    async with web.client(**{"x-api-key": "key-of-ada"}) as client:
        return (await client.get("/api/openapi.json")).json()


def served_by(web: WebFixture) -> set[tuple[str, str]]:
    return {
        (method, re.sub(r":\w+}", "}", route.path))
        for route in web.app.routes
        if isinstance(route, Route) and route.path.startswith(("/api/", "/v1/", "/health", "/ready"))
        for method in (route.methods or set()) - {"HEAD"}
    } - {("GET", "/api/openapi.json")}


async def test_every_route_is_described_and_nothing_else(tmp_path: Path) -> None:
    async with open_full_web(tmp_path) as web:
        document = await describe(web)
        served = served_by(web)
        routes = [route for route in web.app.routes if isinstance(route, Route) and route.path.startswith("/api/")]
    undescribed = [route.path for route in routes if not isinstance(route, ApiRoute)]
    assert undescribed == ["/api/openapi.json"], "these have no description beside them"
    described = {(method.upper(), path) for path, found in document["paths"].items() for method in found}
    assert described == served

    assert len({each["operationId"] for found in document["paths"].values() for each in found.values()}) == len(served)


async def test_what_a_configuration_switches_off_is_not_described() -> None:
    async with open_web() as web:
        paths = (await describe(web))["paths"]
    assert "/api/sources" not in paths
    assert "/api/sandbox/shell" in paths


async def test_every_operation_tells_its_errors_and_every_schema_holds(tmp_path: Path) -> None:
    async with open_full_web(tmp_path) as web:
        document = await describe(web)
    assert document["info"]["version"] == "1.2.3"
    assert set(document["components"]["securitySchemes"]) == {"bearer", "key"}
    assert "HTTPValidationError" not in document["components"]["schemas"]
    for path, operations in document["paths"].items():
        kind = "OpenAIError" if path.startswith("/v1/") else "Error"
        for operation in operations.values():
            assert operation["summary"]
            assert {"400", "401", "403", "404", "429", "500", "503"} <= set(operation["responses"])
            schema = operation["responses"]["401"]["content"]["application/json"]["schema"]
            assert schema == {"$ref": f"#/components/schemas/{kind}"}
            assert "422" not in operation["responses"]
    known = document["components"]["schemas"]
    for name in re.findall(r'"#/components/schemas/(\w+)"', str(document).replace("'", '"')):
        assert name in known
    for schema in known.values():
        Draft202012Validator.check_schema(schema)


async def test_an_undescribed_route_is_told_by_its_docstring(tmp_path: Path) -> None:
    async def count(request: object) -> None:
        """Counts the stars. Slowly."""

    async with open_web() as web:
        web.app.routes.insert(0, Route("/api/stars/{sky}", count, methods=["PUT"]))
        document = await describe(web)
    [(method, told)] = document["paths"]["/api/stars/{sky}"].items()
    assert (method, told["summary"], told["parameters"][0]["name"]) == ("put", "Counts the stars. Slowly", "sky")
    assert "2XX" in told["responses"]


ASKED_BY_ALL = ("/api/chat", "/api/sandbox/shell", "/v1/chat/completions", "/v1/responses", "/v1/embeddings")
ASKED_BY = {
    RoleName.MEMBER: ("/api/chats", "/api/account/api-keys"),
    RoleName.ADMIN: ("/api/agent-config", "/api/sources"),
    RoleName.OWNER: ("/api/admin/users/{user}", "/api/admin/invitations"),
}
"""Paths at which somebody gets through to what the route does, with requests that fit and with others."""
CALLERS = {Access.ADMIN: (RoleName.ADMIN, RoleName.OWNER), Access.OWNER: (RoleName.OWNER,)}
"""Who gets past the check of a route; everybody past that of any other."""


@pytest.mark.proves("S-http-errors")
async def test_no_request_that_fits_the_description_or_does_not_breaks_the_server(tmp_path: Path) -> None:
    headers = dict[RoleName, dict[str, str]]()
    async with open_full_web(tmp_path) as web, web.serve() as url, AsyncExitStack() as stack:
        await add_user(web, "founder")
        for role in ASKED_BY:
            person = await stack.enter_async_context(sign_in(web, await add_user(web, role.value, role)))
            cookie = f"{LOGIN_COOKIE}={person.token}"
            headers[role] = {"cookie": cookie, "x-csrf-token": person.csrf_token, "sec-fetch-site": "same-origin"}
        access = dict(list_access(web))

        def list_callers(operation: tuple[str, str]) -> Callers:
            return [(role.value, headers[role]) for role in CALLERS.get(access[operation], tuple(ASKED_BY))]

        seen = await to_thread.run_sync(try_all, await describe(web), url, list_callers, 4)
    for role, paths in ASKED_BY.items():
        assert sum(seen[role.value].values()) > 200
        tried = {
            path: {status for (_, found, status) in seen[role.value] if found == path}
            for path in (*ASKED_BY_ALL, *paths)
        }
        left = [path for path, found in tried.items() if not found & {200, 201, 204, 404} or 400 not in found]
        assert not left, (role, tried)


async def test_no_request_of_nobody_breaks_the_routes_that_anybody_may_call(tmp_path: Path) -> None:
    async with open_full_web(tmp_path) as web, web.serve() as url:
        document = await describe(web)
        public = {path for (_, path), access in list_access(web) if access in (Access.PUBLIC, Access.SIGNED)}
        document["paths"] = {path: found for path, found in document["paths"].items() if path in public}

        def list_callers(_: tuple[str, str]) -> Callers:
            return [("nobody", {})]

        seen = await to_thread.run_sync(try_all, document, url, list_callers, 10)
    assert {path for (_, path, _) in seen["nobody"]} > {"/health", "/api/shared/{token}"}


def list_access(web: WebFixture) -> list[tuple[tuple[str, str], Access]]:
    """Each method and path of the description, with who may call it."""
    return [
        ((method, re.sub(r":\w+}", "}", route.path)), route.access)
        for route in web.app.routes
        if isinstance(route, AccessRoute)
        for method in route.methods or ()
    ]


Callers = list[tuple[str, dict[str, str]]]
"""A name and the headers of each."""


def try_all(
    document: dict[str, Any], url: str, list_callers: Callable[[tuple[str, str]], Callers], examples: int
) -> defaultdict[str, Counter[tuple[str, str, int]]]:
    """Sends requests for every operation, each as all callers, since to make it up takes longest. Checks each answer
    against the description, and that errors tell all that they promise. Returns how often each caller saw each method,
    path and status.
    """
    seen = defaultdict[str, Counter[tuple[str, str, int]]](Counter)
    calm = settings(
        max_examples=EXAMPLES or examples,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    for found in schemathesis.openapi.from_dict(document).get_all_operations():
        if isinstance(found, Err):
            raise found.err()
        operation = found.ok()
        if NOT_SENT.match(operation.path) and operation.method != "get":
            continue
        for mode in schemathesis.GenerationMode:

            @calm
            @given(case=operation.as_strategy(generation_mode=mode))
            def send(case: schemathesis.Case[Any]) -> None:
                for name, headers in list_callers((case.method.upper(), case.path)):
                    answer = case.call(base_url=url, headers=headers)
                    seen[name][case.method, case.path, answer.status_code] += 1
                    case.validate_response(answer, checks=list(CHECKS))
                    if answer.status_code >= 400:
                        error = answer.json()["error"]
                        told = ("message",) if case.path.startswith("/v1/") else ("message", "why", "fix")
                        assert all(error[each] for each in told), error
                        assert error.get("status", answer.status_code) == answer.status_code

            with suppress(Unsatisfiable):  # there is nothing in it that could be wrong
                send()
    return seen

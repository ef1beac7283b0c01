"""`http.md`: every route that the program serves, from the application itself, and the records in requests and answers.

The texts are the docstrings of the modules that serve the routes, and of the records in `denizen_sdk`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, cast, get_args

from starlette.routing import BaseRoute

import denizen_sdk
from denizen import __version__
from denizen.adapters.mcp_server import McpEndpoint
from denizen.domain.clock import SystemClock
from denizen.web.app import create_app
from denizen.web.http import problems
from denizen.web.http.dependencies import EnabledChannels, WebDependencies
from denizen.web.http.openapi import build_openapi
from denizen.web.http.routing import AccessRoute
from denizen_sdk import knowledge, turns
from denizen_sdk.errors import ProblemDetails
from scripts.docs.table import format_table

Schema = Mapping[str, Any]

_HEAD = """# HTTP

The routes that `denizen run` serves. Requests need an API key (`Authorization: Bearer KEY` or `x-api-key: KEY`) when
keys are configured or somebody has an account; until then the server answers on this machine only. What changes
something with the cookie of a sign-in sends the token of the page too, as `X-CSRF-Token` or the field `csrf_token` of a
form. `GET /api/openapi.json` describes the routes
under `/api` and `/v1`, and `/health` and `/ready`, in full: parameters, bodies, answers and errors.

Access says who may call a route: `public` is anybody, `signed` whoever sends the secret or signature that the route
checks, `member` everybody with a key or a sign-in, `admin` admins and owners, `owner` owners.

A route with a channel is there while the configuration enables that channel, as it does at first
(`channels.web.enabled`, `channels.api.enabled`, `channels.mcp.enabled`); those of `web` and `api` are on processes with
the role `all` or `web`. All other routes are always there."""

_ERRORS = """## Errors

Under `/v1` errors have OpenAI's form; elsewhere they are `{"error": ...}` with a `ProblemDetails`."""


def build_http() -> str:
    """Returns the page."""
    deps = _open_dependencies()
    app = create_app(deps)
    described = cast("dict[str, dict[str, Schema]]", build_openapi(app.routes, __version__)["paths"])
    without = {channel: set(_list_routes(create_app(less).routes)) for channel, less in _close_channels(deps)}
    sections: dict[str, list[tuple[str, str, str, str]]] = {}
    for route in sorted(_list_routes(app.routes), key=lambda each: each[3]):
        path, method, access, module = route
        operation = described.get(re.sub(r":\w+}", "}", path), {}).get(method.lower(), {})
        needs = [channel for channel, left in without.items() if route not in left]
        row = (f"`{method} {path}`", access, ", ".join(needs), _describe(operation))
        sections.setdefault(module, []).append(row)
    parts = [_HEAD]
    for module, routes in sections.items():
        parts += [
            f"## {_title(module)}",
            inspect.getdoc(import_module(module)) or "",
            format_table(("route", "access", "channel", ""), routes),
        ]
    rows = sorted((str(status), f"`{family.__name__}`") for family, status in problems.STATUS.items())
    rows.insert(1, ("401", "`NotAllowed`, when the key is missing or wrong"))
    parts += [_ERRORS, format_table(("status", "family"), [*rows, (str(problems.BUG), "a fault, with a reference")])]
    return "\n\n".join([*parts, *_describe_records()])


def _list_routes(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, str, str, str]]:
    """Yields path, method, access and the handler's module of each route of ours."""
    for route in routes:
        if isinstance(route, AccessRoute):
            # The MCP server is an object in a wrapper; its class stands in the module to document.
            endpoint: object = getattr(route.endpoint, "app", route.endpoint)
            module = str(getattr(endpoint, "__module__", ""))
            for method in sorted((route.methods or set()) - {"HEAD"}):
                yield route.path, method, route.access, module


class _Unused:
    """Stands for every service: an application that is only asked for its routes calls none."""

    def __getattr__(self, name: str) -> _Unused:
        return self

    def __iter__(self) -> Iterator[_Unused]:
        return iter(())


def _open_dependencies() -> WebDependencies:
    """Returns dependencies with which all routes are there, for an application that is only asked for them."""
    unused = _Unused()
    services: dict[str, Any] = dict.fromkeys((field.name for field in fields(WebDependencies)), unused)
    services |= {"clock": SystemClock(), "version": __version__, "channels": EnabledChannels()}
    services["mcp"] = McpEndpoint(cast("Any", unused), __version__)
    return WebDependencies(**services)


def _close_channels(deps: WebDependencies) -> Iterator[tuple[str, WebDependencies]]:
    """Yields each channel with dependencies in which it alone is off."""
    yield "web", replace(deps, channels=EnabledChannels(web=False))
    yield "api", replace(deps, channels=EnabledChannels(api=False))
    yield "mcp", replace(deps, mcp=None)


def _title(module: str) -> str:
    """Returns `TerminalChat` for `denizen.web.api.chat`, `MCP server` for `denizen.adapters.mcp_server.endpoint`."""
    *_, package, name = module.split(".")
    return (package if name == "endpoint" else name).replace("_", " ").capitalize().replace("Mcp", "MCP")


def _describe(operation: Schema) -> str:
    """The rest of the description beside the path: summary, parameters, answer."""
    words = [str(operation["summary"])] if "summary" in operation else []
    names = [f"`{each['name']}`" for each in operation.get("parameters", []) if each["in"] == "query"]
    if names:
        words.append(f"query: {', '.join(names)}")
    body = _find_schema(operation.get("requestBody", {}))
    words += [f"body: {_name_schema(body)}"] if body else []
    answers = (_find_schema(answer) for status, answer in operation.get("responses", {}).items() if status < "300")
    words += [f"answers {_name_schema(answer)}" for answer in answers if answer]
    return "; ".join(words)


def _find_schema(part: Schema) -> Schema:
    return part.get("content", {}).get("application/json", {}).get("schema", {})


def _name_schema(schema: Schema) -> str:
    """Returns the name of a record, or the fields of an object, of all its alternatives."""
    if schema.get("type") == "array":
        return f"a list of {_name_schema(schema['items'])}"
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    parts = [schema, *schema.get("oneOf", []), *schema.get("allOf", [])]
    parts += [inner for part in parts[1:] for inner in part.get("allOf", [])]
    names = dict.fromkeys(name for part in parts for name in part.get("properties", {}))
    return ", ".join(f"`{name}`" for name in names)


def _describe_records() -> Iterator[str]:
    events = get_args(turns.ChatEvent)
    yield "## Events of a chat"
    yield "`POST /api/chat` answers with server-sent events; each is a JSON object with its `type`."
    yield format_table(("type", "fields", ""), ((f"`{_event_type(each)}`", *_row(each)) for each in events))
    yield "## Events of a sync"
    yield "`GET /api/sync/{run}/events` answers with server-sent events of these names; each is a record in JSON."
    yield format_table(
        ("event", "record"), ((f"`{name}`", f"`{kind.__name__}`") for name, kind in knowledge.SYNC_EVENTS.items())
    )
    elsewhere = (*events, turns.UnknownEvent, ProblemDetails)
    for found in iter_modules(denizen_sdk.__path__, "denizen_sdk."):
        records = [
            kind
            for _, kind in inspect.getmembers(import_module(found.name), inspect.isclass)
            if kind.__module__ == found.name and is_dataclass(kind) and kind not in elsewhere
        ]
        if records:
            yield f"## Records of `{found.name}`"
            yield format_table(("record", "fields", ""), ((f"`{kind.__name__}`", *_row(kind)) for kind in records))
    yield "## Problem details"
    yield format_table(("record", "fields", ""), [(f"`{ProblemDetails.__name__}`", *_row(ProblemDetails))])


def _row(kind: type[Any]) -> tuple[str, str]:
    listed = ", ".join(f"`{each.name}: {each.type}`" for each in fields(kind))
    doc = kind.__doc__ or ""
    return listed, "" if doc.startswith(f"{kind.__name__}(") else " ".join(doc.split())


def _event_type(kind: type[Any]) -> str:
    return str(turns.encode_event(kind(*[None] * len(fields(kind))))["type"])

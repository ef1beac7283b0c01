"""`http.md`: every route that the program serves, from the application itself, and the records that travel.

The words are the docstrings of the modules that serve the routes and of the records in `denizen_sdk.wire`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast, get_args

from denizen import __version__
from denizen.adapters.mcp_server import McpEndpoint
from denizen.adapters.sandbox.pool import SandboxPool
from denizen.app.community import build_community
from denizen.app.knowledge import Beside, build_knowledge
from denizen.domain.clock import SystemClock
from denizen.domain.snapshot import NOWHERE, Remote
from denizen.engine.assistant import Assistant
from denizen.engine.channels import Channels
from denizen.engine.direct import DirectCalls
from denizen.engine.gate.door import Gate
from denizen.engine.live import Live
from denizen.engine.outside import OutsideDesk
from denizen.engine.queries import Queries
from denizen.engine.runtime import Runtime
from denizen.engine.services import Services
from denizen.engine.statistics import UsageStatistics
from denizen.engine.turn import Turns
from denizen.testing.memory_durable import MemoryDurable
from denizen.testing.memory_store import MemoryStore
from denizen.web.http import errors
from denizen.web.api.listings import create_listings
from denizen.web.api.on_demand import Listings
from denizen.web.app import create_app
from denizen.web.http.dependencies import GapServices, KnowledgeServices, WebDependencies
from denizen_sdk.knowledge import SYNC_EVENTS
from denizen_sdk.turns import ChatEvent, UnknownEvent, encode_event
from scripts.docs.table import format_table

Schema = Mapping[str, Any]

_HEAD = """# HTTP

What `denizen run` serves. Requests need an API key (`Authorization: Bearer KEY` or `x-api-key: KEY`) when keys are
configured; without keys it answers on this machine only. `GET /api/openapi.json` describes what is under
`/api` and `/v1` in full: parameters, bodies, answers and errors."""

_ERRORS = """## Errors

Under `/v1` errors have OpenAI's form; elsewhere they are `{"error": ...}` with a `ProblemDetails`."""


def build_http() -> str:
    """The page."""
    deps = _open_dependencies()
    plain = [route for route in create_app(deps).routes if not isinstance(getattr(route, "endpoint", None), Listings)]
    listings = create_listings(deps, plain)
    described = cast("dict[str, dict[str, Schema]]", deepcopy(listings.openapi()["paths"]))
    sections: dict[str, list[tuple[str, str]]] = {}
    for path, method, module in sorted(_list_routes([*plain, *listings.routes]), key=lambda each: each[2]):
        what = described.get(re.sub(r":\w+}", "}", path), {}).pop(method.lower(), {})
        sections.setdefault(module, []).append((f"`{method} {path}`", _describe(what)))
    left = [path for path, operations in described.items() if operations]
    if left:
        raise ValueError(f"scripts/docs/http_api.py: the route {left[0]} was not found in the application")
    parts = [_HEAD]
    for module, routes in sections.items():
        parts += [
            f"## {_title(module)}",
            inspect.getdoc(import_module(module)) or "",
            format_table(("route", ""), routes),
        ]
    rows = sorted((str(status), f"`{family.__name__}`") for family, status in errors.STATUS.items())
    rows.insert(1, ("401", "`NotAllowed`, when the key is missing or wrong"))
    parts += [_ERRORS, format_table(("status", "family"), [*rows, (str(errors.BUG), "a fault, with a reference")])]
    return "\n\n".join([*parts, *_describe_wire()])


def _list_routes(routes: Iterable[object]) -> Iterator[tuple[str, str, str]]:
    """(path, method, module of the endpoint) of each route of ours, also of routers that were included."""
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is not None:
            yield from _list_routes(included.routes)
        module = str(getattr(getattr(route, "endpoint", None), "__module__", ""))
        if module.startswith("denizen."):
            for method in sorted(set(getattr(route, "methods", ())) - {"HEAD"}):
                yield str(getattr(route, "path", "")), method, module


def _open_dependencies() -> WebDependencies:
    """Empty in-memory parts: the applications on them are asked what they serve, and never serve."""
    clock, runtime = SystemClock(), Runtime()
    store = MemoryStore()
    services = Services(store, MemoryDurable(), Live(), Gate(clock), clock)
    turns, calls = Turns(runtime, services), DirectCalls(runtime, services)
    beside = Beside(runtime, build_community(runtime, services, Channels()), SandboxPool(clock))
    knowledge = build_knowledge(Path(), services.store, services.durable, clock, beside)
    return WebDependencies(
        turns,
        Queries(runtime, services),
        UsageStatistics(services.store, clock, runtime),
        runtime,
        list,
        clock,
        __version__,
        knowledge=KnowledgeServices(
            knowledge.catalog, knowledge.sync, knowledge.snapshots, lambda: NOWHERE, _change_nothing, dict, lambda: None
        ),
        gaps=GapServices(knowledge.gaps, knowledge.learning),
        calls=calls,
        assistant=Assistant(store, clock),
        mcp=McpEndpoint(OutsideDesk(runtime, turns, calls), __version__),
    )


async def _change_nothing(remote: Remote) -> None:
    """Nobody asks."""


def _title(module: str) -> str:
    """`denizen.web.api.chat` is Chat, `denizen.web.pages.routes` is Pages, an adapter's `endpoint` its folder."""
    *_, package, name = module.split(".")
    return (package if name in {"endpoint", "routes"} else name).replace("_", " ").capitalize().replace("Mcp", "MCP")


def _describe(operation: Schema) -> str:
    """What the description says beyond the path: summary, parameters, answer."""
    words = [str(operation["summary"])] if "summary" in operation else []
    names = [f"`{each['name']}`" for each in operation.get("parameters", []) if each["in"] == "query"]
    if names:
        words.append(f"query: {', '.join(names)}")
    taken = _schema_in(operation.get("requestBody", {}))
    words += [f"body: {_say(taken)}"] if taken else []
    answers = (_schema_in(answer) for status, answer in operation.get("responses", {}).items() if status < "300")
    words += [f"answers {_say(answer)}" for answer in answers if answer]
    return "; ".join(words)


def _schema_in(part: Schema) -> Schema:
    return part.get("content", {}).get("application/json", {}).get("schema", {})


def _say(schema: Schema) -> str:
    """A record's name, or the fields of an object; of one with alternatives those of all."""
    if schema.get("type") == "array":
        return f"a list of {_say(schema['items'])}"
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    parts = [schema, *schema.get("oneOf", []), *schema.get("allOf", [])]
    parts += [inner for part in parts[1:] for inner in part.get("allOf", [])]
    names = dict.fromkeys(name for part in parts for name in part.get("properties", {}))
    return ", ".join(f"`{name}`" for name in names)


def _describe_wire() -> Iterator[str]:
    events = get_args(ChatEvent)
    yield "## Events of a chat"
    yield "`POST /api/chat` answers with server-sent events; each is a JSON object with its `type`."
    yield format_table(("type", "fields", ""), ((f"`{_event_type(each)}`", *_row(each)) for each in events))
    yield "## Events of a sync"
    yield "`GET /api/sync/{run}/events` answers with server-sent events of these names; each is a record in JSON."
    yield format_table(("event", "record"), ((f"`{name}`", f"`{kind.__name__}`") for name, kind in SYNC_EVENTS.items()))
    yield "## Records"
    yield "`denizen_sdk.wire` has them as dataclasses."
    kinds = [kind for _, kind in inspect.getmembers(wire, inspect.isclass) if kind.__module__.startswith("denizen_sdk")]
    records = [kind for kind in kinds if is_dataclass(kind) and kind not in (*events, UnknownEvent)]
    yield format_table(("record", "fields", ""), ((f"`{kind.__name__}`", *_row(kind)) for kind in records))


def _row(kind: type[Any]) -> tuple[str, str]:
    listed = ", ".join(f"`{each.name}: {each.type}`" for each in fields(kind))
    doc = kind.__doc__ or ""
    return listed, "" if doc.startswith(f"{kind.__name__}(") else " ".join(doc.split())


def _event_type(kind: type[Any]) -> str:
    return str(encode_event(kind(*[None] * len(fields(kind))))["type"])

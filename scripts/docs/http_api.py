"""`http.md`: every route that the program serves, from the application itself, and the records in requests and answers.

The texts are the docstrings of the modules that serve the routes, and of the records in `denizen_sdk`.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast, get_args

from starlette.routing import BaseRoute

from denizen import __version__
from denizen.adapters.documents.pdf import read_pdf
from denizen.adapters.mcp_server import McpEndpoint
from denizen.adapters.sandbox.pool import SandboxPool
from denizen.adapters.uploads.folder import UploadFolder
from denizen.adapters.uploads.images import encode_image
from denizen.app.build import open_delegations
from denizen.app.knowledge import KnowledgeDeps, build_knowledge
from denizen.app.users import assemble_users
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.clock import SystemClock
from denizen.domain.snapshot import NOWHERE, RemoteRepository
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.agents.catalog import AgentCatalog
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.budget.side_completion import BilledCompletion
from denizen.engine.chats.chats import Chats
from denizen.engine.chats.uploads import ChatUploads
from denizen.engine.commands.chat_commands import ChatCommands
from denizen.engine.commands.command import CommandCatalogs
from denizen.engine.configuration.agent_settings import AgentSettingsOverlay
from denizen.engine.configuration.generation import Runtime
from denizen.engine.event_bus.bus import EventBus
from denizen.engine.event_bus.log import EventLog
from denizen.engine.event_bus.webhooks import WebhookIntake
from denizen.engine.external.requests import DirectCalls, ProgramRequests
from denizen.engine.inspection.queries import Queries
from denizen.engine.inspection.replay import plan_requests
from denizen.engine.inspection.statistics import UsageStatistics
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.engine.knowledge.source_import import SourceImporter
from denizen.engine.loop.services import build_services
from denizen.engine.turn import TurnRunner
from denizen.engine.users.credentials import UserPolicy
from denizen.ports.configuration import ConfigurationFiles
from denizen.testing.memory_durable import MemoryDurable
from denizen.testing.temporary_store import TemporaryStore
from denizen.web.app import create_app
from denizen.web.http import problems
from denizen.web.http.auth import AccessRules
from denizen.web.http.dependencies import (
    EngineEntryPoints,
    EventServices,
    GapServices,
    KnowledgeServices,
    WebDependencies,
)
from denizen.web.http.openapi import build_openapi
from denizen.web.http.routing import AccessRoute
from denizen_sdk import agents, configuration, gaps, knowledge, projects, turns, usage, users
from denizen_sdk import events as event_records
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
checks, `member` everybody with a key or a sign-in, `admin` admins and owners, `owner` owners."""

_ERRORS = """## Errors

Under `/v1` errors have OpenAI's form; elsewhere they are `{"error": ...}` with a `ProblemDetails`."""


def build_http() -> str:
    """Returns the page."""
    app = create_app(_open_dependencies())
    described = cast("dict[str, dict[str, Schema]]", build_openapi(app.routes, __version__)["paths"])
    sections: dict[str, list[tuple[str, str, str]]] = {}
    for path, method, access, module in sorted(_list_routes(app.routes), key=lambda each: each[3]):
        operation = described.get(re.sub(r":\w+}", "}", path), {}).get(method.lower(), {})
        sections.setdefault(module, []).append((f"`{method} {path}`", access, _describe(operation)))
    parts = [_HEAD]
    for module, routes in sections.items():
        parts += [
            f"## {_title(module)}",
            inspect.getdoc(import_module(module)) or "",
            format_table(("route", "access", ""), routes),
        ]
    rows = sorted((str(status), f"`{family.__name__}`") for family, status in problems.STATUS.items())
    rows.insert(1, ("401", "`NotAllowed`, when the key is missing or wrong"))
    parts += [_ERRORS, format_table(("status", "family"), [*rows, (str(problems.BUG), "a fault, with a reference")])]
    return "\n\n".join([*parts, *_describe_records()])


def _list_routes(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, str, str, str]]:
    """Yields path, method, access and the handler's module of each route of ours."""
    for route in routes:
        if isinstance(route, AccessRoute):
            # The MCP server is an object that is called; its class stands in the module to document.
            module = str(getattr(route.endpoint, "__module__", ""))
            for method in sorted((route.methods or set()) - {"HEAD"}):
                yield route.path, method, route.access, module


def _open_dependencies() -> WebDependencies:
    """Returns dependencies on an empty store, for an application that is only asked for its routes."""
    clock, runtime = SystemClock(), Runtime()
    store = TemporaryStore()
    services = build_services(runtime, store, MemoryDurable(), clock)
    turns, calls = TurnRunner(runtime, services), DirectCalls(runtime, services)
    bus = EventBus(runtime, services, turns, ConnectedAccounts())
    uploads = ChatUploads(store, UploadFolder(Path()), encode_image, read_pdf)
    chats = Chats(runtime, services, turns, uploads, titles_by_model=lambda: False)
    people = assemble_users(store, clock, UserPolicy, chats=chats)
    knowledge = build_knowledge(
        KnowledgeDeps(
            home=Path(),
            store=services.store,
            durable=services.durable,
            clock=clock,
            runtime=runtime,
            channels=ConnectedAccounts(),
            mirror=ArchiveMirror(store, ArchivePolicy, clock),
            sandbox=SandboxPool(clock),
        )
    )
    return WebDependencies(
        engine=EngineEntryPoints(
            turns=turns,
            chats=chats,
            commands=ChatCommands(runtime, services, turns, chats, CommandCatalogs(agents=AgentCatalog(runtime))),
            queries=Queries(runtime, services),
            statistics=UsageStatistics(services.store, clock, runtime),
            runtime=runtime,
            limiter=RateLimiter(store, clock),
            open_delegations=partial(open_delegations, runtime, services, turns),
            plan_requests=partial(plan_requests, runtime, services),
            calls=calls,
            assistant=AgentSettingsOverlay(store, clock),
        ),
        access=AccessRules(list, people.credentials),
        users=people,
        clock=clock,
        version=__version__,
        knowledge=KnowledgeServices(
            catalog=knowledge.catalog,
            search=knowledge.search,
            sync=knowledge.sync,
            snapshots=knowledge.snapshots,
            remote=lambda: NOWHERE,
            change_remote=_change_nothing,
            webhooks=dict,
            indexing=lambda: None,
            embedding=knowledge.indexing.find_embedding_progress,
        ),
        gaps=GapServices(knowledge.gaps, knowledge.learning),
        importer=SourceImporter(runtime, knowledge.catalog, BilledCompletion(runtime, store, clock), json.loads),
        configuration=cast("ConfigurationFiles", object()),
        events=EventServices(EventLog(runtime, store, clock, bus), WebhookIntake(runtime, clock, bus)),
        mcp=McpEndpoint(ProgramRequests(runtime, turns, calls), __version__),
    )


async def _change_nothing(remote: RemoteRepository) -> None:
    """Never called."""


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
    for module in (turns, agents, knowledge, gaps, event_records, projects, usage, configuration, users):
        yield f"## Records of `{module.__name__}`"
        records = [
            kind
            for _, kind in inspect.getmembers(module, inspect.isclass)
            if kind.__module__ == module.__name__ and is_dataclass(kind) and kind not in (*events, turns.UnknownEvent)
        ]
        yield format_table(("record", "fields", ""), ((f"`{kind.__name__}`", *_row(kind)) for kind in records))
    yield "## Problem details"
    yield format_table(("record", "fields", ""), [(f"`{ProblemDetails.__name__}`", *_row(ProblemDetails))])


def _row(kind: type[Any]) -> tuple[str, str]:
    listed = ", ".join(f"`{each.name}: {each.type}`" for each in fields(kind))
    doc = kind.__doc__ or ""
    return listed, "" if doc.startswith(f"{kind.__name__}(") else " ".join(doc.split())


def _event_type(kind: type[Any]) -> str:
    return str(turns.encode_event(kind(*[None] * len(fields(kind))))["type"])

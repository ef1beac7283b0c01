"""What `/api/openapi.json` says of the routes that are plain Starlette: what each takes and what it answers.

A table of words and schemas, by method and path. A route without an entry is described by its docstring. `openapi`
makes the document of it; nothing here is looked at before somebody asks for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import GenericAlias
from typing import Any, get_args
from denizen.domain.statistics import MAX_DURATION_MS, MAX_NAME_CHARS, MAX_REPORTED_TOKENS, MAX_SOURCE_CHARS
from denizen.web.api.completion_format import MAX_TOKENS
from denizen.web.api.gaps import DAYS, MAX_DAYS
from denizen_sdk.agents import AgentConfig, AgentConfigSet
from denizen_sdk.gaps import ClosedGaps, DecidedProposal, GapList, ProposalInfo
from denizen_sdk.knowledge import (
    SYNC_EVENTS,
    PublishedSnapshot,
    RepositoryInfo,
    SnapshotInfo,
    SnapshotRemoteChange,
    SnapshotRemoteInfo,
    StartedSync,
    SyncInfo,
)
from denizen_sdk.shell import MAX_COMMAND_CHARS, MAX_COMMANDS
from denizen_sdk.turns import ApprovalInfo, CancelResult, ChatEvent, ChatRequest
from denizen_sdk.usage import ComputedDay, UsageReceipt
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any
from pydantic import TypeAdapter
from starlette.routing import BaseRoute, Route
from denizen.web.http.errors import STATUS
from denizen_sdk.errors import ProblemDetails

Schema = Mapping[str, Any]
Kind = type[Any] | GenericAlias | Schema

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "integer"}
TIME: Schema = {"type": ["string", "null"], "format": "date-time"}
FREE: Schema = {"type": "object", "additionalProperties": True}
STREAM = "text/event-stream"


def fields(*required: str, **properties: Schema) -> Schema:
    """An object; others than these fields may be there."""
    return {"type": "object", "properties": properties, "required": list(required)}


def list_of(item: Schema) -> Schema:
    return {"type": "array", "items": item}


@dataclass(frozen=True, slots=True)
class Operation:
    """`body` and `answer` are records of the SDK, lists of these, or schemas. Without `answer` there is none.
    `needs_body` is false where the body may be left out. Status 0 is any that means success. `streams` says that the
    answer may be, or is, an event stream, and `events` which records come in it.
    """

    summary: str
    body: Kind | None = None
    answer: Kind | None = None
    status: int = 200
    needs_body: bool = True
    streams: str = ""
    events: Sequence[type[Any]] = ()
    headers: Sequence[str] = ()
    query: Mapping[str, Schema] = field(default_factory=dict[str, Schema])


_COMMAND: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_COMMAND_CHARS}
_COMMANDS: Schema = {"type": "array", "items": _COMMAND, "minItems": 1, "maxItems": MAX_COMMANDS}
_OUTPUT = fields("stdout", "stderr", "exitCode", stdout=TEXT, stderr=TEXT, exitCode=NUMBER)
_NAMED_OUTPUT = fields(
    "command", "stdout", "stderr", "exitCode", command=TEXT, stdout=TEXT, stderr=TEXT, exitCode=NUMBER
)
_SHELL: Schema = {
    **fields(command=_COMMAND, commands=_COMMANDS, sessionId={"type": "string", "maxLength": 200}, agent=TEXT),
    "oneOf": [{"required": ["command"]}, {"required": ["commands"]}],
}
_SHELL_ANSWER: Schema = {
    "oneOf": [
        {**fields("sessionId", sessionId=TEXT), "allOf": [_OUTPUT]},
        fields("sessionId", "results", sessionId=TEXT, results=list_of(_NAMED_OUTPUT)),
    ]
}
_SOURCE_FIELDS: Mapping[str, Schema] = {
    "location": TEXT, "label": TEXT, "kind": TEXT, "branch": TEXT, "content_path": TEXT, "output_path": TEXT,
    "readme_only": FLAG, "max_videos": NUMBER, "sync_every_minutes": NUMBER,
}  # fmt: skip
_SOURCE = fields("id", "folder", id=TEXT, folder=TEXT, has_webhook=FLAG, **_SOURCE_FIELDS)
_KNOWN = fields(
    "id", "label", "folder", "files", "documents", "synced_at",
    id=TEXT, label=TEXT, folder=TEXT, files=NUMBER, documents=NUMBER, synced_at=TIME,
)  # fmt: skip
_KIND_OF_SOURCES = fields("count", "sources", count=NUMBER, sources=list_of(_KNOWN))
_REPORT = fields(
    "source",
    source={"type": "string", "minLength": 1, "maxLength": MAX_SOURCE_CHARS},
    sourceId={"type": "string", "maxLength": MAX_NAME_CHARS},
    model={"type": "string", "maxLength": MAX_NAME_CHARS},
    inputTokens={"type": "integer", "minimum": 0, "maximum": MAX_REPORTED_TOKENS},
    outputTokens={"type": "integer", "minimum": 0, "maximum": MAX_REPORTED_TOKENS},
    durationMs={"type": "integer", "minimum": 0, "maximum": MAX_DURATION_MS},
    metadata=FREE,
)
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
_SETTINGS = fields(
    agent=TEXT, name=TEXT, activate=FLAG, additional_prompt=_TEXT_OR_NULL, response_style=_TEXT_OR_NULL,
    language=_TEXT_OR_NULL, default_model=_TEXT_OR_NULL, max_steps_multiplier=_NUMBER_OR_NULL,
    temperature=_NUMBER_OR_NULL, search_instructions=_TEXT_OR_NULL, citation_format=_TEXT_OR_NULL,
)  # fmt: skip
_PART: Schema = {
    "anyOf": [
        fields("type", "text", type={"const": "text"}, text=TEXT),
        fields("type", "image_url", type={"const": "image_url"}, image_url=fields("url", url=TEXT)),
    ]
}
_MESSAGE = fields(
    "role",
    role={"enum": ["system", "developer", "user", "assistant"]},
    content={"anyOf": [TEXT, list_of(_PART), {"type": "null"}]},
)
_COMPLETION = fields(
    "messages",
    model={"type": "string", "description": "An agent's name; empty, or `default`, for the default one."},
    messages={**list_of(_MESSAGE), "minItems": 1},
    stream=FLAG,
    stream_options=fields(include_usage=FLAG),
    max_completion_tokens={"type": "integer", "minimum": 1, "maximum": MAX_TOKENS},
    temperature={"type": "number", "minimum": 0, "maximum": 2},
    metadata=fields(session=TEXT),
    user=TEXT,
)
_OPENAI_MODEL = fields(
    "id", "object", "created", "owned_by", id=TEXT, object={"const": "model"}, created=NUMBER, owned_by=TEXT
)
_CHOICE = fields(
    "index", "message", "finish_reason", index=NUMBER, message=fields("role", "content", role=TEXT), finish_reason=TEXT
)
_OPENAI_ANSWER = fields(
    "id", "object", "created", "model", "choices", "usage",
    id=TEXT, object=TEXT, created=NUMBER, model=TEXT, choices=list_of(_CHOICE), usage=FREE,
)  # fmt: skip

OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("POST", "/api/approvals/{approval_id}"): Operation(
        "Say whether a call that waits for people may run",
        fields("decision", decision={"enum": ["approve", "deny"]}, scope={"enum": ["once", "hour"]}, reason=TEXT),
        ApprovalInfo,
    ),
    ("POST", "/api/chat"): Operation(
        "Send a message and watch its turn",
        ChatRequest,
        streams="Each event's data is a JSON object with its `type`.",
        events=get_args(ChatEvent),
        headers=("Idempotency-Key",),
    ),
    ("POST", "/api/turns/{turn_id}/cancel"): Operation("Stop a turn", answer=CancelResult),
    ("POST", "/api/sandbox/shell"): Operation("Run one command, or a batch, in the shell", _SHELL, _SHELL_ANSWER),
    ("GET", "/api/sources"): Operation(
        "The sources of knowledge by kind",
        answer={**fields("total", total=NUMBER), "additionalProperties": _KIND_OF_SOURCES},
    ),
    ("POST", "/api/sources"): Operation(
        "Add a source", fields("location", id=TEXT, **_SOURCE_FIELDS), _SOURCE, 201
    ),
    ("PUT", "/api/sources/{source}"): Operation(
        "Change a source", fields(**_SOURCE_FIELDS), _SOURCE
    ),
    ("DELETE", "/api/sources/{source}"): Operation("Remove a source", status=204),
    ("GET", "/api/sync"): Operation("The last syncs, newest first", answer=list[SyncInfo]),
    ("POST", "/api/sync"): Operation(
        "Start reading all sources, or some",
        fields(sources=list_of(TEXT), reset=FLAG, push=FLAG),
        StartedSync,
        202,
        needs_body=False,
    ),
    ("GET", "/api/sync/{run}"): Operation("One sync, and how far each of its sources is", answer=SyncInfo),
    ("POST", "/api/sync/{source}"): Operation("Start reading one source", answer=StartedSync, status=202),
    ("GET", "/api/sync/{run}/events"): Operation(
        "Follow a sync to its end",
        streams="`run` with all that is known, `progress` of each source whenever it goes on, `end` with the result.",
        events=tuple(dict.fromkeys(SYNC_EVENTS.values())),
    ),
    ("POST", "/api/sync/webhook/{source}"): Operation(
        "Have one source read by whoever changed it: signed as GitHub does, or with the secret as bearer token",
        FREE,
        StartedSync,
        202,
        needs_body=False,
    ),
    ("POST", "/api/sandbox/snapshot"): Operation(
        "Start making a snapshot of what was read last", answer=StartedSync, status=202
    ),
    ("GET", "/api/snapshot/status"): Operation(
        "Which snapshot is used, and which is the latest", answer=SnapshotInfo
    ),
    ("GET", "/api/snapshot/config"): Operation("Where snapshots are pushed to", answer=SnapshotRemoteInfo),
    ("PUT", "/api/snapshot/config"): Operation(
        "Change where snapshots are pushed to, and start a sync that publishes anew",
        fields(repository=TEXT, branch=TEXT, allow_existing=FLAG),
        SnapshotRemoteChange,
    ),
    ("POST", "/api/snapshot/sync"): Operation(
        "Make the latest snapshot the current one", answer=PublishedSnapshot
    ),
    ("GET", "/api/agent-config"): Operation(
        "What holds now, and which of it the active set says", answer=AgentConfig, query={"agent": TEXT}
    ),
    ("GET", "/api/agent-config/public"): Operation(
        "The same without the texts of the prompt, but for owners and admins",
        answer=AgentConfig,
        query={"agent": TEXT},
    ),
    ("PUT", "/api/agent-config"): Operation(
        "Change a set, which is active then; what is missing stays, null brings the configured value back",
        _SETTINGS,
        AgentConfig,
    ),
    ("POST", "/api/agent-config/reset"): Operation(
        "Empty the active set, or the named one: the configuration holds again",
        answer=AgentConfig,
        query={"agent": TEXT, "name": TEXT},
    ),
    ("GET", "/api/agent-config/sets"): Operation(
        "The sets of an agent", answer=list[AgentConfigSet], query={"agent": TEXT}
    ),
    ("POST", "/api/agent-config/sets/{name}/activate"): Operation(
        "Make a set active", answer=AgentConfig, query={"agent": TEXT}
    ),
    ("DELETE", "/api/agent-config/sets/{name}"): Operation(
        "Remove a set: after an active one the configuration holds", status=204, query={"agent": TEXT}
    ),
    ("GET", "/api/github/repos"): Operation(
        "GitHub repositories that can become sources; private ones for owners and admins",
        answer=list[RepositoryInfo],
    ),
    ("POST", "/api/stats/usage"): Operation(
        "Report what another program used", _REPORT, UsageReceipt, 201, headers=("Idempotency-Key",)
    ),
    ("POST", "/api/stats/compute"): Operation(
        "Sum up the usage of a day, yesterday by default",
        fields(date={"type": "string", "format": "date"}),
        ComputedDay,
        needs_body=False,
    ),
    ("GET", "/api/gaps"): Operation(
        "What was asked and no document answers, the most asked first",
        answer=GapList,
        query={"days": {"type": "integer", "minimum": 1, "maximum": MAX_DAYS, "default": DAYS}},
    ),
    ("POST", "/api/gaps/{gap}/close"): Operation(
        "Take a question off the list, with all that ask the same", answer=ClosedGaps
    ),
    ("GET", "/api/gaps/proposals"): Operation("Answers that people proposed", answer=list[ProposalInfo]),
    ("POST", "/api/gaps/proposals/{proposal}"): Operation(
        "Accept a proposed answer, or reject it",
        fields("decision", decision={"type": "string", "enum": ["accept", "reject"]}, text=TEXT, reason=TEXT),
        DecidedProposal,
    ),
    ("GET", "/v1/models"): Operation(
        "The agents, as models", answer=fields("object", "data", object=TEXT, data=list_of(_OPENAI_MODEL))
    ),
    ("GET", "/v1/models/{model}"): Operation("One agent, as a model", answer=_OPENAI_MODEL),
    ("POST", "/v1/chat/completions"): Operation(
        "A completion: a turn of an agent",
        _COMPLETION,
        _OPENAI_ANSWER,
        streams="With `stream`, chunks as OpenAI sends them.",
        headers=("X-Denizen-Session", "Idempotency-Key"),
    ),
}  # fmt: skip


Document = dict[str, Any]

PREFIXES = ("/api/", "/v1/")
_REF = "#/components/schemas/{model}"
_OPENAI_PROBLEM = fields(
    "error", error=fields("message", "type", "code", message=TEXT, type=TEXT, param={"type": "null"}, code=TEXT)
)
_ERRORS = sorted({401, *STATUS.values(), 413})


def complete(document: Document, routes: Iterable[BaseRoute]) -> Document:
    """Adds to what FastAPI said: the other routes, the keys, and the errors of all of them."""
    paths: dict[str, dict[str, Any]] = document["paths"]
    schemas: dict[str, Any] = document.setdefault("components", {}).setdefault("schemas", {})
    for path, method, route in served(routes):
        operation = OPERATIONS.get((method, path)) or _from_docstring(route)
        paths.setdefault(path, {})[method.lower()] = _describe(operation, method, path, schemas)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)  # FastAPI's own, which are answered as ours
    schemas["Error"] = fields("error", error=_schema_of(ProblemDetails, schemas))
    schemas["OpenAIError"] = _OPENAI_PROBLEM
    for path, operations in paths.items():
        kind = "OpenAIError" if path.startswith("/v1/") else "Error"
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["responses"] |= {str(status): _error(kind) for status in _ERRORS}
    document["components"]["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    }
    document["security"] = [{"bearer": []}, {"key": []}, {}]
    return document


def served(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, str, Route]]:
    """(path, method, route) of each under our prefixes, the path as OpenAPI writes it."""
    for route in routes:
        if isinstance(route, Route) and route.path.startswith(PREFIXES):
            for method in sorted((route.methods or set()) - {"HEAD"}):
                yield re.sub(r":\w+}", "}", route.path), method, route


def _from_docstring(route: Route) -> Operation:
    said = (inspect.getdoc(route.endpoint) or "").partition("\n")[0].rstrip(".")
    return Operation(said or route.name.replace("_", " ").capitalize(), status=0)


def _describe(operation: Operation, method: str, path: str, schemas: dict[str, Any]) -> Document:
    told: Document = {"summary": operation.summary, "operationId": _name(method, path)}
    names = re.findall(r"{(\w+)}", path)
    told["parameters"] = [
        *({"name": name, "in": "path", "required": True, "schema": TEXT} for name in names),
        *({"name": name, "in": "query", "schema": schema} for name, schema in operation.query.items()),
        *({"name": name, "in": "header", "schema": TEXT} for name in operation.headers),
    ]
    if operation.body is not None:
        content = {"application/json": {"schema": _schema_of(operation.body, schemas)}}
        told["requestBody"] = {"required": operation.needs_body, "content": content}
    answer: Document = {"description": operation.streams or "Done"}
    if operation.answer is not None:
        answer["content"] = {"application/json": {"schema": _schema_of(operation.answer, schemas)}}
    if operation.streams:
        kinds = [_schema_of(kind, schemas) for kind in operation.events]
        data = {
            **TEXT,
            "contentMediaType": "application/json",
            **({"contentSchema": {"anyOf": kinds}} if kinds else {}),
        }
        answer.setdefault("content", {})[STREAM] = {"schema": fields("data", event=TEXT, data=data)}
    told["responses"] = {str(operation.status or "2XX"): answer}
    return told


def _schema_of(kind: Kind, schemas: dict[str, Any]) -> Document:
    """A reference to the record's schema, which is added to the others."""
    if isinstance(kind, Mapping):
        return dict(kind)
    if isinstance(kind, GenericAlias):
        return dict(list_of(_schema_of(kind.__args__[0], schemas)))
    if not is_dataclass(kind):
        raise TypeError(f"{kind!r} is no record")
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    schema = adapter.json_schema(ref_template=_REF)
    for name, each in schema.pop("$defs", {}).items():
        schemas.setdefault(name, each)
    schemas.setdefault(kind.__name__, schema)
    return {"$ref": _REF.format(model=kind.__name__)}


def _error(kind: str) -> Document:
    schema = {"$ref": _REF.format(model=kind)}
    return {"description": "What is wrong, why, and what to do", "content": {"application/json": {"schema": schema}}}


def _name(method: str, path: str) -> str:
    return "_".join([method.lower(), *re.findall(r"\w+", path)])

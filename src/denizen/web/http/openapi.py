"""Routes that describe themselves, and the OpenAPI document that is generated from their descriptions.

A route group lists `ApiRoute`s: method, path, handler, and an `Operation` with the summary, the records of its request
and its answer, its query parameters and status. `build_openapi` makes the document of `/api/openapi.json` of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, is_dataclass
from types import GenericAlias
from typing import Any

from starlette.routing import BaseRoute, Route

from denizen.domain.record import record
from denizen.web.http.auth import HEALTH_PATH, READY_PATH
from denizen.web.http.problems import STATUS
from denizen.web.http.request import QueryParameter
from denizen.web.http.routing import Access, AccessRoute, Handler
from denizen_sdk.errors import ProblemDetails

Schema = Mapping[str, Any]
BodyType = type[Any] | GenericAlias | Schema
"""A record of the SDK, a list of records, or a JSON schema."""
Document = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "integer"}
TIME: Schema = {"type": ["string", "null"], "format": "date-time"}
ANY_OBJECT: Schema = {"type": "object", "additionalProperties": True}
STREAM = "text/event-stream"
PREFIXES = ("/api/", "/v1/", HEALTH_PATH, READY_PATH)
OPENAPI_PATH = "/api/openapi.json"

_REF = "#/components/schemas/{model}"
_ERROR_STATUSES = sorted({401, *STATUS.values(), 413})


def object_schema(*required: str, **properties: Schema) -> Schema:
    """Returns the schema of an object with these fields, which may have others too."""
    return {"type": "object", "properties": properties, "required": list(required)}


def list_schema(item: Schema) -> Schema:
    return {"type": "array", "items": item}


@record
class Operation:
    """The description of one route.

    Without `answer` the answer has no body. `needs_body` is false if the request's body may be left out. Status 0 is
    any that means success. `stream` describes the answer as an event stream, and `events` are the records in it.
    `others` are the records of other statuses, in the place of the error.
    """

    summary: str
    body: BodyType | None = None
    answer: BodyType | None = None
    status: int = 200
    needs_body: bool = True
    stream: str = ""
    events: Sequence[type[Any]] = ()
    headers: Sequence[str] = ()
    query: Sequence[QueryParameter] = ()
    others: Mapping[int, type[Any]] = field(default_factory=dict[int, type[Any]])


class ApiRoute(AccessRoute):
    """A route of the API with its description."""

    def __init__(self, method: str, path: str, handler: Handler, access: Access, operation: Operation) -> None:
        super().__init__(method, path, handler, access)
        self.operation = operation


def build_openapi(routes: Iterable[BaseRoute], version: str) -> Document:
    """Returns the document of all routes for programs. Takes a moment, and imports pydantic."""
    schemas: dict[str, Any] = {}
    paths: dict[str, dict[str, Any]] = {}
    for path, method, route in list_operations(routes):
        if isinstance(route, ApiRoute):
            operation = route.operation
        else:  # a plain Starlette route has only its docstring
            summary = (inspect.getdoc(route.endpoint) or "").partition("\n")[0].rstrip(".")
            operation = Operation(summary or route.name.replace("_", " ").capitalize(), status=0)
        described = _describe(operation, method, path, schemas)
        error_schema = {"$ref": _REF.format(model="OpenAIError" if path.startswith("/v1/") else "Error")}
        error = {
            "description": "What is wrong, why, and what to do",
            "content": {"application/json": {"schema": error_schema}},
        }
        described["responses"] = {str(status): error for status in _ERROR_STATUSES} | described["responses"]
        paths.setdefault(path, {})[method.lower()] = described
    schemas["Error"] = object_schema("error", error=_schema_for(ProblemDetails, schemas))
    schemas["OpenAIError"] = object_schema(
        "error",
        error=object_schema("message", "type", "code", message=TEXT, type=TEXT, param={"type": "null"}, code=TEXT),
    )
    keys = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Denizen", "version": version},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": keys},
        "security": [{"bearer": []}, {"key": []}, {}],
    }


def list_operations(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, str, Route]]:
    """Yields path, method and route for each operation to describe, with the path as OpenAPI writes it."""
    for route in routes:
        if isinstance(route, Route) and route.path.startswith(PREFIXES) and route.path != OPENAPI_PATH:
            for method in sorted((route.methods or set()) - {"HEAD"}):
                yield re.sub(r":\w+}", "}", route.path), method, route


def _describe(operation: Operation, method: str, path: str, schemas: dict[str, Any]) -> Document:
    operation_id = "_".join([method.lower(), *re.findall(r"\w+", path)])
    described: Document = {"summary": operation.summary, "operationId": operation_id}
    described["parameters"] = [
        *({"name": name, "in": "path", "required": True, "schema": TEXT} for name in re.findall(r"{(\w+)}", path)),
        *(parameter.describe() for parameter in operation.query),
        *({"name": name, "in": "header", "schema": TEXT} for name in operation.headers),
    ]
    if operation.body is not None:
        content = {"application/json": {"schema": _schema_for(operation.body, schemas)}}
        described["requestBody"] = {"required": operation.needs_body, "content": content}
    answer: Document = {"description": operation.stream or "Done"}
    if operation.answer is not None:
        answer["content"] = {"application/json": {"schema": _schema_for(operation.answer, schemas)}}
    if operation.stream:
        data: Document = {**TEXT, "contentMediaType": "application/json"}
        if operation.events:
            data["contentSchema"] = {"anyOf": [_schema_for(kind, schemas) for kind in operation.events]}
        answer.setdefault("content", {})[STREAM] = {"schema": object_schema("data", event=TEXT, data=data)}
    described["responses"] = {str(operation.status or "2XX"): answer}
    for status, kind in operation.others.items():
        content = {"application/json": {"schema": _schema_for(kind, schemas)}}
        described["responses"][str(status)] = {"description": "The answer otherwise", "content": content}
    return described


def _schema_for(kind: BodyType, schemas: dict[str, Any]) -> Document:
    """Returns the schema, for a record as a reference to a component, which it adds to `schemas`."""
    if isinstance(kind, Mapping):
        return dict(kind)
    if isinstance(kind, GenericAlias):
        return dict(list_schema(_schema_for(kind.__args__[0], schemas)))
    if not is_dataclass(kind):
        raise TypeError(f"{kind!r} is no record")
    # Imported here: pydantic takes longer to import than the rest of the web, and few ask for the document.
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    schema = adapter.json_schema(ref_template=_REF)
    for name, each in schema.pop("$defs", {}).items():
        schemas.setdefault(name, each)
    schemas.setdefault(kind.__name__, schema)
    return {"$ref": _REF.format(model=kind.__name__)}

"""The document of `/api/openapi.json`: every route under `/api` and `/v1`, what it answers, and the errors.

FastAPI describes its own routes; the rest comes from the routes themselves and from `described`. Made once, when it is
asked for; `listings` is the only caller.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from types import GenericAlias
from typing import Any

from pydantic import TypeAdapter
from starlette.routing import BaseRoute, Route

from denizen.web.api.described import OPERATIONS, STREAM, TEXT, Kind, Operation, fields, list_of
from denizen.web.errors import STATUS
from denizen_sdk.errors import ProblemDetails

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

"""Reads OpenAPI 3.0 and 3.1 documents into operations whose arguments can be checked by JSON Schema.

References stay in the schemas, which are checked together with the `components` of the document, so that schemas that
contain themselves need no end here. A reference to elsewhere is an error. Every text of a document is a stranger's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import cast
from urllib.parse import quote, unquote, urlencode, urljoin

from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record

MAX_OPERATIONS = 1000
MAX_REFERENCES = 20
MAX_SCHEMA_CHARS = 5_000_000
"""The limit for all operations together, each of which may repeat the same large parameter."""
READING = ("GET", "HEAD")

_METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
_RESERVED = {"accept", "authorization", "connection", "content-length", "content-type", "cookie", "host"} | {
    "proxy-authorization",
    "transfer-encoding",
    "x-http-method",  # these three make a reading request a writing one at some servers
    "x-http-method-override",
    "x-method-override",
}
_HEADER_NAME = re.compile(r"[A-Za-z0-9_-]+")
_NO_SCHEMA: JsonObject = {}
_SCHEMAS = "#/components/schemas/"


@record(kw_only=True)
class ApiParameter:
    """A parameter, in `path`, `query` or `header`. `explodes` says whether a list is repeated in a query."""

    name: str
    place: str
    explodes: bool


@record(kw_only=True)
class ApiOperation:
    """`arguments` is the JSON Schema of an object with the parameters by name, and the JSON body as `body`."""

    id: str
    method: str
    path: str
    summary: str
    arguments: JsonObject
    parameters: Sequence[ApiParameter]

    @property
    def reads(self) -> bool:
        return self.method in READING


@record(kw_only=True)
class ApiKeyPlace:
    """Where a key is sent: as the parameter `query`, or as `header`, whose value begins with `prefix`."""

    query: str = ""
    header: str = ""
    prefix: str = ""


@record(kw_only=True)
class ApiDocument:
    """`servers` are addresses in full, `schemas` are shared by the operations. `left_out` counts the operations that
    cannot be called: those with a body that is no JSON, a cookie, or two parameters of one name.
    """

    servers: Sequence[str]
    operations: Sequence[ApiOperation]
    schemas: JsonObject
    key_places: Sequence[ApiKeyPlace] = field(default=())
    left_out: int = 0


@record(kw_only=True)
class FilledOperation:
    """The parts of a request. `path` is escaped."""

    path: str
    query: str
    headers: Mapping[str, str]


def read_openapi(document: JsonObject, address: str = "") -> ApiDocument:
    """`address` is where the document came from. Raises InvalidInput for what is no OpenAPI 3.0 or 3.1."""
    version = str(document.get("openapi", ""))
    if "swagger" in document:
        raise _wrong("This is a document of Swagger 2.0.", "Convert it, such as with `npx swagger2openapi FILE`.")
    if not version.startswith(("3.0", "3.1")):
        raise _wrong("This is no document of OpenAPI 3.0 or 3.1.", "Give one whose `openapi` is 3.0.x or 3.1.x.")
    if version.startswith("3.0"):
        document = cast("JsonObject", _modernize(document))
    schemas = _object(_object(document.get("components")).get("schemas"))
    operations, left_out, chars = dict[str, ApiOperation](), 0, 0
    checked = set[str]()
    for path, item in _object(document.get("paths")).items():
        shared = _resolve(document, item)
        for method in (each for each in _METHODS if each in shared):
            operation = _read_operation(document, path, method, shared)
            if operation is None or operation.id in operations:
                left_out += 1
            else:
                _check_references(document, operation.arguments, checked)
                operations[operation.id] = operation
                chars += len(json.dumps(operation.arguments))
            if len(operations) + left_out > MAX_OPERATIONS:
                raise _wrong(f"This document has more than {MAX_OPERATIONS} operations.", "Give a part of it.")
            if chars > MAX_SCHEMA_CHARS:
                raise _wrong("The arguments of this document are too large.", "Give a part of it.")
    if not operations:
        raise _wrong("This document has no operation that can be called.", "Give one with `paths`.")
    schemes = _object(_object(document.get("components")).get("securitySchemes")).values()
    return ApiDocument(
        servers=_read_servers(document, address),
        operations=tuple(operations.values()),
        schemas=schemas,
        key_places=tuple(filter(None, (_find_key_place(_resolve(document, each)) for each in schemes))),
        left_out=left_out,
    )


def select_schemas(operation: ApiOperation, schemas: JsonObject) -> JsonObject:
    """Returns the shared schemas that the arguments of the operation refer to, also through others."""
    waiting, used = list(_find_references(operation.arguments)), dict[str, Json]()
    while waiting:
        name = _split(waiting.pop().removeprefix(_SCHEMAS))[0]
        if name in schemas and name not in used:
            used[name] = schemas[name]
            waiting += _find_references(schemas[name])
    return used


def fill_operation(operation: ApiOperation, arguments: JsonObject) -> FilledOperation:
    """Puts checked arguments into their places. Raises InvalidInput for a value that would lead elsewhere."""
    path, query, headers = operation.path, list[tuple[str, str]](), dict[str, str]()
    for parameter in operation.parameters:
        if parameter.name not in arguments:
            continue
        value = arguments[parameter.name]
        many = [_write(parameter.name, each) for each in (value if isinstance(value, list) else [value])]
        joined = ",".join(many)
        if parameter.place == "path":
            plain = unquote(unquote(joined))
            if plain in ("", ".", "..") or re.search(r"[/\\\x00-\x1f]", plain):
                raise _wrong(f"'{parameter.name}' cannot stand in a path.", "Give a value without / and dots alone.")
            path = path.replace("{" + parameter.name + "}", quote(joined, safe=""))
        elif parameter.place == "query":
            query += [(parameter.name, each) for each in (many if parameter.explodes else [joined])]
        elif re.search(r"[^\x20-\x7e]", joined):
            raise _wrong(f"'{parameter.name}' cannot stand in a header.", "Give plain ASCII on one line.")
        else:
            headers[parameter.name] = joined
    return FilledOperation(path=path, query=urlencode(query), headers=headers)


def _read_operation(document: JsonObject, path: str, method: str, shared: JsonObject) -> ApiOperation | None:
    found = _object(shared[method])
    declared = [
        _resolve(document, each) for each in (*_list(shared.get("parameters")), *_list(found.get("parameters")))
    ]
    by_place = {(str(each.get("in")), str(each.get("name"))): each for each in declared}  # its own come last and win
    by_place = {key: each for key, each in by_place.items() if key[0] != "header" or _may_send(key[1])}
    names = [name for _, name in by_place]
    body = _resolve(document, found["requestBody"]) if "requestBody" in found else _NO_SCHEMA
    media = next((_object(each) for kind, each in _object(body.get("content")).items() if "json" in kind), None)
    is_odd = any(place == "cookie" and each.get("required") for (place, _), each in by_place.items())
    if is_odd or len({*names, "body"}) <= len(names) or (body.get("required") and media is None):
        return None
    properties = {name: _object(each.get("schema")) for (_, name), each in by_place.items()}
    required = [name for (place, name), each in by_place.items() if each.get("required") or place == "path"]
    if {*re.findall(r"\{(.+?)\}", path)} != {name for place, name in by_place if place == "path"}:
        return None
    if media is not None:
        properties["body"] = _object(media.get("schema"))
        required += ["body"] if body.get("required") else []
    return ApiOperation(
        id=str(found.get("operationId") or f"{method} {path}")[:120],
        method=method.upper(),
        path=path,
        summary=str(found.get("summary") or found.get("description") or "")[:200],
        arguments={
            "type": "object",
            "properties": cast("Json", properties),
            "required": cast("Json", required),
            "additionalProperties": False,
        },
        parameters=tuple(
            ApiParameter(name=name, place=place, explodes=each.get("explode") is not False)
            for (place, name), each in by_place.items()
        ),
    )


def _may_send(header: str) -> bool:
    return header.lower() not in _RESERVED and _HEADER_NAME.fullmatch(header) is not None


def _find_key_place(scheme: JsonObject) -> ApiKeyPlace | None:
    match scheme:
        case {"type": "apiKey", "in": "query", "name": str(name)}:
            return ApiKeyPlace(query=name)
        case {"type": "apiKey", "in": "header", "name": str(name)}:
            return ApiKeyPlace(header=name)
        case {"type": "http", "scheme": str(word)} if word.lower() in ("basic", "bearer"):
            return ApiKeyPlace(header="Authorization", prefix=f"{word.capitalize()} ")
        case {"type": "oauth2" | "openIdConnect"}:
            return ApiKeyPlace(header="Authorization", prefix="Bearer ")
        case _:
            return None


def _read_servers(document: JsonObject, address: str) -> list[str]:
    servers = list[str]()
    for server in map(_object, _list(document.get("servers")) or [{"url": "/"}]):
        url = str(server.get("url", "/"))
        for name, variable in _object(server.get("variables")).items():
            url = url.replace("{" + name + "}", str(_object(variable).get("default", "")))
        try:
            servers.append(urljoin(address, url).rstrip("/"))
        except ValueError as error:
            raise _wrong("A server of this document has no web address.", "Mend its `servers`.") from error
    return servers


def _check_references(document: JsonObject, schema: Json, checked: set[str]) -> None:
    """Raises InvalidInput for a reference that leads out of the document or nowhere. Adds to those `checked`."""
    waiting = list(_find_references(schema))
    while waiting:
        reference = waiting.pop()
        if reference not in checked:
            checked.add(reference)
            if not reference.startswith(_SCHEMAS):
                raise _wrong(f"The document refers to {reference[:100]!r}.", "Put all schemas in its components.")
            waiting += _find_references(_look_up(document, reference))


def _find_references(schema: Json) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += each.values()
            if isinstance(reference := each.get("$ref"), str):
                yield reference


def _resolve(document: JsonObject, value: Json) -> JsonObject:
    for _ in range(MAX_REFERENCES):
        found = _object(value)
        if not isinstance(found.get("$ref"), str):
            return found
        value = _look_up(document, str(found["$ref"]))
    raise _wrong("A reference of this document has no end.", "Mend the document.")


def _look_up(document: JsonObject, reference: str) -> Json:
    value: Json = document
    if not reference.startswith("#/"):
        raise _wrong(f"The document refers to {reference[:100]!r}.", "Put everything into one document.")
    for key in _split(reference.removeprefix("#/")):
        if not isinstance(value, dict) or key not in value:
            raise _wrong(f"The document has no {reference[:100]!r}.", "Mend the reference.")
        value = value[key]
    return value


def _split(pointer: str) -> list[str]:
    return [unquote(part).replace("~1", "/").replace("~0", "~") for part in pointer.split("/")]


def _modernize(value: Json) -> Json:
    """Returns schemas of 3.0 in the words of 3.1: `nullable`, and limits that are exclusive by a flag."""
    if isinstance(value, list):
        return [_modernize(each) for each in value]
    if not isinstance(value, dict):
        return value
    new: JsonObject = {key: _modernize(each) for key, each in value.items()}
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(new.get(exclusive), bool):
            is_exclusive = new.pop(exclusive)
            if is_exclusive and limit in new:
                new[exclusive] = new.pop(limit)
    if new.get("nullable") is True and isinstance(new.get("type"), str):
        new["type"] = [new["type"], "null"]
        if isinstance(choices := new.get("enum"), list) and None not in choices:
            new["enum"] = [*choices, None]
    return new


def _write(name: str, value: Json) -> str:
    if isinstance(value, (dict, list)):
        raise _wrong(f"'{name}' cannot be written into a request.", "Give a plain value or a list of them.")
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _wrong(what: str, fix: str) -> InvalidInput:
    return InvalidInput(what, code="openapi", fix=fix)

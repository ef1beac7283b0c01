"""Discord's published REST schema (OpenAPI 3.1), to hold requests and answers against. It is no part of the project."""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from denizen.testing.discord.rest.request_log import LoggedRequest

ROOT = Path(__file__).resolve().parents[3]
_URN = "urn:discord"


def find_schema() -> Path | None:
    """`DENIZEN_DISCORD_OPENAPI`, or the file beside the repository; None where there is none."""
    named = os.environ.get("DENIZEN_DISCORD_OPENAPI")
    path = Path(named) if named else ROOT.parent / "shared" / "discord" / "openapi.json"
    return path if path.is_file() else None


class Schema:
    """Checks one request of the log at a time."""

    def __init__(self, path: Path) -> None:
        self.document: dict[str, Any] = json.loads(path.read_text())
        resource = DRAFT202012.create_resource(self.document)
        self._registry = Registry().with_resource(_URN, resource)
        self._paths = {_shape(template): template for template in self.document["paths"]}
        self.checked: set[str] = set()

    def faults(self, request: LoggedRequest) -> list[str]:
        """What is wrong with a request's body or its answer; nothing for routes that the schema does not know."""
        shape = _shape(_template(request))
        template = self._paths.get(shape)
        if template is None:
            return [f"no such path: {request.method} {shape}"]
        operation = self.document["paths"][template].get(request.method.lower())
        if operation is None:
            return [f"no such method: {request.method} {template}"]
        self.checked.add(f"{request.method} {template}")
        base = f"{_URN}#/paths/{_pointer(template)}/{request.method.lower()}"
        found = [f"{request}: {fault}" for fault in self._answer_faults(base, operation, request)]
        content = operation.get("requestBody", {}).get("content", {})
        if request.body is not None and request.status < 400 and "application/json" in content:
            reference = f"{base}/requestBody/content/application~1json/schema"
            found += [f"{request}: request {fault}" for fault in self._check(reference, as_read(request.body))]
        return found

    def _answer_faults(self, base: str, operation: dict[str, Any], request: LoggedRequest) -> list[str]:
        status = str(request.status)
        if request.status >= 400:
            name = "ClientRatelimitedResponse" if status == "429" else "ClientErrorResponse"
            reference = f"{_URN}#/components/responses/{name}/content/application~1json/schema"
            return self._check(reference, request.answer)
        responses = operation["responses"]
        if status not in responses:
            return [f"status {status} is not among {sorted(responses)}"]
        if "application/json" not in responses[status].get("content", {}):
            return [] if request.answer is None else ["an answer where none is expected"]
        return self._check(f"{base}/responses/{status}/content/application~1json/schema", request.answer)

    def _check(self, reference: str, value: Any) -> list[str]:
        validator = self._validator(reference)
        found = [best_match([error]) or error for error in validator.iter_errors(value)]
        return [_say(error) for error in found if not any(quirk(error) for quirk in QUIRKS)]

    @cache  # noqa: B019 - one schema for the whole run
    def _validator(self, reference: str) -> Any:
        return Draft202012Validator({"$ref": reference}, registry=self._registry)


def as_read(value: Any, name: str = "") -> Any:
    """A request as Discord reads it: ids may come as numbers, permissions as strings, whatever the schema says."""
    if isinstance(value, dict):
        return {key: as_read(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [as_read(each, name) for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and (name == "id" or value > 2**40):
        return str(value)
    return int(value) if name in ("allow", "deny", "permissions") and isinstance(value, str) else value


def _forward(error: ValidationError) -> bool:
    """The schema knows no forwarded messages."""
    return list(error.absolute_path)[-2:] == ["message_reference", "type"] and error.instance == 1


def _named_fault(error: ValidationError) -> bool:
    """The schema has numbers where Discord names what is wrong with a field."""
    path = list(error.absolute_path)
    return path[:1] == ["errors"] and path[-1] == "code" and isinstance(error.instance, str)


QUIRKS = (_forward, _named_fault)


def _say(error: ValidationError) -> str:
    return f"{'.'.join(map(str, error.absolute_path))}: {error.message[:300]}"


def _template(request: LoggedRequest) -> str:
    if request.route.endswith("{message_ref}") and request.path.endswith("@original"):
        return request.route.replace("{message_ref}", "@original")
    return request.route


def _shape(template: str) -> str:
    return re.sub(r"\{\w+\}", "{}", template)


def _pointer(template: str) -> str:
    """As a part of a JSON pointer in a URI."""
    return template.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")

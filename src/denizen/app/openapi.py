"""Reads API documents of JSON or YAML, and checks the arguments of their operations, for the skill of APIs."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, DocumentStartEvent
from ruamel.yaml.parser import Parser

from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json, JsonObject
from denizen.domain.openapi import ApiDocument, ApiOperation, read_openapi, select_schemas
from denizen.domain.tool import ToolSpec
from denizen.engine.tools.arguments import ArgumentsError, check_foreign_arguments

MAX_DEPTH = 60
MAX_EVENTS = 150_000
"""The limit of values and brackets: 1 MB of an ordinary document has fewer, and they take some seconds."""


class OpenApiReader:
    """Implements `denizen.skill.ApiDocumentReader`."""

    def read(self, text: str, address: str) -> ApiDocument:
        try:
            document = _parse(text)
            if isinstance(document, dict):
                return read_openapi(document, address)
        except (ValueError, YAMLError, RecursionError) as error:
            raise InvalidInput(
                "This is neither JSON nor YAML.", code="openapi", fix="Give an OpenAPI document as it is."
            ) from error
        raise InvalidInput("This is no OpenAPI document.", code="openapi", fix="Give one that is an object.")

    def check(self, operation: ApiOperation, schemas: JsonObject, arguments: JsonObject) -> JsonObject:
        used = select_schemas(operation, schemas)
        spec = ToolSpec(operation.id, operation.summary, {**operation.arguments, "components": {"schemas": used}})
        try:
            return check_foreign_arguments(spec, arguments)
        except ArgumentsError as error:
            raise InvalidInput(str(error), code="openapi_arguments", fix="Give arguments of its schema.") from error


class _BoundedParser(Parser):
    """Raises InvalidInput for what takes long to parse or much room, before anything is built of it."""

    _depth = 0
    _events = 0

    def get_event(self) -> Any:  # noqa: ANN401 - as its base has it
        event = cast("Any", super().get_event())  # pyright: ignore[reportUnknownMemberType]
        self._events += 1
        self._depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if self._depth > MAX_DEPTH:
            raise _nested_too_deeply()
        if self._events > MAX_EVENTS:
            raise InvalidInput("This YAML has too many values.", code="openapi", fix="Give a part of it, or JSON.")
        if isinstance(event, AliasEvent):  # a few lines of them may stand for gigabytes
            raise InvalidInput("This YAML has aliases (*).", code="openapi", fix="Write them out, or give JSON.")
        # Its version 1.1 has numbers that take long to read.
        if isinstance(event, DocumentStartEvent) and event.version:  # pyright: ignore[reportUnknownMemberType]
            raise InvalidInput("This YAML has a %YAML line.", code="openapi", fix="Leave that line out.")
        return event


def _nested_too_deeply() -> InvalidInput:
    return InvalidInput("This document is nested too deeply.", code="openapi", fix="Give a flatter one.")


def _parse(text: str) -> Json:
    if text.lstrip().startswith("{"):
        document = cast("dict[str, Json]", json.loads(text))
        level: list[dict[str, Json] | list[Json]] = [document]
        for _ in range(MAX_DEPTH):
            below = chain.from_iterable(each.values() if isinstance(each, dict) else each for each in level)
            level = [each for each in below if isinstance(each, dict | list)]
        if level:
            raise _nested_too_deeply()
        return document
    yaml = YAML(typ="safe", pure=True)
    yaml.Parser = _BoundedParser
    loaded = yaml.load(text)  # pyright: ignore[reportUnknownMemberType]
    return cast("Json", json.loads(json.dumps(loaded, default=str)))

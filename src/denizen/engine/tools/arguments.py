"""Arguments of a call against the tool's JSON schema: repaired where that is safe, else refused with an error that
teaches.

The schema is the tool's own, whatever its source. That of a server is somebody else's program, though: it is
followed only so far, and its regular expressions are left to the server, since some take longer than anybody lives.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.tool import ToolSpec
from denizen.domain.words import truncate
from denizen.ports.model import RAW_ARGS

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

    Check = Callable[[Validator, Any, Any, Mapping[str, Any]], Iterable[ValidationError] | None]

_MAX_PROBLEMS = 5
_MAX_PROBLEM_CHARS = 300
"""A problem quotes the value, which may be long."""
_MAX_CHECKS = 20_000
"""Keywords of a server's schema that are looked at for one call."""
_OF_SERVERS = "mcp:"
"""Begins the source of tools whose schemas come from elsewhere."""
_LEFT_TO_SERVERS = ("pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties")


class ArgumentsError(ValueError):
    """The text is for the model: what was wrong and what is expected."""


def check_arguments(spec: ToolSpec, args: JsonObject) -> JsonObject:
    """The arguments to call with. Raises ArgumentsError.

    Repaired without asking: a JSON object written as a string, and numbers or booleans written as strings where the
    schema wants the plain form; and null for an optional argument that knows no null. Everything else goes back to
    the model.
    """
    if RAW_ARGS in args:
        args = _parse_raw(spec, str(args[RAW_ARGS]))
    properties = _properties(spec)
    required = cast("Sequence[str]", spec.parameters.get("required", ()))
    repaired = {
        name: _repair(value, properties.get(name, {}))
        for name, value in args.items()
        if value is not None or name in required or not _is_plain(properties.get(name))
    }
    problems = _find_problems(spec, repaired)
    if problems:
        raise ArgumentsError(f"Wrong arguments for '{spec.name}': {'; '.join(problems)}. {_expected(spec)}")
    return repaired


def check_foreign_arguments(spec: ToolSpec, args: JsonObject) -> JsonObject:
    """As `check_arguments`, for a schema that comes from outside, whatever its source says."""
    return check_arguments(replace(spec, source=_OF_SERVERS), args)


def _find_problems(spec: ToolSpec, args: JsonObject) -> list[str]:
    """The first few. A schema that leads nowhere, or to itself, is somebody else's fault and must end no turn."""
    from referencing.exceptions import Unresolvable

    checker = _checker(_canonical(spec.parameters), is_foreign=spec.source.startswith(_OF_SERVERS))
    checker.patience.left = _MAX_CHECKS
    try:
        errors = sorted(checker.validator.iter_errors(cast("Any", args)), key=lambda error: error.json_path)
    except Unresolvable as error:
        raise ArgumentsError(f"'{spec.name}' cannot be called: its schema refers to {error.ref!r}.") from None
    except (RecursionError, _EndlessError):
        raise ArgumentsError(f"'{spec.name}' cannot be called: its schema has no end.") from None
    problems = [f"{_where(error.json_path)}{error.message}" for error in errors[:_MAX_PROBLEMS]]
    return [truncate(each, _MAX_PROBLEM_CHARS) for each in problems]


def _parse_raw(spec: ToolSpec, raw: str) -> JsonObject:
    if not raw.strip():
        return {}
    try:
        value = load_json(raw)
    except ValueError as error:
        where = f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise ArgumentsError(
            f"The arguments for '{spec.name}' are no valid JSON ({where}). {_expected(spec)}"
        ) from None
    if not isinstance(value, dict):
        raise ArgumentsError(f"The arguments for '{spec.name}' must be a JSON object. {_expected(spec)}")
    return value


def _repair(value: Json, schema: Mapping[str, Json]) -> Json:
    if not isinstance(value, str):
        return value
    wanted = schema.get("type")
    if wanted in ("integer", "number", "boolean", "object", "array"):
        try:
            parsed = load_json(value)
        except ValueError:
            return value
        kinds = {"integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list}
        if isinstance(parsed, kinds[cast("str", wanted)]):
            return parsed
    return value


def load_json(text: str) -> Json:
    """JSON that a model wrote, if it can be written down again: finite numbers, whole characters, an end to nesting.

    Raises ValueError.
    """
    try:
        value = cast("Json", json.loads(text))
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def _is_plain(schema: Mapping[str, Json] | None) -> bool:
    """Whether the schema names one type that is not null."""
    return schema is not None and isinstance(schema.get("type"), str) and schema["type"] != "null"


def _where(json_path: str) -> str:
    return "" if json_path == "$" else f"{json_path.removeprefix('$.')}: "


def _expected(spec: ToolSpec) -> str:
    properties = _properties(spec)
    required = cast("list[str]", spec.parameters.get("required", []))
    names = [
        f"{name} ({_kind(schema)}{', required' if name in required else ''})" for name, schema in properties.items()
    ]
    return f"Expected: {', '.join(names)}." if names else "It takes no arguments."


def _kind(schema: Mapping[str, Json]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in cast("list[Json]", schema["enum"]))
    return str(schema.get("type", "any"))


def _properties(spec: ToolSpec) -> Mapping[str, Mapping[str, Json]]:
    """A schema may also be plain yes or no; that tells nothing of a property."""
    written = cast("Mapping[str, Json]", spec.parameters.get("properties", {}))
    return {name: schema if isinstance(schema, Mapping) else {} for name, schema in written.items()}


def _canonical(schema: Mapping[str, Json]) -> str:
    return json.dumps(schema, sort_keys=True)


class _EndlessError(Exception):
    """A schema asks for more than anybody waits for."""


@dataclass(slots=True)
class _Patience:
    """How many keywords may still be looked at."""

    left: int = 0


@record
class _Checker:
    validator: Validator
    patience: _Patience


@lru_cache(maxsize=512)
def _checker(schema: str, *, is_foreign: bool) -> _Checker:
    """By the draft that the schema names, as servers of all ages write them; it is never looked up elsewhere."""
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry

    document, patience = json.loads(schema), _Patience()
    kind = validators.validator_for(document, default=Draft202012Validator)
    if is_foreign:
        checks = cast("Mapping[str, Check]", kind.VALIDATORS)
        bounded = {name: _bounded(name, check, patience) for name, check in checks.items()}
        kind = cast("type[Validator]", cast("Any", validators).extend(kind, bounded))
    return _Checker(kind(document, registry=Registry()), patience)


def _bounded(name: str, check: Check, patience: _Patience) -> Check:
    def bounded(
        validator: Validator, value: object, instance: object, schema: Mapping[str, Any]
    ) -> Iterator[ValidationError]:
        patience.left -= 1
        if patience.left < 0:
            raise _EndlessError
        is_left = name in _LEFT_TO_SERVERS or (name == "additionalProperties" and "patternProperties" in schema)
        if not is_left:
            yield from check(validator, value, instance, schema) or ()

    return bounded

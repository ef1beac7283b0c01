"""The values of a tool: from annotations to its JSON schema, from the model's arguments to the function's, and from
what it returns to a result.

This is the only user of pydantic's schemas. Schemas are kept small, since each request pays for them: no titles, no
references, no null branches. `additionalProperties` is false so that a wrong name is noticed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args, get_origin, get_type_hints

from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.tool import ToolResult

if TYPE_CHECKING:
    from pydantic import BaseModel


@record
class Param:
    """Describes a parameter in `Annotated[int, Param("how many", ge=1, le=10)]`. A plain string in its place is a
    description.

    The description is sent to the model with every request: a few words with an example beat a sentence. Bounds are
    part of the schema and enforced before the tool runs. A fixed set of values is a `Literal` type.
    """

    description: str = ""
    ge: float | None = None
    le: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None


class ToolError(InvalidInput):
    """An expected failure. The message goes to the model, which corrects its call or tells the person. `is_own` as for
    a ToolOutput.
    """

    code = "tool_error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        why: str = "",
        fix: str = "",
        is_own: bool = False,
        **context: object,
    ) -> None:
        super().__init__(message, code=code, why=why, fix=fix, **context)
        self.is_own = is_own


@record
class ToolOutput:
    """A result with `text` for the model and `data` (embeds, files) for people and machines, never for the model.

    `is_own`: a tool that `reads` untrusted texts has found none this time, so that every word of `text` is its own, or
    of the call. Else the gate asks people about what the agent does next.
    """

    text: str
    data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    is_own: bool = False


def to_result(value: object) -> ToolResult:
    """Turns what a tool returned into a result: text stays as it is, None becomes "Done.", anything else compact JSON.

    Dataclasses, dates, enums and pydantic models count as JSON. Raises pydantic's serialisation error for the rest,
    which is a fault of the tool.
    """
    match value:
        case ToolResult():
            return value
        case ToolOutput():
            return ToolResult(value.text, data=value.data, is_own=value.is_own)
        case str():
            return ToolResult(value)
        case None:
            return ToolResult("Done.")
        case _:
            from pydantic import TypeAdapter

            return ToolResult(TypeAdapter[object](object).dump_json(value).decode())


_NULL: JsonObject = {"type": "null"}


class ToolSignature:
    """The parameters of one tool: all of the function's except the first, which is the context."""

    def __init__(self, tool: str, function: Callable[..., object]) -> None:
        self._tool = tool
        self._function = function
        self._parameters = dict(list(inspect.signature(function).parameters.items())[1:])

    @cached_property
    def schema(self) -> JsonObject:
        """A JSON schema of type object. Raises InvalidInput (`bad_skill`) for a type that has none."""
        from pydantic import PydanticUserError

        try:
            raw = self._model.model_json_schema(by_alias=True)
        except PydanticUserError as error:
            raise self._bad_type(str(error).splitlines()[0]) from error
        definitions = raw.pop("$defs", {})
        schema = _compact(raw, definitions)
        schema.setdefault("properties", {})
        schema["additionalProperties"] = False
        return schema

    def bind(self, args: Mapping[str, Json]) -> dict[str, Any]:
        """Returns the values to call the function with. Numbers and flags that came as text are converted.

        A null for an optional parameter counts as left out. Raises ToolError with everything that is wrong and the
        parameters that the tool takes.
        """
        from pydantic import ValidationError

        given = {name: value for name, value in args.items() if value is not None or self._is_required(name)}
        try:
            values = self._model.model_validate(given)
        except ValidationError as error:
            faults = [_fault(row["loc"], row["msg"]) for row in error.errors(include_url=False, include_input=False)]
            raise ToolError(
                f"`{self._tool}` was not run: {'; '.join(faults)}. {self._expectation()}",
                code="bad_arguments",
                is_own=True,
            ) from error
        return {
            name: getattr(values, f"p{number}")
            for number, name in enumerate(self._parameters)
            if f"p{number}" in values.model_fields_set
        }

    @cached_property
    def _model(self) -> type[BaseModel]:
        """A pydantic model of the parameters. Its fields are called p0, p1, ... with the parameter's name as alias,
        since names such as `json` would clash with the model's own.
        """
        from pydantic import ConfigDict, PydanticUserError, create_model

        try:
            hints = get_type_hints(self._function, include_extras=True)
            fields: dict[str, Any] = {
                f"p{number}": _field(parameter, hints[parameter.name])
                for number, parameter in enumerate(self._parameters.values())
            }
            # Models often send numbers for texts; a wrong name, however, must be noticed.
            config = ConfigDict(extra="forbid", coerce_numbers_to_str=True, arbitrary_types_allowed=False)
            return create_model(self._tool, __config__=config, **fields)
        except (NameError, PydanticUserError) as error:
            raise self._bad_type(str(error).splitlines()[0]) from error

    def _bad_type(self, why: str) -> InvalidInput:
        return InvalidInput(
            f"the parameters of `{self._tool}` cannot be described to a model",
            code="bad_skill",
            why=why,
            fix="use str, int, float, bool, Literal, list, dict, dataclasses; import them at the top of the module",
        )

    def _is_required(self, name: str) -> bool:
        parameter = self._parameters.get(name)
        return parameter is None or parameter.default is parameter.empty

    def _expectation(self) -> str:
        if not self._parameters:
            return "It takes no arguments."
        names = (name if self._is_required(name) else f"{name} (optional)" for name in self._parameters)
        return f"It takes: {', '.join(names)}."


def _field(parameter: inspect.Parameter, hint: object) -> tuple[object, object]:
    """Returns a field definition for `create_model`: the type without our own annotations, and its constraints."""
    from pydantic import Field

    param, kept = Param(), list[object]()
    if get_origin(hint) is Annotated:
        hint, *marks = get_args(hint)
        for mark in marks:
            match mark:
                case Param():
                    param = mark
                case str():
                    param = Param(mark)
                case _:
                    kept.append(mark)
    for mark in kept:
        hint = Annotated[cast("Any", hint), mark]
    default = ... if parameter.default is parameter.empty else parameter.default
    info: object = Field(
        default,
        alias=parameter.name,
        description=param.description or None,
        ge=param.ge,
        le=param.le,
        min_length=param.min_length,
        max_length=param.max_length,
        pattern=param.pattern,
    )
    return hint, info


def _fault(location: tuple[int | str, ...], message: str) -> str:
    where = ".".join(str(step) for step in location)
    return f"{where}: {message[:1].lower()}{message[1:]}"


def _compact(node: Mapping[str, Json], definitions: Mapping[str, JsonObject]) -> JsonObject:
    """Returns the schema without titles, with references replaced by what they refer to, and `X or null` reduced to X.

    Raises InvalidInput for a type that refers to itself, which could be replaced for ever.
    """
    schema = dict(node)
    if "$ref" in schema:
        name = str(schema.pop("$ref")).rpartition("/")[2]
        if name not in definitions:
            raise InvalidInput(f"the type {name} refers to itself", code="bad_skill", fix="use a flat type")
        rest = {key: value for key, value in definitions.items() if key != name}
        return {**_compact(definitions[name], rest), **_compact(schema, rest)}
    schema.pop("title", None)
    # An empty default tells the model nothing and costs tokens in every request.
    if schema.get("default", ...) in (None, ""):
        del schema["default"]
    branches = schema.get("anyOf")
    if isinstance(branches, list) and _NULL in branches:
        others = [branch for branch in branches if branch != _NULL]
        del schema["anyOf"]
        only = cast("JsonObject", others[0]) if len(others) == 1 else {"anyOf": others}
        return _compact({**only, **schema}, definitions)
    return {key: _compact_member(key, value, definitions) for key, value in schema.items()}


def _compact_member(key: str, value: Json, definitions: Mapping[str, JsonObject]) -> Json:
    """Descends where a keyword holds schemas. Names of properties are not keywords: one may be called `title`."""
    match key, value:
        case "properties", Mapping():
            return {name: _compact(cast("JsonObject", schema), definitions) for name, schema in value.items()}
        case (("items" | "additionalProperties"), Mapping()):
            return _compact(value, definitions)
        case (("anyOf" | "oneOf" | "allOf" | "prefixItems"), list()):
            return [_compact(cast("JsonObject", schema), definitions) for schema in value]
        case _:
            return value

"""The options of requests to `/v1`: tools, the form of the answer, sampling, stops. Read into `AnswerDemands`. Pure.

Every field is honoured or refused, in words: none is ignored. `WITHOUT_EFFECT` are accepted since they ask for nothing
that an answer could show, and `NEUTRAL` has the values of other fields that ask for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from denizen.domain.agent import SamplingSettings
from denizen.domain.demands import NO_TOOLS, AnswerDemands, ClientTools, OutputForm
from denizen.domain.errors import InvalidInput
from denizen.domain.json import JsonObject
from denizen.domain.tool import ToolSpec
from denizen.web.http.openapi import FLAG, NUMBER, TEXT, Schema, list_schema, object_schema
from denizen.web.http.request import JsonBody, check_field_names, field_error, read_flag, read_number, read_text

MAX_TOKENS = 1_000_000
MAX_TOOLS = 128
MAX_STOPS = 4
MAX_STOP_CHARS = 500
MAX_SEED = 2**63 - 1

WITHOUT_EFFECT = frozenset({"store", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"})
"""Fields about OpenAI's own servers: their logs, their caches, their hunt for misuse."""

NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "reasoning_effort": (),
    "verbosity": ("medium",),
    "service_tier": ("auto", "default"),
    "web_search_options": (),
    "functions": ([],),
    "function_call": (),
    # Of `/v1/responses`.
    "background": (False,),
    "conversation": (),
    "include": ([],),
    "max_tool_calls": (),
    "prompt": (),
    "reasoning": ({}, {"effort": None}, {"effort": None, "summary": None}),
    "truncation": ("auto", "disabled"),
}
_REASONS = {
    "n": "a turn has one answer, and runs its tools once",
    "functions": "they became `tools` long ago",
    "function_call": "it became `tool_choice` long ago",
    "reasoning_effort": "the agent's configuration decides whether it reasons",
    "reasoning": "the agent's configuration decides whether it reasons",
    "web_search_options": "an agent has its own tools",
    "background": "a turn outlives its client with an Idempotency-Key",
    "conversation": "a conversation goes on with `previous_response_id`",
}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

NAME: Schema = {"type": "string", "pattern": f"^{_NAME.pattern}$"}
FUNCTION: Mapping[str, Schema] = {
    "name": NAME,
    "description": TEXT,
    "parameters": object_schema(type={"const": "object"}),
    "strict": FLAG,
}
SAMPLING: Mapping[str, Schema] = {
    "temperature": {"type": "number", "minimum": 0, "maximum": 2},
    "top_p": {"type": "number", "minimum": 0, "maximum": 1},
}
SEED: Schema = {**NUMBER, "minimum": -MAX_SEED, "maximum": MAX_SEED}
_STOP: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_STOP_CHARS}
STOP: Schema = {"anyOf": [_STOP, {**list_schema(_STOP), "maxItems": MAX_STOPS}]}
FORM_SCHEMA = object_schema("type", type={"const": "object"})


def describe_choice(named: Schema) -> Schema:
    """Returns the schema of a choice among tools; `named` describes a function."""
    return {"anyOf": [{"enum": ["auto", "none", "required"]}, named]}


def check_fields(body: JsonBody, known: Collection[str], neutral: Collection[str]) -> None:
    """Raises InvalidInput for a field that is unknown, or that asks for something that there is not."""
    for name in neutral:
        value = body.get(name)
        if value is None or any(type(value) is type(each) and value == each for each in NEUTRAL[name]):
            continue
        if isinstance(value, float) and value in NEUTRAL[name]:
            continue
        raise InvalidInput(
            f"`{name}` is not supported.",
            code=f"{name}_unsupported",
            why=_REASONS.get(name, "no agent's model could be made to keep to it"),
            fix=f"Leave `{name}` out.",
        )
    check_field_names(body, [*known, *neutral, *sorted(WITHOUT_EFFECT)])


def describe_fields(neutral: Collection[str]) -> dict[str, Schema]:
    """Returns the schemas of fields that ask for nothing, for the description of a route."""
    nothing: dict[str, Schema] = {name: {"enum": [None, *NEUTRAL[name]]} for name in neutral}
    anything: Schema = {}
    return nothing | dict.fromkeys(sorted(WITHOUT_EFFECT), anything)


def read_demands(body: JsonBody, tools: ClientTools, output: OutputForm | None) -> AnswerDemands:
    """Raises InvalidInput, which names the wrong field."""
    return AnswerDemands(
        sampling=SamplingSettings(
            read_number(body, "temperature", low=0, high=2), read_number(body, "top_p", low=0, high=1), _read_seed(body)
        ),
        stop=_read_stop(body),
        output=output,
        tools=tools,
    )


def read_max_tokens(body: JsonBody, *names: str) -> int | None:
    """Returns the first of these limits that is given."""
    for name in names:
        value = read_number(body, name, low=1, high=MAX_TOKENS)
        if value is not None:
            return int(value)
    return None


def read_child(body: JsonBody, name: str) -> JsonBody:
    """Returns an object in a body; an empty one if it is null or missing."""
    value: Any = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise field_error(name, "an object")
    return cast("JsonBody", value)


def _read_seed(body: JsonBody) -> int | None:
    value: object = body.get("seed")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -MAX_SEED <= value <= MAX_SEED:
        raise field_error("seed", "a whole number")
    return value


def _read_stop(body: JsonBody) -> tuple[str, ...]:
    value: Any = body.get("stop")
    stops = cast("list[object]", [value] if isinstance(value, str) else value if value is not None else [])
    is_list = isinstance(stops, list) and len(stops) <= MAX_STOPS  # pyright: ignore[reportUnnecessaryIsInstance]
    if not is_list or not all(isinstance(each, str) and 0 < len(each) <= MAX_STOP_CHARS for each in stops):
        raise field_error("stop", f"a text of 1 to {MAX_STOP_CHARS} characters, or a list of at most {MAX_STOPS}")
    return tuple(cast("list[str]", stops))


def read_tools(body: JsonBody, *, is_flat: bool) -> ClientTools:
    """Returns the client's tools as far as they may be called. `is_flat`: a function's fields stand beside its type, as
    in `/v1/responses`.
    """
    value: Any = body.get("tools")
    given = cast("list[Any]", [] if value is None else value)
    if not isinstance(given, list) or len(given) > MAX_TOOLS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise field_error("tools", f"a list of at most {MAX_TOOLS} tools")
    strict: set[str] = set()
    specs = [_read_tool(each, f"tools[{place}]", strict, is_flat=is_flat) for place, each in enumerate(given)]
    names = [spec.name for spec in specs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidInput(f"Two tools have the name '{twice}'.", code="tools_invalid", fix="Name each once.")
    choice = _read_choice(body, names, is_flat=is_flat)
    if choice == "none" or not specs:
        return NO_TOOLS
    return ClientTools(
        tuple(spec for spec in specs if choice in {"auto", "required"} or choice == f"={spec.name}"),
        is_required=choice != "auto",
        is_parallel=read_flag(body, "parallel_tool_calls", default=True),
        strict=frozenset(strict),
    )


def _read_tool(item: object, where: str, strict: set[str], *, is_flat: bool) -> ToolSpec:
    if not isinstance(item, dict):
        raise field_error(where, "an object")
    tool = cast("JsonBody", item)
    kind = read_text(tool, "type")
    if kind != "function":
        raise InvalidInput(
            f"{where} has type '{kind[:100]}', which is not supported.",
            code="tools_unsupported",
            why="a client runs functions; what else there is, the agent has itself",
            fix="Send tools of type function, and give the agent its own in the configuration.",
        )
    function = tool if is_flat else read_child(tool, "function")
    name = read_text(function, "name")
    if not _NAME.fullmatch(name):
        raise field_error(f"{where}: name", "1 to 64 letters, digits, `_` and `-`")
    parameters = read_child(function, "parameters")
    if parameters.get("type", "object") != "object":
        raise field_error(f"{where}: parameters", "a JSON schema of type object")
    if read_flag(function, "strict"):
        strict.add(name)
    return ToolSpec(name, read_text(function, "description"), dict(parameters), source="client")


def _read_choice(body: JsonBody, names: Collection[str], *, is_flat: bool) -> str:
    """Returns auto, none, required, or `=` and the name of a tool."""
    choice: Any = body.get("tool_choice")
    if isinstance(choice, dict):
        given = cast("JsonBody", choice)
        function = given if is_flat else read_child(given, "function")
        name = read_text(function, "name") if given.get("type") == "function" else ""
        if name not in names:
            raise field_error("tool_choice", "auto, none, required, or a function among the tools")
        return f"={name}"
    if choice not in (None, "auto", "none", "required") or (choice == "required" and not names):
        raise field_error("tool_choice", "auto, none, required (with tools), or a function among the tools")
    return str(choice or "auto")


def read_output_form(form: JsonBody, where: str, *, is_flat: bool) -> OutputForm | None:
    """Returns the form of the answer. `is_flat`: the schema stands beside the type, as in `/v1/responses`."""
    kind = read_text(form, "type", "text")
    if kind == "text":
        return None
    if kind == "json_object":
        return OutputForm({"type": "object"})
    if kind != "json_schema":
        raise field_error(f"{where}.type", "text, json_object or json_schema")
    described = form if is_flat else read_child(form, "json_schema")
    schema, name = read_child(described, "schema"), read_text(described, "name", "output")
    if schema.get("type") != "object" or not _NAME.fullmatch(name):
        raise field_error(where, "a form with a `name` of letters, digits, `_` and `-`, and a `schema` of type object")
    return OutputForm(cast("JsonObject", dict(schema)), name)

"""The form of an answer that somebody demands: a JSON object that fits a schema. Each answer is checked against it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from denizen.domain.demands import OutputForm
from denizen.domain.errors import Unavailable
from denizen.domain.json import JsonObject
from denizen.domain.tool import ToolSpec
from denizen.engine.loop.steps import TurnSteps
from denizen.engine.tools.arguments import check_foreign_arguments, load_json
from denizen.ports.model import ModelReply, ModelRequest

_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*?)\n?```\Z", re.DOTALL)
_NOTE = (
    "When you have what you need, answer with one JSON object that fits this schema, and with nothing else: {schema}"
)


def describe_form(form: OutputForm) -> str:
    """Returns the note for requests with tools, whose output cannot be held to a schema."""
    return _NOTE.format(schema=json.dumps(form.schema, ensure_ascii=False))


def read_output(form: OutputForm, text: str) -> str:
    """Returns the JSON text in an answer. Raises ValueError when that does not keep to the form."""
    fenced = _FENCE.match(text.strip())
    bare = fenced[1] if fenced else text.strip()
    value = load_json(bare)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - one error for whatever a model wrote
    spec = ToolSpec(form.name, "", form.schema)
    checked: JsonObject = check_foreign_arguments(spec, value)
    return bare if checked == value else json.dumps(checked, ensure_ascii=False)


def say_output(steps: TurnSteps, form: OutputForm, reply: ModelReply, text: str) -> str:
    """Shows the answer, all at once, and returns it. Raises Unavailable when it does not keep to the form; an answer
    that was cut off cannot.
    """
    try:
        text = read_output(form, text)
    except (ValueError, RecursionError) as error:
        if reply.finish_reason != "length":
            raise Unavailable(
                "The model did not keep to the form that was asked for.",
                code="output_invalid",
                why=str(error),
                fix="Try again, loosen the schema, or ask an agent with a larger model.",
            ) from error
    steps.say(text)
    return text


def fits(form: OutputForm, text: str) -> bool:
    """Whether an answer keeps to the form."""
    try:
        read_output(form, text)
    except (ValueError, RecursionError):
        return False
    return True


def demand_form(request: ModelRequest, form: OutputForm) -> ModelRequest:
    """Returns the request with its output held to the form, as far as the provider can."""
    return replace(request, output_schema=form.schema, output_name=form.name)

"""How a tool says what came out: `ToolOutput`, `ToolError`, and the rule that turns any other value into text.

Called by `toolset`. Results of a fault in the tool's code are not made here: the gate does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json
from denizen.domain.tool import ToolResult


class ToolError(InvalidInput):
    """An expected failure. The message goes to the model, which corrects its call or tells the person."""

    code = "tool_error"


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """`text` for the model, `data` (embeds, files) for people and machines, never for the model."""

    text: str
    data: Mapping[str, Json] = field(default_factory=dict[str, Json])


def to_result(value: object) -> ToolResult:
    """Text stays as it is; None becomes "Done."; anything else is dumped as compact JSON.

    Dataclasses, dates, enums and pydantic models count as JSON. Raises pydantic's serialisation error for the rest,
    which is a fault of the tool.
    """
    match value:
        case ToolResult():
            return value
        case ToolOutput():
            return ToolResult(value.text, data=value.data)
        case str():
            return ToolResult(value)
        case None:
            return ToolResult("Done.")
        case _:
            from pydantic import TypeAdapter

            return ToolResult(TypeAdapter[object](object).dump_json(value).decode())

"""From a server's list of tools to specs: names, schemas as they are (inventory LW11), tiers, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from denizen.adapters.mcp.naming import plan_names
from denizen.adapters.mcp.spec import McpToolPolicy
from denizen.domain.json import Json
from denizen.domain.tool import Taint, Tier, ToolSpec

if TYPE_CHECKING:
    from mcp_types import Tool

MAX_TOOLS = 500
"""Of one server."""
MAX_DESCRIPTION_CHARS = 4000


@dataclass(frozen=True, slots=True)
class McpToolList:
    """`own_names` leads from an offered name to the server's; `left_out` says of other tools why they are not there."""

    specs: tuple[ToolSpec, ...] = ()
    own_names: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])


def build_tool_list(tools: Sequence[Tool], offer: McpToolPolicy, source: str) -> McpToolList:
    """What of the tools is offered."""
    allowed = {tool.name: tool for tool in tools if offer.allows(tool.name)}
    left_out = {name: problem for name, tool in allowed.items() if (problem := _find_problem(tool))}
    usable = [tool for name, tool in allowed.items() if name not in left_out]
    left_out |= {tool.name: f"a server may have {MAX_TOOLS} tools" for tool in usable[MAX_TOOLS:]}
    planned = plan_names(offer.prefix, [tool.name for tool in usable[:MAX_TOOLS]])
    names = {own: shown for own, shown in planned.items() if not shown.startswith(offer.reserved)}
    left_out |= {own: f"{planned[own]} could be a tool of another server" for own in planned.keys() - names.keys()}
    specs = tuple(_spec(tool, names[tool.name], offer, source) for tool in usable if tool.name in names)
    return McpToolList(specs, {shown: own for own, shown in names.items()}, left_out)


def _spec(tool: Tool, name: str, offer: McpToolPolicy, source: str) -> ToolSpec:
    hints = tool.annotations
    is_destructive = hints is not None and hints.destructive_hint is True and hints.read_only_hint is not True
    reads_only = offer.trusted and hints is not None and hints.read_only_hint is True
    is_idempotent = offer.trusted and hints is not None and hints.idempotent_hint is True
    description = (tool.description or tool.title or tool.name).strip() or tool.name
    return ToolSpec(
        name,
        description[:MAX_DESCRIPTION_CHARS],
        cast("Mapping[str, Json]", tool.input_schema),
        tier=_tier(tool.name, offer, reads_only=reads_only),
        read_only=reads_only,
        idempotent=is_idempotent or reads_only,
        cacheable=is_idempotent and reads_only,
        shared=True,  # a server is not told who asks
        timeout_s=offer.timeout_s,
        source=source,
        destructive=is_destructive,
        reads=frozenset({Taint.TOOL}),
    )


def _tier(tool: str, offer: McpToolPolicy, *, reads_only: bool) -> Tier:
    written = offer.find_tier(tool)
    if written is not None:
        return written
    if not offer.trusted:
        return Tier.DANGEROUS
    return Tier.LIMITED if reads_only else Tier.SENSITIVE


def _find_problem(tool: Tool) -> str:
    """Why arguments could never be checked against the tool's schema; empty when they can."""
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for

    schema = tool.input_schema
    if schema.get("type") != "object":
        return "its schema is not of type object"
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return f"its schema is not valid: {error.message[:200]}"
    return ""

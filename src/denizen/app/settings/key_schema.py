"""The JSON schema of the configuration, and of single keys, for forms that are made from it."""

from __future__ import annotations

from functools import cache
from typing import Any

from denizen.app.settings.edit import no_such
from denizen.app.settings.problem import KeyPath
from denizen.app.settings.schema import Config


@cache
def config_schema() -> dict[str, Any]:
    """Made when it is first asked for, which takes a tenth of a second."""
    return Config.model_json_schema()


def find_schema(path: KeyPath) -> dict[str, Any]:
    """Returns the schema of what may stand at a path. Raises NotFound."""
    node = config_schema()
    for depth, part in enumerate(path):
        below = _below(resolve(node), part)
        if below is None:
            raise no_such(path[: depth + 1])
        node = below
    return node


def resolve(node: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema that a reference, or a choice between it and null, leads to."""
    options = [each for each in node.get("anyOf", ()) if each.get("type") != "null"]
    if len(options) == 1:
        node = options[0]
    return config_schema()["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def _below(node: dict[str, Any], part: str | int) -> dict[str, Any] | None:
    if isinstance(part, int):
        return node.get("items")
    known = node.get("properties", {}).get(part)
    values: Any = node.get("additionalProperties")
    return known if known is not None else values if isinstance(values, dict) else None  # pyright: ignore[reportUnknownVariableType]

"""`configuration.md`: every key of `denizen.yaml`, from the records that check the file.

Types, bounds and defaults come from the schema; what a key means from its own description there, or from
`configuration_words`, which has to name each key and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from denizen.app.settings.schema import Config
from scripts.docs.configuration_words import HEAD, SECTIONS, WORDS
from scripts.docs.table import format_table

Schema = Mapping[str, Any]


def build_configuration() -> str:
    """The page. Raises ValueError when the words and the keys do not agree."""
    schema = Config.model_json_schema()
    tables: dict[str, list[tuple[str, str, str, str]]] = {}
    used: set[str] = set()
    for path, each, required in walk_keys(schema, schema["$defs"]):
        meaning = str(each.get("description") or WORDS.get(path, ""))
        if not meaning:
            raise ValueError(f"scripts/docs/configuration_words.py: what does the key {path} mean?")
        used.add(path)
        default = "required" if required else _default(each)
        tables.setdefault(_section(path), []).append((f"`{path}`", _type(each, schema["$defs"]), default, meaning))
    unknown = sorted(set(WORDS) - used) + sorted(set(SECTIONS) - set(tables))
    if unknown:
        raise ValueError(f"scripts/docs/configuration_words.py: there is no key {unknown[0]}")
    parts = [HEAD]
    for name, rows in tables.items():
        parts += [f"## {name}", SECTIONS[name], format_table(("key", "type", "default", "meaning"), rows)]
    return "\n\n".join(parts)


def walk_keys(node: Schema, definitions: Schema, path: str = "") -> Iterator[tuple[str, Schema, bool]]:
    """Every key that holds a value, with its schema and whether it has to be there. `NAME` stands for a free name."""
    required = node.get("required", [])
    for name, each in node.get("properties", {}).items():
        here = f"{path}.{name}" if path else str(name)
        yield from _walk_value(here, each, definitions, required=name in required)


def _walk_value(path: str, each: Schema, definitions: Schema, *, required: bool) -> Iterator[tuple[str, Schema, bool]]:
    target = _resolve(each, definitions)
    if "properties" in target:
        yield from walk_keys(target, definitions, path)
        return
    items = _resolve(target.get("items", {}), definitions)
    if "properties" in items:
        yield from walk_keys(items, definitions, f"{path}[]")
        return
    values = target.get("additionalProperties")
    if isinstance(values, Mapping):
        below = _resolve(cast("Schema", values), definitions)
        if "properties" in below:
            yield from walk_keys(below, definitions, f"{path}.NAME")
            return
    yield path, each, required


def _resolve(each: Schema, definitions: Schema) -> Schema:
    return definitions[each["$ref"].rpartition("/")[2]] if "$ref" in each else each


def _section(path: str) -> str:
    """The heading under which a key stands: the longest that is one of `SECTIONS`."""
    return max((name for name in SECTIONS if path == name or path.startswith(f"{name}.")), key=len, default=path)


def _type(each: Schema, definitions: Schema) -> str:
    target = _resolve(each, definitions)
    if "enum" in target or "const" in target:
        return ", ".join(f"`{value}`" for value in target.get("enum", [target.get("const")]))
    if "anyOf" in target:
        kinds = [option for option in target["anyOf"] if option.get("type") != "null"]
        numbers = [option for option in kinds if option.get("type") == "number"]
        return " or ".join(_type(option, definitions) for option in numbers or kinds)
    match target.get("type"):
        case "array":
            return f"list of {_type(target.get('items', {}), definitions)}"
        case "object":
            values = target.get("additionalProperties")
            if not isinstance(values, Mapping):
                return "map"
            return f"map of {_type(cast('Schema', values), definitions)}"
        case "integer" | "number" as kind:
            bounds = [f"{sign} {_number(target[key])}" for key, sign in _BOUNDS if key in target]
            return " ".join(["whole number" if kind == "integer" else "number", *bounds])
        case "string":
            return "text"
        case "boolean":
            return "true, false"
        case _:
            return "`${NAME}`"


_BOUNDS = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"))


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _default(each: Schema) -> str:
    value = each.get("default")
    return "" if value in (None, "", [], {}) else f"`{json.dumps(value, ensure_ascii=False)}`"

"""`tools.md`: the tools that ship with Denizen, as models and the gate see them, and the settings of their skills."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from denizen.app.settings import Settings, load_settings
from denizen.app.toolsets import explain_idle
from denizen.builtin_skills import BUILTIN, load_builtin
from denizen.skill import Skill
from scripts.docs.table import escape, format_table

_HEAD = """# Tools

The skills that ship with Denizen. A skill is switched off, or given settings, under `tools` in the
[configuration](configuration.md); an agent's `tools` say which tools it may use. Tiers: 0 harmless, 1 limited by rate,
2 sensitive, 3 dangerous (see [the gate](../explanation/architecture.md#the-gate)). A tool marked "named in full only"
is not given by a pattern such as `*`: an agent has it only when its `tools` name it, as in `tools: ["*", exec]`.
`denizen tools` lists what is on, and what is off with how to switch it on. A read-only tool changes nothing;
within a turn, the same call is run once, until another tool has run that changes something. How to write your own:
[write a skill](../how-to/write-a-skill.md)."""


def build_tools() -> str:
    """The page. What is off is so in a home folder without any configuration."""
    settings = load_settings(Path("/no-such-folder"), {})
    return "\n\n".join([_HEAD, *(part for name in BUILTIN for part in _describe(load_builtin(name), settings))])


def _describe(skill: Skill, settings: Settings) -> Iterator[str]:
    yield f"## {skill.name}"
    yield escape(skill.description)
    if fix := explain_idle(skill.name, settings):
        yield f"**Off at first.** {fix}"
    for spec in skill.specs():
        marks = [f"tier {int(spec.tier)}", f"{spec.timeout_s:g} s at most", *(["read-only"] if spec.read_only else [])]
        marks += ["named in full only"] if spec.listed_only else []
        yield f"### {spec.name}"
        yield f"{escape(spec.description)} ({', '.join(marks)})"
        parameters = list(_parameters(spec.parameters))
        if parameters:
            yield format_table(("parameter", "type", "default", "meaning"), parameters)
    options = skill.read_settings({})
    if dataclasses.is_dataclass(options) and not isinstance(options, type):
        yield f"**Settings.** {' '.join((inspect.getdoc(options) or '').split())}"
        rows = [
            (f"`{f.name}`", f"`{json.dumps(_plain(getattr(options, f.name)))}`") for f in dataclasses.fields(options)
        ]
        yield format_table(("setting", "default"), rows)


def _parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    required = cast("list[str]", schema.get("required", []))
    properties = cast("dict[str, dict[str, Any]]", schema["properties"])
    for name, each in properties.items():
        default = "required" if name in required else f"`{json.dumps(each['default'])}`" if "default" in each else ""
        yield f"`{name}`", _type(each), default, escape(str(each.get("description", "")))


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    bounds = [f"{sign} {schema[key]}" for key, sign in (("minimum", "≥"), ("maximum", "≤")) if key in schema]
    kind = str(schema.get("type", "any"))
    if kind == "array":
        kind = f"list of {_type(schema.get('items', {}))}"
    return " ".join([kind, *bounds])


def _plain(value: object) -> object:
    return list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value

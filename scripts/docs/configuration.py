"""`configuration.md`: every key of `denizen.yaml`, from the records that check the file.

Type, bounds, default and description of a key come from its field in the schema. Only the introduction and the texts of
the headings are written here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, cast

from denizen.app.settings.schema import Config
from scripts.docs.table import format_table

Schema = Mapping[str, Any]

HEAD = """# Configuration

`denizen.yaml` in the home folder (`~/.denizen`, or what `--home` or `DENIZEN_HOME` say). No key is needed, and no file
at all is a valid configuration: the built-in model, one agent named `denizen`, all built-in skills.

`${NAME}` takes a value from the environment, or else from `secrets.env` beside the file; `${NAME:-text}` has a default;
`$${` is a plain `${`. Secrets can only be given that way. Unknown keys are refused. `denizen config check` tells every
problem with its line; `denizen config show` prints what is in effect. `NAME` in a key below stands for a name that you
choose."""

SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "store": "Where conversations, turns and costs are kept.",
        "server": "The web page and the API.",
        "models.providers": "Where models come from. Without any provider, the built-in model is used.",
        "models.aliases": (
            "Names that agents use instead of `provider/model`. Without providers, `fast`, `balanced` and `quality` "
            "are the built-in model. `NAME: provider/model` is the short form."
        ),
        "models.overrides": "Corrections of what is detected about a model, by `provider/model`.",
        "agent_defaults": "What holds for all agents.",
        "agents": (
            "The agents. Persona files are read from `agents/NAME/` in the home folder. For `hooks` see "
            "[run tools before and after each turn](../how-to/run-tools-around-turns.md)."
        ),
        "default_agent": "Who answers when nobody is named.",
        "channels": "Where agents can be talked to.",
        "channels.discord": (
            "Agents on Discord: see [run agents on Discord](../how-to/run-agents-on-discord.md). Ids are the numbers "
            "that `Copy ID` gives in Discord. The keys from `owners` to `commands_guild` may stand at an account too, "
            "for that account alone."
        ),
        "channels.github": (
            "Agents on GitHub: see [answer on GitHub](../how-to/answer-on-github.md). The keys from `repositories` to "
            "`failure_text` may stand at an account too, for that account alone."
        ),
        "archive": "The mirror of Discord's messages: see [archive and privacy](../how-to/archive-and-privacy.md).",
        "schedules": "Prompts that agents get at set times, by name: see "
        "[run agents at set times](../how-to/run-agents-at-set-times.md).",
        "listeners": "What is done about events: see [act on events](../how-to/act-on-events.md).",
        "webhooks": "Webhooks that others send here: see [act on events](../how-to/act-on-events.md).",
        "events": "Sources of events that are listened to or asked: see [act on events](../how-to/act-on-events.md).",
        "commands": "Slash commands of your own, by name: see [custom commands](../how-to/custom-commands.md).",
        "tools": "The skills, by name. Keys other than `enabled` are the skill's own: see [tools](tools.md).",
        "skills": "Skills of your own, by name: see [write a skill](../how-to/write-a-skill.md).",
        "custom_tools": "Programs as tools of agents, by the name of the tool.",
        "mcp.servers": "Servers whose tools agents may use: see [MCP servers](../how-to/use-mcp-servers.md).",
        "google": "The Google account: see [calendars and Google](../how-to/use-calendars-and-google.md).",
        "folders": "Markdown files that all agents share.",
        "memory": "What comes up unasked: see [memory](../how-to/give-it-a-memory.md).",
        "embeddings": "What finds texts by their meaning.",
        "knowledge": (
            "Where documents come from is kept in the store (`denizen sources add`); here is how they are synced."
        ),
        "backups": "Backups at set times: see [back up and move](../how-to/back-up-and-move.md).",
        "sandbox": "The read-only shell in which agents look through documents.",
        "gate": "What tools may do: see [let people decide](../how-to/let-people-decide.md).",
        "budgets": "Limits of money, checked before each request ([how-to](../how-to/limit-what-it-costs.md)).",
        "projects": "Projects that mirror issues: see [projects and tasks](../how-to/keep-tasks.md).",
        "task_watcher": "An agent that looks at each changed task: see [projects and tasks](../how-to/keep-tasks.md).",
        "logging": "The log.",
        "telemetry.metrics": "Metrics for Prometheus: see [run on a server](../how-to/run-on-a-server.md#watch-it).",
        "telemetry.otlp": "Traces and metrics for a collector of OpenTelemetry, by the extra `otel`.",
        "telemetry.faults": "Reports of faults of the program to a server like Sentry, by the extra `sentry`.",
    }
)


def build_configuration() -> str:
    """Builds the page. Raises ValueError for a key without a description and a heading without keys."""
    schema = Config.model_json_schema()
    tables: dict[str, list[tuple[str, str, str, str]]] = {}
    for path, each, required in walk_keys(schema, schema["$defs"]):
        meaning = str(each.get("description", ""))
        if not meaning:
            raise ValueError(f"src/denizen/app/settings: the field {path} has no description")
        default = "required" if required else _default(each)
        tables.setdefault(_section(path), []).append((f"`{path}`", _type(each, schema["$defs"]), default, meaning))
    empty = sorted(set(SECTIONS) - set(tables))
    if empty:
        raise ValueError(f"scripts/docs/configuration.py: no key stands below the heading {empty[0]}")
    parts = [HEAD]
    for name, rows in tables.items():
        parts += [f"## {name}", SECTIONS[name], format_table(("key", "type", "default", "meaning"), rows)]
    return "\n\n".join(parts)


def is_known_key(path: str) -> bool:
    """Whether the configuration has this key, or keys below it. `agent_defaults` has those of an agent. Keys below
    `tools`, which belong to the skills, and those of no section, such as names of events, are not looked at.
    """
    section, *_ = wanted = path.replace("agent_defaults.", "agents.NAME.").split(".")
    sections = {known[0] for known in _list_key_paths()} - {"tools"}
    return section not in sections or any(_leads_to(wanted, known) for known in _list_key_paths())


@cache
def _list_key_paths() -> Sequence[Sequence[str]]:
    schema = Config.model_json_schema()
    return [path.replace("[]", "").split(".") for path, _, _ in walk_keys(schema, schema["$defs"])]


def _leads_to(wanted: Sequence[str], known: Sequence[str]) -> bool:
    """Whether the key `wanted` is `known` or above it; any name stands for NAME."""
    return len(wanted) <= len(known) and all(
        theirs in (ours, "NAME") for ours, theirs in zip(wanted, known, strict=False)
    )


def walk_keys(node: Schema, definitions: Schema, path: str = "") -> Iterator[tuple[str, Schema, bool]]:
    """Yields every key that holds a value, with its schema and whether it is required; `NAME` is a free name."""
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
        if "properties" in below or "properties" in _resolve(below.get("items", {}), definitions):
            yield from _walk_value(f"{path}.NAME", below, definitions, required=required)
            return
    yield path, each, required


def _resolve(each: Schema, definitions: Schema) -> Schema:
    return definitions[each["$ref"].rpartition("/")[2]] if "$ref" in each else each


def _section(path: str) -> str:
    """Returns the heading under which a key stands: the longest that is one of `SECTIONS`."""
    return max((name for name in SECTIONS if path == name or path.startswith(f"{name}.")), key=len, default=path)


def _type(each: Schema, definitions: Schema) -> str:
    target = _resolve(each, definitions)
    if "enum" in target or "const" in target:
        return ", ".join(f"`{value}`" for value in target.get("enum", [target.get("const")]))
    if "anyOf" in target:
        kinds = [option for option in target["anyOf"] if option.get("type") != "null"]
        has_text = any(option.get("type") == "string" for option in kinds)
        numbers = [option for option in kinds if option.get("type") == "number" and not has_text]
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

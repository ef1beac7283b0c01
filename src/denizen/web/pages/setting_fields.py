"""Settings as fields of a form, made from the JSON schema of the configuration, and what was typed as an edit of it.

A field that is left empty has its default. What no single field can hold, such as a map of lists, is left to the editor
of the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import cast

from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.ports.configuration import ConfigurationFault, ConfigurationPart

EMPTY_TEXT, EMPTY_LIST = '""', "[]"
"""Typed for nothing at all, where an empty field means the default."""
LONG_CHARS = 70
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}|([A-Z_][A-Z0-9_]*)")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d{1,18}\.\d*|\.\d+)")
_UNITS = {"s": "seconds", "minutes": "minutes", "days": "days", "usd": "US dollars", "mb": "MB", "tokens": "tokens"}


class FieldKind(StrEnum):
    """The control for a setting. VARIABLE names the variable of a secret, GROUP has fields of its own, ENTRIES lead to
    forms, and YAML to the editor.
    """

    SWITCH = "switch"
    CHOICE = "choice"
    NUMBER = "number"
    TEXT = "text"
    LINES = "lines"
    PAIRS = "pairs"
    VARIABLE = "variable"
    GROUP = "group"
    ENTRIES = "entries"
    YAML = "yaml"


@record(kw_only=True)
class SettingField:
    """A key of the configuration. `text` is what stands in its field, and `default` what holds where that is empty.

    `entries` are the names and paths of those that are there, and `next_path` is where another one goes, for a list.
    """

    path: str
    key: str
    kind: FieldKind
    hint: str = ""
    unit: str = ""
    default: str = ""
    is_required: bool = False
    choices: Sequence[str] = ()
    written: Json = None
    schema: JsonObject
    text: str = ""
    fields: Sequence[SettingField] = ()
    entries: Sequence[tuple[str, str]] = ()
    next_path: str = ""
    faults: Sequence[ConfigurationFault] = ()

    @property
    def label(self) -> str:
        words = self.key.removesuffix("_s").removesuffix("_usd").replace("_", " ")
        return words[:1].upper() + words[1:]

    @property
    def is_long(self) -> bool:
        return "\n" in self.text or len(self.text) > LONG_CHARS

    def covers(self, fault: ConfigurationFault) -> bool:
        return fault.path == self.path or fault.path.startswith((f"{self.path}.", f"{self.path}["))


def join_path(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f'{path}."{key}"'


def list_fields(
    part: ConfigurationPart, typed: Mapping[str, str], faults: Sequence[ConfigurationFault] = ()
) -> list[SettingField]:
    """Returns the fields of a part of the file, with what was typed in place of what is written."""
    builder = _FieldBuilder(part.definitions, typed, faults)
    node = builder.resolve(part.schema)
    if "properties" in node and (part.value is None or isinstance(part.value, Mapping)):
        return builder.list_properties(node, part.path, part.value)
    return [builder.build(part.path, part.path.rpartition(".")[2], part.schema, part.value, is_required=False)]


def list_inputs(fields: Sequence[SettingField]) -> Iterator[SettingField]:
    """Yields the fields into which something is typed, also those of groups."""
    for each in fields:
        if each.kind is FieldKind.GROUP:
            yield from list_inputs(each.fields)
        elif each.kind not in (FieldKind.ENTRIES, FieldKind.YAML):
            yield each


def read_changes(fields: Sequence[SettingField], form: Mapping[str, str]) -> dict[str, Json]:
    """Returns the values to set by path, None for those to take out, of the fields that say something else than what is
    written. `fields` are those of the file.
    """
    changes: dict[str, Json] = {}
    for each in list_inputs(fields):
        typed = form.get(each.path, each.text).replace("\r\n", "\n").strip()
        if typed != each.text.strip():
            changes |= _plan_change(each, _parse(each, typed))
    return changes


def find_literal_secrets(fields: Sequence[SettingField], form: Mapping[str, str]) -> list[ConfigurationFault]:
    """Returns a fault for each secret that was typed itself, in place of the name of its variable."""
    return [
        ConfigurationFault(
            file="",
            line=0,
            column=0,
            path=each.path,
            message="a secret does not stand in the configuration.",
            fix="Put it into secrets.env in the home folder, and write the name of its variable here, in capitals.",
        )
        for each in list_inputs(fields)
        if each.kind is FieldKind.VARIABLE
        if (typed := form.get(each.path, "").strip()) and _VARIABLE.fullmatch(typed) is None
    ]


@record
class _FieldBuilder:
    definitions: JsonObject
    typed: Mapping[str, str]
    faults: Sequence[ConfigurationFault]

    def resolve(self, node: JsonObject) -> JsonObject:
        """Returns the schema without its reference and without null. Of number and text it is the number."""
        found = dict(node)
        choices = cast("Sequence[JsonObject]", node.get("anyOf") or ())
        options = [each for each in choices if each.get("type") != "null"]
        if options:
            numbers = [each for each in options if each.get("type") == "number"]
            found |= (numbers or options)[0]
        reference = found.pop("$ref", None)
        if isinstance(reference, str):
            target = self.definitions[reference.rpartition("/")[2]]
            found = dict(cast("JsonObject", target)) | found
        return found

    def list_properties(self, node: JsonObject, path: str, written: Json) -> list[SettingField]:
        values = cast("Mapping[str, Json]", written or {})
        required = node.get("required")
        names = required if isinstance(required, list) else []
        properties = cast("Mapping[str, JsonObject]", node["properties"])
        fields = [
            self.build(join_path(path, key), key, each, values.get(key), is_required=key in names)
            for key, each in properties.items()
        ]
        others = [key for key in values if key not in properties]
        return [
            *fields,
            *(SettingField(path=join_path(path, key), key=key, kind=FieldKind.YAML, schema={}) for key in others),
        ]

    def build(self, path: str, key: str, node: JsonObject, written: Json, *, is_required: bool) -> SettingField:
        schema = self.resolve(node)
        kind = self._choose_kind(schema, written)
        entries, next_path = self._list_entries(schema, path, written) if kind is FieldKind.ENTRIES else ((), "")
        text = "" if kind in (FieldKind.GROUP, FieldKind.ENTRIES, FieldKind.YAML) else _format(written)
        default = schema.get("default")
        if written == "" and not default:
            text = ""
        choices = schema.get("enum")
        field = SettingField(
            path=path,
            key=key,
            kind=kind,
            # The description of a group is that of its class, unless the field has its own.
            hint=str(node.get("description", schema.get("description", ""))),
            unit=_UNITS.get(key.rpartition("_")[2], "") if kind is FieldKind.NUMBER else "",
            default="" if default in (None, "", [], {}) else _format(default),
            is_required=is_required,
            choices=[str(each) for each in choices] if isinstance(choices, list) else (),
            written=written,
            schema=schema,
            text=self.typed.get(path, text),
            fields=self.list_properties(schema, path, written) if kind is FieldKind.GROUP else (),
            entries=entries,
            next_path=next_path,
        )
        # Those below a group stand at its fields.
        at = [each for each in self.faults if each.path == path or (kind is not FieldKind.GROUP and field.covers(each))]
        return replace(field, faults=at) if at else field

    def _choose_kind(self, schema: JsonObject, written: Json) -> FieldKind:
        kind = self._find_kind(schema)
        is_list, is_map = isinstance(written, list), isinstance(written, Mapping)
        holds_lists, holds_maps = kind is FieldKind.LINES, kind in (FieldKind.PAIRS, FieldKind.GROUP)
        if kind is FieldKind.ENTRIES or written is None:
            return kind
        if (is_list, is_map) != (holds_lists, holds_maps) or (kind is not FieldKind.GROUP and not _is_flat(written)):
            return FieldKind.YAML
        return kind

    def _find_kind(self, schema: JsonObject) -> FieldKind:
        if "properties" in schema:
            return FieldKind.GROUP
        if "enum" in schema:
            return FieldKind.CHOICE
        match schema.get("type"):
            case "boolean":
                return FieldKind.SWITCH
            case "integer" | "number":
                return FieldKind.NUMBER
            case "string":
                return FieldKind.TEXT
            case "array":
                items = self.resolve(cast("JsonObject", schema.get("items", {})))
                return (
                    FieldKind.ENTRIES
                    if "properties" in items
                    else FieldKind.LINES
                    if "type" in items
                    else FieldKind.YAML
                )
            case "object":
                values = schema.get("additionalProperties")
                below = self.resolve(values) if isinstance(values, dict) else dict[str, Json]()
                if "properties" in below:
                    return FieldKind.ENTRIES
                items = self.resolve(cast("JsonObject", below.get("items", {})))
                is_flat = "type" in below and below["type"] != "object" and "properties" not in items
                return FieldKind.PAIRS if is_flat else FieldKind.YAML
            case _:
                return FieldKind.VARIABLE

    def _list_entries(self, schema: JsonObject, path: str, written: Json) -> tuple[Sequence[tuple[str, str]], str]:
        if schema.get("type") == "array":
            items = written if isinstance(written, list) else []
            named = [(_name_item(each, at), join_path(path, at)) for at, each in enumerate(items)]
            return named, join_path(path, len(items))
        names = cast("Mapping[str, Json]", written or {})
        return [(name, join_path(path, name)) for name in names], ""


def _name_item(item: Json, at: int) -> str:
    """Returns what tells an item of a list from the others: its first text, and its number."""
    texts = [each for each in item.values() if isinstance(each, str)] if isinstance(item, Mapping) else []
    return f"{at + 1}: {texts[0]}" if texts else str(at + 1)


def _is_flat(value: Json) -> bool:
    """Whether lines of text can say it."""
    items = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []
    keys = list(value) if isinstance(value, Mapping) else []
    lists = [each for each in items if isinstance(each, list)]
    texts = [each for each in [*items, *keys, *(one for each in lists for one in each)] if isinstance(each, str)]
    is_simple = not any(isinstance(each, Mapping) for each in items) and not (lists and not keys)
    return is_simple and not any("\n" in text or text != text.strip() or not text for text in texts)


def _format(value: Json) -> str:
    """Returns a value as it is typed."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            return value or EMPTY_TEXT
        case list():
            return "\n".join(map(_format, value)) or EMPTY_LIST
        case dict():
            return "\n".join(
                f"{name}: {', '.join(map(_format, each)) if isinstance(each, list) else _format(each)}"
                for name, each in value.items()
            )
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _parse(field: SettingField, typed: str) -> Json:
    """Returns the value that was typed, None for the default. What does not fit is left as text: the configuration's
    own checks say what is wrong with it.
    """
    if not typed:
        return None
    match field.kind:
        case FieldKind.LINES:
            lines = [each.strip() for each in typed.split("\n") if each.strip()]
            return [] if lines == [EMPTY_LIST] else [_parse_scalar(each, field.schema.get("items")) for each in lines]
        case FieldKind.PAIRS:
            return dict(_parse_pair(line, field.schema) for line in typed.split("\n") if line.strip())
        case FieldKind.VARIABLE:
            found = _VARIABLE.fullmatch(typed)
            return f"${{{found[1] or found[2]}}}" if found else typed
        case _:
            return _parse_scalar(typed, field.schema)


def _parse_pair(line: str, schema: JsonObject) -> tuple[str, Json]:
    name, _, text = line.strip().partition(": ")
    values = schema.get("additionalProperties")
    below = values if isinstance(values, dict) else {}
    if below.get("type") == "array":
        return name.removesuffix(":"), [_parse_scalar(each.strip(), {}) for each in text.split(",") if each.strip()]
    return name.removesuffix(":"), _parse_scalar(text.strip(), below)


def _parse_scalar(typed: str, schema: Json) -> Json:
    wanted = schema if isinstance(schema, dict) else {}
    kind, choices = wanted.get("type"), wanted.get("enum")
    is_text = kind == "string"
    if isinstance(choices, list):
        return next((each for each in choices if str(each) == typed), typed)
    if typed == EMPTY_TEXT:
        return ""
    if kind == "boolean" and typed in ("yes", "no", "true", "false"):
        return typed in ("yes", "true")
    if not is_text and _WHOLE.fullmatch(typed):
        return int(typed)
    return float(typed) if not is_text and _NUMBER.fullmatch(typed) else typed


def _plan_change(field: SettingField, value: Json) -> dict[str, Json]:
    """Returns the smallest change, so that comments within a list or a map stay: entries are taken out and put at the
    end one by one, unless their order changes.
    """
    old = field.written
    if isinstance(old, Mapping) and isinstance(value, Mapping) and old:
        kept, names = [name for name in old if name in value], list(value)
        if names[: len(kept)] == kept and kept:
            gone: dict[str, Json] = {join_path(field.path, name): None for name in old if name not in value}
            return gone | {
                join_path(field.path, name): each
                for name, each in value.items()
                if name not in old or _format(old[name]) != _format(each)
            }
    if isinstance(old, list) and isinstance(value, list) and old and value:
        at, dropped = 0, list[int]()
        for index, each in enumerate(old):
            if at < len(value) and _format(value[at]) == _format(each):
                at += 1
            else:
                dropped.append(index)
        left = len(old) - len(dropped)
        if left:
            gone = {join_path(field.path, index): None for index in reversed(dropped)}
            return gone | {join_path(field.path, left + n): each for n, each in enumerate(value[at:])}
    return {field.path: value}

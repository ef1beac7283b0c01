"""The configuration in effect, as YAML for people: `denizen config show`. Secrets stay the references that they are.

What is rendered can be read again and means the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, cast

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from denizen.app.secrets import SecretRef
from denizen.app.settings.accepted import Settings
from denizen.app.settings.document import write_document
from denizen.app.settings.fields import Section
from denizen.app.settings.interpolation import Interpolated
from denizen.domain.json import Json

DEFAULT_MARK = "default"


def render_settings(settings: Settings) -> str:
    """Every setting in effect; those that the file does not have carry the comment `# default`."""
    return write_document(_section(settings.config, settings.written), (2, 2))


def _section(section: Section, written: Json) -> CommentedMap:
    fields: dict[str, object] = {name: getattr(section, name) for name in _keys(section)}
    return _mapping({**fields, **(section.model_extra or {})}, written)


def _keys(section: Section) -> list[str]:
    return [name for name in type(section).model_fields if name not in section.foreign_keys]


def _mapping(values: Mapping[str, object], written: Json) -> CommentedMap:
    shown = CommentedMap()
    for name, value in values.items():
        if value is None:
            continue
        known = written.get(name) if isinstance(written, Mapping) else None
        rendered = _value(value, known)
        shown[name] = rendered
        is_short_form = isinstance(written, str) and rendered == written
        if known is None and not is_short_form and not (isinstance(rendered, CommentedMap) and rendered):
            cast("Any", shown).yaml_add_eol_comment(DEFAULT_MARK, name, column=0)
    return shown


def _value(value: object, written: Json) -> object:
    if isinstance(value, Section):
        return _section(value, written)
    if isinstance(value, Mapping):
        return _mapping(cast("Mapping[str, object]", value), written)
    if isinstance(value, tuple | list):
        return _sequence(list(cast("tuple[object, ...]", value)), written)
    if isinstance(value, SecretRef):
        return value.written
    if isinstance(value, Interpolated):
        return value.template
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def _sequence(values: list[object], written: Json) -> CommentedSeq:
    known = written if isinstance(written, list) else []
    shown = CommentedSeq(
        _value(value, known[index] if index < len(known) else None) for index, value in enumerate(values)
    )
    if not any(isinstance(value, CommentedMap | CommentedSeq) for value in cast("list[object]", shown)):
        cast("Any", shown).fa.set_flow_style()
    return shown

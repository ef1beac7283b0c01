"""Reading a skill's section of the configuration into the type that the skill declared."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping

from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json


def parse_settings(skill: str, kind: type | None, section: Mapping[str, Json]) -> object:
    """None for a skill without settings. Raises InvalidInput (`bad_skill_settings`) that names the key and why."""
    if kind is None:
        if section:
            raise _refuse(skill, f"the skill {skill} has no settings", "remove the section")
        return None
    from pydantic import TypeAdapter, ValidationError

    known = _keys(kind)
    for key in section:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            fix = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known) or 'none'}"
            raise _refuse(skill, f"the skill {skill} has no setting `{key}`", fix)
    try:
        return TypeAdapter[object](kind).validate_python(dict(section))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(step) for step in first["loc"])
        raise _refuse(skill, f"the setting `{key}` of the skill {skill} is wrong", first["msg"]) from error


def _keys(kind: type) -> list[str]:
    name = kind.__name__
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    from pydantic import BaseModel

    if issubclass(kind, BaseModel):
        return list(kind.model_fields)
    raise InvalidInput(f"settings cannot be a {name}", code="bad_skill", fix="declare a dataclass or a pydantic model")


def _refuse(skill: str, message: str, fix: str) -> InvalidInput:
    return InvalidInput(message, code="bad_skill_settings", fix=fix, skill=skill)

"""The wording of pydantic's errors as problems that an operator can act on: where, what, which values fit, and the
remedy.

What pydantic says about the value is never passed on; a value may be a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from denizen.adapters.models.providers import PROVIDERS
from denizen.app.settings.discord import discord_variable
from denizen.app.settings.fields import LITERAL_SECRET, REFUSED, Section, as_variable, show_value
from denizen.app.settings.problem import ConfigProblem, KeyPath, find_closest, suggest
from denizen.app.settings.schema import Config
from denizen.app.settings.yaml_document import ConfigDocument, find_value
from denizen.domain.json import Json

_WANTED: Mapping[str, tuple[str, str]] = {
    "int": ("a whole number", "Write a number such as 10, without quotes."),
    "float": ("a number", "Write a number such as 10 or 0.5, without quotes."),
    "finite": ("a number", "Write a number such as 10 or 0.5, without quotes."),
    "decimal": ("a number", "Write a number such as 10 or 0.5, without quotes."),
    "bool": ("true or false", "Write true or false, without quotes."),
    "string": ("a text", "Put the value in quotes."),
    "tuple": ("a list", "Write [one, two], or each one on a line of its own after `- `."),
    "dict": ("a group of keys", "Write `key: value` lines, indented below this key."),
    "model": ("a group of keys", "Write `key: value` lines, indented below this key."),
}
_BOUNDS = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})


def explain_errors(error: ValidationError, document: ConfigDocument, tree: Json) -> Iterator[ConfigProblem]:
    """Yields one problem for each error. `tree` is what was validated."""
    details = error.errors(include_url=False, include_input=False)
    meant = {_meant(_path(detail)) for detail in details if detail["type"] == "extra_forbidden"}
    for detail in details:
        path = _path(detail)
        if detail["type"] == "missing" and path in meant:
            continue  # it is there, misspelt, and that is said
        if detail["type"] == "too_short" and find_value(tree, path):
            continue  # what it holds is wrong, and that is said
        message, fix, at = _explain(detail, path, find_value(tree, path))
        yield document.problem(at, message, fix)


def _path(detail: ErrorDetails) -> KeyPath:
    return tuple(part for part in detail["loc"] if part != "[key]")


def _meant(path: KeyPath) -> KeyPath:
    """Returns what an unknown key was probably meant to be."""
    return (*path[:-1], find_closest(str(path[-1]), _known_keys(path[:-1])))


def _explain(detail: ErrorDetails, path: KeyPath, value: Json) -> tuple[str, str, KeyPath]:
    kind = detail["type"]
    context: Mapping[str, Any] = detail.get("ctx", {})
    if kind == REFUSED:
        key = str(context["key"])
        return str(context["message"]), str(context["fix"]), (*path, key) if key else path
    if kind == LITERAL_SECRET:
        return *literal_secret(path), path
    if kind == "extra_forbidden":
        return "this key is not known.", suggest(str(path[-1]), _known_keys(path[:-1]), noun="keys"), path
    if kind == "missing":
        return "this key is missing.", f"Add it: {path[-1]}: ...", path
    annotation, metadata = _field_at(path)
    if kind in _BOUNDS:
        return _bounds(metadata), "Write a number within these bounds.", path
    if kind in ("enum", "literal_error"):
        return *_choice(annotation, value), path
    if kind == "too_short":
        return "must not be empty.", "Write one at least, or take the key out.", path
    wanted, fix = _WANTED.get(kind.partition("_")[0], ("another kind of value", "See the reference of settings."))
    return f"must be {wanted}, not {_kind(value)}.", fix, path


def literal_secret(path: KeyPath, *, noun: str = "secret") -> tuple[str, str]:
    """Returns message and remedy for a secret that stands in the file itself."""
    name = _variable_name(path, noun)
    place = "in its place" if noun == "password" else "here"
    where = f"secrets.env in the home folder (a line {name}=...) or into the environment"
    return f"a {noun} must not stand in this file.", f"Put it into {where}, and write ${{{name}}} {place}."


def _variable_name(path: KeyPath, noun: str) -> str:
    """Returns a sensible name for the variable of a secret at this place."""
    named = [str(part) for part in path if isinstance(part, str)]
    if path[:1] == ("server",):
        return "DENIZEN_API_KEY"
    if named[:3] == ["channels", "discord", "accounts"] and len(named) > 3:
        return discord_variable(named[3])
    if named[:3] == ["channels", "github", "accounts"] and len(named) > 3:
        return as_variable(f"github_{named[4] if len(named) > 4 else 'token'}_{named[3]}")
    owner = named[2] if named[:2] == ["models", "providers"] else named[-2] if len(named) > 1 else ""
    if named[-1] == "api_key" and owner in PROVIDERS and PROVIDERS[owner].needs_key:
        return PROVIDERS[owner].key_variable
    last = noun if noun == "password" else named[-1]
    return as_variable(f"{owner}_{last}").lstrip("_0123456789") or "DENIZEN_SECRET"


def _bounds(metadata: Sequence[object]) -> str:
    low = next((f"{bound.ge}" for bound in metadata if isinstance(bound, Ge)), "")
    above = next((f"{bound.gt}" for bound in metadata if isinstance(bound, Gt)), "")
    high = next((f"{bound.le}" for bound in metadata if isinstance(bound, Le)), "")
    if above:
        return f"must be greater than {above} and at most {high}."
    return f"must be between {low} and {high}."


def _choice(annotation: object, value: Json) -> tuple[str, str]:
    allowed = [str(each) for each in _choices(annotation)]
    near = find_closest(str(value), allowed) if isinstance(value, str) else ""
    listed = f"Write one of: {', '.join(allowed)}."
    if near:
        return f"'{show_value(value)}' is not possible here.", f"Did you mean '{near}'? {listed}"
    return "this value is not possible here.", listed


def _choices(annotation: object) -> Iterable[object]:
    plain = _plain(annotation)
    if isinstance(plain, type) and issubclass(plain, Enum):
        return tuple(member.value for member in plain)
    return get_args(plain) if get_origin(plain) is Literal else ()


def _kind(value: Json) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a group of keys" if isinstance(value, Mapping) else "a list"


def _known_keys(path: KeyPath) -> Iterable[str]:
    model = _plain(_field_at(path)[0]) if path else Config
    return model.model_fields if isinstance(model, type) and issubclass(model, Section) else ()


def _field_at(path: KeyPath) -> tuple[object, Sequence[object]]:
    """Returns the annotation and the bounds at a key path."""
    annotation: object = Config
    metadata: Sequence[object] = ()
    for part in path:
        annotation = _plain(annotation)
        if isinstance(annotation, type) and issubclass(annotation, Section):
            field: FieldInfo | None = annotation.model_fields.get(str(part))
            annotation, metadata = (field.annotation, field.metadata) if field else (None, ())
        else:
            arguments = get_args(annotation)
            is_mapping = get_origin(annotation) is dict
            annotation, metadata = (arguments[1 if is_mapping else 0] if arguments else None), ()
    return annotation, metadata


def _plain(annotation: object) -> object:
    """Returns the annotation without `Annotated` and without `| None`."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in (Union, UnionType):
            annotation = next(each for each in get_args(annotation) if each is not NoneType)
        else:
            return annotation

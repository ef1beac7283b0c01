"""Interpolation of `${NAME}` and `${NAME:-default}` in string values; `$${` stands for a plain `${`. Pure.

A default counts when the variable is unset or empty, as in a shell. Defaults hold no `}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self, cast

from denizen.app.settings.problem import KeyPath
from denizen.domain.json import Json
from denizen.domain.record import record

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\}|(?P<malformed>\$\{)")


class InterpolatedText(str):
    """A text that came out of a template. Its repr is the template, so that the value leaks into no log or error."""

    __slots__ = ("template",)
    template: str

    def __new__(cls, value: str, template: str) -> Self:
        self = super().__new__(cls, value)
        self.template = template
        return self

    def __reduce__(self) -> tuple[type[InterpolatedText], tuple[str, str]]:
        return InterpolatedText, (str(self), self.template)

    def __repr__(self) -> str:
        return repr(self.template)


@record
class VariableReference:
    """One `${NAME}` of a template. `default` is None when there is none."""

    name: str
    default: str | None


@record
class ExpandedTree:
    """A tree with its templates expanded, and the variables that were met. A missing variable becomes empty text."""

    tree: dict[str, Json]
    names: frozenset[str] = frozenset()
    missing: tuple[tuple[KeyPath, str], ...] = ()
    malformed: tuple[KeyPath, ...] = ()


def references(template: str) -> tuple[VariableReference, ...]:
    """Returns the variables that a template names, in order."""
    matches = (match for match in _REFERENCE.finditer(template) if match["name"])
    return tuple(VariableReference(match["name"], _default(match)) for match in matches)


def is_malformed(template: str) -> bool:
    """Returns whether a `${` begins something that is not a reference."""
    return any(match["malformed"] for match in _REFERENCE.finditer(template))


def whole_reference(template: str) -> VariableReference | None:
    """Returns the reference, when the template is exactly one."""
    match = _REFERENCE.fullmatch(template)
    return VariableReference(match["name"], _default(match)) if match and match["name"] else None


def expand(template: str, variables: Mapping[str, str]) -> str:
    """Returns the text with every reference replaced; plain text comes back as it is. A variable that is unset or empty
    and has no default becomes empty text.
    """

    def value(match: re.Match[str]) -> str:
        if match["name"]:
            return variables.get(match["name"]) or _default(match) or ""
        return "${"

    expanded, count = _REFERENCE.subn(value, template)
    return InterpolatedText(expanded, template) if count else template


def as_written(text: str) -> str:
    """Returns the template that a text came out of, or else the text itself: how the configuration has it."""
    return text.template if isinstance(text, InterpolatedText) else text


def escape(text: str) -> str:
    """Returns the template that expands to exactly this text."""
    return text.replace("${", "$${")


def expand_tree(tree: Mapping[str, Json], variables: Mapping[str, str]) -> ExpandedTree:
    """Expands every string value below a mapping. Keys stay as they are."""
    work = _Work(variables)
    expanded = {key: work.expand(value, (key,)) for key, value in tree.items()}
    return ExpandedTree(expanded, frozenset(work.names), tuple(work.missing), tuple(work.malformed))


@dataclass(slots=True)
class _Work:
    variables: Mapping[str, str]
    names: set[str] = field(default_factory=set[str])
    missing: list[tuple[KeyPath, str]] = field(default_factory=list[tuple[KeyPath, str]])
    malformed: list[KeyPath] = field(default_factory=list[KeyPath])

    def expand(self, value: Json, path: KeyPath) -> Json:
        if isinstance(value, str):
            if is_malformed(value):
                self.malformed.append(path)
            for reference in references(value):
                self.names.add(reference.name)
                if reference.default is None and not self.variables.get(reference.name):
                    self.missing.append((path, reference.name))
            return expand(value, self.variables)
        if isinstance(value, Mapping):
            return {key: self.expand(child, (*path, key)) for key, child in value.items()}
        if isinstance(value, list):
            return [self.expand(child, (*path, index)) for index, child in enumerate(value)]
        return value


def _default(match: re.Match[str]) -> str | None:
    written: str | None = match["default"]
    return None if written is None else written[2:]


def names_variable(value: object) -> bool:
    """Returns whether a text within this value names a variable."""
    match value:
        case str():
            return bool(references(as_written(value)))
        case dict():
            return any(map(names_variable, cast("dict[str, object]", value).values()))
        case list():
            return any(map(names_variable, cast("list[object]", value)))
        case _:
            return False

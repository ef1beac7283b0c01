"""Hooks: tool calls that the owner wants before and after the turns of an agent, or of what triggers them. Pure.

`app/settings` reads them, `engine/hooks` runs them, through the gate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record

RESPONSE = "response"
"""The variable with the answer of the turn, for the hooks after it."""

SKIPPED = "There was nothing to do: a hook of the agent skipped this."
"""The stock text that another agent, or a program in its place, is told of a turn that was skipped."""

_PLAIN = re.compile(r"[\w.:+-]{0,40}")
_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


@record
class Hook:
    """A call of a tool. `{{name}}` in the texts of `args` stands for a variable. `skip_if` is a regular expression on
    the output, empty for none: before a turn a match skips the turn, after it the hooks that follow.
    """

    tool: str
    args: Mapping[str, Json] = field(default_factory=dict[str, Json])
    skip_if: str = ""


@record
class Hooks:
    """The hooks before and after a turn, each in the order in which they run."""

    before: tuple[Hook, ...] = ()
    after: tuple[Hook, ...] = ()

    def __add__(self, more: Hooks) -> Hooks:
        return Hooks((*self.before, *more.before), (*self.after, *more.after))

    def __bool__(self) -> bool:
        return bool(self.before or self.after)


NO_HOOKS = Hooks()


def fill_args(args: Mapping[str, Json], variables: Mapping[str, str]) -> JsonObject:
    """Returns the arguments with the variables filled in, at any depth; the names of arguments stay. In one pass: what
    is filled in is not searched for places again. A name that is no variable stays as it is written.
    """
    return {name: _fill(value, variables) for name, value in args.items()}


def list_variables(args: Json) -> frozenset[str]:
    """Returns the names that the arguments tell, at any depth."""
    if isinstance(args, str):
        return frozenset(_PLACE.findall(args))
    if isinstance(args, Mapping):
        args = list(args.values())
    if isinstance(args, Sequence):
        return frozenset(name for each in args for name in list_variables(each))
    return frozenset()


def is_plain(value: str) -> bool:
    """Whether the value is a time, a number or a single word, which can tell nobody what to do."""
    return _PLAIN.fullmatch(value) is not None


def _fill(value: Json, variables: Mapping[str, str]) -> Json:
    if isinstance(value, str):
        return _PLACE.sub(lambda place: variables.get(place[1], place[0]), value)
    if isinstance(value, Mapping):
        return {name: _fill(each, variables) for name, each in value.items()}
    if isinstance(value, Sequence):
        return [_fill(each, variables) for each in value]
    return value

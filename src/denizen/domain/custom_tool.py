"""A program that the owner configured as a tool of agents. Only the record and how its template is
filled.

Read by `app/settings`, run by `adapters/commands`, through the gate like every tool.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.tool import Tier

MAX_ARGUMENT_CHARS = 8000

_PLACE = re.compile(r"\{\{([^{}]*)\}\}")


@record
class CustomTool:
    """`argv` is a program and its arguments, which no shell reads; `{{name}}` in them is what was given for the
    parameter of that name. `parameters` maps their names to JSON schemas; every one is required. `env` is what it sees
    besides the environment of all programs.
    """

    name: str
    description: str
    argv: tuple[str, ...]
    parameters: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    tier: Tier = Tier.DANGEROUS
    destructive: bool = False
    timeout_s: float = 30.0
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def fill(self, args: Mapping[str, Json]) -> tuple[str, ...]:
        """The program and its arguments; each stays one, whatever was given. In one pass: what is filled in is not
        searched for places again.

        Raises InvalidInput for what no program can be given, and for a value that the program would take for an option:
        one that begins with a dash at the start of an argument, unless `--` goes before it.
        """
        filled: list[str] = []
        for at, part in enumerate(self.argv):
            text = _PLACE.sub(lambda place: str(args.get(place[1], "")), part)
            if "\x00" in text or len(text) > MAX_ARGUMENT_CHARS + len(part):
                raise InvalidInput(
                    f"An argument of {self.name} cannot be given to a program.",
                    code="custom_tool_argument",
                    fix=f"Give plain text of at most {MAX_ARGUMENT_CHARS} characters.",
                )
            if text.startswith("-") and part.startswith("{{") and "--" not in self.argv[:at]:
                raise InvalidInput(
                    f"An argument of {self.name} must not begin with a dash.",
                    code="custom_tool_argument",
                    why="The program would take it for one of its options.",
                    fix="Give it without; or the owner puts `--` before its place in argv.",
                )
            filled.append(text)
        return tuple(filled)

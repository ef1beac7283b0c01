"""A slash command that an operator configured: a program, a prompt, or a prompt about what the program printed.

Only the record and how its templates are filled. It is read by `app/settings`, given by `engine/commands`, and its
program is run by `adapters/commands`, through the gate. Inventory T35, T37.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from denizen.domain.errors import InvalidInput

INPUT, OUTPUT = "{{input}}", "{{output}}"
NAME_CHARS, DESCRIPTION_CHARS = 32, 100
"""What platforms allow (inventory T35)."""

MAX_INPUT_CHARS = 8000
TOOL_PREFIX = "command_"

_PLACEHOLDER = re.compile(r"\{\{(?:input|output)\}\}")


@dataclass(frozen=True, slots=True)
class CustomCommand:
    """`shell` is a program and its arguments, which no shell reads; `prompt` is what the agent is asked. Both may hold
    `{{input}}`, what the user wrote; the prompt also `{{output}}`, what the program printed.

    `agent` answers the prompt; empty is the one that was asked.
    """

    name: str
    description: str
    shell: tuple[str, ...] = ()
    prompt: str = ""
    agent: str = ""
    new_session: bool = False
    timeout_s: float = 30.0
    admin_only: bool = True

    @property
    def takes_input(self) -> bool:
        return INPUT in self.prompt or self.shell_takes_input

    @property
    def shell_takes_input(self) -> bool:
        return any(INPUT in argument for argument in self.shell)

    @property
    def tool(self) -> str:
        """The name under which the gate knows its program."""
        return f"{TOOL_PREFIX}{self.name}"


def fill_argv(shell: Sequence[str], text: str) -> tuple[str, ...]:
    """The program and its arguments with what the user wrote in its place; each stays one argument.

    Raises InvalidInput for what no program can be given, and for an input that the program would take for an option:
    one that begins with a dash and stands at the start of an argument, unless `--` goes before it.
    """
    if "\x00" in text:
        raise InvalidInput("The input holds a character that no program can be given.", code="command_input")
    if len(text) > MAX_INPUT_CHARS:
        raise InvalidInput(f"The input may have {MAX_INPUT_CHARS} characters at most.", code="command_input")
    for at, argument in enumerate(shell):
        if argument.startswith(INPUT) and text.startswith("-") and "--" not in shell[:at]:
            raise InvalidInput(
                "The input must not begin with a dash.",
                code="command_input",
                why="The program would take it for one of its options.",
                fix="Write it without; or the operator puts `--` before {{input}} in the command.",
            )
    return tuple(_fill(argument, {INPUT: text}) for argument in shell)


def fill_prompt(prompt: str, *, text: str = "", output: str = "") -> str:
    """The prompt with what the user wrote and what the program printed; output without a place comes at the end."""
    if output and OUTPUT not in prompt:
        prompt = f"{prompt}\n\n{OUTPUT}"
    return _fill(prompt, {INPUT: text, OUTPUT: output}).strip()


def _fill(template: str, values: Mapping[str, str]) -> str:
    """In one pass: what is filled in is not searched for places again."""
    return _PLACEHOLDER.sub(lambda place: values.get(place.group(), place.group()), template)

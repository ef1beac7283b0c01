"""A slash command that an operator configured: a program, a prompt, or a prompt about the output of the program.

This module holds the record and fills its templates. `app/settings` reads it, `engine/commands` runs it, and
`adapters/commands` runs its program, through the gate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from denizen.domain.errors import InvalidInput
from denizen.domain.record import record

INPUT, OUTPUT = "{{input}}", "{{output}}"
NAME_CHARS, DESCRIPTION_CHARS = 32, 100
"""The limits of platforms."""

MAX_INPUT_CHARS = 8000
TOOL_PREFIX = "command_"

_PLACEHOLDER = re.compile(r"\{\{(?:input|output)\}\}")


@record
class CustomCommand:
    """A configured command.

    `shell` is a program and its arguments; no shell interprets them. `prompt` is the question to the agent. Both may
    contain `{{input}}`, the text of the user; the prompt also `{{output}}`, the output of the program. `agent` answers
    the prompt; empty means the agent that was asked.
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
    """Returns the program and its arguments with the user's text filled in; each stays one argument.

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
    """Returns the prompt with the user's text and the program's output, which comes last without a placeholder."""
    if output and OUTPUT not in prompt:
        prompt = f"{prompt}\n\n{OUTPUT}"
    return _fill(prompt, {INPUT: text, OUTPUT: output}).strip()


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Fills all placeholders in one pass, so that a text that is filled in cannot add placeholders."""
    return _PLACEHOLDER.sub(lambda place: values.get(place.group(), place.group()), template)

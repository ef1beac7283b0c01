"""The shape of `commands`: what an operator adds to the slash commands (inventory T35, T37)."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from denizen.app.settings.fields import Number, Section, SomeText, Text, at_most, refuse
from denizen.domain.custom_command import DESCRIPTION_CHARS, INPUT, NAME_CHARS, OUTPUT

BUILT_IN_COMMANDS = frozenset({
    "ask", "new", "agent", "model", "mode", "context", "compact", "why", "usage", "allow", "memory", "help", "reset",
    "observer", "reminders",
})  # fmt: skip

_NAME = re.compile(rf"[a-z0-9_-]{{1,{NAME_CHARS}}}")
_PLACEHOLDER = re.compile(r"\{\{[^{}]*\}\}")


def _command_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        fix = f"Use lower-case letters, digits, _ and -; {NAME_CHARS} characters at most."
        raise refuse("this cannot be the name of a command.", fix)
    if value in BUILT_IN_COMMANDS:
        raise refuse("this command is built in.", "Give yours another name.")
    return value


CommandName = Annotated[str, AfterValidator(_command_name)]


class CommandSection(Section):
    """A slash command of your own: a program, a prompt, or a prompt about what the program printed."""

    description: Annotated[SomeText, at_most(DESCRIPTION_CHARS)] = Field(
        description=f"What it does, for people; at most {DESCRIPTION_CHARS} characters."
    )
    shell: tuple[Text, ...] = Field(
        default=(),
        description="A program and its arguments, run through the gate; no shell reads them. `{{input}}` is what the "
        "user wrote.",
    )
    prompt: Text = Field(
        default="",
        description="What the agent is asked. `{{input}}` is what the user wrote, `{{output}}` what the program "
        "printed; without a place it comes at the end.",
    )
    agent: Text = Field(default="", description="Who answers the prompt; empty: the agent that was asked.")
    new_session: bool = Field(default=False, description="Whether the prompt begins a new session.")
    timeout_s: Number = Field(default=30.0, ge=1, le=600, description="Seconds until the program is stopped.")
    admin_only: bool = Field(default=True, description="Whether only administrators may give it.")

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not self.shell and not self.prompt.strip():
            fix = "Write shell: [PROGRAM, ARGUMENT], or prompt: TEXT, or both."
            raise refuse("a command needs shell or prompt.", fix)
        if self.shell and (not self.shell[0].strip() or "{{" in self.shell[0]):
            fix = "Write the program itself first; what the user wrote may only be an argument."
            raise refuse("the first part of shell must be a program.", fix, key="shell")
        _check_placeholders(" ".join(self.shell), (INPUT,), key="shell")
        _check_placeholders(self.prompt, (INPUT, OUTPUT) if self.shell else (INPUT,), key="prompt")
        return self


def _check_placeholders(text: str, known: tuple[str, ...], *, key: str) -> None:
    for placeholder in _PLACEHOLDER.findall(text):
        if placeholder in known:
            continue
        if placeholder == OUTPUT:
            fix = "Use {{output}} in prompt, and write shell beside it."
            raise refuse("there is no output here: it is what the program of shell printed.", fix, key=key)
        raise refuse("this placeholder is not known.", f"Known here: {' and '.join(known)}.", key=key)

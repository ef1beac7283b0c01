"""The shape of `skills`, the owner's own skills, and of `custom_tools`, programs that models may ask for."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from denizen.app.settings.fields import Number, Section, SomeText, Text, at_most, refuse
from denizen.domain.tool import Tier

_SKILL_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_TOOL_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PLACE = re.compile(r"\{\{([^{}]*)\}\}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def _skill_name(value: str) -> str:
    if not _SKILL_NAME.fullmatch(value):
        raise refuse("this cannot be the name of a skill.", "Use lower-case letters, digits, _ and -.")
    return value


def _tool_name(value: str) -> str:
    if not _TOOL_NAME.fullmatch(value):
        raise refuse("this cannot be the name of a tool.", "Use lower-case letters, digits and _.")
    return value


def _sha256(value: str) -> str:
    if value and not _SHA256.fullmatch(value):
        raise refuse("this is no sha256.", "Let `denizen skill enable NAME` write it.")
    return value


SkillName = Annotated[str, AfterValidator(_skill_name)]
ToolName = Annotated[str, AfterValidator(_tool_name)]


class UserSkillSection(Section):
    """A skill in the folder `skills/`. It is loaded when its content is exactly the one that was enabled."""

    enabled: bool = Field(default=True, description="Whether it is loaded, if its content is the pinned one.")
    sha256: Annotated[Text, AfterValidator(_sha256)] = Field(
        default="",
        description="Of the content of its folder; `denizen skill enable NAME` writes it. Any change of the folder "
        "switches the skill off until it is enabled again.",
    )
    settings: dict[str, object] = Field(
        default_factory=dict[str, object], description="The skill's own settings; it checks them itself."
    )


class ParameterSection(Section):
    """A parameter of a custom tool. Every one is required."""

    description: Annotated[Text, at_most(500)] = Field(default="", description="For the model, in a few words.")
    enum: tuple[SomeText, ...] = Field(default=(), description="The only values that it may have; empty: any text.")


class CustomToolSection(Section):
    """A program as a tool of agents. No shell reads its arguments."""

    description: Annotated[SomeText, at_most(1000)] = Field(description="What it does, for the model.")
    argv: tuple[SomeText, ...] = Field(
        min_length=1,
        description="The program and its arguments. `{{name}}` is what the model gave for the parameter `name`; it "
        "stays one argument, whatever it holds.",
    )
    parameters: dict[ToolName, ParameterSection] = Field(
        default_factory=dict[str, ParameterSection], description="By name; each must have a place in `argv`."
    )
    tier: Tier = Field(
        default=Tier.DANGEROUS, description="0 harmless, 1 limited by rate, 2 sensitive, 3 dangerous (the default)."
    )
    destructive: bool = Field(default=False, description="Whether a human must approve each call.")
    timeout_s: Number = Field(default=30.0, ge=1, le=600, description="Seconds until the program is stopped.")

    @model_validator(mode="after")
    def _places_are_parameters(self) -> Self:
        if "{{" in self.argv[0]:
            fix = "Write the program itself first; parameters may only be arguments."
            raise refuse("the first part of argv must be a program.", fix, key="argv")
        places = set(_PLACE.findall(" ".join(self.argv)))
        if places - set(self.parameters):
            raise refuse("argv has a place for no parameter.", "Write each one under parameters.", key="argv")
        if set(self.parameters) - places:
            raise refuse("a parameter has no place in argv.", "Write {{its name}} into argv.", key="parameters")
        return self

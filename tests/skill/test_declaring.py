"""Declaring a skill: what a manifest and a schema look like, and what cannot be a skill."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from denizen.domain.errors import InvalidInput
from denizen.skill import Param, Skill, Tier, ToolContext


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Chain:
    following: list[Chain]


def declare_skill(function: Callable[..., object], **options: str) -> Skill:
    skill = Skill("sample", description="For tests.")
    skill.tool(**options)(function)  # type: ignore[arg-type]
    return skill


def build_schema(function: Callable[..., object]) -> dict[str, object]:
    return dict(declare_skill(function).specs()[0].parameters)


def test_a_tool_is_described_by_its_name_docstring_and_annotations() -> None:
    skill = Skill("dice", description="Rolls dice.")

    @skill.tool(tier=Tier.HARMLESS, read_only=True, timeout_s=5)
    async def roll(
        context: ToolContext,
        sides: Annotated[int, Param("2 to 100", ge=2, le=100)],
        times: Annotated[int, "how often"] = 1,
    ) -> str:
        """Rolls a die
        several times.

        This second paragraph is for whoever reads the code.
        """
        return ""

    (spec,) = skill.specs()
    assert (spec.name, spec.description, spec.source) == ("roll", "Rolls a die several times.", "dice")
    assert (spec.tier, spec.read_only, spec.idempotent, spec.timeout_s) == (Tier.HARMLESS, True, True, 5)
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "sides": {"type": "integer", "description": "2 to 100", "minimum": 2, "maximum": 100},
            "times": {"type": "integer", "description": "how often", "default": 1},
        },
        "required": ["sides"],
        "additionalProperties": False,
    }


def test_a_tool_that_does_not_state_its_tier_has_the_highest() -> None:
    async def act(context: ToolContext) -> None:
        """Acts."""

    (spec,) = declare_skill(act).specs()
    assert spec.tier is Tier.DANGEROUS
    assert not spec.read_only
    assert not spec.idempotent


def test_schemas_have_no_titles_references_or_null_branches() -> None:
    async def draw(  # noqa: PLR0917
        context: ToolContext,
        title: str,
        points: list[Point],
        color: Literal["red", "blue"] = "red",
        width: int | None = None,
        label: int | str | None = None,
        properties: dict[str, int] | None = None,
        note: str = "",
    ) -> None:
        """Draws."""

    schema = build_schema(draw)
    assert '"$ref"' not in json.dumps(schema)
    assert '"null"' not in json.dumps(schema)
    assert schema["required"] == ["title", "points"]
    assert schema["properties"] == {
        "title": {"type": "string"},
        "points": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                "required": ["x"],
                "additionalProperties": False,
            },
        },
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "width": {"type": "integer"},
        "label": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "properties": {"type": "object", "additionalProperties": {"type": "integer"}},
        "note": {"type": "string"},
    }


def test_a_tool_without_parameters_has_an_empty_schema() -> None:
    def nothing(context: ToolContext) -> None:
        """Does nothing."""

    assert build_schema(nothing) == {"type": "object", "properties": {}, "additionalProperties": False}


@pytest.mark.parametrize("name", ["json", "copy", "schema", "model_config", "validate", "self", "title"])
def test_any_name_is_free_for_a_parameter(name: str) -> None:
    scope: dict[str, Callable[..., object]] = {}
    exec(f"def act(context, {name}: str):\n    'Acts.'", scope)
    signature = declare_skill(scope["act"]).tools[0].signature
    assert list(signature.schema["properties"]) == [name]  # type: ignore[arg-type]
    assert signature.bind({name: "x"}) == {name: "x"}


def undocumented(context: ToolContext) -> None: ...


def no_context() -> None:
    """Acts."""


def untyped(context: ToolContext, word) -> None:
    """Acts."""


def greedy(context: ToolContext, *words: str) -> None:
    """Acts."""


def open_ended(context: ToolContext, **words: str) -> None:
    """Acts."""


def positional(context: ToolContext, word: str, /) -> None:
    """Acts."""


@pytest.mark.parametrize("function", [undocumented, no_context, untyped, greedy, open_ended, positional])
def test_what_cannot_be_a_tool_is_refused_when_it_is_declared(function: Callable[..., object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        declare_skill(function)
    assert caught.value.code == "bad_skill"
    assert caught.value.fix


def unknown_type(context: ToolContext, word: Missing) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Acts."""


def no_schema(context: ToolContext, word: Callable[[], int]) -> None:
    """Acts."""


def endless(context: ToolContext, word: Chain) -> None:
    """Acts."""


def odd_object(context: ToolContext, word: Skill) -> None:
    """Acts."""


@pytest.mark.parametrize("function", [unknown_type, no_schema, endless, odd_object])
def test_a_type_that_cannot_be_described_is_refused_when_the_schema_is_made(function: Callable[..., object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        build_schema(function)
    assert caught.value.code == "bad_skill"


@pytest.mark.parametrize("name", ["", "Time", "two words", "a-b", "1st", "x" * 65, "é"])
def test_names_are_lower_case_words(name: str) -> None:
    def act(context: ToolContext) -> None:
        """Acts."""

    with pytest.raises(InvalidInput):
        Skill(name, description="")
    if name:
        with pytest.raises(InvalidInput):
            declare_skill(act, name=name)


def test_two_tools_of_a_skill_cannot_share_a_name() -> None:
    def act(context: ToolContext) -> None:
        """Acts."""

    skill = declare_skill(act)
    with pytest.raises(InvalidInput):
        skill.tool(tier=Tier.HARMLESS)(act)
    skill.tool(name="act_again")(act)
    assert [tool.name for tool in skill.tools] == ["act", "act_again"]


def test_the_function_stays_a_function() -> None:
    skill = Skill("sample", description="")

    @skill.tool(tier=Tier.HARMLESS)
    def double(context: object, number: int) -> int:
        """Doubles."""
        return 2 * number

    assert double(None, 4) == 8

"""Settings of an assistant: their ranges, and what comes of an agent with them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.agent import (
    Agent,
    AgentInstructions,
    CitationFormat,
    ResponseStyle,
    SamplingSettings,
    TurnLimits,
    WritingStyle,
)
from denizen.domain.agent_settings import (
    FIELDS,
    AgentOverrides,
    apply_overrides,
    change_set,
    check_set_name,
    find_active_set,
    overrides_from_json,
    overrides_to_json,
)
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import AgentName
from denizen.domain.json import Json

AGENT = Agent(
    AgentName("ada"),
    instructions=AgentInstructions(style=WritingStyle(extra_instructions="As in the file.")),
    sampling=SamplingSettings(temperature=0.7),
)
ALL: dict[str, Json] = {
    "additional_prompt": "Be kind.",
    "response_style": "technical",
    "language": "pt-BR",
    "default_model": "quality",
    "max_steps_multiplier": 0.5,
    "temperature": 2,
    "search_instructions": "Search twice.",
    "citation_format": "none",
}


def test_every_field_lies_over_the_agent_and_null_brings_the_configured_value_back() -> None:
    chosen = change_set(AgentOverrides(), ALL)
    assert chosen.names == FIELDS
    agent = apply_overrides(AGENT, chosen)
    assert agent == replace(
        AGENT,
        model="quality",
        instructions=replace(
            AGENT.instructions,
            style=WritingStyle(ResponseStyle.TECHNICAL, "pt-BR", CitationFormat.NONE, "Be kind.", "Search twice."),
        ),
        sampling=SamplingSettings(temperature=2.0),
        limits=TurnLimits(max_steps_multiplier=0.5),
    )
    assert apply_overrides(AGENT, change_set(chosen, dict.fromkeys(FIELDS))) == AGENT
    assert overrides_from_json(overrides_to_json(chosen)) == chosen


def test_auto_lets_the_model_be_chosen_and_a_name_ends_that() -> None:
    routed = apply_overrides(AGENT, AgentOverrides(default_model="auto"))
    assert (routed.model, routed.is_routed, routed.model_word) == ("balanced", True, "auto")
    assert find_active_set(routed).default_model == "auto"
    named = apply_overrides(routed, AgentOverrides(default_model="quality"))
    assert (named.model, named.is_routed, named.model_word) == ("quality", False, "quality")
    assert apply_overrides(routed, AgentOverrides(default_model="quality"), with_model=False) == routed


@pytest.mark.proves("S-config-step-multiplier")
@pytest.mark.parametrize("value", [0.5, 3.0])
def test_both_ends_of_the_range_of_the_multiplier_can_be_chosen(value: float) -> None:
    chosen = change_set(AgentOverrides(), {"max_steps_multiplier": value})
    assert apply_overrides(AGENT, chosen).limits.max_steps_multiplier == value


@pytest.mark.proves("S-http-agent-config-put", "S-config-step-multiplier")
@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("max_steps_multiplier", 0.4, "0.5 to 3"),
        ("max_steps_multiplier", 3.1, "0.5 to 3"),
        ("max_steps_multiplier", "2", "0.5 to 3"),
        ("temperature", 2.1, "0 to 2"),
        ("temperature", -1, "0 to 2"),
        ("temperature", True, "0 to 2"),
        ("temperature", float("nan"), "0 to 2"),
        ("response_style", "rude", "concise"),
        ("citation_format", 1, "footnote"),
        ("language", "english", "pt-BR"),
        ("default_model", " ", "alias"),
        ("default_model", 3, "alias"),
        ("additional_prompt", "x" * 20_001, "20000"),
        ("search_instructions", 7, "text"),
    ],
)
def test_a_value_out_of_range_is_refused_with_what_would_do(name: str, value: Json, fix: str) -> None:
    with pytest.raises(InvalidInput, match=name) as caught:
        change_set(AgentOverrides(), {name: value})
    assert caught.value.why
    assert fix in caught.value.fix


def test_a_field_that_does_not_exist_is_refused_and_the_nearest_named() -> None:
    with pytest.raises(InvalidInput) as caught:
        change_set(AgentOverrides(), {"temprature": 1})
    assert caught.value.fix == "Did you mean 'temperature'?"


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "a\nb"])
def test_a_set_has_a_name_that_people_can_read(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_set_name(name)
    assert check_set_name(" exam ") == "exam"

"""`model: auto`, the multiplier of steps, and what answers may rest on, as they stand in the file."""

from __future__ import annotations

import pytest

from denizen.app.build import OpenOptions, open_denizen
from denizen.app.model_choice import ModelChoice
from denizen.domain.agent import AnswersFrom
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import AgentName
from tests.app.home_folder import Home

LAB = 'models: {providers: {lab: {kind: openai-compatible, base_url: "http://127.0.0.1:9/v1"}}, aliases: {%s}}\n'
THREE = LAB % "fast: lab/small, balanced: lab/middle, quality: lab/large"
ADA = AgentName("ada")


def test_auto_is_a_model_that_is_chosen_for_each_question(home: Home) -> None:
    agent = home.load(THREE + "agents: {ada: {model: auto}}").agents[ADA]
    assert (agent.model, agent.is_routed, agent.model_word) == ("balanced", True, "auto")
    assert agent.instructions.answers_from is AnswersFrom.ANYTHING


def test_no_agent_is_on_auto_unless_somebody_wrote_so(home: Home) -> None:
    assert not home.load(THREE + "agents: {ada: {}}").agents[ADA].is_routed
    assert not home.load("").agents[AgentName("denizen")].is_routed


@pytest.mark.proves("S-config-step-multiplier")
@pytest.mark.parametrize(
    ("config", "said"),
    [
        (LAB % "fast: lab/small" + "agents: {ada: {model: auto}}", "there is no alias 'balanced'"),
        (LAB % "auto: lab/small, balanced: lab/middle", "no alias can be named auto"),
        (THREE + "agents: {ada: {limits: {max_steps_multiplier: 3.5}}}", "between 0.5 and 3"),
        (THREE + "agents: {ada: {limits: {max_steps_multiplier: 0.4}}}", "between 0.5 and 3"),
        (THREE + "agents: {ada: {answers_from: books}}", "sources"),
    ],
)
def test_what_cannot_be_is_refused(home: Home, config: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        home.load(config)
    assert said in caught.value.explain()


@pytest.mark.anyio
async def test_a_model_of_the_command_line_ends_the_choosing(home: Home) -> None:
    home.write(THREE + "agents: {ada: {model: auto}}")
    async with open_denizen(home.path, OpenOptions(ModelChoice(model="quality"), durable=False)) as denizen:
        current = denizen.runtime.current
        assert (current.agent("ada").model_word, current.is_model_chosen) == ("quality", True)

"""The owner's own texts and temperatures for an agent that plans, and the agent's name in all of its texts."""

import json

import pytest

from denizen.app.models import provider_spec
from denizen.domain.agent import Agent
from denizen.domain.ids import AgentName
from denizen.domain.message import TextPart
from denizen.ports.model import Capabilities, ModelRequest
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.app.home_folder import Home
from tests.engine.engine_fixture import NAME, open_engine

SMALL = Capabilities(native_tools=False, small=True)
PLAN = ScriptedReply(json.dumps({"tool": "look", "args": {"q": "Rome"}}))


def load(home: Home, keys: str = "") -> Agent:
    return home.load(f"agents: {{ada: {{{keys}}}}}").agents[NAME]


async def ask(agent: Agent) -> tuple[ModelRequest, ModelRequest]:
    """The requests for a plan and for the answer."""
    model = ScriptedModel(PLAN, ScriptedReply("Sunny."), capabilities=SMALL)
    async with open_engine(model, agent=agent) as engine:
        assert (await engine.say("Weather in Rome?")).reply == "Sunny."
    planned, answered = model.requests
    return planned, answered


def read_last(request: ModelRequest) -> str:
    part = request.messages[-1].parts[-1]
    assert isinstance(part, TextPart)
    return part.text


@pytest.mark.anyio
@pytest.mark.proves("L-config-prompts", "L-config-name")
async def test_files_replace_the_texts_for_planning_answering_and_all_else(home: Home) -> None:
    home.add_file("agents/ada/PLANNER.md", 'You choose for {name}. Say {"tool": ...}.\nThere are:\n{tools}\n')
    home.add_file("agents/ada/ANSWER.md", "{name} found out:\n{results}\nTell it in verse.")
    home.add_file("agents/ada/IDENTITY.md", "You are {name}, who likes {braces}.")
    planned, answered = await ask(load(home))
    assert planned.segments[0].text.startswith('You choose for ada. Say {"tool": ...}.\nThere are:\n- look(q: string)')
    assert read_last(answered) == '[ada found out:\nlook({"q": "Rome"}) gave: found Rome\nTell it in verse.]'
    assert answered.segments[0].text == "You are ada, who likes {braces}."


@pytest.mark.anyio
@pytest.mark.proves("L-config-prompts")
async def test_without_files_the_built_in_texts_serve(home: Home) -> None:
    planned, answered = await ask(load(home))
    text = planned.segments[0].text
    assert "- look(q: string)" in text and '{"tool": NAME, "args": {...}}' in text
    assert "found Rome" in read_last(answered) and "Do not mention tools or JSON" in read_last(answered)
    assert answered.segments[0].text.startswith("You are ada, a helpful member")


@pytest.mark.anyio
@pytest.mark.proves("X-temperature", "L-llm-settings")
async def test_plans_and_answers_have_temperatures_of_their_own(home: Home) -> None:
    planned, answered = await ask(load(home, "plan_temperature: 1, sampling: {temperature: 1.2}"))
    assert (planned.sampling.temperature, answered.sampling.temperature) == (1.0, 1.2)
    planned, answered = await ask(load(home))
    assert (planned.sampling.temperature, answered.sampling.temperature) == (0.0, None)


@pytest.mark.anyio
@pytest.mark.proves("L-llm-settings", "X-max-output-tokens")
async def test_the_output_limit_and_the_patience_with_a_model_are_settings(home: Home) -> None:
    provider = "{kind: openai-compatible, base_url: 'http://127.0.0.1:9/v1', timeout_s: 30}"
    models = f"models: {{providers: {{lab: {provider}}}, aliases: {{balanced: lab/tiny}}}}\n"
    settings = home.load(models + "agents: {ada: {limits: {max_output_tokens: 700}}}")
    _, answered = await ask(settings.agents[NAME])
    assert answered.max_output_tokens == 700
    assert provider_spec("lab", settings.models.providers["lab"], settings.secrets).idle_timeout_s == 30


@pytest.mark.parametrize(("file", "placeholder"), [("PLANNER.md", "{tools}"), ("ANSWER.md", "{results}")])
def test_a_text_without_its_placeholder_is_refused_with_the_way_to_mend_it(
    home: Home, file: str, placeholder: str
) -> None:
    home.add_file(f"agents/ada/{file}", "Do your best.")
    problem = home.refuse("agents: {ada: {}}").explain()
    assert f"'{file}'" in problem and f"has no {placeholder}" in problem and f"Write {placeholder} where" in problem


def test_a_changed_text_counts_as_a_change_of_the_configuration(home: Home) -> None:
    digests = [home.load("agents: {ada: {}, ben: {}}\ndefault_agent: ada").digest]
    for file in ("PLANNER.md", "ANSWER.md"):
        home.add_file(f"agents/ada/{file}", "{tools} {results}")
        settings = home.load()
        digests.append(settings.digest)
        assert not settings.agents[AgentName("ben")].instructions.planner
    assert len(set(digests)) == 3

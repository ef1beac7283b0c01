"""What an agent sets in the configuration is what its model is asked, and by what rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.app.build import OpenOptions, open_denizen
from denizen.domain.events import TurnFinished
from denizen.domain.hook import Hook
from denizen.testing.model_server import model_server
from denizen.testing.model_wire import ModelAnswer, ModelCall
from tests.app.home_folder import Home, make_request

CONFIG = """\
models:
  providers:
    gone: {{kind: openai-compatible, base_url: "http://127.0.0.1:9/v1"}}
    lab: {{kind: openai-compatible, base_url: "{url}"}}
  aliases: {{balanced: lab/other, spare: lab/spare}}
agents:
  ada:
    description: Knows the ferries.
    model: gone/first
    fallbacks: [gone/second, spare]
    persona: [FERRIES.md]
    planning: native
    skip_global_context: true
    tools: [current_time]
    sampling: {{temperature: 0.25}}
    limits: {{max_steps: 6, nudges: 1, nudge_text: "Call the tool."}}
    summaries: {{enabled: true, start_at: 0.5}}
    hooks: {{before_run: {{tool: current_time}}}}
"""


@pytest.mark.anyio
@pytest.mark.proves("T-agent-fields")
async def test_an_agent_is_as_its_fields_say(home: Home) -> None:
    home.add_file("agents/ada/FERRIES.md", "You know all ferries by name.")
    home.add_file("agents/ada/context/times.md", "The last ferry leaves at nine.")
    home.add_file("context/house.md", "Of the house.")
    async with model_server() as models:
        home.write(CONFIG.format(url=models.openai_url))
        async with open_denizen(home.path, OpenOptions()) as denizen:
            agent = denizen.runtime.current.agent("ada")
            assert (agent.description, agent.model_word) == ("Knows the ferries.", "gone/first > gone/second > spare")
            assert (agent.limits.max_steps, agent.limits.nudges, agent.limits.nudge_text) == (6, 1, "Call the tool.")
            assert (agent.history.summaries.enabled, agent.history.summaries.start_at) == (True, 0.5)
            assert agent.hooks.before == (Hook("current_time"),)
            models.script(ModelAnswer(text="Perhaps."), ModelAnswer(calls=(ModelCall("current_time", {}),)))
            models.script(ModelAnswer(text="At nine."))
            request = replace(make_request(denizen, "When?"), agent=agent.name)
            ended = [each async for each in denizen.turns.stream(request) if isinstance(each, TurnFinished)]
            assert ended[0].reply == "At nine.", ended[0].failure
        asked, nudged = (each.body for each in models.requests[:2])
    assert "[Call the tool.]" in str(nudged["messages"])
    assert asked["model"] == "spare"
    assert asked["temperature"] == 0.25
    assert [each["function"]["name"] for each in asked["tools"]] == ["current_time"]
    prompt = str(asked["messages"][0]["content"])
    assert "You know all ferries by name." in prompt
    assert "The last ferry leaves at nine." in prompt
    assert "Of the house." not in prompt


def test_fallbacks_lead_somewhere_and_follow_a_model_that_is_named(home: Home) -> None:
    wrong = CONFIG.format(url="http://127.0.0.1:9/v1").replace("spare]", "sparee]")
    refusal = home.refuse(wrong)
    assert "agents.ada.fallbacks[1]: there is no alias 'sparee'" in refusal.message + refusal.why
    routed = CONFIG.format(url="http://127.0.0.1:9/v1").replace("model: gone/first", "model: auto")
    assert "has no fallbacks here" in home.refuse(routed).message + home.refuse(routed).why


@pytest.mark.proves("T-config-agent-defaults")
def test_an_agent_with_a_model_of_its_own_takes_over_no_fallbacks_of_another(home: Home) -> None:
    usual = CONFIG.format(url="http://127.0.0.1:9/v1").partition("agents:")[0]
    agents = "agents: {ada: {}, bob: {model: gone/own}, cleo: {model: auto}, dora: {fallbacks: [gone/last]}}\n"
    settings = home.load(
        f"{usual}agent_defaults: {{model: gone/first, fallbacks: [spare]}}\ndefault_agent: ada\n{agents}"
    )
    words = {name: agent.model_word for name, agent in settings.agents.items()}
    assert words == {"ada": "gone/first > spare", "bob": "gone/own", "cleo": "auto", "dora": "gone/first > gone/last"}

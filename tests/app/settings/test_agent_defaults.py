"""What holds for every agent that says nothing else, and the model of a provider."""

from __future__ import annotations

import pytest

from denizen.adapters.models.catalog import ModelCatalog
from denizen.app.models import ChosenModel, EmbeddedRuntimePool, build_catalog, provider_spec
from denizen.app.settings import Settings, render_settings
from denizen.domain.agent import Agent, ContextStrategy, ResponseStyle
from denizen.domain.ids import AgentName
from denizen.engine.configuration.choices import list_aliases
from denizen.engine.prompt.system_prompt import assemble_system_prompt
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.app.home_folder import Home
from tests.engine.engine_fixture import open_engine

LAB = "{kind: openai-compatible, base_url: 'http://127.0.0.1:9/v1'}"
MODELS = f"models: {{providers: {{lab: {LAB}}}, aliases: {{main: {{model: lab/one, fallbacks: [lab/two]}}}}}}\n"


def load_agents(home: Home, text: str) -> dict[str, Agent]:
    return {str(name): agent for name, agent in home.load(text).agents.items()}


@pytest.mark.proves("C-config-agent-limits")
def test_an_agent_has_the_global_budget_output_limit_and_temperature_unless_it_has_its_own(home: Home) -> None:
    text = (
        "agent_defaults:\n"
        "  transcript: {budget_tokens: 50000}\n"
        "  limits: {max_output_tokens: 900, max_history_tokens: 7000}\n"
        "  sampling: {temperature: 0.6}\n"
        "agents:\n"
        "  denizen: {}\n"
        "  ben:\n"
        "    transcript: {budget_tokens: 20000, tail_tokens: 500}\n"
        "    limits: {max_output_tokens: 300}\n"
        "    sampling: {temperature: 0.1}\n"
        "  cat: {context: transcript}\n"
    )
    agents = load_agents(home, text)
    ada, ben, cat = agents["denizen"], agents["ben"], agents["cat"]
    assert (cat.history.transcript, cat.limits, cat.sampling) == (ada.history.transcript, ada.limits, ada.sampling)
    assert (ada.history.transcript.total, ada.limits.max_output_tokens, ada.sampling.temperature) == (50_000, 900, 0.6)
    assert (ben.history.transcript.total, ben.limits.max_output_tokens, ben.sampling.temperature) == (20_000, 300, 0.1)
    assert (ada.history.transcript.tail, ben.history.transcript.tail) == (8000, 500)
    assert ada.limits.max_history_tokens == ben.limits.max_history_tokens == 7000, "groups are joined key by key"


@pytest.mark.proves("C-config-agent-limits")
def test_the_agent_that_exists_without_being_configured_has_them_too(home: Home) -> None:
    (agent,) = load_agents(home, "agent_defaults: {limits: {max_output_tokens: 900}}").values()
    assert agent.limits.max_output_tokens == 900


@pytest.mark.proves("T-config-agent-defaults")
def test_a_model_with_what_replaces_it_and_instructions_hold_for_every_agent_that_sets_none(home: Home) -> None:
    text = MODELS + (
        "agent_defaults: {model: main, style: {extra_instructions: Be kind., response: friendly}}\n"
        "agents: {denizen: {}, ben: {model: lab/three}}\n"
    )
    settings = home.load(text)
    ada, ben = settings.agents[AgentName("denizen")], settings.agents[AgentName("ben")]
    assert (ada.model, ben.model) == ("main", "lab/three")
    assert [agent.instructions.style.extra_instructions for agent in (ada, ben)] == ["Be kind.", "Be kind."]
    assert all("Be kind." in str(assemble_system_prompt(agent, tool_rules=True)) for agent in (ada, ben))
    main = settings.models.aliases[ada.model]
    assert (main.model, main.fallbacks) == ("lab/one", ("lab/two",)), "in the order of priority"
    assert build_models(home, settings).get(ada.model).name == "lab/one"


@pytest.mark.proves("T-agent-instructions", "T-config-agent-defaults")
def test_an_agents_instructions_replace_the_global_ones(home: Home) -> None:
    text = (
        "agent_defaults: {style: {extra_instructions: Be kind., response: friendly}}\n"
        "agents: {denizen: {style: {extra_instructions: Be brief.}}, ben: {style: {extra_instructions: ''}}}\n"
    )
    agents = load_agents(home, text)
    assert agents["denizen"].instructions.style.extra_instructions == "Be brief."
    assert agents["ben"].instructions.style.extra_instructions == ""
    assert agents["ben"].instructions.style.response is ResponseStyle.FRIENDLY
    prompt = str(assemble_system_prompt(agents["denizen"], tool_rules=True))
    assert "Be brief." in prompt and "Be kind." not in prompt


@pytest.mark.proves("T-config-merge")
def test_an_agents_own_preset_takes_precedence_over_what_holds_for_all(home: Home) -> None:
    text = (
        "agent_defaults: {preset: small, limits: {max_tools: 9}, tools: [time, web_*]}\n"
        "agents: {denizen: {}, ben: {preset: small, tools: [time]}}\n"
    )
    agents = load_agents(home, text)
    assert (agents["denizen"].limits.max_tools, agents["ben"].limits.max_tools) == (9, 5)
    assert (agents["denizen"].tool_access.tools, agents["ben"].tool_access.tools) == (("time", "web_*"), ("time",))
    assert agents["denizen"].limits.max_history_tokens == agents["ben"].limits.max_history_tokens == 2000


def test_what_is_in_effect_can_be_read_again(home: Home) -> None:
    text = (
        "agent_defaults: {context: transcript, limits: {max_tools: 9}}\nagents: {denizen: {}, ben: {preset: small}}\n"
    )
    settings = home.load(text)
    shown = render_settings(settings)
    assert shown.partition("agent_defaults:")[2].partition("agents:")[0].split()[:2] == ["context:", "transcript"]
    assert home.load(shown).agents == settings.agents


@pytest.mark.proves("C-config-temperature")
def test_a_participant_samples_at_1_and_an_assistant_as_its_provider_decides(home: Home) -> None:
    text = (
        "agents:\n"
        "  denizen: {context: transcript}\n"
        "  ben: {context: transcript, sampling: {seed: 7}}\n"
        "  cat: {context: transcript, sampling: {temperature: 0.2}}\n"
        "  dan: {context: transcript, sampling: {top_p: 0.9}}\n"
        "  eva: {}\n"
    )
    found = {name: agent.sampling.temperature for name, agent in load_agents(home, text).items()}
    assert found == {"denizen": 1, "ben": 1, "cat": 0.2, "dan": None, "eva": None}
    agents = load_agents(home, "agent_defaults: {context: transcript}\nagents: {denizen: {}, ben: {context: session}}")
    assert agents["denizen"].history.context is ContextStrategy.TRANSCRIPT
    assert (agents["denizen"].sampling.temperature, agents["ben"].sampling.temperature) == (1, None)


@pytest.mark.anyio
@pytest.mark.proves("C-config-temperature", "C-config-agent-limits", "C-config-max-tokens")
async def test_the_model_is_asked_with_what_is_in_effect(home: Home) -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Quite."))
    for sampling in ("", ", sampling: {temperature: 0.6}"):
        text = f"agent_defaults: {{limits: {{max_output_tokens: 900}}{sampling}}}\n"
        text += "agents: {ada: {context: transcript}}"
        async with open_engine(model, agent=home.load(text).agents[AgentName("ada")]) as engine:
            await engine.say("hello")
    asked = [(request.sampling.temperature, request.max_output_tokens) for request in model.requests]
    assert asked == [(1, 900), (0.6, 900)]


@pytest.mark.parametrize(
    ("text", "where", "says", "fix"),
    [
        ("agent_defaults: {limit: {}}", "agent_defaults.limit", "not known", "limits"),
        ("agent_defaults: {limits: {max_tools: -1}}", "agent_defaults.limits.max_tools", "", ""),
        ("agent_defaults: {model: nobody}", "agent_defaults.model", "there is no alias", "provider/model"),
        (
            (
                "agent_defaults: {transcript: {block_tokens: 30000}}\n"
                "agents: {denizen: {transcript: {budget_tokens: 20000}}}"
            ),
            "agents.denizen.transcript.block_tokens",
            "with agent_defaults, a block must fit the budget",
            "Lower block_tokens",
        ),
    ],
)
def test_what_agents_cannot_share_is_refused_with_its_remedy(
    home: Home, text: str, where: str, says: str, fix: str
) -> None:
    problem = home.refuse(text).explain()
    assert where in problem
    assert says in problem
    assert fix in problem


def build_models(home: Home, settings: Settings) -> ModelCatalog:
    return build_catalog(settings, ChosenModel(None, ""), EmbeddedRuntimePool(home.path, {}, print))


WITH_MODEL = f"{LAB[:-1]}, model: one}}"


@pytest.mark.proves("T-config-providers")
def test_a_provider_says_which_model_is_meant_where_only_the_provider_is_named(home: Home) -> None:
    text = (
        f"models: {{providers: {{lab: {WITH_MODEL}, other: {LAB[:-1]}, model: two}}}},"
        " aliases: {balanced: lab, quality: {model: other/big, fallbacks: [lab]}}}\n"
        "agents: {denizen: {}, ben: {model: other}}\n"
    )
    settings = home.load(text)
    catalog = build_models(home, settings)
    named = {name: catalog.get(agent.model).name for name, agent in settings.agents.items()}
    assert named == {"denizen": "lab/one", "ben": "other/two"}
    assert settings.models.aliases["quality"].fallbacks == ("lab/one",)
    assert catalog.get("quality").name == "other/big"


def test_the_usual_model_of_a_provider_is_offered_to_everybody_only_under_an_alias_that_the_owner_wrote(
    home: Home,
) -> None:
    providers = f"lab: {WITH_MODEL}, other: {LAB[:-1]}, model: two}}"
    settings = home.load(
        f"models: {{providers: {{{providers}}}, aliases: {{other: {{model: other/two}}, main: {{model: lab}}}}}}\n"
        "agents: {ada: {model: lab}}\n"
    )
    assert list_aliases(build_models(home, settings)) == ["main", "other"]


@pytest.mark.proves("T-config-providers")
def test_a_provider_has_an_address_and_a_key_and_ollama_its_usual_address(home: Home) -> None:
    text = (
        "models: {providers: {near: {kind: ollama}, far: {kind: ollama, base_url: 'http://10.0.0.5:1/v1'},"
        " paid: {kind: anthropic, api_key: '${PAID_KEY}'}}, aliases: {balanced: near/m}}"
    )
    settings = home.load(text, PAID_KEY="a-key")
    near, far, paid = (
        provider_spec(name, settings.models.providers[name], settings.secrets) for name in ("near", "far", "paid")
    )
    assert (near.address, far.address) == ("http://localhost:11434/v1", "http://10.0.0.5:1/v1")
    assert paid.api_key is not None
    assert paid.api_key() == "a-key"


def test_a_provider_without_a_model_of_its_own_cannot_be_named_alone(home: Home) -> None:
    for place in ("aliases: {balanced: lab}}", "aliases: {balanced: lab/one}}\nagents: {denizen: {model: lab}}"):
        problem = home.refuse(f"models: {{providers: {{lab: {LAB}}}, {place}").explain()
        assert "'lab' names a provider, but no model" in problem
        assert "Write lab/MODEL" in problem

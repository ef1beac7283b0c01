"""What a configuration that can be used means."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from decimal import Decimal
from pathlib import Path

import pytest

from denizen.app.settings import find_config_problems
from denizen.app.settings.agents import AgentSection
from denizen.app.settings.models import ProviderSection
from denizen.app.settings.persona import DEFAULT_PERSONA
from denizen.domain import budget
from denizen.domain.agent import (
    Agent,
    AgentInstructions,
    AnswersFrom,
    CitationFormat,
    HistorySettings,
    ResponseStyle,
    SamplingSettings,
    ToolAccess,
    ToolPlanning,
    TurnLimits,
    WritingStyle,
)
from denizen.domain.ids import AgentName
from denizen.domain.principal import RoleName
from denizen.domain.prompt import estimate_tokens
from denizen.domain.tool import Tier
from tests.app.home_folder import Home

WHOLE = """\
store: {url: "sqlite:///elsewhere.db"}
server: {host: 0.0.0.0, port: 9000, api_keys: [{name: laptop, key: ${DENIZEN_API_KEY}, roles: [admin]}]}
models:
  providers:
    anthropic: {kind: anthropic, api_key: ${ANTHROPIC_API_KEY}}
    lab:
      {kind: openai-compatible, base_url: http://127.0.0.1:9100/v1, api_key: ${LAB_KEY:-}, timeout_s: 30,
       headers: {X-Team: ${TEAM:-a, b}}}
    builtin: {kind: embedded, model: qwen2.5-coder-1.5b-instruct, weights: w.gguf, threads: 2, context_tokens: 8192}
  aliases:
    fast: anthropic/claude-haiku-4-5
    balanced: {model: lab/org/qwen3, fallbacks: [builtin/default]}
  overrides:
    lab/org/qwen3: {native_tools: false, images: true, context_tokens: 32768, sampling: [temperature]}
agents:
  helper:
    description: helps
    model: quality
    tools: [notes_*, weather]
    planning: plan
    answers_from: sources
    limits: {max_steps: 5, max_steps_multiplier: 1.5, turn_timeout_s: 60}
    sampling: {temperature: 0, seed: 7}
    style:
      {response: technical, language: pt-BR, citations: footnote, extra_instructions: Be kind.,
       search_instructions: Search twice.}
  other: {model: lab/another}
default_agent: other
channels: {web: {enabled: no}}
tools: {weather: {base_url: "http://${HOST:-localhost}", nested: [1, {deep: "$${plain}"}]}, notes: {enabled: false}}
gate:
  tiers: {notes_*: 2}
  rules: [{tool: notes_*, action: deny, args: {name: '^x\\d'}, reason: no}]
  rate_limits: {per_user_per_hour: 0, tool: {weather: {calls: 10, per_s: 60}}}
budgets: {user: {per_day_usd: 0.5}}
logging: {level: debug, format: json, file: logs/denizen.log}
"""
KEYS = {"DENIZEN_API_KEY": "denizen-key", "ANTHROPIC_API_KEY": "anthropic-key"}


@pytest.mark.proves(
    "T-config-database",
    "T-config-server",
    "C-config-max-tokens",
    "L-config-name",
    "X-max-output-tokens",
    "X-iteration-limit",
    "S-config-response-style",
    "S-config-language",
    "S-config-citation-format",
    "S-config-additional-prompt",
    "S-config-search-instructions",
    "S-config-step-multiplier",
)
def test_without_a_file_there_is_one_agent_on_the_embedded_model(home: Home):
    settings = home.load()
    assert list(settings.agents) == ["denizen"]
    assert settings.default_agent == "denizen"
    agent = settings.agents[AgentName("denizen")]
    assert (agent.model, agent.tool_access.tools) == ("balanced", ("*",))
    assert (agent.limits.max_output_tokens, agent.limits.max_steps) == (4096, 20)
    assert {name: section.kind for name, section in settings.models.providers.items()} == {"builtin": "embedded"}
    usual = WritingStyle(ResponseStyle.CONCISE, "en", CitationFormat.INLINE, "", "")
    assert (agent.instructions.style, agent.limits.max_steps_multiplier) == (usual, 1)
    models = {name: alias.model for name, alias in settings.models.aliases.items()}
    assert models == dict.fromkeys(("fast", "balanced", "quality"), "builtin/default")
    assert settings.store_url == f"sqlite:///{home.path / 'denizen.db'}"
    assert (settings.server.host, settings.server.port, settings.server.api_keys) == ("127.0.0.1", 8650, ())
    assert settings.gate.rate_limits.per_user_per_hour == 20
    assert settings.log_file is None
    assert settings.warnings == ()


@pytest.mark.parametrize("text", ["", "# nothing but a comment\n", "---\n", "server:\nagents:\nmodels:\n  aliases:\n"])
def test_what_says_nothing_means_the_defaults(home: Home, text: str):
    assert home.load(text).config == home.load("").config


def test_each_key_of_an_agent_is_a_field_of_one_record():
    parts = (Agent, AgentInstructions, HistorySettings, ToolAccess)
    names = [each.name for part in parts for each in fields(part)]
    assert sorted(names) == sorted(set(names))
    # These three act only while the configuration is read.
    assert AgentSection.model_fields.keys() - set(names) == {"fallbacks", "preset", "skip_global_context"}


@pytest.mark.proves(
    "T-config-database",
    "T-config-server",
    "S-config-response-style",
    "S-config-language",
    "S-config-citation-format",
    "S-config-additional-prompt",
    "S-config-search-instructions",
    "S-config-step-multiplier",
    "S-prompt-chat",
)
def test_every_section_is_read(home: Home):
    settings = home.using(KEYS).load(WHOLE)
    assert settings.agents[AgentName("helper")] == Agent(
        name=AgentName("helper"),
        description="helps",
        model="quality",
        instructions=AgentInstructions(
            persona=(("built-in", DEFAULT_PERSONA.format(name="helper")),),
            style=WritingStyle(ResponseStyle.TECHNICAL, "pt-BR", CitationFormat.FOOTNOTE, "Be kind.", "Search twice."),
            answers_from=AnswersFrom.SOURCES,
        ),
        tool_access=ToolAccess(tools=("notes_*", "weather"), planning=ToolPlanning.PLAN),
        limits=TurnLimits(max_steps=5, max_steps_multiplier=1.5, turn_timeout_s=60),
        sampling=SamplingSettings(temperature=0, seed=7),
    )
    assert settings.default_agent == "other"
    assert settings.store_url == f"sqlite:///{home.path}/elsewhere.db"
    assert (settings.server.host, settings.server.port) == ("0.0.0.0", 9000)
    key = settings.server.api_keys[0]
    assert (key.name, settings.secrets.resolve(key.key), key.roles) == ("laptop", "denizen-key", (RoleName.ADMIN,))
    assert settings.channels.web.enabled is False
    assert settings.channels.api.enabled is True
    assert settings.tools["weather"].options == {"base_url": "http://localhost", "nested": [1, {"deep": "${plain}"}]}
    assert settings.tools["notes"].enabled is False
    assert settings.gate.tiers == {"notes_*": Tier.SENSITIVE}
    assert settings.gate.rules[0].args == {"name": r"^x\d"}
    assert settings.gate.rate_limits.tool["weather"][0].calls == 10
    assert settings.budgets.usual[budget.BudgetScopeKind.USER] == budget.BudgetLimits(per_day_usd=Decimal("0.5"))
    assert settings.log_file == home.path / "logs/denizen.log"


@pytest.mark.proves("V5")
def test_the_database_is_chosen_in_the_file_or_by_the_environment_and_is_sqlite_otherwise(home: Home):
    sqlite, postgres = f"sqlite:///{home.path / 'denizen.db'}", "postgresql://me@db.example.org/denizen"
    assert (home.load("").store_url, home.load("").config.store.max_connections) == (sqlite, 10)
    written = home.load(f"store: {{url: '{postgres}', max_connections: 4}}\n")
    assert (written.store_url, written.config.store.max_connections) == (postgres, 4)
    by_environment = "store: {url: '${DATABASE_URL:-}'}\n"
    assert home.load(by_environment, DATABASE_URL=postgres).store_url == postgres
    assert home.load(by_environment).store_url == sqlite


@pytest.mark.parametrize("url", ["postgresql:///denizen", "postgresql://me@/denizen?host=/run/postgresql"])
def test_a_postgres_behind_a_socket_needs_no_host(home: Home, url: str):
    assert home.load(f"store: {{url: '{url}'}}\n").store_url == url


def test_models_are_read_with_their_keys_as_references(home: Home):
    settings = home.using(KEYS).load(WHOLE)
    lab = settings.models.providers["lab"]
    assert (lab.timeout_s, lab.headers) == (30.0, {"X-Team": "a, b"})
    assert settings.secrets.resolve(lab.api_key) == ""
    assert settings.secrets.resolve(settings.models.providers["anthropic"].api_key) == "anthropic-key"
    assert settings.models.providers["builtin"].threads == 2
    assert settings.models.aliases["balanced"].fallbacks == ("builtin/default",)
    assert settings.models.overrides["lab/org/qwen3"].sampling == ("temperature",)


@pytest.mark.proves("T-config-merge", "X-iteration-limit", "V9", "VW8")
def test_what_is_written_is_merged_over_the_defaults_and_a_list_replaces_the_default_list(home: Home):
    agent = home.load("agents: {denizen: {limits: {max_steps: 3, max_tools: 7}, tools: [clock]}}").agents[
        AgentName("denizen")
    ]
    assert agent.limits == TurnLimits(max_steps=3, max_tools=7)
    usual = home.load("").agents[AgentName("denizen")].limits
    assert (usual.max_steps, usual.max_tools) == (20, 40)
    assert agent.tool_access.tools == ("clock",)


def test_missing_aliases_follow_the_configured_one(home: Home):
    lab = "models: {providers: {lab: {kind: ollama}}, aliases: {balanced: lab/a"
    assert {n: a.model for n, a in home.load(lab + "}}").models.aliases.items()} == {
        "balanced": "lab/a",
        "fast": "lab/a",
        "quality": "lab/a",
    }
    assert home.load(lab + ", fast: lab/b}}").models.aliases["quality"].model == "lab/a"


def test_the_built_in_provider_is_there_beside_others_when_something_names_it(home: Home):
    text = (
        "models: {providers: {lab: {kind: ollama}}, aliases: {balanced: {model: lab/a, fallbacks: [builtin/default]}}}"
    )
    assert home.load(text).models.providers["builtin"] == ProviderSection(kind="embedded")
    assert "builtin" not in home.load(text.replace("builtin/default", "lab/b")).models.providers


def test_a_single_agent_is_the_default_one(home: Home):
    assert home.load("agents: {rose: {}}").default_agent == "rose"
    assert home.load("agents: {rose: {}, denizen: {}}").default_agent == "denizen"


@pytest.mark.proves("T-config-env")
def test_a_value_from_the_environment_takes_the_type_of_its_place(home: Home):
    text = "server: {port: ${PORT:-8000}}\nchannels: {api: {enabled: ${API}}}\nagents: {a: {sampling: {top_p: ${P}}}}"
    settings = home.load(text, API="false", P="0.5")
    assert (settings.server.port, settings.channels.api.enabled) == (8000, False)
    assert settings.agents[AgentName("a")].sampling.top_p == 0.5


def test_variables_come_from_the_secrets_file_too(home: Home):
    home.add_file("secrets.env", "DENIZEN_HOST=10.0.0.1\n", mode=0o600)
    assert home.load("server: {host: ${DENIZEN_HOST}}").server.host == "10.0.0.1"


def test_a_secrets_file_that_others_can_read_is_warned_of(home: Home):
    home.add_file("secrets.env", "A=1\n", mode=0o644)
    (warning,) = home.load("").warnings
    assert "chmod 600" in warning.fix


def test_tools_for_files_that_may_reach_no_folder_are_warned_of(home: Home):
    (warning,) = home.load("tools:\n  files: {enabled: true}\n").warnings
    assert (warning.line, warning.path) == (2, ("tools", "files"))
    assert "No folders are allowed" in warning.message and "allowed: [/srv/shared]" in warning.fix
    for section in ("{enabled: true, allowed: [/srv]}", "{enabled: false}", "{}"):
        assert home.load(f"tools: {{files: {section}}}").warnings == ()


@pytest.mark.proves("C-config-secret-names")
def test_an_unused_provider_without_its_key_is_a_warning_and_can_be_used_later(home: Home):
    text = (
        "models: {providers: {a: {kind: ollama}, b: {kind: groq, api_key: ${GROQ_API_KEY}}}, aliases: {balanced: a/x}}"
    )
    settings = home.load(text)
    (warning,) = settings.warnings
    assert (warning.variable, warning.line) == ("GROQ_API_KEY", 1)
    assert "b" in settings.models.providers


@pytest.mark.proves("C-config-secret-names")
@pytest.mark.parametrize(
    "place",
    [
        "models: {providers: {p: {kind: groq, api_key: SECRET}}, aliases: {balanced: p/x}}",
        "channels: {discord: {accounts: {denizen: SECRET}}}",
        "channels: {discord: {accounts: {denizen: {token: SECRET}}}}",
        "channels: {github: {accounts: {denizen: {token: SECRET}}}}",
        "channels: {github: {accounts: {denizen: {token: '${OTHER}', webhook_secret: SECRET}}}}",
        "channels: {github: {accounts: {denizen: {app_id: 7, private_key: SECRET}}}}",
        "server: {api_keys: [{name: a, key: SECRET}]}",
        "knowledge: {youtube: {api_key: SECRET}}",
        "knowledge: {webhooks: {docs: SECRET}}",
        "server: {sign_in: {github: {client_id: a, client_secret: SECRET}}}",
        "google: {client_id: a, client_secret: SECRET}",
        "google: {client_id: a, refresh_token: SECRET}",
        "webhooks: {secret: SECRET}",
        "telemetry: {metrics: {enabled: true, key: SECRET}}",
        "mcp: {servers: {a: {command: node, env: {API_KEY: SECRET}}}}",
        "mcp: {servers: {a: {url: 'https://a.example/mcp', headers: {Authorization: SECRET}}}}",
        "tools: {mail: {password: SECRET}}",
        "tools: {web_search: {provider: brave, api_key: SECRET}}",
    ],
)
def test_a_secret_is_given_by_the_name_of_its_variable_and_its_value_is_refused(place: str, home: Home):
    value = "a-value-of-enough-characters"
    settings = home.load(place.replace("SECRET", "'${SOME_KEY}'"), SOME_KEY=value, OTHER="another")
    assert settings.secrets.mask(value) == "***"
    refused = home.refuse(place.replace("SECRET", value), OTHER="another")
    assert "must not stand in this file" in refused.message and "${" in refused.fix


def test_an_unused_provider_that_cannot_even_be_described_is_left_out_with_a_warning(home: Home):
    text = """\
models:
  providers:
    a: {kind: ollama}
    b: {kind: openai-compatible, base_url: "${B_URL}"}
  aliases: {balanced: a/x}
"""
    settings = home.load(text)
    assert list(settings.models.providers) == ["a"]
    assert [warning.line for warning in settings.warnings] == [4, 4]
    assert "B_URL" in str(settings.warnings[0])


def test_a_skill_that_is_off_may_lack_its_variable(home: Home):
    settings = home.load("tools: {weather: {enabled: false, token: ${WEATHER_TOKEN}}}")
    assert settings.warnings[0].variable == "WEATHER_TOKEN"
    assert home.refuse("tools: {weather: {token: ${WEATHER_TOKEN}}}").message.endswith("is not set.")


def test_persona_files_are_read_in_the_usual_order_as_far_as_they_exist(home: Home):
    home.add_file("agents/denizen/RULES.md", "Be kind.\n\n")
    home.add_file("agents/denizen/IDENTITY.md", "\ufeffYou are a rose.\r\n")
    home.add_file("agents/denizen/SOUL.md", "  \n")
    assert home.load("").agents[AgentName("denizen")].instructions.persona == (
        ("IDENTITY.md", "You are a rose."),
        ("RULES.md", "Be kind."),
    )


def test_listed_persona_files_are_read_in_the_listed_order(home: Home):
    home.add_file("agents/rose/more/b.md", "B")
    home.add_file("agents/rose/a.md", "A")
    home.add_file("agents/rose/IDENTITY.md", "not listed")
    agent = home.load("agents: {rose: {persona: [more/b.md, a.md]}, thorn: {persona: []}}\ndefault_agent: rose").agents
    assert agent[AgentName("rose")].instructions.persona == (("more/b.md", "B"), ("a.md", "A"))
    assert agent[AgentName("thorn")].instructions.persona == ()


def test_the_default_persona_is_short():
    assert estimate_tokens(DEFAULT_PERSONA.format(name="denizen")) < 120


def test_the_digest_follows_meaning_and_not_layout(home: Home):
    digest = home.load("server:\n  port: 1000  # a comment\nlogging: {level: info}\n").digest
    assert home.load("logging:\n  level: info\nserver: {port: 1000}\n").digest == digest
    assert home.load("logging:\n  level: info\nserver: {port: 1001}\n").digest != digest


def test_the_digest_follows_persona_files_and_not_the_environment(home: Home):
    text = "server: {host: ${HOST_NAME:-localhost}}"
    digest = home.load(text).digest
    assert home.load(text, HOST_NAME="elsewhere").digest == digest
    home.add_file("agents/denizen/SOUL.md", "changed")
    assert home.load(text).digest != digest


def test_anchors_and_merge_keys_are_understood(home: Home):
    text = "agents: {denizen: &base {model: fast, limits: {max_steps: 3}}, b: {<<: *base, model: quality}}"
    agents = home.load(text).agents
    assert (agents[AgentName("b")].model, agents[AgentName("b")].limits.max_steps) == ("quality", 3)


def test_checking_a_good_configuration_finds_nothing(home: Home):
    home.write(WHOLE)
    assert find_config_problems(home.path, KEYS, known_tools={"weather", "notes"}) == ()


def test_asking_for_the_version_does_not_load_the_settings():
    script = "import sys, denizen; sys.exit(any(m in sys.modules for m in ('denizen.app', 'pydantic', 'ruamel.yaml')))"
    path = Path(__file__).parents[3] / "src"
    assert subprocess.run([sys.executable, "-c", script], check=False, env={"PYTHONPATH": str(path)}).returncode == 0

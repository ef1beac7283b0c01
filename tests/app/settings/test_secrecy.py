"""No secret appears in what people or logs see, and what is shown can be read again."""

from __future__ import annotations

import traceback
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denizen.app.settings import load_settings, render_settings
from denizen.app.settings.load import digest_input
from denizen.app.settings.workflows import WorkflowFiles
from denizen.domain.errors import InvalidInput
from tests.app.home_folder import Home

SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="%"), min_size=8, max_size=30)
MARK = "PLAN" + "TED"  # in two parts, so that a traceback that quotes these lines is no find
GOOD = """\
store: {url: "postgresql://me:${SECRET}@db/x"}
server: {host: "${SECRET:-localhost}", api_keys: [{name: a, key: "${SECRET}"}], cors_origins: ["https://chat.example"]}
models:
  providers:
    p: {kind: groq, api_key: "${SECRET}", headers: {Authorization: "Bearer ${SECRET}", X: "${SECRET}"}}
  aliases: {balanced: {model: "p/${SECRET}", fallbacks: ["p/${SECRET}"]}}
agents:
  denizen:
    description: ${SECRET}
    persona: ["${PERSONA:-a.md}"]
    tools: ["${SECRET}"]
    style: {extra_instructions: "say ${SECRET}"}
    limits: {nudge_text: "${SECRET}"}
channels:
  discord:
    error_message: ${SECRET}
    accounts: {denizen: {token: "${SECRET}", greeting: "${SECRET}"}}
commands: {x: {description: "${SECRET}", shell: [curl, "${SECRET}"], prompt: "${SECRET}"}}
tools: {weather: {token: "${SECRET}", deep: [{x: "${SECRET}"}]}}
gate: {rules: [{tool: "${SECRET}", action: deny, args: {a: "x"}, reason: "${SECRET}"}]}
logging: {file: "${SECRET}"}
"""
PLACES = [
    "server: {port: ${SECRET}}",
    "server: {host: [${SECRET}]}",
    "server: {api_keys: [{name: ${SECRET}, key: x${SECRET}}]}",
    "store: {url: ${SECRET}}",
    "logging: {level: ${SECRET}}",
    "default_agent: ${SECRET}",
    "agents: {denizen: {model: ${SECRET}}}",
    "agents: {denizen: {persona: [${SECRET}]}}",
    "agents: {denizen: {style: {response: ${SECRET}, language: ${SECRET}}}}",
    "agents: {denizen: {limits: ${SECRET}, sampling: {temperature: ${SECRET}}}}",
    "models: {aliases: {balanced: ${SECRET}, fast: 'x ${SECRET}'}}",
    "models: {providers: {p: {kind: ${SECRET}, base_url: ${SECRET}, timeout_s: ${SECRET}}}}",
    "models: {providers: {p: {kind: ollama, headers: {A: '${SECRET}\\n'}}}}",
    "gate: {tiers: {a: ${SECRET}}, rules: [{tool: a, action: ${SECRET}, args: {a: '(${SECRET}'}}]}",
    "channels: {web: {enabled: ${SECRET}}}",
    "channels: {discord: {owners: [${SECRET}], threads: ${SECRET}, reactions: {seen: ${SECRET}}}}",
    "channels: {discord: {accounts: {denizen: {token: ${SECRET}}, other: ${SECRET}}}}",
    "channels: {discord: {keywords: ['(${SECRET}'], api_url: ${SECRET}, gateway_url: ${SECRET}}}",
    "commands: {x: {description: ${SECRET}, prompt: '{{${SECRET}}}', agent: ${SECRET}}}",
    "agents: {denizen: {timestamps: {zone: ${SECRET}}}}",
    "budgets: {currency: ${SECRET}, user: {per_day_usd: ${SECRET}}}",
    "tools: ${SECRET}",
    "unknown: ${SECRET}",
]


def is_plain(secret: str) -> bool:
    """Whether a value cannot be a part of what the error says anyway."""
    return not any(secret in text for text in (GOOD, *PLACES))


@pytest.mark.proves("L-config-masked", "TW3")
@settings(max_examples=40, deadline=None)
@given(SECRETS)
def test_a_secret_is_in_no_text_that_is_made_of_the_settings(value: str):
    secret = f"{MARK}{value}"
    text = GOOD.replace('url: "postgresql://me:${SECRET}@db/x"', 'url: "sqlite:///${SECRET}"')
    with TemporaryDirectory() as folder:
        persona = Path(folder) / "agents/denizen/a.md"
        persona.parent.mkdir(parents=True)
        persona.write_text("text", encoding="utf-8")
        (Path(folder) / "denizen.yaml").write_text(text, encoding="utf-8")
        found = load_settings(Path(folder), {"SECRET": secret, "PERSONA": "a.md"})
    assert found.agents[found.default_agent].instructions.persona == (("${PERSONA:-a.md}", "text"),)
    written = digest_input(found.document.tree, found.agents, found.folders, WorkflowFiles(found.workflows, {}, {}))
    platforms = repr((found.discord_accounts, found.discord_endpoints, found.archive, found.commands))
    texts = (repr(found), str(found), repr(found.config), repr(found.agents), platforms, render_settings(found))
    for shown in (*texts, written, found.digest):
        assert MARK not in shown
    assert found.secrets.mask(f"a {secret} b") == "a *** b"


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PLACES), SECRETS.filter(is_plain))
def test_a_secret_is_in_no_error(place: str, secret: str):
    with TemporaryDirectory() as folder:
        (Path(folder) / "denizen.yaml").write_text(place, encoding="utf-8")
        try:
            load_settings(Path(folder), {"SECRET": f"{MARK}{secret}"})
        except InvalidInput as error:
            told = [error.explain(), repr(error), repr(error.context), *traceback.format_exception(error)]
            assert MARK not in "".join(told)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PLACES), st.from_regex(r"[A-Za-z0-9]{8,20}", fullmatch=True))
def test_a_secret_that_was_written_into_the_file_is_not_repeated(place: str, secret: str):
    literal = f"sk-{MARK}0123456789{secret}"
    text = place.replace("${SECRET}", literal)
    with TemporaryDirectory() as folder:
        (Path(folder) / "denizen.yaml").write_text(text, encoding="utf-8")
        with pytest.raises(InvalidInput) as caught:
            load_settings(Path(folder), {})
    told = [caught.value.explain(), repr(caught.value), repr(caught.value.context)]
    quoted = place.startswith(
        ("default_agent", "agents: {denizen: {model", "models: {aliases", "agents: {denizen: {pers")
    )
    assert quoted or MARK not in "".join(told)


@pytest.mark.parametrize(
    "text",
    [
        "api_key: *PLANTED\n",
        "a: 'PLANTED\n",
        "a: {b: PLANTED\n",
        "a: PLANTED\na: PLANTED2\n",
        "PLANTED\nb: 1\n",
        "a: PLANTED: b\n",
        "\ta: PLANTED\n",
        "a: @PLANTED\n",
        "a: !PLANTED b\n",
        'a: "\\PLANTED"\n',
    ],
)
def test_an_error_of_the_syntax_quotes_nothing_of_the_line(home: Home, text: str):
    assert MARK not in "".join(traceback.format_exception(home.refuse(text)))


def test_what_is_rendered_means_the_same_and_is_rendered_the_same(home: Home):
    home.add_file("agents/denizen/a.md", "text")
    found = home.load(GOOD, SECRET="planted-secret")
    rendered = render_settings(found)
    again = home.load(rendered, SECRET="planted-secret")
    assert again.config == found.config
    assert again.default_agent == found.default_agent
    assert render_settings(again).replace(" # default", "") == rendered.replace(" # default", "")


def test_defaults_are_marked_and_written_values_are_not(home: Home):
    rendered = render_settings(home.load("server: {port: 9000}\nlogging:\n  level: debug\n"))
    lines = {line.strip() for line in rendered.splitlines()}
    assert {"port: 9000", "host: 127.0.0.1 # default", "level: debug", "format: console # default"} <= lines
    assert "model: builtin/default # default" in lines


def test_escaped_references_stay_escaped(home: Home):
    found = home.load("agents: {denizen: {description: 'write $${NAME}'}}")
    assert found.config.agents["denizen"].description == "write ${NAME}"
    assert "description: write $${NAME}" in render_settings(found)

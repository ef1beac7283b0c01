"""What is wrong with a configuration is said with file, line, key and remedy, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.app.settings import find_config_problems
from denizen.app.settings.yaml_document import MAX_DEPTH
from tests.app.home_folder import Home

TOOLS = frozenset({"weather", "notes"})
USED = "agents: {denizen: {model: a/x}}\n"
LAB = "models:\n  providers:\n    lab: {kind: ollama}\n"
USUAL = LAB + "  aliases: {balanced: lab/a}\n"

# (what it is, text, line, what the error says, what the fix says)
BAD = [
    ("unknown key near a known one", "server:\n  prot: 1\n", 2, "server.prot: this key is not known", "'port'"),
    (
        "unknown key near none",
        "server:\n  zzzzzz: 1\n",
        2,
        "server.zzzzzz",
        "Known keys: admins, api_keys, cors_origins",
    ),
    ("unknown section", "agent: {}\n", 1, "agent: this key is not known", "'agents'"),
    ("unknown key of an agent", "agents:\n  a:\n    modle: fast\n", 3, "agents.a.modle", "'model'"),
    ("unknown key of a rule", "gate:\n  rules:\n    - tool: a\n      actoin: deny\n", 4, "rules[0].actoin", "'action'"),
    ("text for a number", "server:\n  port: many\n", 2, "server.port: must be a whole number, not a text", "number"),
    ("number for a text", "server:\n  host: 5\n", 2, "server.host: must be a text, not a number", "in quotes"),
    ("yes for a number", "server: {port: true}\n", 1, "must be a whole number, not true or false", "number"),
    ("text for a yes", "channels: {web: {enabled: perhaps}}\n", 1, "must be true or false", "true or false"),
    ("text for a group", "logging: quiet\n", 1, "logging: must be a group of keys, not a text", "key: value"),
    ("text for a list", "agents: {a: {tools: all}}\n", 1, "agents.a.tools: must be a list, not a text", "[one, two]"),
    ("list for a group", "agents: [a]\n", 1, "agents: must be a group of keys, not a list", "key: value"),
    ("missing key", "gate: {rules: [{tool: a}]}\n", 1, "gate.rules[0].action: this key is missing", "action: ..."),
    ("value near an allowed one", "logging: {level: inof}\n", 1, "'inof' is not possible", "Did you mean 'info'?"),
    ("value near none", "agents: {a: {style: {response: 7}}}\n", 1, "not possible", "concise, detailed, technical"),
    ("tier", "gate: {tiers: {x: 4}}\n", 1, "gate.tiers.x", "0, 1, 2, 3"),
    ("temperature", "agents: {a: {sampling: {temperature: 2.1}}}\n", 1, "must be between 0 and 2", "bounds"),
    ("steps", "agents: {a: {limits: {max_steps: 0}}}\n", 1, "must be between 1 and 100", "bounds"),
    ("steps above", "agents: {a: {limits: {max_steps: 101}}}\n", 1, "must be between 1 and 100", "bounds"),
    ("port", "server: {port: 65536}\n", 1, "must be between 0 and 65535", "bounds"),
    ("not a number", "agents: {a: {sampling: {top_p: .nan}}}\n", 1, "agents.a.sampling.top_p", ""),
    ("rate", "gate: {rate_limits: {tool: {a: {calls: 1, per_s: 0}}}}\n", 1, "must be greater than 0", "bounds"),
    ("money", "budgets: {user: {per_day_usd: -1}}\n", 1, "budgets.user.per_day_usd", "bounds"),
    ("pattern", "gate: {rules: [{tool: a, action: deny, args: {x: '('}}]}\n", 1, "not a regular expression", "Correct"),
    ("set", "gate: {rules: [{tool: a, action: deny, args: {x: '[[a]'}}]}\n", 1, "not a regular expression", "bracket"),
    ("agent name", "agents: {My Agent: {}}\n", 1, 'agents."My Agent"', "lower-case letters"),
    ("agent name as a path", "agents: {../up: {}}\n", 1, 'agents."../up"', "names a folder"),
    ("language", "agents: {a: {style: {language: klingonese}}}\n", 1, "not a language code", "pt-BR"),
    ("store", "store: {url: 'mysql://host/db'}\n", 1, "must be the address of a database", "sqlite:///"),
    (
        "web address",
        "models: {providers: {a: {kind: ollama, base_url: localhost}}}\n" + USED,
        1,
        "web address",
        "in full",
    ),
    ("empty host", "server: {host: ' '}\n", 1, "must not be empty", "take the key out"),
    (
        "header of two lines",
        'models: {providers: {a: {kind: ollama, headers: {X: "a\\nb"}}}}\n' + USED,
        1,
        "one line",
        "out",
    ),
    (
        "provider kind",
        "models: {providers: {a: {kind: antropic}}}\n" + USED,
        1,
        "'antropic'",
        "Did you mean 'anthropic'?",
    ),
    (
        "cloud provider without key",
        "models: {providers: {a: {kind: groq}}}\n" + USED,
        1,
        "needs api_key",
        "${GROQ_API_KEY}",
    ),
    (
        "no address",
        "models: {providers: {a: {kind: openai-compatible}}}\n" + USED,
        1,
        "needs base_url",
        "http://127.0.0.1",
    ),
    (
        "key of another kind",
        "models: {providers: {a: {kind: ollama, threads: 2}}}\n" + USED,
        1,
        "a.threads",
        "Take the key out",
    ),
    (
        "alias without provider",
        LAB + "  aliases:\n    balanced: qwen\n",
        5,
        "'qwen' is not provider/model",
        "lab/MODEL",
    ),
    ("alias of an unknown provider", LAB + "  aliases:\n    balanced: lap/q\n", 5, "'lap/q' names a provider", "'lab'"),
    ("fallback", LAB + "  aliases:\n    balanced: {model: lab/a, fallbacks: [lob/b]}\n", 5, "fallbacks[0]", "'lab'"),
    ("override", LAB + "  aliases: {balanced: lab/a}\n  overrides: {lib/a: {}}\n", 5, "'lib/a' names a prov", "'lab'"),
    ("alias of the agent", "agents:\n  a:\n    model: blanced\n", 3, "no alias 'blanced'", "Did you mean 'balanced'?"),
    ("no balanced", LAB, 1, "there is no alias 'balanced'", "balanced: lab/MODEL"),
    (
        "balanced of an agent",
        LAB + "agents:\n  a:\n    tools: []\n",
        5,
        "agents.a: providers are",
        "balanced: lab/MODEL",
    ),
    ("default agent", "agents: {rose: {}}\ndefault_agent: rise\n", 2, "no agent 'rise'", "Did you mean 'rose'?"),
    ("no default agent", "agents:\n  a: {}\n  b: {}\n", 1, "which one is the default", "default_agent: a"),
    ("agent of a rule", "gate:\n  rules:\n  - {tool: x, action: deny, agents: [denizn]}\n", 3, "'denizn'", "'denizen'"),
    ("account", "channels: {discord: {accounts: {denizn: '${P}'}}}\n", 1, "accounts.denizn: there is no", "'denizen'"),
    ("switch", "channels: {discord: {switchable: [denizn]}}\n", 1, "switchable[0]: there is no agent", "'denizen'"),
    (
        "switch of an account",
        "channels: {discord: {accounts: {denizen: {token: '${P}', switchable: [denizn]}}}}\n",
        1,
        "denizen.switchable[0]: there is no agent",
        "'denizen'",
    ),
    (
        "account on GitHub",
        "channels: {github: {accounts: {denizn: {token: '${P}'}}}}\n",
        1,
        "accounts.denizn: there is no agent",
        "'denizen'",
    ),
    ("budget", "budgets: {agents: {denizn: {per_day_usd: 1}}}\n", 1, "agents.denizn: there is no agent", "'denizen'"),
    ("model of all", "agent_defaults:\n  model: blanced\n", 2, "defaults.model: there is no alias", "'balanced'"),
    ("observer", "gate: {observer: {model: blanced}}\n", 1, "observer.model: there is no alias", "'balanced'"),
    ("embeddings", USUAL + "embeddings: {provider: lob, model: m}\n", 5, "embeddings.provider: 'lob/m'", "'lab'"),
    ("provider of an agent", USUAL + "agents: {a: {model: lob/q}}\n", 5, "agents.a.model: 'lob/q'", "'lab'"),
    ("mode of the gate", "gate:\n  mode: aks\n", 2, "gate.mode: 'aks' is not possible", "Did you mean 'ask'?"),
    ("mode of a tool", "gate: {modes: {x: rune}}\n", 1, "gate.modes.x: 'rune' is not", "Did you mean 'run'?"),
    ("skill", "tools:\n  wether: {}\n", 2, "there is no skill 'wether'", "Did you mean 'weather'?"),
    ("unset variable", "server:\n  host: ${DENIZEN_HOST}\n", 2, "variable DENIZEN_HOST is not set", "DENIZEN_HOST=..."),
    ("malformed reference", "server: {host: '${HOST'}\n", 1, "begins no reference", "${NAME:-default}"),
    ("persona file", "agents:\n  a:\n    persona: [NO.md]\n", 3, "there is no file 'NO.md'", "Create it"),
    ("persona above", "agents: {a: {persona: [../b/SOUL.md]}}\n", 1, "outside of the agent's folder", "below"),
    ("persona that is no path", 'agents: {a: {persona: ["a\\0b"]}}\n', 1, "outside of the agent's folder", "below"),
    ("persona elsewhere", "agents: {a: {persona: [/etc/passwd]}}\n", 1, "outside of the agent's folder", "below"),
    (
        "secret",
        "models: {providers: {a: {kind: groq, api_key: abc}}}\n" + USED,
        1,
        "a secret must not stand",
        "${A_API_KEY}",
    ),
    (
        "secret of a known kind",
        "models: {providers: {groq: {kind: groq, api_key: k}}}\n" + USED.replace("a/x", "groq/x"),
        1,
        "secret",
        "${GROQ_API_KEY}",
    ),
    (
        "secret as default",
        "models: {providers: {a: {kind: groq, api_key: '${K:-abc}'}}}\n" + USED,
        1,
        "secret",
        "secrets.env",
    ),
    (
        "secret within",
        "models: {providers: {a: {kind: groq, api_key: 'x${K:-}'}}}\n" + USED,
        1,
        "secret",
        "secrets.env",
    ),
    ("key of the API", "server: {api_keys: [{name: a, key: abc}]}\n", 1, "secret must not", "${DENIZEN_API_KEY}"),
    ("empty key of the API", "server: {api_keys: [{name: a, key: ''}]}\n", 1, "must not be empty", "DENIZEN_API_KEY"),
    ("optional key", "server: {api_keys: [{name: a, key: '${K:-}'}]}\n", 1, "must not be empty", "without a default"),
    (
        "secret header",
        "models: {providers: {a: {kind: ollama, headers: {Authorization: Bearer x}}}}\n" + USED,
        1,
        "secret",
        "${A_",
    ),
    ("secret of a skill", "tools: {weather: {api_key: abc}}\n", 1, "tools.weather.api_key", "${WEATHER_API_KEY}"),
    (
        "password",
        "store: {url: 'postgresql://me:pw@db/x'}\n",
        1,
        "a password must not",
        "${STORE_PASSWORD} in its place",
    ),
    ("well-known key", "agents: {a: {description: sk-abcdefghijklmnopqrstu}}\n", 1, "a secret must not", "secrets.env"),
    ("duplicate key", "server:\n  port: 1\n  host: a\n  port: 2\n", 4, "the key `port` is there twice", "Keep one"),
    ("duplicate agent", "agents:\n  a: {}\n  a: {}\n", 3, "the key `a` is there twice", "Keep one"),
    (
        "duplicate API key",
        "server: {api_keys: [{name: a, key: '${P}'}, {name: a, key: '${P}'}]}\n",
        1,
        "twice",
        "own name",
    ),
    ("tab", "server:\n\tport: 1\n", 2, "a tab character", "spaces"),
    ("tab further down", "server:\n  host: a\n\tport: 1\n", 3, "a tab character", "spaces"),
    ("no colon", "server\n  port: 1\n", 1, "no colon after its key", "colon and a space"),
    ("no colon at the end", "server:\n  host: a\n  port 1\n", 3, "no colon after its key", "colon and a space"),
    ("no space", "port:1\nhost: a\n", 1, "a space after the colon", "colon and a space"),
    ("two colons", "logging: level: info\n", 1, "a second colon", "quotes"),
    ("indented too little", "server:\n  port: 1\n host: a\n", 3, "does not line up", "same column"),
    ("indented too much", "server:\n  port: 1\n    host: a\n", 3, "indented below line 2", "same column"),
    ("open quote", 'server:\n  host: "a\n  port: 1\n', 2, "a quote that opens in line 2", "Close it"),
    ("open bracket", "agents:\n  a: {tools: [x\nserver: {}\n", 2, "`[` that opens in line 2", "]"),
    ("open brace", "agents:\n  a: {tools: []\nserver: {}\n", 2, "`{` that opens in line 2", "}"),
    ("star", "agents: {a: {tools: [*]}}\n", 1, "starts with `*`", "quotes"),
    ("alias-like value", "agents: {a: {description: *x}}\n", 1, "starts with `*`", "quotes"),
    ("at sign", "agents: {a: {description: @x}}\n", 1, "means something else", "quotes"),
    ("backslash", 'agents: {a: {description: "\\q"}}\n', 1, "backslash", "single quotes"),
    ("two documents", "server: {}\n---\nagents: {}\n", 2, "second document", "one document"),
    ("tag", "server: !!python/object {}\n", 1, "YAML tags", "plain value"),
    ("scalar", "hello\n", 1, "must hold keys with values", "key: value"),
    ("list at the top", "- a\n", 1, "must hold keys with values", "key: value"),
    ("key that is no text", "true: 1\n", 1, "a key must be a text", "quotes"),
]


@pytest.mark.proves("T-config-validation", "L-config-required")
@pytest.mark.parametrize(("text", "line", "says", "fix"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_line_is_named_with_its_remedy(home: Home, text: str, line: int, says: str, fix: str):
    error = home.refuse(text, known_tools=TOOLS, P="some-value")
    assert error.message.startswith(f"{home.config}:{line}:"), error.explain()
    assert says in error.message
    assert fix in error.fix


def test_all_problems_come_in_one_error_in_the_order_of_the_file(home: Home):
    text = """\
logging: {level: loud}
server:
  port: x
models:
  providers:
    lab: {kind: ollama, api_key: literal-secret}
  aliases:
    balanced: lob/q
agents:
  a: {tool: [], model: fats}
tools: {wether: {}}
"""
    error = home.refuse(text, known_tools=TOOLS)
    assert "7 problems" in error.message
    named = [line for line in error.message.splitlines() if line.startswith(str(home.path))]
    assert [line.split(":")[1] for line in named] == ["1", "3", "6", "8", "10", "10", "11"]
    assert error.message.count("fix: ") == 7
    assert "literal-secret" not in error.explain()


def test_the_problems_are_there_as_data_too(home: Home):
    error = home.refuse("server: {prot: 1}")
    assert error.context["problems"] == (
        {
            "file": str(home.config),
            "line": 1,
            "column": 10,
            "path": "server.prot",
            "message": "this key is not known.",
            "fix": "Did you mean 'port'? Known keys: admins, api_keys, cors_origins, host, limits, port, "
            "public_url, registration, sign_in, trusted_proxies.",
        },
    )


def test_an_error_of_the_syntax_has_its_column(home: Home):
    assert home.refuse("agents: {a: {description: @x}}").message.startswith(f"{home.config}:1:27: ")


def test_checking_lists_the_problems_and_raises_nothing(home: Home):
    home.write("server: {prot: 1}\nlogging: {level: loud}\n")
    assert [problem.path for problem in find_config_problems(home.path, {})] == [
        ("server", "prot"),
        ("logging", "level"),
    ]


@pytest.mark.proves("L-config-required")
def test_a_missing_variable_is_one_problem_whatever_else_its_absence_breaks(home: Home):
    text = "models: {providers: {a: {kind: openai-compatible, base_url: '${URL}'}}, aliases: {balanced: '${MODEL}'}}"
    error = home.refuse(text + "\nserver: {port: ${PORT}}\nagents: {denizen: {model: a/x}}")
    assert [line.rsplit(": ", 1)[1] for line in error.message.splitlines() if "denizen.yaml" in line] == [
        "the variable URL is not set.",
        "the variable MODEL is not set.",
        "the variable PORT is not set.",
    ]


def test_a_wrong_value_from_the_environment_is_not_quoted(home: Home):
    error = home.refuse("server: {port: ${PORT}}\nlogging: {level: ${LEVEL}}", PORT="not-a-port", LEVEL="inof")
    assert "not-a-port" not in error.explain()
    assert "'${LEVEL}' is not possible here" in error.message


def test_a_link_does_not_lead_out_of_the_agent_folder(home: Home, tmp_path: Path):
    home.add_file("secret.md", "out")
    home.add_file("agents/a/IDENTITY.md", "in")
    (tmp_path / "agents/a/out.md").symlink_to(tmp_path / "secret.md")
    assert "outside" in home.refuse("agents: {a: {persona: [out.md]}}").message


def test_a_persona_file_that_is_too_large_or_no_text_is_refused(home: Home):
    home.add_file("agents/a/big.md", "x" * 70_000)
    (home.path / "agents/a/binary.md").write_bytes(b"\xff\xfe")
    error = home.refuse("agents: {a: {persona: [big.md, binary.md]}}")
    assert "larger than 64 KiB" in error.message
    assert "cannot be read" in error.message


def test_a_file_with_the_other_ending_is_not_passed_over(home: Home):
    home.add_file("denizen.yml", "server: {}")
    with pytest.raises(Exception, match="not read") as caught:
        home.load()
    assert "Rename it to denizen.yaml" in str(getattr(caught.value, "fix", ""))


def test_bytes_that_are_no_text_and_characters_that_yaml_does_not_know_are_refused(home: Home):
    home.config.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Exception, match="cannot be read"):
        home.load()
    assert "not YAML" in home.refuse("a: \x00\n").message
    assert "private Unicode" in home.refuse("server: {}\nlogging: \uf101\n").message


@pytest.mark.parametrize(
    "text",
    [
        "tools: {weather: {a: " + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1) + "}}",
        "tools: {weather: {a: " + "[" * 500 + "}}",
        "tools: {weather: &a [*a]}",
        "x: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(f"y{n}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 10)}]\n" for n in range(8)),
    ],
    ids=["deep", "very deep", "cycle", "bomb"],
)
def test_a_file_that_multiplies_or_nests_without_end_is_refused(home: Home, text: str):
    home.refuse(text)


def test_an_unreadable_file_says_so(home: Home, tmp_path: Path):
    home.config.mkdir()
    with pytest.raises(Exception, match="cannot be read"):
        home.load()

"""MCP servers in the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.adapters.mcp import HttpTransport, McpDataFlow, McpServerSpec, McpToolPolicy, StdioTransport
from denizen.app.home.environment import read_environment
from denizen.app.settings import render_settings
from denizen.app.toolsets import read_servers
from denizen.domain.tool import Taint, Tier
from tests.app.home_folder import Home

SEARCHED = (("PATH", read_environment()["PATH"]),)
"""Programs beside this Python are found too."""


def servers(text: str) -> str:
    return "mcp:\n  servers:\n" + "".join(f"    {line}\n" for line in text.splitlines())


def test_by_default_there_are_no_mcp_servers(home: Home):
    assert read_servers(home.load("")) == {}


@pytest.mark.proves("L-config-mcp", "L6")
def test_a_program_is_a_command_with_arguments_and_an_environment_and_has_six_minutes_for_a_call(home: Home):
    found = read_servers(home.load(servers("git.hub: {command: uvx, args: [mcp-server-git], env: {A: b}}")))
    env = (*SEARCHED, ("A", "b"))
    spec = McpServerSpec("git.hub", StdioTransport("uvx", ("mcp-server-git",), home.path, env), start_timeout_s=30.0)
    assert found == {spec: McpToolPolicy("git_hub", ("*",), (), trusted=False, timeout_s=360.0)}


def test_every_key_of_a_server_is_read_in_the_order_of_the_file(home: Home):
    text = """\
files: {command: node, cwd: data, tools: [read_*], tiers: {read_file: 0, "*": 2}, prefix: "", trusted: true}
far: {url: "https://mcp.example/mcp", headers: {X-Team: blue}, timeout_s: 5, start_timeout_s: 7, prefix: web}
off: {command: nothing, enabled: false}
"""
    found = read_servers(home.load(servers(text)))
    assert found == {
        McpServerSpec("files", StdioTransport("node", (), home.path / "data", SEARCHED)): McpToolPolicy(
            "", ("read_*",), (("read_file", Tier.HARMLESS), ("*", Tier.SENSITIVE)), trusted=True, reserved=("web_",)
        ),
        McpServerSpec("far", HttpTransport("https://mcp.example/mcp", (("X-Team", "blue"),)), 7.0): McpToolPolicy(
            "web", timeout_s=5.0
        ),
    }
    assert [spec.name for spec in found] == ["files", "far"]


def test_the_owner_says_for_some_tools_what_they_let_in_and_send(home: Home):
    text = "crm: {url: 'https://crm.example/mcp', flows: {get_*: {reads: [mail]}, send: {destinations: [to]}}}"
    (offer,) = read_servers(home.load(servers(text))).values()
    assert offer.find_flow("get_mail") == McpDataFlow(reads=(Taint.MAIL,))
    assert offer.find_flow("send") == McpDataFlow(destinations=("to",))
    assert offer.find_flow("delete") == McpDataFlow()


def test_names_that_belong_to_another_server_are_reserved_for_it(home: Home):
    text = "git: {command: a}\ngit_hub: {command: b}\ngitea: {command: c}\nany: {command: d, prefix: ''}\n"
    text += "git_off: {command: e, enabled: false}"
    found = read_servers(home.load(servers(text)))
    assert {spec.name: offer.reserved for spec, offer in found.items()} == {
        "git": ("git_hub_",),
        "git_hub": (),
        "gitea": (),
        "any": ("git_", "git_hub_", "gitea_"),
    }


@pytest.mark.proves("LW4")
def test_secrets_come_from_variables_are_shown_as_such_and_are_masked(home: Home):
    text = servers("""\
near: {command: node, env: {API_KEY: "${TOOL_KEY}"}}
far: {url: "https://mcp.example/mcp", headers: {Authorization: "Bearer ${FAR_TOKEN}"}}
other: {command: node}
""")
    settings = home.load(text, TOOL_KEY="tool-key-value", FAR_TOKEN="far-token-value")
    near, far, other = (spec.transport for spec in read_servers(settings))
    assert isinstance(other, StdioTransport) and other.env == SEARCHED, "of another server it sees nothing"
    assert isinstance(near, StdioTransport) and near.env == (*SEARCHED, ("API_KEY", "tool-key-value"))
    assert isinstance(far, HttpTransport) and far.headers == (("Authorization", "Bearer far-token-value"),)
    assert settings.secrets.mask("tool-key-value and far-token-value") == "*** and ***"
    shown = render_settings(settings)
    assert "${TOOL_KEY}" in shown and "Bearer ${FAR_TOKEN}" in shown
    assert "token-value" not in shown + repr(near) + repr(far)
    assert "key-value" not in shown + repr(near)


@pytest.mark.proves("L-config-required")
def test_a_secret_in_the_file_is_refused_and_a_variable_that_is_missing_too(home: Home):
    told = home.refuse(servers("near: {command: node, env: {API_KEY: plain-text}}")).explain()
    assert "plain-text" not in told and "mcp.servers.near.env.API_KEY" in told
    told = home.refuse(servers('near: {command: node, env: {A: "${NOT_SET}"}}')).explain()
    assert "the variable NOT_SET is not set" in told


def test_a_server_that_is_off_needs_no_variable(home: Home):
    settings = home.load(servers('near: {command: node, env: {A: "${NOT_SET}"}, enabled: false}'))
    assert read_servers(settings) == {}
    assert "nothing uses this yet" in settings.warnings[0].message


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ("{}", "needs either command or url"),
        ("{command: node, url: 'http://x.example/'}", "needs either command or url"),
        ("{url: 'http://x.example/', args: [a]}", "does not go together with url"),
        ("{command: node, headers: {A: b}}", "does not go together with command"),
        ("{command: node, envs: {A: b}}", "envs"),
        ("{command: node, env: {'A B': c}}", "cannot be a variable"),
        ("{url: 'http://x.example/', headers: {'A': \"b\\nc\"}}", "a plain name and one line"),
        ("{url: 'ftp://x.example/'}", "must be a web address"),
        ("{command: node, tiers: {a: 4}}", "tiers"),
        ("{command: node, prefix: 'a b'}", "cannot stand in front of names"),
        ("{command: node, timeout_s: 0}", "timeout_s"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_reason(home: Home, server: str, told: str):
    assert told in home.refuse(servers(f"near: {server}")).explain()


def test_two_servers_may_not_share_the_names_of_their_tools(home: Home):
    told = home.refuse(servers("a.b: {command: node}\na_b: {command: node}")).explain()
    assert "same names for their tools" in told


@pytest.mark.proves("L-config-cache-ttl")
def test_how_long_results_are_kept_is_a_setting_of_30_minutes(home: Home):
    assert home.load("").gate.policy().results.keep_s == 30 * 60
    assert home.load("gate: {keep_results_minutes: 0.5}").gate.policy().results.keep_s == 30
    assert "keep_results_minutes" in home.refuse("gate: {keep_results_minutes: -1}").explain()


def test_folders_are_below_the_home_folder_unless_they_say_otherwise(home: Home):
    found = read_servers(home.load(servers("a: {command: x, cwd: /srv}\nb: {command: x, cwd: .}")))
    assert [spec.transport.cwd for spec in found if isinstance(spec.transport, StdioTransport)] == [
        Path("/srv"),
        home.path,
    ]

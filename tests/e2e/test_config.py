"""A configuration that cannot be used stops a start, with file and line; a running server keeps the one it has."""

from __future__ import annotations

import signal
import socket
from dataclasses import replace

import pytest

from denizen.testing.model_server import ModelAnswer
from tests.e2e.home import Home, Server, get_completion_text
from tests.e2e.provider import Provider
from tests.timing import wait_until

pytestmark = pytest.mark.e2e

BROKEN = "models:\n  providers: {\nagents: {}\n"
UNKNOWN_KEY = "agents:\n  denizen:\n    modle: fast\n"
UNKNOWN_TOOL = "agents:\n  denizen:\n    tools: [calculater]\n"
NO_SUCH_ZONE = "tools:\n  time:\n    timezone: Mars/Phobos\n"
CLASH = "custom_tools:\n  calculator: {description: Counts., argv: [date]}\n"
UNSET = """\
models:
  providers:
    local: {kind: openai-compatible, base_url: "${NOWHERE}"}
  aliases: {balanced: local/x}
"""


@pytest.mark.proves("T-config-env", "T-config-validation")
@pytest.mark.parametrize("command", [("ask", "Hello"), ("run", "--port", "0"), ("config", "check")], ids=lambda c: c[0])
@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        pytest.param(BROKEN, 2, "fix: Close it with", id="broken"),
        pytest.param(UNKNOWN_KEY, 3, "fix: Did you mean 'model'?", id="unknown key"),
        pytest.param(UNSET, 3, "the variable NOWHERE is not set", id="unset variable"),
        pytest.param(UNKNOWN_TOOL, 3, "fix: Did you mean 'calculator'?", id="unknown tool"),
        pytest.param(NO_SUCH_ZONE, 2, "There is no time zone `Mars/Phobos`", id="no such zone"),
        pytest.param(CLASH, 2, "this is the name of a tool of the skill calculator", id="name clash"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused_with_file_and_line(
    command: tuple[str, ...], text: str, line: int, says: str, home: Home
) -> None:
    home.write(text)
    ended = home.do(*command)
    assert ended.ending == (2, "")
    assert ended.err.startswith(f"error: {home.config}:{line}:")
    assert says in ended.err
    assert "Traceback" not in ended.err


READING = (
    ("config", "show"),
    ("agents",),
    ("sessions",),
    ("models",),
    ("tools",),
    ("approvals", "list"),
    ("archive", "status"),
    ("memory", "list"),
    ("audit", "verify"),
    ("sources", "list"),
    ("docs", "search", "cats"),
    ("gaps",),
    ("usage",),
)
"""Commands that ask no model."""


@pytest.mark.proves("L-config-required")
def test_a_key_that_is_not_set_blocks_only_what_asks_a_model(home: Home, provider: Provider) -> None:
    home.write(UNSET.replace("${NOWHERE}", provider.server.openai_url).replace('"}', '", api_key: "${NO_KEY}"}'))
    ended = {command: home.do(*command) for command in READING}
    assert {command: each.err for command, each in ended.items() if each.code != 0} == {}
    for command in (("ask", "Hello"), ("run", "--port", "0"), ("config", "check"), ("doctor", "--offline")):
        refused = home.do(*command)
        assert refused.code == 2
        assert "the variable NO_KEY is not set." in refused.err + refused.out


@pytest.mark.proves("T-config-validation")
def test_the_check_asks_each_skill_about_its_own_settings(home: Home) -> None:
    home.write(
        "tools: {files: {allowd: [a]}, web: {x: 1}, questions: {enable: true}, "
        "browser: {enabled: true, origins: [docs.example]}, system: {enabled: false, x: 1}}\n"
    )
    checked = home.do("config", "check")
    assert checked.ending == (2, "")
    told = checked.err.replace(f"error: {home.config}:1:", "").splitlines()
    assert told[:6] == [
        "17: tools.files.allowd: the skill files has no setting `allowd`.",
        "fix: did you mean `allowed`?",
        "37: tools.web.x: the skill web has no settings.",
        "fix: remove it; `enabled` is all that it takes",
        "56: tools.questions.enable: the skill questions has no settings.",
        "fix: did you mean `enabled`?",
    ]
    assert told[6].endswith("tools.browser: a setting of the skill browser is wrong: 'docs.example' is no origin.")
    assert told[7].startswith("fix: Write scheme and host") and told[8:] == []


def generation(server: Server) -> int:
    return server.get("/health").body["generation"]


@pytest.mark.proves("T2", "T1", "T3", "TW11")
def test_a_running_server_takes_over_what_can_be_used_and_keeps_the_old_one_otherwise(
    home: Home, provider: Provider
) -> None:
    provider.script(*(ModelAnswer(text=f"{number}.") for number in range(3)))
    home.configure(provider.server.openai_url)
    with home.serve() as server:
        home.configure(provider.server.openrouter_url)
        wait_until(lambda: generation(server) == 2)
        home.write(BROKEN)
        said = server.running.err.await_text(r".*\[error.*configuration refused, the old one stays.*\n.*\n.*\n")
        head, problem, fix = said[0].splitlines()
        assert problem.startswith(f"    {home.config}:2:14: a `{{`")
        assert fix.startswith("    fix: ")
        assert "problems" not in head and "fix" not in head, "it is not said twice"
        home.config.write_text("")  # as editors do before they write
        emptied = r".*\[error.*configuration refused, the old one stays.*\n.*is empty or gone.*\n.*why: .*\n"
        first = server.running.err.await_text(emptied)
        home.config.unlink()
        server.running.err.await_text(emptied, after=first.end())
        assert generation(server) == 2
        assert get_completion_text(server.ask("Are you there?", key="m1")) == "0."
        assert home.do("ask", "--no-stream", "And in a terminal?").out == "1.\n"
        paths = {request.path for request in provider.requests}
        assert paths == {"/api/v1/chat/completions"}, "the model is that of the second configuration"
        home.configure(provider.server.openai_url)
        wait_until(lambda: generation(server) == 3)
        assert get_completion_text(server.ask("And now?", key="m2")) == "2."
        ended = server.running.stop(signal.SIGTERM)
    assert ended.code == 0
    errors = [line for line in ended.err.splitlines() if "[error" in line]
    assert (errors[0], len(errors)) == (head, 3)


@pytest.mark.proves("T-config-server")
def test_a_server_asks_for_the_configured_port_of_loopback(home: Home, provider: Provider) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        home.configure(provider.server.openai_url, rest=f"server: {{port: {port}}}\n")
        ended = home.do("run")
    assert (ended.code, ended.told[-3]) == (2, f"error: Denizen cannot listen on 127.0.0.1 port {port}.")


@pytest.mark.proves("TW3", "T-config-server")
def test_a_server_beyond_loopback_does_not_start_with_neither_a_key_nor_pages(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest="server: {host: 0.0.0.0}\nchannels: {web: {enabled: false}}\n")
    refused = home.do("run", "--port", "0")
    assert (refused.code, "server.api_keys" in refused.err) == (2, True)


@pytest.mark.proves("TW3")
def test_a_server_beyond_loopback_lets_nobody_in_when_its_keys_are_gone(home: Home, provider: Provider) -> None:
    home.variables["CI_KEY"] = key = "a-long-key-of-the-continuous-integration"
    keys = 'api_keys: [{name: ci, key: "${CI_KEY}"}]'
    home.configure(provider.server.openai_url, rest=f"server: {{host: 0.0.0.0, {keys}}}\n")
    with home.serve(token=key) as server:
        stranger = replace(server, token="")
        assert (server.get("/api/agents").status, stranger.get("/api/agents").status) == (200, 401)
        home.configure(provider.server.openai_url)
        wait_until(lambda: server.get("/api/agents").status == 401)
        assert stranger.get("/api/agents").status == 401


def test_a_home_folder_that_is_moved_while_it_is_used_is_told_until_it_is_back(home: Home, provider: Provider) -> None:
    provider.script(ModelAnswer(text="Yes."))
    home.configure(provider.server.openai_url)
    elsewhere = home.folder.with_name("elsewhere")
    with home.serve() as server:
        home.folder.rename(elsewhere)
        server.running.err.await_text(
            rf"configuration refused.*\n.*{home.folder} was moved or removed.*\n.*why.*\n.*start it with --home"
        )
        elsewhere.rename(home.folder)
        home.configure(provider.server.openai_url, rest="default_agent: denizen\n")
        wait_until(lambda: generation(server) == 2)
        assert get_completion_text(server.ask("Are you there?", key="m1")) == "Yes."

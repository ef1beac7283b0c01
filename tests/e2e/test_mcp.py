"""MCP servers from the outside: a model uses their tools, commands tell how they fare, and all end together."""

from __future__ import annotations

import signal
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import DiscordDeployment
from tests.e2e.home import Home
from tests.e2e.provider import Provider

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("mcp")]

SMALL = Path(__file__).parent.parent / "adapters" / "mcp" / "quick_server.py"
SERVERS = f"""\
mcp:
  servers:
    small:
      command: {sys.executable}
      args: [{SMALL}]
      env: {{STARTS: starts.txt, TOOL_KEY: "${{TOOL_KEY}}"}}
      trusted: true
      tools: [pid, roll, environment, fail]
    broken: {{command: no-such-program}}
    off: {{command: node, enabled: false}}
"""


@pytest.fixture
def mcp_home(home: Home, provider: Provider) -> Home:
    """A home with one server that works, one that does not, and one that is off."""
    home.variables |= {"TOOL_KEY": "tool-key-value", "OPENAI_API_KEY": "sk-not-for-servers"}
    home.configure(provider.server.openai_url, rest=SERVERS)
    return home


@pytest.mark.proves("L6", "LW5", "LW4", "L-config-mcp")
def test_a_model_uses_the_tool_of_a_server_while_another_one_is_broken(mcp_home: Home, provider: Provider) -> None:
    provider.script(
        ModelAnswer(calls=[ModelCall("small_environment", {}, id="c1")]), ModelAnswer(text="It sees little.")
    )
    asked = mcp_home.do("ask", "What does it see?")
    assert asked.ending == (0, "It sees little.\n")
    first, second = provider.server.bodies
    assert {"small_pid", "small_roll"} <= {tool["function"]["name"] for tool in first["tools"]}
    [result] = [message["content"] for message in second["messages"] if message["role"] == "tool"]
    assert "TOOL_KEY" in result and "OPENAI_API_KEY" not in result


@pytest.mark.proves("LW2", "L-result-cache", "LW5", "LW3")
def test_a_kept_result_answers_another_turn(mcp_home: Home, provider: Provider) -> None:
    roll = ModelAnswer(calls=[ModelCall("small_roll", {"sides": 6}, id="c1")])
    provider.script(roll, ModelAnswer(text="One."), roll, ModelAnswer(text="Two."))
    with mcp_home.serve() as server:
        for number in "12":
            server.ask("Roll", key=number)
    results = [
        message["content"].partition("\n")[0]
        for body in provider.server.bodies
        for message in body["messages"]
        if message["role"] == "tool"
    ]
    assert len(results) >= 2 and len(set(results)) == 1
    assert (mcp_home.folder / "starts.txt").read_text().split() == ["start"]


@pytest.mark.anyio
@pytest.mark.proves("L11")
async def test_an_interrupt_closes_the_servers_the_store_and_the_connection_to_discord(
    deployment: DiscordDeployment,
) -> None:
    deployment.home.variables["TOOL_KEY"] = "tool-key-value"
    deployment.configure(rest=SERVERS)
    async with deployment.run() as denizen:
        process = psutil.Process(denizen.server.running.pid)
        started = partial(find_children, process)
        await deployment.until(started)
        [child] = started()
        presence = deployment.ada.user.presence
        assert presence is not None and presence.status == "online"
        denizen.signal(signal.SIGINT)
        ended = await denizen.finish()
    assert (ended.code, ended.told[-1]) == (0, "Stopped.")
    assert not psutil.pid_exists(child.pid)
    # A connection that is merely lost could be resumed, and a store that is merely left keeps its write-ahead log.
    presence = deployment.ada.user.presence
    assert presence is not None and presence.status == "offline"
    assert not list(deployment.home.folder.glob("denizen.db-*"))


def find_children(process: psutil.Process) -> list[psutil.Process]:
    return [child for child in process.children() if str(SMALL) in child.cmdline()]


def test_commands_tell_how_the_servers_fare(mcp_home: Home) -> None:
    listed = mcp_home.do("mcp", "list")
    assert listed.code == 4
    assert listed.out.splitlines() == [
        "off   off",
        "ok    small: small 1.2.3, 4 tools",
        "FAIL  broken: there is no program or folder 'no-such-program'",
        "      fix: Run its command by hand and read what it says; check command, args, env and cwd below mcp.servers.",
    ]
    assert listed.err == "", "what the lines say is not in the log too"
    tested = mcp_home.do("mcp", "test", "small", "--schema")
    assert (tested.code, tested.err) == (0, "")
    assert "small 1.2.3 answers." in tested.out
    assert "small_roll" in tested.out and '"sides"' in tested.out
    off = mcp_home.do("mcp", "test", "off")
    assert off.code == 2 and "It is switched off" in off.err
    broken = mcp_home.do("mcp", "test", "broken")
    assert broken.code == 4 and "The MCP server 'broken' cannot be reached." in broken.err


def test_the_doctor_looks_at_every_server(mcp_home: Home) -> None:
    examined = mcp_home.do("doctor", "--offline")
    assert examined.code == 4
    assert "ok    mcp server small: small 1.2.3 answers, 4 tools" in examined.out
    assert "FAIL  mcp server broken" in examined.out
    assert "broken" not in examined.err


def test_a_server_that_was_installed_with_denizen_is_found_though_the_path_does_not_name_it(
    home: Home, provider: Provider
) -> None:
    home.variables["PATH"] = "/usr/bin:/bin"
    home.configure(provider.server.openai_url, rest="mcp: {servers: {box: {command: denizen-mcp-toolbox}}}\n")
    told = home.do("mcp", "test", "box")
    assert told.code == 0, told.err
    assert "box_current_time" in told.out

"""Skills of an owner in a running server: taken up, and off when they change; and a restart that a tool asks for."""

from __future__ import annotations

import pytest

from denizen.testing.model_server import ModelAnswer
from denizen.testing.model_wire import ModelCall
from tests.e2e.home import Home, Server, get_completion_text
from tests.e2e.provider import Provider
from tests.timing import wait_until

pytestmark = pytest.mark.e2e


def tools(server: Server) -> list[str]:
    return [str(row["name"]) for row in server.get("/api/tools").body]


@pytest.mark.proves("V-skill-loading", "VW6", "V3")
def test_a_running_server_takes_up_a_skill_that_is_enabled_and_drops_one_that_changes(
    home: Home, provider: Provider
) -> None:
    home.configure(provider.server.openai_url)
    assert home.do("skill", "new", "dice").code == 0
    with home.serve() as server:
        assert "dice_roll" not in tools(server)
        assert home.do("skill", "enable", "dice", "--yes").code == 0
        wait_until(lambda: "dice_roll" in tools(server))
        with (home.folder / "skills" / "dice" / "skill.py").open("a", encoding="utf-8") as stream:
            stream.write("# changed\n")
        said = server.running.err.await_text(r".*skill left out.*\n")[0]
        assert "denizen skill enable dice" in said
        wait_until(lambda: "dice_roll" not in tools(server))


@pytest.mark.proves("V-skill-system")
def test_a_restart_begins_the_same_command_anew_and_loses_no_turn(home: Home, provider: Provider) -> None:
    rest = "    tools: [restart_denizen]\ntools: {system: {enabled: true}}\ngate: {tiers: {restart_denizen: 1}}\n"
    home.configure(provider.server.openai_url)
    home.write(home.config.read_text(encoding="utf-8").replace("  denizen: {}\n", "  denizen:\n" + rest))
    provider.script(
        ModelAnswer(calls=[ModelCall("restart_denizen")]),
        ModelAnswer(text="Back in a moment."),
        ModelAnswer(text="Here again."),
    )
    with home.serve() as server:
        assert get_completion_text(server.ask("Restart, please.", key="m1")) == "Back in a moment."
        url = server.running.err.await_text(r"Restarting\.\n(?:.*\n)*?Denizen is ready: (http://\S+)\n")[1]
        again = Server(server.running, url)
        assert get_completion_text(again.ask("Are you there?", key="m2")) == "Here again."

"""What the command line chooses, and the sessions that it lists."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

import pytest

from denizen.testing.model_server import ModelAnswer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.e2e

TWO = "  scribe: {description: Takes notes.}\n"


@pytest.mark.proves("T-cli-options", "T-config-server", "V27")
def test_the_command_line_chooses_and_lists_agents_and_sessions(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest=TWO)  # the home, and with it the configuration, is --home
    assert home.do("sessions").ending == (0, "There are no sessions.\n")
    agents = home.do("agents").out
    assert ("* denizen" in agents, "  scribe" in agents) == (True, True)

    provider.script(*(ModelAnswer(text=f"Answer {number}.") for number in range(5)))
    assert home.do("ask", "--no-stream", "This stands alone.").out == "Answer 0.\n"
    for agent, session in (("denizen", "work"), ("scribe", "work"), ("denizen", "work")):
        asked = home.do("ask", "--agent", agent, "--session", session, "--json", "And now?")
        assert json.loads(asked.out)["answer"].startswith("Answer")
    assert "Answer 4." in home.do("chat", "--session", "main", stdin="Hello?\n/quit\n").out

    told = home.do("sessions").out.splitlines()
    assert [line[18:] for line in told] == [
        "agent    platform  channel  name  messages",
        "denizen  terminal  chat     main  2",
        "denizen  terminal  ask      work  4",
        "scribe   terminal  ask      work  2",
    ]
    assert told[0].startswith("last message ")
    newest = home.do("sessions", "--limit", "1")
    assert newest.out.splitlines() == [told[0], told[1]]
    assert "There are more" in newest.err
    (of_scribe,) = (json.loads(line) for line in home.do("sessions", "--agent", "scribe", "--json").out.splitlines())
    assert (of_scribe["platform"], of_scribe["channel"], of_scribe["name"]) == ("terminal", "ask", "work")
    assert home.do("sessions", "--platform", "web").out == "There are no sessions.\n"
    assert [len(body["messages"]) > 3 for body in provider.server.bodies] == [False, False, False, True, False]

    with home.serve() as server:  # `run --port 0`
        assert server.url.startswith("http://127.0.0.1:") and not server.url.endswith(":8650")
        assert server.get("/api/agents").status == 200
        with pytest.raises(OSError, match="refused"):  # another address of this machine
            socket.create_connection(("127.0.0.2", urlsplit(server.url).port or 0), HANG_LIMIT_S)

"""The built-in model, on weights that are small enough for a test: what it says does not matter here."""

from __future__ import annotations

import json
import urllib.request

import pytest

from tests.e2e.home import Home, Server, get_completion_text
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.e2e

SMALL = """\
models:
  providers: {builtin: {kind: embedded, model: smollm2-135m-instruct}}
  aliases: {balanced: builtin/default}
"""


@pytest.mark.proves("P6")
def test_a_question_in_a_fresh_home_is_answered_without_key_server_or_configuration(home: Home) -> None:
    asked = home.do("ask", "--json", "--provider", "embedded", "--model", "smollm2-135m-instruct", "Say hello.")
    assert asked.code == 0, asked.err
    said = json.loads(asked.out)
    assert said["status"] == "done"
    assert said["answer"].strip()
    assert said["usage"]["output_tokens"] > 0


@pytest.mark.proves("P6", "V1")
def test_a_home_without_configuration_is_served_at_once_and_nobody_is_asked(home: Home) -> None:
    with home.start_in_terminal("run", "--port", "0") as running:
        running.type("\x04")  # a question would end the process
        server = Server(running, running.out.await_text(r"Denizen is ready: (http://\S+)")[1])
        with urllib.request.urlopen(server.url, timeout=HANG_LIMIT_S) as page:
            assert (page.status, page.headers.get_content_type()) == (200, "text/html")
        assert server.get("/health").body["provider"] == "builtin"
    assert (home.folder / "denizen.db").read_bytes().startswith(b"SQLite format 3")
    assert not home.config.exists()


@pytest.mark.proves("P6")
def test_one_command_serves_an_agent_on_the_built_in_model_with_a_page_and_a_database(home: Home) -> None:
    home.write(SMALL)
    with home.serve() as server:
        with urllib.request.urlopen(server.url, timeout=HANG_LIMIT_S) as page:
            assert (page.status, page.headers.get_content_type()) == (200, "text/html")
        assert get_completion_text(server.ask("Say hello.", key="m1")).strip()
        assert server.get("/health").body["provider"] == "builtin"
    assert (home.folder / "denizen.db").read_bytes().startswith(b"SQLite format 3")

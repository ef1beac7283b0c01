"""The browser as agents have it: a page of a turn, closed with the turn."""

from __future__ import annotations

import json
from contextlib import suppress

import psutil
import pytest

from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.home import Home, get_completion_text
from tests.e2e.provider import Provider
from tests.local_server import serve
from tests.timing import wait_until
from tests.web.browser.browser import find_chromium

pytestmark = pytest.mark.e2e

PAGE = "<title>Shop</title><p>{words}</p><form action='/found'><input name='q'><button>Go</button></form>"
FOUND = "<title>Found</title><p id='there'>Tea costs 3.</p>"
CONFIG = """\
tools:
  browser: {{enabled: true, origins: ["http://{address}"], program: "{program}", sandbox: false}}
gate:
  rules:
  - {{tool: browser, action: approve}}
"""


def act(action: str, **args: str) -> ModelAnswer:
    return ModelAnswer(calls=[ModelCall("browser", {"action": action, **args})])


def list_browsers(pid: int) -> list[str]:
    """Returns the names of the browser's processes below that one; those that end meanwhile are none."""
    found: list[str] = []
    for each in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found.append(each.name())
    return [name for name in found if "chrom" in name]


@pytest.mark.proves("T-tool-browser", "TW19-browser")
def test_an_agent_uses_a_page_as_people_do_and_it_is_gone_with_the_turn(home: Home, provider: Provider) -> None:
    words = "x" * 5000
    with serve(
        {
            "/": lambda exchange: exchange.say(PAGE.format(words=words), kind="text/html"),
            "/found": lambda exchange: exchange.say(FOUND, kind="text/html"),
        }
    ) as site:
        home.configure(provider.server.openai_url, rest=CONFIG.format(address=site.address, program=find_chromium()))
        provider.script(
            act("navigate", url=site.url("/")),
            act("type", selector="[name=q]", text="tea"),
            act("click", selector="text=Go"),
            act("wait", selector="#there"),
            act("screenshot"),
            act("back"),
            ModelAnswer(text="It costs 3."),
            act("text"),
            ModelAnswer(text="There is no page."),
        )
        with home.serve() as server:
            answered = server.ask("What does tea cost?", key="k1")
            assert get_completion_text(answered) == "It costs 3."
            [picture] = answered.body["choices"][0]["message"]["images"]
            assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
            results = [
                message["content"] for message in provider.server.bodies[-1]["messages"] if message["role"] == "tool"
            ]
            assert len(results) == 6
            assert "x" * 3990 in results[0]
            assert "x" * 4001 not in results[0]
            assert "these are its first 4000 characters" in results[0]
            assert all("Tea costs 3." in each for each in results[2:5])
            assert "<untrusted source=" in results[2]
            assert "Shop" in results[5]
            wait_until(lambda: not list_browsers(server.running.pid))
            assert get_completion_text(server.ask("And now?", key="k2")) == "There is no page."
            assert "No page is open" in json.dumps(provider.server.bodies[-1])


def test_by_default_people_are_asked_before_a_page_is_used(home: Home, provider: Provider) -> None:
    with serve({"/": lambda exchange: exchange.say(FOUND, kind="text/html")}) as site:
        config = CONFIG.format(address=site.address, program=find_chromium()).partition("gate:")[0]
        home.configure(provider.server.openai_url, rest=config)
        provider.script(act("navigate", url=site.url("/")), ModelAnswer(text="I may not."))
        assert home.do("ask", "What does tea cost?").out == "I may not.\n"
        assert site.requests == []


def test_what_is_no_origin_is_refused_with_the_configuration(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest="tools: {browser: {enabled: true, origins: [docs.example]}}\n")
    done = home.do("config", "check")
    assert done.code != 0
    assert "is no origin" in done.err

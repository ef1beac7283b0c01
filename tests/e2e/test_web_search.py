"""Searching the web from `denizen ask`: the key comes from `secrets.env` and reaches the search service only."""

from __future__ import annotations

import json

import pytest

from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.local_server import Exchange, serve

pytestmark = pytest.mark.e2e

KEY = "BSA-key-of-a-test"
FOUND = {"web": {"results": [{"title": "Tea", "url": "https://tea.example", "description": "All about tea."}]}}


def answer(exchange: Exchange) -> None:
    exchange.say(json.dumps(FOUND), kind="application/json")


def answer_searxng(exchange: Exchange) -> None:
    row = {"title": "Tea", "url": "https://tea.example", "content": "All about tea."}
    exchange.say(json.dumps({"results": [row]}), kind="application/json")


@pytest.mark.proves("T-tool-web-search", "V-skill-utility", "T-config-tools")
def test_what_was_found_reaches_the_model_with_its_source_and_the_key_nobody_but_the_service(
    home: Home, provider: Provider
) -> None:
    with serve({"/web/search": answer}) as service:
        search = f"{{provider: brave, api_key: '${{BRAVE_API_KEY}}', base_url: '{service.url('')}'}}"
        home.configure(f"{provider.server.url}/v1", rest=f"tools: {{web_search: {search}}}\n")
        secrets = home.folder / "secrets.env"
        kept = secrets.read_text() if secrets.exists() else ""
        secrets.write_text(f"{kept}BRAVE_API_KEY={KEY}\n")
        secrets.chmod(0o600)
        provider.script(
            ModelAnswer(calls=(ModelCall("web_search", {"query": "tea"}),)), ModelAnswer(text="See tea.example.")
        )
        asked = home.do("ask", "--no-stream", "what is tea?")
        shown = home.do("config", "show")
        trace = home.do("trace", "--last")
    assert asked.code == 0, asked.err
    assert "See tea.example." in asked.out
    assert service.requests[0].headers["x-subscription-token"] == KEY
    assert "https://tea.example" in json.dumps(provider.server.bodies[-1])
    for text in (asked.out, asked.err, shown.out, shown.err, trace.out, json.dumps(provider.server.bodies)):
        assert KEY not in text
    assert "BRAVE_API_KEY" in shown.out


@pytest.mark.proves("S14")
def test_it_stands_beside_the_shell_over_the_documents_which_the_model_is_told_to_search_first(
    home: Home, provider: Provider
) -> None:
    with serve({"/search": answer_searxng}) as service:
        search = f"{{provider: searxng, base_url: '{service.url('')}'}}"
        home.configure(provider.server.openai_url, rest=f"tools: {{web_search: {search}}}\n")
        (home.folder / "knowledge").mkdir()
        (home.folder / "knowledge" / "tea.md").write_text("Tea is at five.\n", encoding="utf-8")
        if "bash" not in home.do("tools").out:
            pytest.skip("nothing shuts programs in here")
        provider.script(
            ModelAnswer(calls=(ModelCall("bash", {"command": "cat shared/tea.md"}),)),
            ModelAnswer(calls=(ModelCall("web_search", {"query": "tea"}),)),
            ModelAnswer(text="At five, and it is a plant."),
        )
        assert home.do("ask", "--no-stream", "What about tea?").ending == (0, "At five, and it is a plant.\n")
    first, second, third = provider.server.bodies
    tools = {tool["function"]["name"]: tool["function"]["description"] for tool in first["tools"]}
    assert {"bash", "bash_batch", "web_search"} <= set(tools)
    assert "Search your knowledge files first" in tools["web_search"]
    assert "your knowledge files" in tools["bash"]
    assert "Tea is at five." in second["messages"][-1]["content"]
    told = third["messages"][-1]["content"]
    assert "1. Tea\nhttps://tea.example\nAll about tea." in told

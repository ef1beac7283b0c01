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

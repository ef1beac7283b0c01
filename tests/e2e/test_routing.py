"""An agent whose model is chosen for the question, asked as the web chat asks."""

from __future__ import annotations

import json

import pytest

from denizen.testing.model_server import ModelAnswer
from denizen_sdk import DenizenClient
from tests.e2e.home import Home
from tests.e2e.provider import Provider

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

CONFIG = """\
models:
  providers:
    local: {{kind: openai-compatible, base_url: "{url}"}}
  aliases: {{cheap: local/router, fast: local/small, balanced: local/middle, quality: local/large}}
agents:
  denizen: {{model: auto}}
"""


@pytest.mark.proves("SW5", "S1")
async def test_a_chat_on_the_web_is_answered_by_the_model_that_was_chosen(home: Home, provider: Provider) -> None:
    home.write(CONFIG.format(url=provider.server.openai_url))
    route = {"complexity": "complex", "max_steps": 25, "model": "quality", "reason": "a crash to find"}
    provider.script(ModelAnswer(text=json.dumps(route)), ModelAnswer(text="A null."))
    with home.serve() as server:
        async with DenizenClient(server.url) as client:
            answer = await client.ask("Why does it crash?")
    assert answer.reply == "A null."
    assert [body["model"] for body in provider.server.bodies] == ["router", "large"]

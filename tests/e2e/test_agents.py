"""Several agents on one server: each has the model, the endpoint and the key that its configuration names."""

from __future__ import annotations

import pytest

from denizen.testing.model_server import ModelAnswer
from tests.e2e.home import Home, get_completion_text
from tests.e2e.provider import Provider

pytestmark = pytest.mark.e2e

CONFIG = """\
models:
  providers:
    first: {{kind: openai-compatible, base_url: "{first}", api_key: "${{FIRST_KEY}}"}}
    second: {{kind: openai-compatible, base_url: "{second}", api_key: "${{SECOND_KEY}}"}}
    dead: {{kind: openai-compatible, base_url: "http://127.0.0.1:9/v1"}}
  aliases:
    balanced: second/reads
    sturdy: {{model: dead/never, fallbacks: [dead/too, first/sees, second/reads]}}
  overrides:
    first/sees: {{images: true}}
    dead/never: {{images: true}}
    dead/too: {{images: true}}
    second/reads: {{images: false}}
agents:
  painter: {{model: first/sees}}
  writer: {{model: balanced}}
  survivor: {{model: sturdy}}
default_agent: painter
"""
PIXEL = "data:image/png;base64,iVBORw0KGgo="
PICTURE = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]


@pytest.mark.proves("C23", "C-config-endpoint", "TW5", "T-config-agent-defaults")
def test_each_agent_has_its_own_endpoint_key_and_fallbacks_and_gets_pictures_only_if_its_model_takes_them(
    home: Home, provider: Provider
) -> None:
    home.variables |= {"FIRST_KEY": "first-key", "SECOND_KEY": "second-key"}
    home.write(CONFIG.format(first=provider.server.openai_url, second=provider.server.openrouter_url))
    provider.script(*(ModelAnswer(text=text) for text in ("A cat.", "I cannot see it.", "Still a cat.")))
    with home.serve() as server:
        answers = [server.ask(PICTURE, key=name, agent=name) for name in ("painter", "writer", "survivor")]
    assert [get_completion_text(answer) for answer in answers] == ["A cat.", "I cannot see it.", "Still a cat."]
    asked = [(r.path, r.headers["authorization"], r.body["model"], PIXEL in str(r.body)) for r in provider.requests]
    assert asked == [
        ("/v1/chat/completions", "Bearer first-key", "sees", True),
        ("/api/v1/chat/completions", "Bearer second-key", "reads", False),
        ("/v1/chat/completions", "Bearer first-key", "sees", True),
    ]


GROK = """\
models:
  providers:
    grok: {{kind: xai, base_url: "{url}", api_key: "${{KEY}}"}}
agents:
  denizen: {{model: grok/grok-4-fast{sampling}, limits: {{max_output_tokens: 8192}}}}
"""


@pytest.mark.proves("L-config-model", "X-temperature")
@pytest.mark.parametrize(("sampling", "temperature"), [("", None), (", sampling: {temperature: 1.0}", 1.0)])
def test_an_xai_model_has_name_base_url_temperature_and_output_limit(
    sampling: str, temperature: float | None, home: Home, provider: Provider
) -> None:
    home.variables["KEY"] = "xai-key"
    home.write(GROK.format(url=provider.server.openai_url, sampling=sampling))
    provider.script(ModelAnswer(text="Hello."))
    assert home.do("ask", "--no-stream", "Hello?").out == "Hello.\n"
    (asked,) = provider.requests
    limits = {asked.body.get(name) for name in ("max_tokens", "max_completion_tokens")}
    assert (asked.path, asked.headers["authorization"]) == ("/v1/chat/completions", "Bearer xai-key")
    assert (asked.body["model"], asked.body.get("temperature")) == ("grok-4-fast", temperature)
    assert 8192 in limits

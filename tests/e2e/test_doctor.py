"""`denizen doctor`: what does not work is said, and is the exit code."""

from __future__ import annotations

import pytest

from denizen.testing.model_server import FailedAnswer, ModelAnswer
from tests.e2e.home import Home
from tests.e2e.provider import Provider

pytestmark = pytest.mark.e2e

ALIAS = """\
models:
  providers:
    dead: {{kind: openai-compatible, base_url: "http://127.0.0.1:9/v1"}}
    live: {{kind: openai-compatible, base_url: "{url}"}}
  aliases: {{balanced: {{model: {model}, fallbacks: [{fallback}]}}}}
"""


def test_a_primary_that_is_dead_fails_although_its_fallback_answers(home: Home, provider: Provider) -> None:
    provider.script(ModelAnswer(text="OK"))
    home.write(ALIAS.format(url=provider.server.openai_url, model="dead/x", fallback="live/y"))
    done = home.do("doctor")
    assert done.code == 4
    assert "FAIL  model balanced\n      The provider 'dead' cannot be reached." in done.out
    assert "ok    fallback live/y: live/y answers" in done.out


def test_a_fallback_that_does_not_answer_is_a_warning(home: Home, provider: Provider) -> None:
    provider.script(ModelAnswer(text="OK"), FailedAnswer(401))
    home.write(ALIAS.format(url=provider.server.openai_url, model="live/y", fallback="live/z"))
    done = home.do("doctor")
    assert done.code == 0
    assert "ok    model balanced: live/y answers" in done.out
    assert "warn  fallback live/z\n" in done.out

"""One agent gives tasks to another: configured as an owner does, and killed in the middle."""

from __future__ import annotations

import signal
from contextlib import closing

import pytest

from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall
from tests.e2e.home import Home
from tests.e2e.home import get_completion_text as said
from tests.e2e.provider import Provider
from tests.e2e.records import read_turns

pytestmark = pytest.mark.e2e

CONFIG = """\
models:
  providers:
    local: {{kind: openai-compatible, base_url: "{url}"}}
  aliases: {{balanced: local/scripted}}
agents:
  denizen: {{delegates_to: [bob]}}
  bob: {{description: Keeps notes}}
default_agent: denizen
"""
NOTE = "agents/bob/notes/shopping.md"
TAKE_NOTE = ModelAnswer(calls=[ModelCall("append_note", {"name": "shopping", "text": "- milk"})])


def hand_on(task: str, **more: object) -> ModelAnswer:
    return ModelAnswer(calls=[ModelCall("delegate", {"agent": "bob", "task": task, **more})])


def test_a_delegating_turn_killed_while_the_other_agent_works_is_finished_once(home: Home, provider: Provider) -> None:
    home.write(CONFIG.format(url=provider.server.openai_url))
    provider.script(hand_on("Put milk on the list"), TAKE_NOTE, HangingAnswer())
    with home.serve() as first, closing(first.send("Milk, please", key="m1")):
        provider.requests.await_count(3)
        assert (home.folder / NOTE).read_text() == "- milk\n"
        assert first.running.kill().code == -signal.SIGKILL
    provider.script(ModelAnswer(text="Noted."), ModelAnswer(text="Milk is on the list."))
    with home.serve() as second:
        assert said(second.ask("Milk, please", key="m1")) == "Milk is on the list."
        assert second.running.stop(signal.SIGTERM).code == 0
    assert (home.folder / NOTE).read_text() == "- milk\n"
    assert len(provider.requests) == 5
    turns = {turn.agent: turn for turn, _ in read_turns(home.store_url)}
    assert sorted(turns) == ["bob", "denizen"]
    parent = turns["bob"].parent
    assert parent is not None
    assert parent.id == turns["denizen"].id

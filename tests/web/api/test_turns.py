"""GET /api/turns/{id}: what is recorded of a turn, for who asked and for owners and admins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.agent import Agent, AgentInstructions
from denizen.domain.ids import AgentName
from denizen.domain.turn import Turn
from denizen.domain.usage import Usage
from denizen.engine.inspection.queries import Queries
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from denizen.web.http.auth import ApiKey
from denizen_sdk.records import from_json
from denizen_sdk.turns import TurnInfo
from tests.web_fixture import ADA, ANN, BEN, WebFixture, open_web

pytestmark = pytest.mark.anyio

PERSONA = Agent(AgentName("denizen"), instructions=AgentInstructions(persona=(("IDENTITY.md", "You are the warden."),)))
USAGE = Usage(1000, 5, cache_read_tokens=700, cache_write_tokens=200, requests=1)


def key(text: str) -> dict[str, str]:
    return {"authorization": f"Bearer {text}"}


async def ask_as_ann(web: WebFixture) -> str:
    async with web.client(**key("key-of-ann")) as client:
        return (await client.post("/api/chat", json={"message": "How is Oslo?"})).headers["x-denizen-turn"]


def model() -> ScriptedModel:
    return ScriptedModel(ScriptedReply(calls=[call("weather", city="Oslo")], usage=USAGE), ScriptedReply("Sunny."))


async def test_the_asker_sees_what_the_prompt_was_made_of_and_what_was_cached() -> None:
    async with open_web(model(), agents=[PERSONA], keys=[ANN, BEN, ADA]) as web:
        turn = await ask_as_ann(web)
        async with web.client(**key("key-of-ann")) as client:
            row = (await client.get(f"/api/turns/{turn}")).json()
    info = from_json(TurnInfo, row)
    assert info.question == "How is Oslo?"
    [prompt] = info.trace.prompts
    assert [(s.name, s.stability) for s in prompt.segments] == [
        ("persona", "config"),
        ("style", "config"),
        ("tool rules", "config"),
    ]
    assert (prompt.step, prompt.model, prompt.tools) == (1, "scripted/model", ("weather",))
    assert [(share.kind, share.count) for share in prompt.messages] == [("question", 1)]
    first = info.trace.steps[0]
    assert (first.usage.input_tokens, first.usage.cached_tokens, first.cache_written_tokens) == (1000, 700, 200)
    assert [(used.step, used.tier, used.decision) for used in info.trace.calls] == [(1, 0, "approve")]


async def test_the_words_of_the_system_prompt_are_for_admins() -> None:
    async with open_web(model(), agents=[PERSONA], keys=[ANN, BEN, ADA]) as web:
        turn = await ask_as_ann(web)
        async with web.client(**key("key-of-ann")) as client:
            asker = await client.get(f"/api/turns/{turn}")
        async with web.client(**key("key-of-ada")) as client:
            admin = await client.get(f"/api/turns/{turn}")
    assert "warden" not in asker.text
    seen, full = from_json(TurnInfo, asker.json()), from_json(TurnInfo, admin.json())
    persona = full.trace.prompts[0].segments[0]
    assert persona.text == "You are the warden."
    assert seen.trace.prompts[0].segments[0] == replace(persona, text=None)
    assert all(segment.text for segment in full.trace.prompts[0].segments)


async def test_to_others_a_turn_does_not_exist() -> None:
    async with open_web(model(), keys=[ANN, BEN]) as web:
        turn = await ask_as_ann(web)
        async with web.client(**key("key-of-ben")) as client:
            refused, unknown = await client.get(f"/api/turns/{turn}"), await client.get("/api/turns/turn_none")
        async with web.client() as client:
            stranger = await client.get(f"/api/turns/{turn}")
    assert (refused.status_code, unknown.status_code, stranger.status_code) == (404, 404, 401)
    assert refused.text.replace(turn, "turn_none") == unknown.text


async def test_a_private_turn_does_not_exist_for_admins_but_for_its_asker_and_owners(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def is_private(_queries: Queries, _turn: Turn) -> bool:
        return True

    monkeypatch.setattr(Queries, "is_private", is_private)
    async with open_web(model(), keys=[ANN, ADA, ApiKey.from_text("zoe", "key-of-zoe", ("owner",))]) as web:
        turn = await ask_as_ann(web)
        for name, status in (("ann", 200), ("ada", 404), ("zoe", 200)):
            async with web.client(**key(f"key-of-{name}")) as client:
                assert (await client.get(f"/api/turns/{turn}")).status_code == status
                assert (await client.post(f"/api/turns/{turn}/cancel")).status_code == status

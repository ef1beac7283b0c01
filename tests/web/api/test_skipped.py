"""What clients get of a turn that a hook skipped: that it was, and no content."""

import json
from typing import Any

import pytest

from denizen.domain.agent import Agent
from denizen.domain.hook import Hook, Hooks
from denizen.domain.ids import AgentName
from denizen.domain.turn import TurnStatus
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.sdk.test_client import open_client
from tests.web.api.test_chat import CHAT, events
from tests.web.api.test_completions import BODY, HI, PATH, official, read
from tests.web_fixture import open_web

pytestmark = pytest.mark.anyio

SKIPPING = [Agent(AgentName("denizen"), hooks=Hooks((Hook("weather", {"city": "Oslo"}, "Sunny"),)))]


@pytest.mark.proves("T26")
async def test_the_api_and_the_sdk_tell_that_a_turn_was_skipped_and_give_no_content() -> None:
    model = ScriptedModel()
    async with open_web(model, agents=SKIPPING) as web, web.client() as client, open_client(web) as sdk:
        told = events(await client.post("/api/chat", json=CHAT))
        answer = await sdk.ask("hi")
        stored = await sdk.get_turn(answer.turn_id)
        turns = await web.turns()

    assert [event["type"] for event in told] == ["finished"]
    assert (told[0]["skipped"], told[0]["status"], told[0]["reply"]) == (True, "skipped", "")
    assert (answer.skipped, answer.status, answer.reply, answer.usage.requests) == (True, "skipped", "", 0)
    assert (stored.status, stored.error, stored.reply) == ("skipped", None, "")
    assert [(call.tool, call.origin) for call in stored.trace.calls] == [("weather", "hook")]
    assert [turn.status for turn in turns] == [TurnStatus.SKIPPED, TurnStatus.SKIPPED]
    assert model.requests == []


@pytest.mark.proves("T26")
async def test_openai_clients_get_an_answer_without_content_that_says_it_was_skipped() -> None:
    async with open_web(ScriptedModel(), agents=SKIPPING) as web, official(web) as client:
        answer = await client.chat.completions.create(model="denizen", messages=HI)
        text, chunks = await read(await client.chat.completions.create(model="denizen", messages=HI, stream=True))
        raw: dict[str, Any] = (await web.client().post(PATH, json=BODY)).json()
        response = await client.responses.create(model="denizen", input="hi")
        streamed = await web.client().post("/v1/responses", json={"model": "denizen", "input": "hi", "stream": True})

    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("", "stop")
    assert raw["skipped"] is True
    assert text == "" and chunks[-1].choices[0].finish_reason == "stop"
    assert [chunk.model_extra for chunk in chunks if chunk.model_extra] == [{"skipped": True}]
    assert (response.output_text, response.status) == ("", "completed")
    assert response.model_extra and response.model_extra["skipped"] is True
    last = json.loads(streamed.text.strip().splitlines()[-1].removeprefix("data: "))
    assert last["response"]["skipped"] is True


async def test_an_answer_says_nothing_of_skipping_to_openai_clients() -> None:
    async with open_web(ScriptedModel(ScriptedReply("Hello."))) as web:
        raw: dict[str, Any] = (await web.client().post(PATH, json=BODY)).json()

    assert "skipped" not in raw

"""What a client of `/v1` demands of an answer: sampling, stops, a form; and tasks beside conversations."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from denizen.domain.agent import Agent, AgentInstructions, AnswersFrom, ToolAccess
from denizen.domain.ids import AgentName
from denizen.domain.message import join_text
from denizen.domain.rate_limit import RateLimit
from denizen.engine.configuration.tool_policy import GatePolicy, RateLimits
from denizen.ports.model import Capabilities
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.web.api.test_completions import HI, PATH, official, read
from tests.web_fixture import ANN, make_hello_model, open_web

pytestmark = pytest.mark.anyio


async def test_sampling_reaches_the_model() -> None:
    async with open_web(make_hello_model()) as web, official(web) as client:
        await client.chat.completions.create(model="denizen", messages=HI, top_p=0.4, seed=7, temperature=0.1)
    sampling = web.model.requests[0].sampling
    assert (sampling.temperature, sampling.top_p, sampling.seed) == (0.1, 0.4, 7)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["temperature", "top_p", "seed"])
async def test_sampling_that_the_model_does_not_take_is_refused(name: str, *, stream: bool) -> None:
    model = ScriptedModel(capabilities=Capabilities(sampling=frozenset()))
    async with open_web(model) as web, web.client() as client:
        answer = await client.post(PATH, json={"messages": HI, name: 0 if name == "seed" else 0.5, "stream": stream})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "parameter_unsupported")
    assert f"`{name}`" in answer.json()["error"]["message"]


async def test_the_usual_sampling_is_nothing_to_refuse() -> None:
    hello = ScriptedModel(ScriptedReply("Hello."), capabilities=Capabilities(sampling=frozenset()))
    async with open_web(hello) as web, web.client() as client:
        answer = await client.post(PATH, json={"messages": HI, "temperature": 1, "top_p": 1.0})
    assert answer.status_code == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_ends_before_a_stop(*, stream: bool) -> None:
    async with open_web(ScriptedModel(ScriptedReply("One, two, three, four."))) as web, official(web) as client:
        if stream:
            chunks = await client.chat.completions.create(model="denizen", messages=HI, stop=["three"], stream=True)
            text, told = await read(chunks)
            reason = told[-1].choices[0].finish_reason
        else:
            whole = await client.chat.completions.create(model="denizen", messages=HI, stop="three")
            text, reason = whole.choices[0].message.content or "", whole.choices[0].finish_reason
        [turn] = await web.turns()
    assert (text.rstrip(), reason, turn.result.reply) == ("One, two,", "stop", "One, two,")


# --- the form of the answer ------------------------------------------------------------------------------------------


class City(BaseModel):
    name: str
    people: int


OSLO = '{"name": "Oslo", "people": 700000}'


@pytest.mark.parametrize("reply", [OSLO, f"```json\n{OSLO}\n```"])
async def test_the_official_client_parses_an_answer_into_a_record(reply: str) -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("weather", city="Oslo")]), ScriptedReply(reply))
    async with open_web(model) as web, web.serve() as url, official(web, url=url) as client:
        answer = await client.chat.completions.parse(model="denizen", messages=HI, response_format=City)
    assert answer.choices[0].message.parsed == City(name="Oslo", people=700000)
    assert len(web.weather.calls) == 1, "the agent may work before it answers"
    assert "people" in str(model.requests[0].messages), "it is told the form at once"


async def test_an_answer_that_does_not_keep_to_the_form_is_asked_for_again_held_to_it() -> None:
    model = ScriptedModel(ScriptedReply("It is Oslo."), ScriptedReply(OSLO))
    async with open_web(model) as web, official(web) as client:
        stream = await client.chat.completions.create(
            model="denizen",
            messages=HI,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "city", "schema": City.model_json_schema()},
            },
            stream=True,
        )
        assert (await read(stream))[0] == OSLO, "nothing of the first"
    last = model.requests[1]
    assert (last.output_schema, last.output_name, last.tools) == (City.model_json_schema(), "city", ())


async def test_any_object_is_a_form_too() -> None:
    model = ScriptedModel(ScriptedReply('{"a": 1}'))
    async with (
        open_web(model, agents=[Agent(AgentName("bare"), tool_access=ToolAccess(()))]) as web,
        web.client() as client,
    ):
        answer = await client.post(PATH, json={"messages": HI, "response_format": {"type": "json_object"}})
    assert answer.json()["choices"][0]["message"]["content"] == '{"a": 1}'
    assert model.requests[0].takes_any_object, "without tools the first request is held to it"


async def test_a_model_that_cannot_keep_to_the_form_fails_the_request_in_words() -> None:
    async with open_web(ScriptedModel(otherwise=ScriptedReply('{"name": 1}'))) as web, official(web) as client:
        with pytest.raises(openai.InternalServerError, match="did not keep to the form") as caught:
            await client.chat.completions.parse(model="denizen", messages=HI, response_format=City)
    assert (caught.value.status_code, caught.value.code) == (503, "output_invalid")


async def test_a_model_that_plans_answers_in_the_form() -> None:
    plan, small = ScriptedReply(json.dumps({"tool": "none"})), Capabilities(native_tools=False, small=True)
    model = ScriptedModel(plan, ScriptedReply(OSLO), capabilities=small)
    async with open_web(model) as web, official(web) as client:
        answer = await client.chat.completions.parse(model="denizen", messages=HI, response_format=City)
    assert answer.choices[0].message.parsed == City(name="Oslo", people=700000)
    assert model.requests[-1].output_name == "City"


async def test_an_agent_that_answers_from_its_sources_only_takes_no_form() -> None:
    bound = Agent(AgentName("bound"), instructions=AgentInstructions(answers_from=AnswersFrom.SOURCES))
    async with open_web(ScriptedModel(), agents=[bound]) as web, web.client() as client:
        answer = await client.post(PATH, json={"messages": HI, "response_format": {"type": "json_object"}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "response_format_unsupported")


# --- tasks beside conversations --------------------------------------------------------------------------------------

TITLE: Any = [
    {
        "role": "user",
        "content": "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n"
        '### Output:\nJSON format: { "title": "your concise title here" }\n'
        "### Chat History:\n<chat_history>\nUSER: hi\nASSISTANT: Hello.\n</chat_history>",
    }
]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_title_for_a_conversation_is_no_turn_and_has_no_tools(*, stream: bool) -> None:
    model = ScriptedModel(ScriptedReply('{"title": "A greeting"}'))
    async with open_web(model) as web, official(web) as client:
        if stream:
            text, _ = await read(await client.chat.completions.create(model="denizen", messages=TITLE, stream=True))
        else:
            answer = await client.chat.completions.create(model="denizen", messages=TITLE, max_tokens=100)
            text = answer.choices[0].message.content
            assert answer.usage is not None
            assert answer.usage.total_tokens == 15
        assert await web.turns() == []
    assert text == '{"title": "A greeting"}'
    [request] = model.requests
    assert (request.tools, request.segments) == ((), ()), "neither persona nor memory"
    assert join_text(request.messages[0].parts).startswith("### Task:")


async def test_a_task_counts_as_a_question() -> None:
    limits = RateLimits(per_key=(RateLimit(1, 3600.0),))
    async with (
        open_web(make_hello_model(), keys=[ANN], policy=GatePolicy(rate_limits=limits)) as web,
        web.client(**{"x-api-key": "key-of-ann"}) as client,
    ):
        statuses = [(await client.post(PATH, json={"messages": TITLE})).status_code for _ in range(2)]
        statuses.append((await client.post(PATH, json={"messages": HI})).status_code)
    assert statuses == [200, 429, 429]

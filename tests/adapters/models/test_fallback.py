"""When a model cannot answer, the next one does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.adapters.models.model import FallbackModel
from denizen.adapters.models.providers import AliasSpec
from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded, NeedsAttention, Unavailable
from denizen.domain.message import Role
from denizen.ports.model import Capabilities, Model, ModelNotice, TextDelta
from denizen.testing.model_server import BrokenAnswer, FailedAnswer, ModelAnswer, ModelServer
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.adapters.models.wire_fixture import (
    ANTHROPIC,
    COMPATIBLE,
    LOOK,
    OPENAI,
    BuildCatalog,
    RecordingSleep,
    SingleAttempt,
    Wire,
    assistant,
    make_request,
    read_stream,
)

pytestmark = pytest.mark.anyio


def chain(*models: ScriptedModel) -> Model:
    return FallbackModel(models)


@pytest.mark.parametrize(
    "error", [Unavailable("Down."), LimitExceeded("Spent."), NeedsAttention("No key.")], ids=lambda error: error.code
)
@pytest.mark.proves("S5", "TW5")
async def test_the_next_model_answers_and_the_reply_says_which(error: DenizenError) -> None:
    first, second = ScriptedModel(error, name="a/one"), ScriptedModel(ScriptedReply("Hello."), name="b/two")
    heard = await read_stream(chain(first, second), make_request("hi"))
    assert (heard.text, heard.reply.model, heard.reply.provider) == ("Hello.", "b/two", "b")
    notices = [event.text for event in heard.events if isinstance(event, ModelNotice)]
    assert notices == [f"{error.message} Asking b/two instead."]
    assert first.requests == second.requests


@pytest.mark.proves("S5")
async def test_a_request_that_is_wrong_is_wrong_for_all() -> None:
    second = ScriptedModel(ScriptedReply("Hello."), name="b/two")
    with pytest.raises(InvalidInput):
        await read_stream(chain(ScriptedModel(InvalidInput("Too long.")), second), make_request("hi"))
    assert second.requests == []


@pytest.mark.proves("S5")
async def test_half_an_answer_is_not_begun_again_by_another() -> None:
    first = ScriptedModel(ScriptedReply("Half an ans", error=Unavailable("Broke off.")))
    second = ScriptedModel(ScriptedReply("Hello."), name="b/two")
    with pytest.raises(Unavailable):
        await read_stream(chain(first, second), make_request("hi"))
    assert second.requests == []


async def test_when_all_fail_the_first_says_why_and_what_became_of_the_others() -> None:
    models = [
        ScriptedModel(Unavailable("The first is down.", why="Storm."), name="a/one"),
        ScriptedModel(NeedsAttention("No key for the second."), name="b/two"),
        ScriptedModel(LimitExceeded("The third is spent."), name="c/three"),
    ]
    with pytest.raises(Unavailable) as caught:
        await read_stream(chain(*models), make_request("hi"))
    assert caught.value.message == "The first is down."
    assert caught.value.why == (
        "Storm. The fallbacks failed too: b/two: No key for the second. c/three: The third is spent."
    )


async def test_a_chain_has_the_name_and_the_capabilities_of_its_first() -> None:
    first = ScriptedModel(name="a/one", capabilities=Capabilities(images=True))
    model = chain(first, ScriptedModel(name="b/two"))
    assert (model.name, model.capabilities) == ("a/one", first.capabilities)


@pytest.mark.proves("CW2")
async def test_a_begun_answer_is_left_out_for_a_fallback_that_cannot_continue_it() -> None:
    first = ScriptedModel(Unavailable("Down."), capabilities=Capabilities(prefill=True))
    second = ScriptedModel(ScriptedReply("Hello."), name="b/two")
    await read_stream(chain(first, second), make_request("hi", assistant("Dennis:")))
    assert [message.role for message in first.requests[0].messages] == [Role.USER, Role.ASSISTANT]
    assert [message.role for message in second.requests[0].messages] == [Role.USER]
    assert replace(first.requests[0], messages=second.requests[0].messages) == second.requests[0]


async def test_a_fallback_that_calls_no_tools_answers_without_them() -> None:
    first = ScriptedModel(Unavailable("Down."))
    second = ScriptedModel(ScriptedReply("Hello."), name="b/two", capabilities=Capabilities(native_tools=False))
    await read_stream(chain(first, second), make_request("hi", tools=(LOOK,)))
    assert first.requests[0].tools == (LOOK,)
    assert second.requests[0].tools == ()


async def test_a_provider_that_asks_for_a_long_pause_is_not_waited_for(
    server: ModelServer, build: BuildCatalog
) -> None:
    pauses = RecordingSleep()
    alias = AliasSpec("balanced", ANTHROPIC.name, (OPENAI.name,))
    models = build(ANTHROPIC, OPENAI, aliases=[alias], pauses=pauses)
    server.script(
        FailedAnswer(429, headers={"retry-after": "30"}),
        FailedAnswer(429, headers={"retry-after": "30"}),
        ModelAnswer(text="ok"),
    )
    heard = await read_stream(models.get("balanced"), make_request("hi"))
    assert heard.reply.model == OPENAI.name
    assert pauses.slept == [30.0]


@pytest.mark.proves("S5")
async def test_an_alias_falls_back_over_real_wires(server: ModelServer, build: BuildCatalog) -> None:
    alias = AliasSpec("balanced", ANTHROPIC.name, (OPENAI.name, COMPATIBLE.name))
    models = build(ANTHROPIC, OPENAI, COMPATIBLE, aliases=[alias], pauses=SingleAttempt())
    server.script(FailedAnswer(529), FailedAnswer(401), ModelAnswer(text="Third time lucky."))
    heard = await read_stream(models.get("balanced"), make_request("hi"))
    assert heard.text == "Third time lucky."
    assert heard.reply.model == COMPATIBLE.name
    assert [request.path for request in server.requests] == [
        "/v1/messages",
        "/v1/chat/completions",
        "/v1/chat/completions",
    ]


async def test_a_model_whose_name_the_library_refuses_is_explained_and_the_next_one_asked(
    server: ModelServer, build: BuildCatalog
) -> None:
    nameless = Wire("openrouter", "gpt-5")
    models = build(nameless, OPENAI, aliases=[AliasSpec("balanced", nameless.name, (OPENAI.name,))])
    with pytest.raises(NeedsAttention) as caught:
        await read_stream(models.get(nameless.name), make_request("hi"))
    assert caught.value.message == "The model 'gpt-5' cannot be used with 'openrouter'."
    assert caught.value.fix == "Write it with its maker, as in openrouter/openai/gpt-5."
    server.script(ModelAnswer(text="Here."))
    assert (await read_stream(models.get("balanced"), make_request("hi"))).text == "Here."


async def test_a_broken_off_answer_stays_broken_over_real_wires(server: ModelServer, build: BuildCatalog) -> None:
    models = build(ANTHROPIC, OPENAI, aliases=[AliasSpec("balanced", ANTHROPIC.name, (OPENAI.name,))])
    server.script(BrokenAnswer(ModelAnswer(text="one two three four five six"), after_frames=6), ModelAnswer(text="no"))
    with pytest.raises(Unavailable):
        await read_stream(models.get("balanced"), make_request("hi"))
    assert server.left == 1


async def test_a_reader_who_leaves_early_leaves_the_chain() -> None:
    first = ScriptedModel(ScriptedReply("one two three four five six"))
    stream = FallbackModel([first]).stream(make_request("hi"))
    assert isinstance(await anext(stream), TextDelta)
    await stream.aclose()

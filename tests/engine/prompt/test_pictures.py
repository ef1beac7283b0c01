"""Pictures that a model makes and sees, and what it reasons: where they are shown, and what later prompts have."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

import pytest

from denizen.domain.agent import Agent, ContextStrategy, HistorySettings, ToolAccess
from denizen.domain.events import ReasoningAdded, TurnFinished
from denizen.domain.message import ImagePart, Part, Role, TextPart, join_text
from denizen.domain.prompt import PromptMessage
from denizen.domain.room import Attachment
from denizen.engine.prompt.pictures import limit_pictures
from denizen.ports.model import Capabilities
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.engine_fixture import NAME, message, open_engine
from tests.engine.platform_fixture import ADA, World, open_platform

pytestmark = pytest.mark.anyio

PNG = "data:image/png;base64," + b64encode(b"\x89PNG a picture").decode()
DRAWS = Capabilities(images=True, image_output=True, native_tools=False)
REASONING = "Ana wants a flower.\nA rose || fits."


def list_pictures(messages: Sequence[PromptMessage]) -> list[str]:
    return [part.url for each in messages for part in each.parts if isinstance(part, ImagePart)]


@pytest.mark.proves("C25")
async def test_the_picture_that_a_model_makes_comes_with_the_last_part_of_its_answer() -> None:
    long = "A rose. " * 400
    async with open_platform(None, ScriptedModel(ScriptedReply(long, images=[PNG]), capabilities=DRAWS)) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a rose")
        sent = await fixture.sent()
    assert len(sent) == 2
    assert [len(each.content.files) for each in sent] == [0, 1]
    assert sent[-1].content.files[0].data == b"\x89PNG a picture"
    assert sent[-1].content.embeds[0].image == f"attachment://{sent[-1].content.files[0].name}"


@pytest.mark.proves("C25")
async def test_a_picture_without_a_word_is_an_answer_and_such_a_model_gets_no_tools() -> None:
    model = ScriptedModel(ScriptedReply(images=[PNG]), capabilities=DRAWS)
    async with open_platform(None, model) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada draw")
        sent = await fixture.sent()
    assert [(each.content.text, len(each.content.files)) for each in sent] == [("", 1)]
    assert model.requests[0].tools == () and len(model.requests) == 1
    assert all(segment.name != "tool rules" for segment in model.requests[0].segments)


@pytest.mark.proves("C25")
async def test_such_a_model_sees_the_last_four_pictures_of_its_session_its_own_among_them() -> None:
    model = ScriptedModel(
        *[ScriptedReply(f"{n}", images=[f"{PNG}{n}"]) for n in range(4)], ScriptedReply("Seen."), capabilities=DRAWS
    )
    async with open_engine(model) as engine:
        await engine.say("mine", parts=(TextPart("look"), ImagePart("https://x.example/mine.png")))
        for _ in range(3):
            await engine.say("draw")
        await engine.say("what was there?")
    request = model.requests[-1]
    assert list_pictures(request.messages) == [f"{PNG}{n}" for n in range(4)]
    assert all(message.role is Role.USER for message in request.messages if list_pictures([message]))
    assert "[a picture was shown here]" in join_text(request.messages[0].parts)
    assert list_pictures(model.requests[1].messages) == ["https://x.example/mine.png", f"{PNG}0"]


def test_only_the_newest_pictures_stay_and_those_of_the_question_do_not_count() -> None:
    def user(*parts: Part) -> PromptMessage:
        return PromptMessage(Role.USER, parts)

    told = [user(TextPart(str(n)), ImagePart(f"u{n}")) for n in range(6)]
    question = user(ImagePart("q1"), ImagePart("q2"))
    assert list_pictures(limit_pictures([*told, question])) == ["u2", "u3", "u4", "u5", "q1", "q2"]
    assert limit_pictures([question]) == [question]
    assert limit_pictures([]) == []


@pytest.mark.proves("C25")
async def test_a_participant_that_draws_sees_the_last_four_pictures_of_the_room() -> None:
    world, model = World(), ScriptedModel(otherwise=ScriptedReply("Nice."), capabilities=DRAWS)
    agent = Agent(ADA, history=HistorySettings(context=ContextStrategy.TRANSCRIPT), tool_access=ToolAccess(tools=()))
    async with open_platform(world, model, agents={ADA: agent}) as fixture:
        for number in range(6):
            file = Attachment(f"{number}.png", "image/png", 10, f"https://cdn.example/{number}.png")
            world.platform.repeat(world.platform.write(world.general, "bob", "look", attachments=[file]).id)
        world.platform.say(world.general, "ana", "@ada which is best?")
        await fixture.settled()
    assert list_pictures(model.requests[-1].messages) == [f"https://cdn.example/{n}.png" for n in range(2, 6)]


@pytest.mark.proves("C25-reasoning", "C-config-toggles")
async def test_reasoning_is_shown_in_front_of_the_answer_and_hidden_where_the_agent_is_to_show_it() -> None:
    world, model = World(), ScriptedModel(otherwise=ScriptedReply("Take a rose.", thinking=REASONING))
    agents = {ADA: Agent(ADA, show_reasoning=True)}
    async with open_platform(world, model, agents=agents) as fixture:
        asked = world.platform.say(world.general, "ana", "@ada which flower?")
        sent = await fixture.sent()
        async with fixture.store.work(write=False) as work:
            archived = [post.text for post in await work.archive.list_posts("discord", world.general.id)]
    assert len(sent) == 2
    first, last = sent[0].content.text, sent[1].content.text
    assert first.startswith("-# reasoned before it answered\n||Ana wants a flower.") and first.endswith("fits.||")
    assert first.count("||") == 2
    assert (sent[0].reply_to, last) == (asked.id, "Take a rose.")
    assert archived == ["@ada which flower?", "Take a rose."]


@pytest.mark.proves("C25-reasoning", "C-config-toggles")
async def test_reasoning_is_shown_to_nobody_unless_the_agent_says_so() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Take a rose.", thinking=REASONING))
    async with open_platform(None, model) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada which flower?")
        assert await fixture.said() == ["Take a rose."]
    async with open_engine(model) as engine:
        asked = message("which flower?")
        events = [event async for event in engine.turns.stream(asked)]
        late = await engine.turns.ask(asked)
    assert not any(isinstance(event, ReasoningAdded) for event in events)
    assert isinstance(events[-1], TurnFinished) and events[-1].reasoning == late.reasoning == ""


@pytest.mark.parametrize("context", list(ContextStrategy))
@pytest.mark.proves("C25-reasoning")
async def test_shown_reasoning_is_text_of_no_later_prompt(context: ContextStrategy) -> None:
    world, model = World(), ScriptedModel(otherwise=ScriptedReply("Take a rose.", thinking=REASONING))
    agents = {
        ADA: Agent(ADA, show_reasoning=True, history=HistorySettings(context=context), tool_access=ToolAccess(tools=()))
    }
    async with open_platform(world, model, agents=agents) as fixture:
        for _ in range(2):
            world.platform.say(world.general, "ana", "@ada which flower?")
            await fixture.settled()
    told = "\n".join(join_text(each.parts) for each in model.requests[-1].messages)
    assert "Take a rose." in told and "wants a flower" not in told


@pytest.mark.proves("C25-reasoning")
async def test_watchers_hear_reasoning_as_it_comes_and_those_who_come_late_read_it_at_the_end() -> None:
    model = ScriptedModel(ScriptedReply("Take a rose.", thinking=REASONING, images=[PNG]))
    asked = message("which flower?")
    async with open_engine(model, agent=Agent(NAME, show_reasoning=True)) as engine:
        events = [event async for event in engine.turns.stream(asked)]
        late = await engine.turns.ask(asked)
    assert "".join(event.text for event in events if isinstance(event, ReasoningAdded)) == REASONING
    assert (late.reasoning, late.images) == (REASONING, (PNG,))
    assert events[-1] == late


@pytest.mark.proves("C-config-toggles")
@pytest.mark.parametrize("wanted", [True, False])
async def test_a_model_is_asked_to_reason_only_where_that_is_switched_on(*, wanted: bool) -> None:
    model = ScriptedModel(ScriptedReply("Yes."))
    async with open_engine(model, agent=Agent(NAME, reasoning=wanted)) as engine:
        await engine.say("why?")
    assert model.requests[0].reasoning is wanted

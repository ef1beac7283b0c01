"""What would be sent for a message is the request that is sent when it is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.agent import Agent, ContextStrategy, Planning
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import AgentName, ConversationId
from denizen.domain.message import Author, text_of
from denizen.domain.room import Post, Room
from denizen.engine.unsent import Unsent, plan_requests
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.house import NAME, House, message, open_house

pytestmark = pytest.mark.anyio

ADA = Agent(NAME, persona=(("IDENTITY.md", "You are Ada."),))


async def plan(house: House, text: str, **more: object) -> list[Unsent]:
    return await plan_requests(house.runtime, house.services, message(text, **more))


@pytest.mark.proves("C-inspect-payload")
async def test_the_request_of_the_next_turn_is_told_beforehand_and_nothing_is_sent_or_written() -> None:
    model = ScriptedModel(ScriptedReply("Hello."), ScriptedReply("17."))
    async with open_house(model, agent=ADA) as house:
        await house.say("Remember 17.")
        before = await house.session()
        [unsent] = await plan(house, "Which number?", instructions="Be brief.")
        assert len(model.requests) == 1
        assert await house.session() == before
        async with house.store.work() as work:
            assert len(await work.turns.list_turns()) == 1
        await house.say("Which number?", instructions="Be brief.")
    assert unsent == Unsent("scripted/model", model.requests[1])
    assert [each.kind for each in unsent.request.messages] == ["history", "history", "question"]


@pytest.mark.proves("C-inspect-payload")
async def test_where_tools_are_planned_the_plan_and_the_answer_without_tools_are_told() -> None:
    model = ScriptedModel(ScriptedReply('{"tool": "none"}'), ScriptedReply("Hello."))
    async with open_house(model, agent=replace(ADA, planning=Planning.PLAN)) as house:
        unsent = await plan(house, "hi")
        session = await house.session()
        await house.say("hi")
    assert session == []
    # The session began only with the question that was asked.
    sent = [replace(request, conversation_key="") for request in model.requests]
    assert [each.request for each in unsent] == sent


async def test_what_would_keep_the_question_from_being_asked_is_told() -> None:
    async with open_house(ScriptedModel()) as house:
        with pytest.raises(NotFound, match="no agent 'zed'"):
            await plan(house, "hi", agent=AgentName("zed"))
        with pytest.raises(InvalidInput):
            await plan(house, "")


async def test_in_a_room_that_is_mirrored_what_was_said_there_is_told_too() -> None:
    place = Place("chat", "10")
    agents = {
        "session": replace(ADA, recent_messages=5),
        "transcript": replace(ADA, context=ContextStrategy.TRANSCRIPT, persona=()),
    }
    for name, agent in agents.items():
        async with open_house(ScriptedModel(), agent=agent) as house:
            await house.runtime.swap(replace(house.runtime.current, number=2, archive=ArchivePolicy(enabled=True)))
            async with house.store.work() as work:
                now = house.services.clock.now()
                conversation = await work.conversations.put(place, now=now)
                await work.archive.put_room(Room("chat", "10", "general", guild="1"))
                await work.archive.put([Post("chat", "501", "10", Author("2", "Ben"), "The plums are ripe.", now)])
            [unsent] = await plan_requests(house.runtime, house.services, message("What is ripe?"), conversation.id)
            texts = [text_of(each.parts) for each in unsent.request.messages]
            async with house.store.work() as work:
                assert await work.transcripts.list_blocks(place) == []
        assert "Ben: The plums are ripe." in "\n".join(texts), name
        assert "Ana: What is ripe?" in "\n".join(texts), name


async def test_a_conversation_that_is_not_there_is_refused() -> None:
    async with open_house(ScriptedModel()) as house:
        with pytest.raises(NotFound):
            await plan_requests(house.runtime, house.services, message("hi"), ConversationId("conv_none"))

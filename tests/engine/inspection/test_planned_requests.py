"""What would be sent for a message is the request that is sent when it is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.agent import Agent, AgentInstructions, ContextStrategy, ToolPlanning
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import AgentName, ConversationId
from denizen.domain.json import Json
from denizen.domain.message import Author, join_text
from denizen.domain.room import Post, Room
from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import GatePolicy, ToolRule
from denizen.engine.inspection.replay import PlannedRequest, plan_requests
from denizen.ports.model import Capabilities
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.engine_fixture import NAME, WRITE, EngineFixture, ToolsetFixture, message, open_engine

pytestmark = pytest.mark.anyio

ADA = Agent(NAME, instructions=AgentInstructions(persona=(("IDENTITY.md", "You are Ada."),)))


async def plan(engine: EngineFixture, text: str, **more: object) -> list[PlannedRequest]:
    return await plan_requests(engine.runtime, engine.services, message(text, **more))


@pytest.mark.proves("C-inspect-payload")
async def test_the_request_of_the_next_turn_is_told_beforehand_and_nothing_is_sent_or_written() -> None:
    model = ScriptedModel(ScriptedReply("Hello."), ScriptedReply("17."))
    async with open_engine(model, agent=ADA) as engine:
        await engine.say("Remember 17.")
        before = await engine.session()
        [unsent] = await plan(engine, "Which number?", instructions="Be brief.")
        assert len(model.requests) == 1
        assert await engine.session() == before
        async with engine.store.work() as work:
            assert len(await work.turns.list_turns()) == 1
        await engine.say("Which number?", instructions="Be brief.")
    assert unsent == PlannedRequest("scripted/model", model.requests[1])
    assert [each.kind for each in unsent.request.messages] == ["history", "history", "question"]


@pytest.mark.proves("C-inspect-payload")
async def test_what_a_small_model_would_have_kept_is_not_kept_for_a_request_that_is_only_shown() -> None:
    text: Json = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}
    memory = ToolsetFixture([replace(WRITE, name="remember", parameters=text)], name="memory")
    model = ScriptedModel(ScriptedReply("I will."), capabilities=Capabilities(native_tools=False, small=True))
    asked = "Remember that my bike is green."

    async def keep(call: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult("Kept.")

    memory.run = keep
    policy = GatePolicy(rules=(ToolRule("*", Decision.APPROVE),))
    async with open_engine(model, memory, agent=ADA, policy=policy) as engine:
        assert "the request is only shown" in str(await plan(engine, asked))
        assert memory.calls == []
        await engine.say(asked)
    assert [call.tool for call in memory.calls] == ["remember"]


@pytest.mark.proves("C-inspect-payload")
async def test_where_tools_are_planned_the_plan_and_the_answer_without_tools_are_told() -> None:
    model = ScriptedModel(ScriptedReply('{"tool": "none"}'), ScriptedReply("Hello."))
    async with open_engine(
        model, agent=replace(ADA, tool_access=replace(ADA.tool_access, planning=ToolPlanning.PLAN))
    ) as engine:
        unsent = await plan(engine, "hi")
        session = await engine.session()
        await engine.say("hi")
    assert session == []
    # The session began only with the question that was asked.
    sent = [replace(request, conversation_key="") for request in model.requests]
    assert [each.request for each in unsent] == sent


async def test_what_would_keep_the_question_from_being_asked_is_told() -> None:
    async with open_engine(ScriptedModel()) as engine:
        with pytest.raises(NotFound, match="no agent 'zed'"):
            await plan(engine, "hi", agent=AgentName("zed"))
        with pytest.raises(InvalidInput):
            await plan(engine, "")


@pytest.mark.proves("C-inspect-payload")
async def test_in_a_room_that_is_mirrored_what_was_said_there_is_told_too() -> None:
    place = Place("chat", "10")
    agents = {
        "session": replace(ADA, history=replace(ADA.history, recent_messages=5)),
        "transcript": replace(
            ADA,
            history=replace(ADA.history, context=ContextStrategy.TRANSCRIPT),
            instructions=replace(ADA.instructions, persona=()),
        ),
    }
    for name, agent in agents.items():
        async with open_engine(ScriptedModel(), agent=agent) as engine:
            await engine.runtime.swap(replace(engine.runtime.current, number=2, archive=ArchivePolicy(enabled=True)))
            async with engine.store.work() as work:
                now = engine.services.clock.now()
                conversation = await work.conversations.put(place, now=now)
                await work.archive.put_room(Room("chat", "10", "general", guild="1"))
                await work.archive.put([Post("chat", "501", "10", Author("2", "Ben"), "The plums are ripe.", now)])
            [unsent] = await plan_requests(engine.runtime, engine.services, message("What is ripe?"), conversation.id)
            texts = [join_text(each.parts) for each in unsent.request.messages]
            async with engine.store.work() as work:
                assert await work.transcripts.list_blocks(place) == []
        assert "Ben: The plums are ripe." in "\n".join(texts), name
        assert "Ana: What is ripe?" in "\n".join(texts), name


async def test_a_conversation_that_is_not_there_is_refused() -> None:
    async with open_engine(ScriptedModel()) as engine:
        with pytest.raises(NotFound):
            await plan_requests(engine.runtime, engine.services, message("hi"), ConversationId("conv_none"))

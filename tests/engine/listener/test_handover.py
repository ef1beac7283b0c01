"""A room that is handed to another agent: who answers there, until when, and what the room is told."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from denizen.domain.agent import Agent, HistorySettings, ToolAccess
from denizen.domain.attention import AccountPolicy, ReplyStyle
from denizen.domain.handover import HAND_OVER, plan_handover
from denizen.domain.ids import AgentName, CallId
from denizen.domain.message import ToolCallPart, ToolResultPart
from denizen.domain.taint import find_risk
from denizen.engine.configuration.handovers import find_handover, put_handover
from denizen.engine.tools.toolbox import list_all
from denizen.ports.model import ModelRequest
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.platform_fixture import ADA, PlatformFixture, World, list_texts, open_platform
from tests.memory_channel import MemoryChannel

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V35-handover")]

BOB, CLEO = AgentName("bob"), AgentName("cleo")
AGENTS = {
    name: Agent(name, history=HistorySettings(recent_messages=0), tool_access=ToolAccess(delegates_to=to))
    for name, to in ((ADA, (BOB,)), (BOB, (CLEO,)), (CLEO, (BOB,)))
}
POLICY = AccountPolicy(style=ReplyStyle(preview=False), switchable=frozenset({"bob"}))
TOOK = "bob answers here from now on, for 15 minutes or 20 messages. Write `!exit` to end it."
GIVEN = "bob answers here from the next message on. The room was told."


def script(**limits: int) -> ScriptedModel:
    """Whoever is asked for another agent hands the room over; everybody else says what they read."""

    def answer(request: ModelRequest) -> ScriptedReply:
        results = [
            part for message in request.messages[-2:] for part in message.parts if isinstance(part, ToolResultPart)
        ]
        if results:
            return ScriptedReply(results[-1].text.partition("\n")[0])
        said = list_texts(request)[-1]
        for name in AGENTS:
            if f"{name}, please" in said:
                return ScriptedReply(calls=[ToolCallPart(CallId(""), HAND_OVER, {"agent": name, **limits})])
        return ScriptedReply(f"I read: {said}")

    return ScriptedModel(otherwise=answer)


async def say(fixture: PlatformFixture, text: str, who: str = "ana") -> list[str]:
    """Says something in the common room, and returns what the account posts thereupon."""
    before = len(await fixture.said())
    fixture.world.platform.say(fixture.world.general, who, text)
    return (await fixture.said())[before:]


async def who_answered(fixture: PlatformFixture) -> list[str]:
    async with fixture.store.work(write=False) as work:
        turns = await work.turns.list_turns()
    return [turn.agent for turn in reversed(turns)]


@asynccontextmanager
async def open_agents(world: World, model: ScriptedModel | None = None) -> AsyncGenerator[PlatformFixture]:
    """Opens the agents, of which only ada has an account."""
    accounts = {ADA: MemoryChannel(world.platform, ADA)}
    async with open_platform(
        world, model or script(), agents=AGENTS, account_policy=POLICY, accounts=accounts
    ) as fixture:
        yield fixture


@pytest.mark.proves("V-skill-agent-system")
async def test_what_is_said_in_the_room_goes_to_the_agent_until_somebody_says_exit() -> None:
    async with open_agents(World()) as fixture:
        assert await say(fixture, "nobody is asked") == []
        assert await say(fixture, "@ada bob, please") == [TOOK, GIVEN]
        [answer] = await say(fixture, "how are boats made?")
        assert answer.startswith("**bob:** I read:") and "how are boats made?" in answer
        [answer] = await say(fixture, "and ships?", who="bob")
        assert answer.startswith("**bob:**")
        assert await say(fixture, "!exit") == ["Ana has ended it: bob does not answer here any more, ada does."]
        assert await say(fixture, "nobody is asked again") == []
        assert not (await say(fixture, "@ada hello"))[0].startswith("**")
        assert await who_answered(fixture) == ["ada", "bob", "bob", "ada"]


async def test_it_ends_after_so_many_messages() -> None:
    async with open_agents(World(), script(messages=2)) as fixture:
        await say(fixture, "@ada bob, please")
        assert len(await say(fixture, "one")) == 1
        said = await say(fixture, "two")
        assert sorted(text.split(":")[0] for text in said) == ["**bob", "That was the last message"]
        assert await say(fixture, "three") == []
        assert await who_answered(fixture) == ["ada", "bob", "bob"]


async def test_it_ends_after_its_time_also_when_nobody_says_anything() -> None:
    world = World()
    async with open_agents(world, script(minutes=5)) as fixture:
        await say(fixture, "@ada bob, please")
        world.clock.advance(299)
        await fixture.shared_services.services.handovers.end_due()
        assert len(await say(fixture, "one")) == 1
        world.clock.advance(1)
        before = len(await fixture.said())
        await fixture.shared_services.services.handovers.end_due()
        assert (await fixture.said())[before:] == ["Its time is over: bob does not answer here any more, ada does."]
        assert await say(fixture, "two") == []


async def test_a_room_that_another_process_of_a_fleet_handed_over_is_answered_by_that_agent() -> None:
    world = World()
    async with open_agents(world) as fixture:
        now = world.clock.now()
        async with fixture.store.work() as work:
            handover = plan_handover(BOB, now, minutes=5, messages=20, passes=0)
            await put_handover(work, ADA, world.general.place, handover, now=now)
        [answer] = await say(fixture, "how are boats made?")
        assert answer.startswith("**bob:**")


async def test_it_goes_on_after_a_restart_and_is_over_if_its_time_has_passed_meanwhile() -> None:
    world = World()
    async with open_agents(world) as fixture:
        await say(fixture, "@ada bob, please")
    async with open_agents(world) as fixture:
        [answer] = await say(fixture, "still there?")
        assert answer.startswith("**bob:**")
    world.clock.advance(3600)
    async with open_agents(world) as fixture:
        assert await say(fixture, "and now?") == []


async def test_one_without_messages_left_is_ended_although_the_process_died_before_it_did_so() -> None:
    async with open_agents(World()) as fixture:
        await say(fixture, "@ada bob, please")
        place = fixture.world.general.place
        async with fixture.store.work() as work:
            found = await find_handover(work, ADA, place.conversation_id)
            assert found is not None
            await put_handover(work, ADA, place, replace(found, messages_left=0), now=fixture.world.clock.now())
        before = len(await fixture.said())
        await fixture.shared_services.services.handovers.end_due()
        said = (await fixture.said())[before:]
        assert said == ["That was the last message: bob does not answer here any more, ada does."]


async def test_agents_hand_a_room_on_once_only() -> None:
    async with open_agents(World()) as fixture:
        await say(fixture, "@ada bob, please")
        assert (await say(fixture, "cleo, please"))[0].startswith("cleo answers here from now on")
        said = await say(fixture, "bob, please")
        assert said[0].startswith("**cleo:**") and "handed on already" in said[0]


async def test_a_message_to_somebody_else_and_one_of_a_bot_are_passed_over() -> None:
    world = World()
    world.platform.add_person("bot", "Bot", is_bot=True)
    async with open_agents(world) as fixture:
        await say(fixture, "@ada bob, please")
        assert await say(fixture, "@Bob what do you think?") == []
        assert await say(fixture, "!exit", who="bot") == []
        assert len(await say(fixture, "still there?")) == 1


async def test_a_choice_of_who_answers_ends_it() -> None:
    async with open_agents(World()) as fixture:
        await say(fixture, "@ada bob, please")
        said = await say(fixture, "@ada /agent name:bob")
        assert "bob answers here already." in said[0]
        said = await say(fixture, "@ada /agent name:default")
        assert "Ana has ended it: bob does not answer here any more, ada does." in said
        assert await say(fixture, "hello") == []


async def test_an_agent_that_is_switched_off_has_no_room_any_more() -> None:
    async with open_agents(World()) as fixture:
        await say(fixture, "@ada bob, please")
        current = fixture.runtime.current
        off = replace(current.agents[BOB], enabled=False)
        await fixture.runtime.swap(replace(current, number=2, agents={**current.agents, BOB: off}))
        assert await say(fixture, "hello") == []
        assert not (await say(fixture, "@ada hello"))[0].startswith("**bob")


async def test_a_turn_that_has_read_text_of_strangers_may_not_hand_a_room_over_by_itself() -> None:
    async with open_agents(World()) as fixture:
        tools = await list_all(fixture.runtime.current.toolsets)
    spec = tools[HAND_OVER].spec
    assert find_risk(spec, spec.tier, "")


async def test_people_hand_a_room_over_and_take_it_back_with_a_command() -> None:
    async with open_agents(World()) as fixture:
        said = await say(fixture, "@ada /handover agent:bob minutes:5 messages:3")
        assert said[0].startswith("bob answers here from now on, for 5 minutes or 3 messages.")
        assert (await say(fixture, "hello"))[0].startswith("**bob:**")
        assert "Ana has ended it" in (await say(fixture, "@ada /handover agent:back"))[0]
        assert await say(fixture, "hello") == []
        assert "You may not let cleo answer here" in (await say(fixture, "@ada /handover agent:cleo"))[0]
        assert "not handed over for that long" in (await say(fixture, "@ada /handover agent:bob minutes:0"))[0]
        assert await say(fixture, "hello") == []

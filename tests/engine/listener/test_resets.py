"""`/reset`, typed in a thread: whom it reaches, how long it lasts, and how it is confirmed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from denizen.domain.agent import Agent
from denizen.domain.ids import AgentName
from denizen.domain.room import Room, RoomKind
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform
from tests.engine.prompt.transcript_fixture import BEN, ask, list_texts, make_agents, model

pytestmark = pytest.mark.anyio

SECRET = "the cat is called Tom"


def open_thread(world: World) -> Room:
    return world.platform.add_room("plans", RoomKind.THREAD, parent=world.general)


async def say(fixture: PlatformFixture, text: str, room: Room) -> list[tuple[str, str]]:
    """Ana types it after all that was said; returns the reactions to it."""
    world = fixture.world
    world.clock.time = world.platform.posts[max(world.platform.posts, key=int)].post.created_at
    post = world.platform.say(room, "ana", text)
    await fixture.settled()
    await fixture.until(lambda: post.id in world.platform.reactions)
    return world.platform.reactions[post.id]


async def find_those_who_know(fixture: PlatformFixture, room: Room) -> set[AgentName]:
    """Returns the agents that are shown what was said before."""
    shown = {name: await ask(fixture, f"@{name} what do you know?", room=room) for name in (ADA, BEN)}
    return {name for name, request in shown.items() if SECRET in "\n".join(list_texts(request))}


@pytest.mark.proves("C11", "C19")
async def test_a_reset_reaches_those_who_are_named_and_everybody_where_nobody_is() -> None:
    world = World()
    thread = open_thread(world)
    async with open_platform(world, model(), agents=make_agents()) as fixture:
        await ask(fixture, f"@ada {SECRET}", room=thread)
        await ask(fixture, "@ben do you hear?", room=thread)
        assert await find_those_who_know(fixture, thread) == {ADA, BEN}
        assert await say(fixture, "@ada /reset", thread) == [("bot-ada", "✅")]
        assert await find_those_who_know(fixture, thread) == {BEN}
        assert await say(fixture, "/reset", thread) in ([("bot-ada", "✅")], [("bot-ben", "✅")])
        assert await find_those_who_know(fixture, thread) == set()
    async with open_platform(world, model(), agents=make_agents()) as fixture:
        assert await find_those_who_know(fixture, thread) == set(), "also after a restart"


@pytest.mark.proves("C11", "C19")
@pytest.mark.parametrize(
    "agents",
    [
        pytest.param(make_agents(), id="participants"),
        pytest.param({name: Agent(name) for name in (ADA, BEN)}, id="assistants"),
    ],
)
async def test_a_reset_holds_for_an_agent_that_had_not_spoken_there_also_after_a_restart(
    agents: Mapping[AgentName, Agent],
) -> None:
    world = World()
    thread = open_thread(world)
    async with open_platform(world, model(), agents=agents) as fixture:
        await ask(fixture, f"@ada {SECRET}", room=thread)
        assert await say(fixture, "/reset", thread) == [("bot-ada", "✅")]
    async with open_platform(world, model(), agents=agents) as fixture:
        assert await find_those_who_know(fixture, thread) == set()


@pytest.mark.proves("C19")
async def test_a_reset_that_fails_is_marked_with_a_warning() -> None:
    world = World()
    thread = open_thread(world)
    async with open_platform(world, model(), agents=make_agents()) as fixture:
        await ask(fixture, "@ada hello", room=thread)
        assert await say(fixture, "@ada /reset all: maybe", thread) == [("bot-ada", "⚠️")]

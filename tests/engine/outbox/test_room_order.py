"""The pieces of one answer stand together in a room, however busy it is."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from denizen.domain.action import OnBehalfOf, PlatformAction
from denizen.domain.agent import Agent, HistorySettings
from denizen.domain.attention import AccountPolicy
from denizen.domain.delivery import MessageContent
from denizen.domain.ids import AgentName
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.turn import TurnStatus
from denizen.engine.accounts import connected_accounts
from denizen.engine.accounts.connected_accounts import PlatformActionRunner
from denizen.engine.listener import turn_display
from denizen.engine.outbox import room_order
from denizen.ports.channel import EnterRoom
from denizen.ports.model import ModelRequest
from denizen.skill import PlatformActions
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply
from tests.engine.gated_channel import GatedChannel, PostGate
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform
from tests.memory_channel import MemoryChannel
from tests.skill_fixture import scope
from tests.timing import HANG_LIMIT_S, controlled_clock

pytestmark = pytest.mark.anyio

BERT = AgentName("bert")
PIECES = 3
LONG = "\n\n".join(f"Piece {n}. " + "word " * 350 for n in range(PIECES))


def find_runs(fixture: PlatformFixture) -> list[str]:
    """Who and what stands in the room, piece by piece: `long` for those of the long answer."""
    posts = [written.post for written in fixture.world.platform.posts.values()]
    said = sorted((post for post in posts if post.author.id.startswith("bot-")), key=lambda post: int(post.id))
    return ["long" if post.text.startswith("Piece ") else post.text for post in said]


@pytest.fixture(autouse=True)
def quick_previews(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_display, "PREVIEW_AFTER_S", 0.0)
    monkeypatch.setattr(turn_display, "PREVIEW_EVERY_S", 0.0)


def answer_at_length(request: ModelRequest) -> ScriptedReply:
    return ScriptedReply(LONG if "at length" in str(request.messages[-2:]) else "Short.")


async def answers_wait(fixture: PlatformFixture, turns: int) -> None:
    """So many turns have ended; whatever would be posted without waiting has been posted."""
    ended = 0
    with anyio.fail_after(HANG_LIMIT_S):
        while ended < turns:
            async with fixture.store.work(write=False) as work:
                ended = len(await work.turns.list_turns(status=TurnStatus.DONE))
    for _ in range(200):
        async with fixture.store.work(write=False) as work:
            await work.turns.list_turns(status=TurnStatus.DONE)


@pytest.mark.proves("V11")
async def test_the_preview_of_another_question_does_not_stand_between_the_pieces_of_an_answer() -> None:
    world, slow = World(), ReplyGate()
    ada = GatedChannel(world.platform, ADA)
    ada.gated = PostGate(lambda content: content.text.startswith("Piece 1"))
    model = ScriptedModel(ScriptedReply(LONG), ScriptedReply("Short.", before=slow))
    async with open_platform(world, model, accounts={ADA: ada}, account_policy=AccountPolicy()) as fixture:
        world.platform.say(world.general, "ana", "@ada tell me at length")
        await ada.gated.gate.reached.wait()
        world.platform.say(world.general, "bob", "@ada and briefly?")
        await slow.reached.wait()
        await answers_wait(fixture, 1)
        ada.gated.gate.open.set()
        slow.open.set()
        await fixture.settled()
        assert find_runs(fixture) == ["long"] * PIECES + ["Short."]


@pytest.mark.proves("V11")
async def test_an_answer_in_pieces_does_not_begin_at_the_place_of_its_preview() -> None:
    world, slow = World(), ReplyGate()
    policy = AccountPolicy()
    agents = {name: Agent(name, history=HistorySettings(recent_messages=0)) for name in (ADA, BERT)}
    model = ScriptedModel(ScriptedReply(LONG, before=slow), otherwise=ScriptedReply("Short."))
    async with open_platform(world, model, agents=agents, account_policy=policy) as fixture:
        world.platform.say(world.general, "ana", "@ada tell me at length")
        await slow.reached.wait()
        await fixture.until(lambda: bool(fixture.ada.sent))
        world.platform.say(world.general, "bob", "@bert and briefly?")
        await fixture.until(lambda: bool(fixture.accounts[BERT].sent))
        slow.open.set()
        await fixture.settled()
        assert find_runs(fixture) == ["Short."] + ["long"] * PIECES


@pytest.mark.proves("V11")
async def test_the_answers_of_two_agents_in_one_room_do_not_mix() -> None:
    world = World()
    ada, bert = GatedChannel(world.platform, ADA), MemoryChannel(world.platform, BERT)
    ada.gated = PostGate(lambda content: content.text.startswith("Piece 1"))
    agents = {name: Agent(name, history=HistorySettings(recent_messages=0)) for name in (ADA, BERT)}
    model = ScriptedModel(otherwise=answer_at_length)
    async with open_platform(world, model, agents=agents, accounts={ADA: ada, BERT: bert}) as fixture:
        world.platform.say(world.general, "ana", "@ada tell me at length")
        await ada.gated.gate.reached.wait()
        world.platform.say(world.general, "bob", "@bert and briefly?")
        await answers_wait(fixture, 2)
        ada.gated.gate.open.set()
        await fixture.settled()
        assert find_runs(fixture) == ["long"] * PIECES + ["Short."]


class SayingChannel(GatedChannel):
    """An account with one action, which posts a message at the place of the asker."""

    async def act(self, action: PlatformAction, warrant: OnBehalfOf, *, enter: EnterRoom) -> JsonObject:
        async with enter(warrant.place):
            return {"message": await self.post(warrant.place, MessageContent("Tool."), nonce=warrant.key)}


def open_actions(fixture: PlatformFixture) -> PlatformActions:
    """The platform for a call of somebody in the general room."""
    asker = Principal(PrincipalKind.PLATFORM_USER, f"{fixture.ada.platform}:bob", "Bob")
    where = replace(scope(key="call"), principal=asker, place=fixture.world.general.place, account=ADA)
    return PlatformActionRunner(fixture.channels, fixture.outbox.rooms.enter).open(where)


@pytest.mark.proves("V11")
async def test_what_a_tool_posts_does_not_stand_between_the_pieces_of_an_answer() -> None:
    world = World()
    ada = SayingChannel(world.platform, ADA)
    ada.gated = PostGate(lambda content: content.text.startswith("Piece 1"))
    async with open_platform(world, ScriptedModel(ScriptedReply(LONG)), accounts={ADA: ada}) as fixture:
        world.platform.say(world.general, "ana", "@ada tell me at length")
        await ada.gated.gate.reached.wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(open_actions(fixture).act, "say")
            await answers_wait(fixture, 1)
            ada.gated.gate.open.set()
        await fixture.settled()
        assert find_runs(fixture) == ["long"] * PIECES + ["Tool."]


async def test_what_a_tool_posts_waits_for_a_stuck_answer_no_longer_than_ten_seconds() -> None:
    world = World()
    ada = SayingChannel(world.platform, ADA)
    ada.gated = PostGate(lambda content: content.text.startswith("Piece 1"))
    async with open_platform(world, ScriptedModel(ScriptedReply(LONG)), accounts={ADA: ada}) as fixture:
        world.platform.say(world.general, "ana", "@ada tell me at length")
        await ada.gated.gate.reached.wait()
        with controlled_clock() as clock:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(open_actions(fixture).act, "say")
                await answers_wait(fixture, 1)
                assert find_runs(fixture) == ["long"]
                clock.advance(connected_accounts.ROOM_PATIENCE_S)
        assert find_runs(fixture) == ["long", "Tool."]
        ada.gated.gate.open.set()
        await fixture.settled()


@pytest.mark.proves("P1", "V11")
async def test_the_rest_of_an_answer_that_a_crash_cut_off_comes_before_what_others_say() -> None:
    world = World()
    ada, bert = GatedChannel(world.platform, ADA), MemoryChannel(world.platform, BERT)
    ada.gated = PostGate(lambda content: content.text.startswith("Piece 1"))
    agents = {name: Agent(name, history=HistorySettings(recent_messages=0)) for name in (ADA, BERT)}
    model = ScriptedModel(otherwise=answer_at_length)
    accounts = {ADA: ada, BERT: bert}
    async with open_platform(world, model, agents=agents, accounts=accounts):
        world.platform.say(world.general, "ana", "@ada tell me at length")
        await ada.gated.gate.reached.wait()
    ada.gated = None
    async with (
        open_platform(world, model, agents=agents, accounts=accounts, connect=False) as fixture,
        anyio.create_task_group() as group,
    ):
        await group.start(bert.run, fixture.listeners[BERT])
        world.platform.say(world.general, "bob", "@bert and briefly?")
        await answers_wait(fixture, 2)
        await group.start(ada.run, fixture.listeners[ADA])
        await fixture.settled()
        group.cancel_scope.cancel()
    assert find_runs(fixture) == ["long"] * PIECES + ["Short."]


async def test_the_rest_of_an_answer_whose_account_is_off_is_not_waited_for_twice() -> None:
    world = World()
    ada, bert = GatedChannel(world.platform, ADA), MemoryChannel(world.platform, BERT)
    ada.gated = PostGate(lambda content: content.text.startswith("Piece 1"))
    agents = {name: Agent(name, history=HistorySettings(recent_messages=0)) for name in (ADA, BERT)}
    model = ScriptedModel(otherwise=answer_at_length)
    accounts = {ADA: ada, BERT: bert}
    async with open_platform(world, model, agents=agents, accounts=accounts):
        world.platform.say(world.general, "ana", "@ada tell me at length")
        await ada.gated.gate.reached.wait()
    with controlled_clock() as clock:
        async with (
            open_platform(world, model, agents=agents, accounts=accounts, connect=False) as fixture,
            anyio.create_task_group() as group,
        ):
            await group.start(bert.run, fixture.listeners[BERT])
            for number in range(2):
                world.platform.say(world.general, "bob", "@bert and briefly?")
                while len(bert.sent) == number:
                    clock.advance(0 if number else room_order.LOOK_EVERY_S)
                    await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()


@pytest.mark.proves("P1", "V11")
async def test_an_edit_whose_answer_is_longer_is_answered_in_one_place() -> None:
    model = ScriptedModel(ScriptedReply("Short."), ScriptedReply("Other."), otherwise=answer_at_length)
    async with open_platform(model=model) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        await fixture.settled()
        fixture.world.platform.say(fixture.world.general, "bob", "@ada and I?")
        await fixture.settled()
        fixture.world.platform.edit(asked.id, "@ada tell me at length")
        await fixture.settled()
        assert find_runs(fixture) == ["Other."] + ["long"] * PIECES

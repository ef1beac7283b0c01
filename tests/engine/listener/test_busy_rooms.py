"""What people see of an agent that has more questions than it can answer at once."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from denizen.domain.agent import Agent, HistorySettings
from denizen.domain.attention import AccountPolicy
from denizen.domain.ids import AgentName
from denizen.domain.turn import Turn, TurnStatus
from denizen.engine.intake.turn_queue import MAX_WAITING
from denizen.engine.listener import turn_display
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform
from tests.rate_rows import count_rate_keys

pytestmark = pytest.mark.anyio

MESSAGES = 2 * MAX_WAITING
WARNING = "\N{WARNING SIGN}\N{VARIATION SELECTOR-16}"


def find_notices(fixture: PlatformFixture) -> list[str]:
    posts = [written.post for written in fixture.world.platform.posts.values()]
    return [post.text for post in posts if "still busy" in post.text]


@pytest.mark.proves("X-busy", "X-rate-limit")
async def test_a_room_is_told_once_a_minute_that_agents_are_busy_and_further_messages_get_a_sign(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, bert = ReplyGate(), AgentName("bert")
    agents = {name: Agent(name, history=HistorySettings(recent_messages=0)) for name in (ADA, bert)}
    model = ScriptedModel(*[ScriptedReply("first", before=gate)] * 2, otherwise=ScriptedReply("later"))
    async with open_platform(model=model, agents=agents) as fixture:
        platform, general = fixture.world.platform, fixture.world.general
        monkeypatch.setattr(fixture.world.clock, "monotonic_s", lambda: 0.0)
        asked = [platform.say(general, "ana", f"@{name} question") for name in agents for _ in range(MESSAGES)]
        await platform.settled()
        await fixture.until(lambda: bool(find_notices(fixture)))
        await fixture.until(lambda: len(model.requests) == len(agents))  # each has a queue of its own
        for seconds in (59, 1):
            fixture.world.clock.advance(seconds)
            asked.append(platform.say(general, "ana", "@ada question"))
            await platform.settled()
        await fixture.until(lambda: len(find_notices(fixture)) == 2)
        gate.open.set()
        said = [*await fixture.said(ADA), *await fixture.said(bert)]
        marked = [post for post in asked if WARNING in str(platform.reactions.get(post.id))]
        assert [post in marked for post in asked[-2:]] == [True, False], "59 s are no minute"
        assert [WARNING in notice for notice in find_notices(fixture)] == [True] * 2
        assert count_rate_keys(fixture.store) == 1
        assert len(said) + len(marked) == len(asked)
        assert len(marked) > MESSAGES // 2


HOURGLASS = ("bot-ada", "\N{HOURGLASS WITH FLOWING SAND}")
EYES, THUMBS_UP = ("bot-ada", "\N{EYES}"), ("bot-ada", "\N{THUMBS UP SIGN}")


@pytest.mark.proves("T34")
async def test_a_question_that_waits_behind_others_has_a_sign_and_no_preview_until_it_is_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turn_display, "PREVIEW_AFTER_S", 0.0)
    monkeypatch.setattr(turn_display, "PREVIEW_EVERY_S", 0.001)
    first, second = ReplyGate(), ReplyGate()
    model = ScriptedModel(ScriptedReply("One.", before=first), ScriptedReply("Two.", before=second))
    async with open_platform(model=model, account_policy=AccountPolicy()) as fixture:
        platform, general = fixture.world.platform, fixture.world.general
        platform.say(general, "ana", "@ada hello?")
        await first.reached.wait()
        asked = platform.say(general, "bob", "@ada hello?")
        await fixture.until(lambda: HOURGLASS in platform.reactions.get(asked.id, []))
        await fixture.until(lambda: bool(fixture.ada.sent))
        assert len(fixture.ada.sent) == 1
        first.open.set()
        await second.reached.wait()
        await fixture.until(lambda: HOURGLASS not in platform.reactions[asked.id])
        second.open.set()
        assert await fixture.said() == ["One.", "Two."]


@pytest.fixture
async def interrupted() -> tuple[World, str]:
    """A world in which a process died while it answered a question, and the id of that, with the signs it left."""
    gate, world = ReplyGate(), World()
    async with open_platform(world, ScriptedModel(ScriptedReply("never", before=gate))):
        asked = world.platform.say(world.general, "ana", "@ada hello?")
        await gate.reached.wait()
    world.platform.reactions[asked.id] = [HOURGLASS, EYES]
    return world, asked.id


async def test_the_sign_of_a_process_that_died_is_taken_away_by_the_next_while_its_turn_still_runs(
    interrupted: tuple[World, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_display, "PREVIEW_AFTER_S", 0.0)
    (world, asked), gate = interrupted, ReplyGate()
    async with open_platform(world, ScriptedModel(ScriptedReply("Hello.", before=gate))) as fixture:
        await gate.reached.wait()
        await fixture.until(lambda: HOURGLASS not in world.platform.reactions[asked])
        gate.open.set()
        await fixture.until(lambda: world.platform.reactions[asked] == [THUMBS_UP])


async def test_the_sign_of_a_process_that_died_is_taken_away_from_a_turn_that_ends_soon(
    interrupted: tuple[World, str],
) -> None:
    world, asked = interrupted
    async with open_platform(world) as fixture:
        await fixture.until(lambda: world.platform.reactions[asked] == [THUMBS_UP])


async def test_the_sign_of_a_process_that_died_is_taken_away_from_a_turn_that_ended_before_the_account_connected(
    interrupted: tuple[World, str],
) -> None:
    world, asked = interrupted
    async with open_platform(world, connect=False) as fixture, anyio.create_task_group() as group:
        while not await list_turns(fixture, TurnStatus.DONE):
            await anyio.lowlevel.checkpoint()
        await group.start(fixture.ada.run, fixture.listener)
        await fixture.until(lambda: world.platform.reactions[asked] == [THUMBS_UP])
        group.cancel_scope.cancel()


async def list_turns(fixture: PlatformFixture, status: TurnStatus) -> Sequence[Turn]:
    async with fixture.store.work(write=False) as work:
        return await work.turns.list_turns(status=status)

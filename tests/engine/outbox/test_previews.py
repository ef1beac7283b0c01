"""A preview does not outlive its turn, whoever posted it and however late."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from denizen.domain.attention import AccountPolicy
from denizen.engine.listener import turn_display
from denizen.engine.outbox import outbox
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply
from tests.engine.gated_channel import GatedChannel, PostGate
from tests.engine.platform_fixture import ADA, World, open_platform
from tests.memory_channel import MemoryChannel
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quick_previews(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_display, "PREVIEW_AFTER_S", 0.0)
    monkeypatch.setattr(turn_display, "PREVIEW_EVERY_S", 0.02)
    monkeypatch.setattr(outbox, "IDLE_S", 0.02)


def find_said(world: World) -> list[str]:
    return [written.post.text for written in world.platform.posts.values() if written.post.author.is_bot]


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(HANG_LIMIT_S):
        while not holds():
            await anyio.lowlevel.checkpoint()


async def until_said(world: World, *texts: str) -> None:
    await until(lambda: find_said(world) == list(texts))


async def ask_with_a_late_preview(world: World, slow: GatedChannel, *, dies: bool) -> None:
    """One process answers a question. Another sends that answer while the preview of the first is on its way."""
    model_gate = ReplyGate()
    slow.gated = PostGate(lambda content: "thinking" in content.text)
    model = ScriptedModel(ScriptedReply("Short.", before=model_gate))
    other = MemoryChannel(world.platform, ADA)
    async with open_platform(world, accounts={ADA: other}, account_policy=AccountPolicy()):
        async with open_platform(world, model, accounts={ADA: slow}, account_policy=AccountPolicy()):
            world.platform.say(world.general, "ana", "@ada are you there?")
            await model_gate.reached.wait()
            await slow.gated.gate.reached.wait()
            model_gate.open.set()
            await until_said(world, "Short.")
            slow.hangs_after_post = dies
            slow.gated.gate.open.set()
            await until(lambda: bool(slow.sent))
            if not dies:
                await until_said(world, "Short.")
        await until_said(world, "Short.")


@pytest.mark.proves("P1", "V12")
async def test_a_preview_that_is_posted_after_the_answer_is_taken_away() -> None:
    world = World()
    await ask_with_a_late_preview(world, GatedChannel(world.platform, ADA), dies=False)


@pytest.mark.proves("P1", "V12")
async def test_a_preview_whose_process_died_before_noting_it_is_taken_away_by_another() -> None:
    world = World()
    await ask_with_a_late_preview(world, GatedChannel(world.platform, ADA), dies=True)


@pytest.mark.proves("P1")
async def test_two_processes_that_show_the_same_turn_leave_the_answer_alone() -> None:
    world, gate = World(), ReplyGate()
    first = MemoryChannel(world.platform, ADA)
    accounts = [first, MemoryChannel(world.platform, ADA, beside=first)]
    models = [ScriptedModel(ScriptedReply("Short.", halfway=gate)) for _ in range(2)]
    async with (
        open_platform(world, models[0], accounts={ADA: accounts[0]}, account_policy=AccountPolicy()),
        open_platform(world, models[1], accounts={ADA: accounts[1]}, account_policy=AccountPolicy()) as fixture,
    ):
        world.platform.accounts.append(accounts[0])
        world.platform.say(world.general, "ana", "@ada are you there?")
        await gate.reached.wait()
        await fixture.until(lambda: bool(find_said(world)))
        gate.open.set()
        await until_said(world, "Short.")
        await fixture.settled()
        assert find_said(world) == ["Short."]

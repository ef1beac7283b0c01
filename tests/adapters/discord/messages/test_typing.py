"""Typing is shown at once, renewed, and always stopped."""

from __future__ import annotations

import inspect
import logging

import anyio
import pytest
from anyio.abc import TaskGroup

from denizen.adapters.discord.messages.sending import RENEWED_AFTER_S, show_typing
from denizen.domain.errors import Unavailable
from tests.adapters.discord.account_fixture import AccountFixture, running
from tests.timing import HANG_LIMIT_S, controlled_clock

pytestmark = pytest.mark.anyio


class TypingIndicator:
    """Counts how often it was shown; fails when told to."""

    def __init__(self, *, fails: bool = False) -> None:
        self.shown = 0
        self.fails = fails
        self._changed = anyio.Event()

    async def show(self) -> None:
        self.shown += 1
        self._changed.set()
        self._changed = anyio.Event()
        if self.fails:
            raise Unavailable("Discord is away", code="discord_unreachable")

    async def until(self, times: int) -> None:
        with anyio.fail_after(HANG_LIMIT_S):
            while self.shown < times:
                await self._changed.wait()


@pytest.mark.proves("C18")
async def test_people_see_it_at_once_and_again_within_nine_seconds(sim: AccountFixture) -> None:
    async with running(sim) as (account, _), account.typing(sim.place()):
        await sim.discord.until(lambda: sim.discord.typing(sim.general))
        await anyio.wait_all_tasks_blocked()
        assert len(sim.discord.requests_to("POST", "/typing")) == 1
        with controlled_clock() as clock:
            clock.advance(9)
            await sim.discord.until(lambda: len(sim.discord.requests_to("POST", "/typing")) == 2)


@pytest.mark.proves("C18")
async def test_the_typing_sign_is_renewed_before_it_ends() -> None:
    sign = TypingIndicator()
    async with anyio.create_task_group() as tasks, show_typing(tasks, sign.show, renewed_after_s=0.001):
        await sign.until(3)
    usual = inspect.signature(show_typing).parameters["renewed_after_s"].default
    assert usual == RENEWED_AFTER_S <= 9


@pytest.mark.proves("TW17")
async def test_the_typing_sign_stops_when_the_block_fails() -> None:
    sign, left = TypingIndicator(), -1
    async with anyio.create_task_group() as tasks:
        before = len(anyio.get_running_tasks())
        with pytest.raises(ValueError, match="the turn failed"):
            await _fail_while_typing(tasks, sign)
        await anyio.wait_all_tasks_blocked()
        left = len(anyio.get_running_tasks()) - before
        tasks.cancel_scope.cancel()  # what is left would be waited for
    assert left == 0


async def _fail_while_typing(tasks: TaskGroup, sign: TypingIndicator) -> None:
    async with show_typing(tasks, sign.show, renewed_after_s=0.001):
        await sign.until(2)
        raise ValueError("the turn failed")


async def test_the_typing_sign_stops_when_the_block_is_cancelled() -> None:
    sign, left = TypingIndicator(), -1
    async with anyio.create_task_group() as tasks:
        before = len(anyio.get_running_tasks())
        with anyio.CancelScope() as scope:
            async with show_typing(tasks, sign.show, renewed_after_s=0.001):
                await sign.until(2)
                scope.cancel()
                await anyio.sleep_forever()
        await anyio.wait_all_tasks_blocked()
        left = len(anyio.get_running_tasks()) - before
        tasks.cancel_scope.cancel()
    assert left == 0


async def test_a_block_that_ends_at_once_never_waits_for_it() -> None:
    sign = TypingIndicator()
    async with anyio.create_task_group() as tasks, show_typing(tasks, sign.show):
        pass
    assert sign.shown <= 1


async def test_a_fault_does_not_disturb_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    sign = TypingIndicator(fails=True)
    with caplog.at_level(logging.WARNING, "denizen.discord"):
        async with anyio.create_task_group() as tasks, show_typing(tasks, sign.show, renewed_after_s=0.001):
            await sign.until(3)
    assert caplog.messages == ["typing cannot be shown: Discord is away"]


async def test_typing_again_after_a_cancelled_sign_does_not_wait(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        held = sim.discord.faults.hold("POST", "/typing", times=1)
        async with account.typing(sim.place()):
            await held.wait_reached()
        held.release()
        async with account.typing(sim.place()):
            await sim.discord.until(lambda: len(sim.discord.requests_to("POST", "/typing")) == 2)

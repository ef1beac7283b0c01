"""Whose turn it is: nobody waits for all that somebody else wants."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from denizen.adapters.sandbox.sessions import FairQueue
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


async def wait_until_all_wait() -> None:
    """All wait. `wait_all_tasks_blocked` rests for 0.1 s when they do not yet, and here they soon do."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()


class QueueFixture:
    """People at a queue. `order` is who was let in, `inside` who is there now, until they are told to leave."""

    def __init__(self, places: int) -> None:
        self.queue = FairQueue(places)
        self.order: list[str] = []
        self.inside: list[anyio.Event] = []

    async def visit(self, owner: str) -> None:
        async with self.queue.place(owner):
            self.order.append(owner)
            leaves = anyio.Event()
            self.inside.append(leaves)
            await leaves.wait()

    async def let_out(self) -> None:
        """Whoever came in first."""
        self.inside.pop(0).set()
        await wait_until_all_wait()


async def serve(places: int, comers: Sequence[str]) -> list[str]:
    """The order in which they come to their turn."""
    queue_fixture = QueueFixture(places)
    with anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as group:
            for owner in comers:
                group.start_soon(queue_fixture.visit, owner)
                await wait_until_all_wait()
            while queue_fixture.inside:
                await queue_fixture.let_out()
    assert queue_fixture.queue.taken == 0
    return queue_fixture.order


async def test_one_owner_after_the_other_has_a_turn_however_much_one_wants() -> None:
    assert await serve(1, "aaaaaabbc") == list("aabcabaaa")
    assert await serve(2, "aaaaab") == list("aaabaa")
    assert await serve(3, "abc") == list("abc")


async def test_somebody_who_goes_away_holds_nobody_up() -> None:
    queue_fixture = QueueFixture(1)
    with anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as group:
            group.start_soon(queue_fixture.visit, "a")
            await wait_until_all_wait()
            with anyio.CancelScope() as waiting:
                async with anyio.create_task_group() as others:
                    others.start_soon(queue_fixture.visit, "b")
                    others.start_soon(queue_fixture.visit, "b")
                    await wait_until_all_wait()
                    waiting.cancel()
            group.start_soon(queue_fixture.visit, "c")
            await wait_until_all_wait()
            await queue_fixture.let_out()
            await queue_fixture.let_out()
    assert queue_fixture.order == ["a", "c"]
    assert queue_fixture.queue.taken == 0


async def test_a_place_that_is_given_to_somebody_who_goes_away_at_that_moment_is_given_on() -> None:
    queue_fixture = QueueFixture(1)
    with anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as group:
            group.start_soon(queue_fixture.visit, "a")
            await wait_until_all_wait()
            scope = anyio.CancelScope()

            async def give_up() -> None:
                with scope:
                    await queue_fixture.visit("b")

            group.start_soon(give_up)
            await wait_until_all_wait()
            group.start_soon(queue_fixture.visit, "c")
            await wait_until_all_wait()
            queue_fixture.inside.pop(0).set()
            await anyio.lowlevel.checkpoint()
            scope.cancel()
            await wait_until_all_wait()
            while queue_fixture.inside:
                await queue_fixture.let_out()
    assert queue_fixture.order[-1] == "c"
    assert queue_fixture.queue.taken == 0

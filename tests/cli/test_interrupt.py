"""Ctrl-C while an answer is under way."""

from __future__ import annotations

import os
import signal

import anyio
import pytest

from denizen.cli.terminal import stop_on_interrupt, stoppable
from denizen.domain.errors import Unavailable
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


async def test_the_first_one_stops_the_work_which_then_ends_as_it_likes() -> None:
    stopped = anyio.Event()

    async def work() -> str:
        interrupt()
        await stopped.wait()
        return "stopped"

    with anyio.fail_after(HANG_LIMIT_S):
        assert await stoppable(work, stopped.set) == "stopped"


async def test_a_second_one_does_not_wait_for_work_that_does_not_stop() -> None:
    async def work() -> None:
        interrupt()
        await anyio.sleep_forever()

    with anyio.fail_after(HANG_LIMIT_S), pytest.raises(KeyboardInterrupt):
        await stoppable(work, interrupt)


async def test_what_the_work_raises_comes_out_as_it_is() -> None:
    async def work() -> None:
        raise Unavailable("Away.", code="away")

    with pytest.raises(Unavailable, match="Away"):
        await stoppable(work, lambda: None)


async def test_without_an_event_loop_the_first_one_stops_the_work_and_the_second_one_leaves_it() -> None:
    stops: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    with stop_on_interrupt(lambda: stops.append("stop")):
        interrupt()
        assert stops == ["stop"]
        with pytest.raises(KeyboardInterrupt):
            interrupt()
    assert stops == ["stop"]
    assert signal.getsignal(signal.SIGINT) is before

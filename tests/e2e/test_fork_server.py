"""The process that the others are forked from outlives what goes wrong with one of them, and leaves none behind."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from tests.e2e.fork_server import Child, ForkServer, ForkServerGoneError, get_fork_server
from tests.e2e.home import Home
from tests.timing import HANG_LIMIT_S, wait_until

pytestmark = pytest.mark.e2e

ONCE_FULL = """
import errno, os
fork = os.fork
def full():
    os.fork = fork
    raise OSError(errno.EAGAIN, "full")
os.fork = full
"""


@pytest.fixture
def full() -> Generator[ForkServer]:
    """One that cannot fork at first."""
    opened = ForkServer(ONCE_FULL)
    yield opened
    opened.close()


def open_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def close(child: Child) -> None:
    child.stdin.close()
    os.close(child.stdout)
    os.close(child.stderr)


def await_end(child: Child) -> None:
    """Nothing else has its standard output."""
    assert select.select([child.stdout], [], [], HANG_LIMIT_S)[0]
    assert os.read(child.stdout, 1) == b""


def begin(where: ForkServer, home: Home) -> Child:
    """A process that waits for its standard input."""
    return where.start(["--home", str(home.folder), "ask"], home.environment)


def test_a_process_that_nobody_waits_for_does_not_end_it(home: Home) -> None:
    forks = get_fork_server()
    dropped = begin(forks, home)
    dropped._answers.close()
    close(dropped)
    wait_until(lambda: not psutil.pid_exists(dropped.pid))
    assert home.do("--version").code == 0
    assert get_fork_server() is forks


def test_a_signal_to_a_process_that_has_just_ended_is_for_nobody() -> None:
    ended = subprocess.Popen([sys.executable, "-IS", "-c", ""])
    ended.wait()
    answers, answering = socket.socketpair()
    child = Child(ended.pid, answers, (os.open(os.devnull, os.O_WRONLY), *os.pipe()))
    with answering:
        child.kill()
        answering.send(bytes(4))
    assert child.wait(0) == 0
    child.kill()
    close(child)


def test_when_it_cannot_fork_that_is_told_and_when_it_ends_its_children_do(full: ForkServer, home: Home) -> None:
    before = open_files()
    with pytest.raises(BlockingIOError, match="could not fork"):
        begin(full, home)
    assert open_files() == before
    first, second = begin(full, home), begin(full, home)
    full.kill()
    if sys.platform == "linux":
        await_end(first)
    for child in (first, second):
        child.send_signal(signal.SIGKILL)
        await_end(child)
        for _ in range(2):
            with pytest.raises(ForkServerGoneError):
                child.wait(HANG_LIMIT_S)
            child.kill()
        close(child)
    with pytest.raises(ForkServerGoneError):
        begin(full, home)


def test_a_fork_server_that_ended_is_replaced(home: Home) -> None:
    ended = get_fork_server()
    ended.kill()
    assert home.do("--version").code == 0
    assert get_fork_server() is not ended

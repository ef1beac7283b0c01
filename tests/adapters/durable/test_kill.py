"""Real processes, really killed: finished steps run once, interrupted ones again, and each run ends once."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.timing import HANG_LIMIT_S, PROCESS_LIMIT_S

WORKER = Path(__file__).with_name("worker.py")
RESULT = "[10, 20, 30]"
EXPIRY_S = 5.0

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("postgres")]
pytest_plugins = ["tests.postgres"]


class Process:
    """A worker under test; what it prints can be awaited, but not for ever."""

    def __init__(self, database: str, journal: Path, *options: str) -> None:
        self.started = subprocess.Popen(
            [sys.executable, str(WORKER), database, str(journal), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.seen: list[str] = []
        self._watchdog = threading.Timer(PROCESS_LIMIT_S, self.started.kill)
        self._watchdog.start()

    def await_line(self, pattern: str) -> None:
        """Reads on until a line matches; each line counts once."""
        assert self.started.stdout is not None
        for line in self.started.stdout:
            self.seen.append(line.strip())
            if re.fullmatch(pattern, line.strip()):
                return
        raise AssertionError(f"no line {pattern!r} in {self.seen}; {self.end()}")

    def await_lines(self, pattern: str, count: int) -> None:
        for _ in range(count):
            self.await_line(pattern)

    def signal(self, number: signal.Signals) -> None:
        self.started.send_signal(number)

    def end(self) -> str:
        """What it says on standard error until its end."""
        assert self.started.stderr is not None
        said = self.started.stderr.read()
        self.started.wait(timeout=HANG_LIMIT_S)
        return said

    def kill(self) -> None:
        self._watchdog.cancel()
        self.started.kill()
        self.started.wait(timeout=HANG_LIMIT_S)
        for stream in (self.started.stdout, self.started.stderr):
            assert stream is not None
            stream.close()


Start = Callable[..., Process]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal.txt"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "durable.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def start(database: str, journal: Path) -> Generator[Start]:
    with ExitStack() as stack:

        def start_process(*options: str) -> Process:
            process = Process(database, journal, *options)
            stack.callback(process.kill)
            return process

        yield start_process


def count_steps(journal: Path) -> Counter[str]:
    """How often each step of each run began and ended, whoever did it."""
    return Counter(line.rpartition(" ")[0] for line in journal.read_text(encoding="utf-8").splitlines())


def expected_counts(runs: int) -> Counter[str]:
    """What the journal holds when step 2 of each run was interrupted once."""
    expected: Counter[str] = Counter()
    for run in (f"run-{number}" for number in range(runs)):
        for step in (1, 2, 3):
            expected[f"begin {run} {step}"] = 2 if step == 2 else 1
            expected[f"end {run} {step}"] = 1
    return expected


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "terminate"])
def test_a_run_that_was_interrupted_in_a_step_goes_on_there_in_the_next_process(
    start: Start, journal: Path, how: signal.Signals
) -> None:
    first = start("--submit", "1", "--hold")
    first.await_line("begun run-0 2")
    first.signal(how)
    said = first.end()
    assert (first.started.returncode, said) == ((0, "") if how is signal.SIGTERM else (-signal.SIGKILL, ""))
    second = start("--wait", "1")
    second.await_line(re.escape(f"result run-0 {RESULT}"))
    second.await_line("closed")
    assert second.end() == ""
    assert count_steps(journal) == expected_counts(1)


def test_a_run_that_ended_before_the_kill_is_not_touched_again(start: Start, journal: Path) -> None:
    first = start("--submit", "1", "--wait", "1")
    first.await_line(re.escape(f"result run-0 {RESULT}"))
    first.signal(signal.SIGKILL)
    first.end()
    second = start("--submit", "1", "--wait", "1")
    second.await_line(re.escape(f"result run-0 {RESULT}"))
    assert set(count_steps(journal).values()) == {1}


def test_each_run_of_a_killed_process_is_taken_over_by_one_living_process(start: Start, journal: Path) -> None:
    killed = start("--submit", "6", "--hold")
    killed.await_lines(r"begun run-\d 2", 6)
    others = [start("--wait", "6"), start("--wait", "6")]
    for other in others:
        other.await_line("ready")
    killed.signal(signal.SIGKILL)
    for other in others:
        other.await_lines(r"result run-\d \[10, 20, 30\]", 6)
    assert count_steps(journal) == expected_counts(6)


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_process_that_was_silent_too_long_loses_its_runs_and_notices(start: Start, journal: Path) -> None:
    expiry = ("--expiry", str(EXPIRY_S))
    frozen = start("--submit", "1", "--hold", *expiry)
    frozen.await_line("begun run-0 2")
    frozen.signal(signal.SIGSTOP)
    other = start("--wait", "1", *expiry)
    other.await_line(re.escape(f"result run-0 {RESULT}"))
    frozen.signal(signal.SIGCONT)
    frozen.await_line("stopped run-0 2")
    frozen.signal(signal.SIGTERM)
    frozen.await_line("closed")
    assert "silent for too long" in frozen.end()
    assert count_steps(journal) == expected_counts(1)

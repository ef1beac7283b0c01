"""Agents on Discord: answers and mirrored messages a second, backfill, catching up, start and memory.

`denizen run` with one account on a simulated Discord without rate limits, each in a process of its own, on the model
that answers in no time. Baselines are a bot of a few lines on the bare discord.py, in the same run. Takes minutes: the
archive is filled with 100,000 messages, at the pace that is polite towards Discord.

The aim for answers is what Discord lets one bot do: 50 requests a second, of which an answer takes two (typing, reply).
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, least, middle
from benchmarks.processes import CONFIG, Process, child_environment, run_server, running

WARM_UP = 20
ANSWERS = 120
CHANNELS = 8
PLAIN = 4000
ARCHIVED = 100_000
ROOMS = 20
MISSED = 1000
TIMES = 3
SETTLED_S = 2.0
READY = re.compile("account ready")
READY_WITHIN_S = 60.0
STORED_WITHIN_S = 900.0
_POLL_S = 0.005

MORE = """\
channels:
  discord:
    api_url: {api_url}
    gateway_url: {gateway_url}
    accounts: {{{accounts}}}
gate: {{rate_limits: {{per_user_per_hour: 0}}}}
"""


class SimulatorProcess:
    """The process of the simulated Discord (`discord_simulator.py`)."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child
        self.place: dict[str, str] = self._read_answer()

    def do(self, name: str, /, **order: object) -> Any:  # noqa: ANN401 - as the command has it
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps({"do": name, **order}) + "\n")
        self._child.stdin.flush()
        return self._read_answer()

    def _read_answer(self) -> Any:  # noqa: ANN401
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError("the simulated Discord has ended")
        return json.loads(line)


@dataclass(frozen=True, slots=True)
class Home:
    """A home folder with one account, or none."""

    folder: Path

    @property
    def log(self) -> str:
        return (self.folder / "denizen.log").read_text(encoding="utf-8")

    def posts(self) -> int:
        """In the store, while a process works on it. They are numbered and none is deleted."""
        with closing(sqlite3.connect(f"file:{self.folder / 'denizen.db'}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT coalesce(max(position), 0) FROM posts").fetchone()[0]


def measure(folder: Path, model: Process) -> Iterator[Figure]:
    with open_simulator() as simulator:
        yield from start(folder, model, simulator)
        yield from answers(folder, model, simulator)
        yield from catching_up(folder, model, simulator)
        yield from archive(folder, model, simulator)


def start(folder: Path, model: Process, simulator: SimulatorProcess) -> Iterator[Figure]:
    """Each home is started once before, which makes its databases."""
    simulator.do("fill", rooms=10, each=1)
    without_account = make_home(folder / "without-account", model, simulator, token="")
    with_account = make_home(folder / "with-account", model, simulator, token=simulator.do("admit", name="Ada"))
    for home in (without_account, with_account):
        with run(home):
            pass
    without_account_s = least(lambda: _seconds_until(without_account, _answers), TIMES)
    with_account_s = least(lambda: _seconds_until(with_account, until_ready), TIMES)
    yield Figure(
        "denizen run until its account is ready",
        with_account_s,
        "s",
        aim=2.5,
        baseline=without_account_s,
        note="no account",
    )
    quiet = [_idle(without_account) for _ in range(TIMES)]
    connected = [_idle(with_account, until_ready) for _ in range(TIMES)]
    memory = min(memory for memory, _ in connected)
    yield Figure(
        f"resident memory, idle {SETTLED_S:g} s after ready",
        memory,
        "MB",
        aim=125,
        baseline=min(m for m, _ in quiet),
        note="no account",
    )


def answers(folder: Path, model: Process, simulator: SimulatorProcess) -> Iterator[Figure]:
    simulator.do("fill", rooms=CHANNELS, each=1)
    with run_bare(simulator, simulator.do("admit", name="Bare")):
        simulator.do("connected", count=1)
        simulator.do("ask", rooms=CHANNELS, each=WARM_UP)
        bare = {rooms: ANSWERS / simulator.do("ask", rooms=rooms, each=ANSWERS // rooms) for rooms in (1, CHANNELS)}
    simulator.do("connected", count=0)
    home = make_home(folder / "answers", model, simulator, token=simulator.do("admit", name="Ada"))
    with run(home) as server:
        until_ready(home)
        simulator.do("ask", rooms=CHANNELS, each=WARM_UP)
        for rooms in (1, CHANNELS):
            before = server.cpu_ms()
            rates = [ANSWERS / simulator.do("ask", rooms=rooms, each=ANSWERS // rooms) for _ in range(TIMES)]
            cpu_ms = (server.cpu_ms() - before) / (ANSWERS * TIMES)
            name = f"mentions answered a second, {rooms} channel{'s' if rooms > 1 else ''}"
            yield Figure(name, max(rates), "/s", aim=25, baseline=bare[rooms], more_is_better=True, note="bare bot")
            yield Figure("  processor time of each", cpu_ms, "ms CPU")
        yield from _mirrored(home, server, simulator)


def _mirrored(home: Home, server: Process, simulator: SimulatorProcess) -> Iterator[Figure]:
    for rooms in (1, CHANNELS):
        stored, before = home.posts(), server.cpu_ms()
        room_limit = min(PLAIN // rooms, 900)  # more would be let go and read from Discord later
        count = room_limit * rooms
        began_s = simulator.do("say", rooms=rooms, each=room_limit)
        _until_stored(home, stored + count)
        rate = count / (time.monotonic() - began_s)
        name = f"plain messages mirrored a second, {rooms} channel{'s' if rooms > 1 else ''}"
        yield Figure(name, rate, "/s", aim=500, more_is_better=True)
        yield Figure("  processor time of each", (server.cpu_ms() - before) / count, "ms CPU")


def catching_up(folder: Path, model: Process, simulator: SimulatorProcess) -> Iterator[Figure]:
    """The last of the missed messages is a question."""
    simulator.do("fill", rooms=1, each=1)
    home = make_home(folder / "missed", model, simulator, token=simulator.do("admit", name="Ada"))
    seconds: list[float] = []
    with run(home):
        until_ready(home)
        simulator.do("ask", rooms=1, each=1)
    for _ in range(TIMES):
        simulator.do("connected", count=0)
        simulator.do("say", rooms=1, each=MISSED - 1)
        last = simulator.do("question")
        with run(home):
            ready_s = until_ready(home)
            seconds.append(simulator.do("answered", message=last) - ready_s)
    name = f"catching up {MISSED} messages, from ready to the last answer"
    yield Figure(name, middle(seconds), "s", aim=4, note="the first use of the model layer included")


def archive(folder: Path, model: Process, simulator: SimulatorProcess) -> Iterator[Figure]:
    rooms = simulator.do("fill", rooms=ROOMS, each=ARCHIVED // ROOMS)
    home = make_home(folder / "archive", model, simulator, token=simulator.do("admit", name="Ada"))
    straight = read_bare(simulator, home_token(home), rooms[:2])
    with run(home) as server:
        began_s, before_mb, before_ms = until_ready(home), server.memory_mb(), server.cpu_ms()
        _until_stored(home, ARCHIVED)
        rate, cpu_ms = ARCHIVED / (time.monotonic() - began_s), server.cpu_ms() - before_ms
        time.sleep(SETTLED_S)
        after_mb = server.memory_mb()
    note = "baseline: raw paging without a pause"
    yield Figure("backfilled posts a second", rate, "/s", aim=350, baseline=straight, more_is_better=True, note=note)
    yield Figure("  processor time of 100 posts", cpu_ms / ARCHIVED * 100, "ms CPU")
    yield Figure(
        f"resident memory after {ARCHIVED} archived messages",
        after_mb,
        "MB",
        aim=before_mb + 40,
        baseline=before_mb,
        note="right after ready",
    )


# --- processes -------------------------------------------------------------------------------------------------------


@contextmanager
def open_simulator() -> Generator[SimulatorProcess]:
    command = [sys.executable, "-m", "benchmarks.discord_simulator"]
    with subprocess.Popen(
        command, env=child_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            yield SimulatorProcess(child)
        finally:
            child.terminate()


def make_home(folder: Path, model: Process, simulator: SimulatorProcess, *, token: str) -> Home:
    folder.mkdir(parents=True)
    more = MORE.format(**simulator.place, accounts="denizen: '${DENIZEN_TOKEN}'" if token else "")
    (folder / "denizen.yaml").write_text(CONFIG.format(port=model.port) + more, encoding="utf-8")
    (folder / "secrets.env").write_text(f"DENIZEN_TOKEN={token}\n", encoding="utf-8")
    (folder / "secrets.env").chmod(0o600)
    return Home(folder)


def home_token(home: Home) -> str:
    return (home.folder / "secrets.env").read_text(encoding="utf-8").partition("=")[2].strip()


@contextmanager
def run(home: Home) -> Generator[Process]:
    with run_server(home.folder, log=home.folder / "denizen.log") as server:
        yield server


@contextmanager
def run_bare(simulator: SimulatorProcess, token: str) -> Generator[None]:
    with running(_bare(simulator, token)):
        yield


def read_bare(simulator: SimulatorProcess, token: str, rooms: Sequence[int]) -> float:
    """Posts a second."""
    command = [*_bare(simulator, token), *map(str, rooms)]
    done = subprocess.run(command, env=child_environment(), capture_output=True, check=True)
    read = json.loads(done.stdout)
    return read["posts"] / read["seconds"]


def _bare(simulator: SimulatorProcess, token: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "benchmarks.bare_bot",
        simulator.place["api_url"],
        simulator.place["gateway_url"],
        token,
    ]


def until_ready(home: Home) -> float:
    """When the account was ready, on the clock of the machine."""
    deadline_s = time.monotonic() + READY_WITHIN_S
    while not READY.search(home.log):
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"the account does not become ready:\n{home.log}")
        time.sleep(_POLL_S)
    return time.monotonic()


def _answers(_: Home) -> float:
    """`run_server` has waited for that."""
    return time.monotonic()


def _seconds_until(home: Home, reached: Callable[[Home], float]) -> float:
    started_s = time.monotonic()
    with run(home):
        return reached(home) - started_s


def _idle(home: Home, reached: Callable[[Home], float] = _answers) -> tuple[float, float]:
    with run(home) as server:
        reached(home)
        time.sleep(SETTLED_S)
        return server.memory_mb(), server.cpu_ms()


def _until_stored(home: Home, count: int) -> None:
    deadline_s = time.monotonic() + STORED_WITHIN_S
    while (stored := home.posts()) < count:
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"{stored} of {count} posts are stored")
        time.sleep(_POLL_S)

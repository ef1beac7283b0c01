"""Starting: commands from start to end, `denizen run` until it answers, its memory, the first turn after it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.client import Client
from benchmarks.figures import Figure, least, middle
from benchmarks.processes import Process, bare_python_mb, denizen_command, make_home, run_server, time_command

TIMES = 5
QUESTIONS = 10
SETTLED_S = 2.0


def measure(folder: Path, model: Process) -> Iterator[Figure]:
    home = make_home(folder / "start", model.port)
    bare_s = least(lambda: time_command([sys.executable, "-c", "pass"])[0], TIMES)
    version_s = least(lambda: time_command([*denizen_command(home)[:1], "--version"])[0], TIMES)
    yield Figure("denizen --version", version_s, "s", aim=0.15, baseline=bare_s, note="baseline: bare python")
    first_s, _ = _time_to_ready(home)
    ready = [_time_to_ready(home) for _ in range(TIMES)]
    cpu_ms = min(cpu for _, cpu in ready)
    yield Figure("denizen run until /health answers", min(wall for wall, _ in ready), "s", aim=0.9, baseline=bare_s)
    yield Figure("  processor time of it", cpu_ms, "ms CPU")
    yield Figure("  the very first start, which makes the databases", first_s, "s")
    yield from _after_start(home)
    asked = [time_command([*denizen_command(home), "ask", "hello"]) for _ in range(TIMES)]
    yield Figure("denizen ask, one shot", min(wall for wall, _ in asked), "s", aim=1.0, baseline=bare_s)
    yield Figure("  processor time of it", min(cpu for _, cpu in asked) * 1e3, "ms CPU")
    yield from _beside_server(home, bare_s)


def _beside_server(home: Path, bare_s: float) -> Iterator[Figure]:
    command = [*denizen_command(home), "ask", "hello"]
    with run_server(home) as server:
        time.sleep(SETTLED_S)
        time_command(command)  # the first turn of a server takes longer
        before_ms = server.cpu_ms()
        asked = [time_command(command) for _ in range(QUESTIONS)]
        served_ms = (server.cpu_ms() - before_ms) / QUESTIONS
    yield Figure(
        "denizen ask beside a running server, median", middle(wall for wall, _ in asked), "s", aim=0.15, baseline=bare_s
    )
    yield Figure("  processor time of it", middle(cpu for _, cpu in asked) * 1e3, "ms CPU")
    yield Figure("  processor time of the server for it", served_ms, "ms CPU")


def _time_to_ready(home: Path) -> tuple[float, float]:
    """Seconds, and processor time in ms."""
    started = time.perf_counter()
    with run_server(home) as server:
        return time.perf_counter() - started, server.cpu_ms()


def _after_start(home: Path) -> Iterator[Figure]:
    memory, firsts, at_once = list[float](), list[float](), list[float]()
    for _ in range(3):
        with run_server(home) as server:
            time.sleep(SETTLED_S)
            memory.append(server.memory_mb())
            firsts.append(Client(server).ask())
        with run_server(home) as server:
            at_once.append(Client(server).ask())
    yield Figure(
        f"resident memory, idle {SETTLED_S:g} s after ready", min(memory), "MB", aim=95, baseline=bare_python_mb()
    )
    yield Figure(f"first turn, asked {SETTLED_S:g} s after ready", min(firsts), "s", aim=0.4)
    yield Figure("first turn, asked in the moment of being ready", min(at_once), "s")

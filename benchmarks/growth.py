"""One session that grows: a turn must not cost more because many came before it.

The window of messages that a prompt holds is full after some dozens of turns; from there on the cost has to stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.client import Client, ask_in_a_row, stats
from benchmarks.figures import Figure, middle
from benchmarks.processes import Process, make_used_home, run_server

STORED = (10, 100, 1000)
MEASURED = 40


def measure(folder: Path, model: Process) -> Iterator[Figure]:
    with run_server(make_used_home(folder / "growth", model.port)) as server:
        ask_in_a_row(Client(server), 20)
        client = Client(server, session="long")
        done, full_ms = 0, None
        for stored in STORED:
            ask_in_a_row(client, stored - done)
            stats(model)
            before = server.cpu_ms()
            seconds = ask_in_a_row(client, MEASURED)
            cpu_ms = (server.cpu_ms() - before) / MEASURED
            own = stats(model)["seconds"]
            done = stored + MEASURED
            overhead_ms = middle(all_s - model_s for all_s, model_s in zip(seconds, own, strict=True)) * 1e3
            # Half as much again is noise of a busy machine; ten times the history would be ten times the cost.
            last = stored == STORED[-1]
            aim = full_ms * 1.5 if last and full_ms is not None else None
            yield Figure(f"a turn after {stored} in its session", overhead_ms, "ms", aim=aim)
            yield Figure("  processor time of it", cpu_ms, "ms CPU")
            full_ms = overhead_ms

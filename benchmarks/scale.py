"""Measures what a message and a turn cost a fleet that serves many servers: a gateway and one to three workers.

    python -m benchmarks scale [POSTGRES_URL]

Simulated: 200 servers with 50,000 members who say 100 messages a second, of which each fiftieth is a question to the
agent, on a model that answers in no time. Processor time is counted for each process, so that a shared machine changes
it little; how long answers take depends on the machine. The database is empty; without a URL a Postgres is started.
`GUILDS`, `MEMBERS` (of each) and `TALK_S` in the environment change how much.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.discord_account import SimulatorProcess, open_simulator
from benchmarks.discord_account import make_home as make_discord_home
from benchmarks.in_flight import open_database
from benchmarks.processes import Process, compile_sources, run_model, run_server

GUILDS = int(os.environ.get("GUILDS", "200"))
MEMBERS = int(os.environ.get("MEMBERS", "250"))
SECONDS = float(os.environ.get("TALK_S", "60"))
PER_S = 100.0
ASKED_EVERY = 50
WORKERS = (1, 2, 3)


def measure(home: Path, simulator: SimulatorProcess, workers: int) -> None:
    with ExitStack() as stack:
        gateway = stack.enter_context(run_server(home, "--role", "gateway", "--name", f"gateway-{workers}"))
        names = [f"worker-{workers}-{number}" for number in range(workers)]
        fleet = [stack.enter_context(run_server(home, "--role", "worker", "--name", name)) for name in names]
        simulator.do("connected", count=1)
        simulator.do("talk", for_s=1, per_s=PER_S, asked_every=ASKED_EVERY)
        before = [_count_cpu_ms([gateway]), _count_cpu_ms(fleet)]
        found = simulator.do("talk", for_s=SECONDS, per_s=PER_S, asked_every=ASKED_EVERY)
        gateway_ms, fleet_ms = _count_cpu_ms([gateway]) - before[0], _count_cpu_ms(fleet) - before[1]
        print(
            f"{workers} workers: {found['answered']:.0f} of {found['asked']:.0f} questions among {found['said']:.0f} "
            f"messages answered, in {found['middle_s']:.1f} s in the middle and {found['most_s']:.1f} s at most; "
            f"gateway {gateway_ms / found['said']:.1f} ms CPU a message and {gateway.memory_mb():.0f} MB, "
            f"workers {fleet_ms / max(found['answered'], 1):.0f} ms CPU a turn",
            flush=True,
        )


def _count_cpu_ms(processes: list[Process]) -> float:
    return sum(each.cpu_ms() for each in processes)


def main(url: str = "") -> None:
    compile_sources()
    with ExitStack() as stack:
        database = stack.enter_context(open_database(url))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model = stack.enter_context(run_model())
        simulator = stack.enter_context(open_simulator())
        home = make_discord_home(folder / "scale", model, simulator, token=simulator.do("admit", name="Ada"))
        with (home.folder / "denizen.yaml").open("a", encoding="utf-8") as config:
            config.write(f'store: {{url: "{database}"}}\n')
        simulator.do("grow", guilds=GUILDS, members=MEMBERS)
        print(f"{GUILDS} servers with {GUILDS * MEMBERS} members, {PER_S:.0f} messages a second for {SECONDS:.0f} s")
        for workers in WORKERS:
            measure(home.folder, simulator, workers)

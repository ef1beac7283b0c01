"""How many turns a second a fleet answers with one worker and with two, on a model that takes a second.

    python -m benchmarks fleet [POSTGRES_URL]

The database is empty; without a URL a Postgres is started for it. A web process, the workers, the model and Postgres
share the machine, so with few cores it shows what they leave to the workers.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.client import ask_side_by_side
from benchmarks.processes import Process, compile_sources, make_home, run_model, run_server

MODEL_S = 1.0
CLIENTS = (8, 64)
EACH = 4


def measure(home: Path, workers: int) -> None:
    with ExitStack() as stack:
        web = stack.enter_context(run_server(home, "--role", "web", "--name", f"web-{workers}"))
        names = [f"worker-{workers}-{number}" for number in range(workers)]
        fleet = [stack.enter_context(run_server(home, "--role", "worker", "--name", name)) for name in names]
        ask_side_by_side(web, 4 * workers, 2)
        for clients in CLIENTS:
            before = [each.cpu_ms() for each in (web, *fleet)]
            rate = ask_side_by_side(web, clients, EACH)
            cpu = [each.cpu_ms() - used for each, used in zip((web, *fleet), before, strict=True)]
            own = ", ".join(f"{used / (clients * EACH):.0f}" for used in cpu)
            print(f"{workers} workers, {clients:3} clients: {rate:6.1f} turns/s; ms CPU a turn (web, workers): {own}")


def main(url: str = "") -> None:
    compile_sources()
    with ExitStack() as stack:
        if not url:
            sys.path.insert(0, str(Path(__file__).parents[1]))
            from tests.postgres import new_database, open_postgres_server

            url = stack.enter_context(new_database(stack.enter_context(open_postgres_server())))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model: Process = stack.enter_context(run_model(MODEL_S))
        home = make_home(folder / "fleet", model.port)
        with (home / "denizen.yaml").open("a", encoding="utf-8") as config:
            config.write(f'store: {{url: "{url}"}}\n')
        for workers in (1, 2):
            measure(home, workers)

"""Whether 10,000 turns in flight survive the loss of a worker, on a model that takes a second.

    python -m benchmarks in_flight [POSTGRES_URL]

All turns are handed in at once, by a process of the role web, each in a conversation of its own; three workers take
them up, and one is killed when a tenth has ended. The database is empty; without a URL a Postgres is started for it.
`TURNS=1000` in the environment asks for fewer.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import psycopg

from benchmarks.client import stats
from benchmarks.processes import compile_sources, make_home, run_model, run_server
from denizen.app.build import FleetMember, OpenOptions, open_denizen
from denizen.domain.conversation import Place
from denizen.domain.fleet import FleetRole
from denizen.domain.ids import AgentName
from denizen.domain.message import Author, TextPart
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.turn import Sender, TurnRequest, TurnStatus

TURNS = int(os.environ.get("TURNS", "10000"))
WORKERS = 3
MODEL_S = 1.0
AT_ONCE = 20
LOOK_EVERY_S = 0.5
_STATES = "SELECT status, count(*) FROM turns GROUP BY status"
_ANSWERS = "SELECT count(*), count(DISTINCT turn_id) FROM messages WHERE role = 'assistant'"
_UNDER_WAY = "SELECT count(*) FROM denizen_durable.workflow_status WHERE status = 'PENDING'"


def build_request(number: int) -> TurnRequest:
    who = Principal(PrincipalKind.API_KEY, f"person-{number}", "person", frozenset({RoleName.MEMBER}))
    return TurnRequest(
        agent=AgentName("denizen"),
        place=Place("api", f"room-{number}"),
        sender=Sender(Author(f"person-{number}", "person"), who),
        parts=(TextPart("hello"),),
        platform_id=f"message-{number}",
    )


async def hand_in(home: Path) -> float:
    """Hands all turns in. Returns how long that took, in seconds."""
    began_s = time.perf_counter()
    async with open_denizen(home, OpenOptions(rescue=True, fleet=FleetMember(FleetRole.WEB, "hands-in"))) as denizen:
        numbers = iter(range(TURNS))

        async def submit() -> None:
            for number in numbers:
                await denizen.turns.submit(build_request(number))

        async with anyio.create_task_group() as group:
            for _ in range(AT_ONCE):
                group.start_soon(submit)
        return time.perf_counter() - began_s


def count_ended(connection: psycopg.Connection[Any]) -> dict[str, int]:
    return {str(status): int(count) for status, count in connection.execute(_STATES).fetchall()}


@contextmanager
def open_database(url: str) -> Generator[str]:
    if url:
        yield url
        return
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.postgres import new_database, open_postgres_server

    with open_postgres_server() as server, new_database(server) as database:
        yield database


def follow(connection: psycopg.Connection[Any], until: int) -> tuple[float, float]:
    """Waits until so many have ended. Returns how long that took, and the longest time in which none ended, in s."""
    began_s = last_s = time.perf_counter()
    longest_s, ended = 0.0, 0
    while ended < until:
        time.sleep(LOOK_EVERY_S)
        states = count_ended(connection)
        now, now_s = sum(count for status, count in states.items() if status != TurnStatus.OPEN), time.perf_counter()
        if now > ended:
            longest_s, last_s, ended = max(longest_s, now_s - last_s), now_s, now
    return time.perf_counter() - began_s, longest_s


def main(url: str = "") -> None:
    compile_sources()
    with ExitStack() as stack:
        database = stack.enter_context(open_database(url))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model = stack.enter_context(run_model(MODEL_S))
        home = make_home(folder / "fleet", model.port)
        with (home / "denizen.yaml").open("a", encoding="utf-8") as config:
            config.write(f'store: {{url: "{database}"}}\ngate: {{rate_limits: {{per_user_per_hour: 0}}}}\n')
        print(f"{TURNS} turns handed in within {anyio.run(hand_in, home):.0f} s", flush=True)
        names = [f"worker-{number}" for number in range(WORKERS)]
        workers = [stack.enter_context(run_server(home, "--role", "worker", "--name", name)) for name in names]
        connection = stack.enter_context(psycopg.connect(database, autocommit=True))
        follow(connection, TURNS // 10)
        row = connection.execute(_UNDER_WAY).fetchone()
        workers[0].child.kill()
        cpu_ms = [each.cpu_ms() for each in workers[1:]]
        left = TURNS - TURNS // 10
        took_s, longest_s = follow(connection, TURNS)
        used = sum(each.cpu_ms() for each in workers[1:]) - sum(cpu_ms)
        answers, answered = connection.execute(_ANSWERS).fetchone() or (0, 0)
        requests = len(stats(model)["seconds"])
        print(f"one of {WORKERS} workers killed with {row[0] if row else 0} turns under way in all")
        print(f"ended: {count_ended(connection)}; {answers} answers to {answered} turns; {requests} model requests")
        print(f"the other {left} took {took_s:.0f} s ({left / took_s:.1f}/s, {used / left:.0f} ms CPU each)")
        print(f"longest time in which no turn ended: {longest_s:.0f} s")

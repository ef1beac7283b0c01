"""What a plain turn costs, counted: a busy machine changes no count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from denizen.app.build import OpenOptions, open_denizen
from denizen.app.model_choice import ModelChoice
from denizen.domain.turn import TurnStatus
from denizen.testing.model_server import ModelAnswer, model_server
from tests.app.home_folder import Home, make_request
from tests.timing import poll

pytestmark = pytest.mark.anyio

TURNS = 5
MOST_STATEMENTS = 30
"""In the store and in the durable log, those that begin a transaction among them."""
MOST_COMMITS = 6
"""Of the message with its turn, of what happened in it, and of the run: its begin, its one step twice, and its end."""


@contextmanager
def counting() -> Generator[Counter[str]]:
    """Counts statements and commits of all engines, and the ends of runs in the durable log."""
    counts = Counter[str]()
    ending: set[sa.Connection] = set()

    def count_statement(connection: sa.Connection, _cursor: object, statement: str, *_: object) -> None:
        counts["statements"] += 1
        if "INTO main.workflow_output" in statement:
            ending.add(connection)

    def count_commit(connection: sa.Connection) -> None:
        counts["commits"] += 1
        counts["ends"] += connection in ending
        ending.discard(connection)

    listeners = {"before_cursor_execute": count_statement, "commit": count_commit}
    for name, listener in listeners.items():
        event.listen(sa.Engine, name, listener)
    try:
        yield counts
    finally:
        for name, listener in listeners.items():
            event.remove(sa.Engine, name, listener)


CONFIG = """
models:
  providers: {{lab: {{kind: openai-compatible, base_url: "{url}"}}}}
  aliases: {{balanced: lab/one}}
"""


async def wait_for_end(counts: Counter[str]) -> None:
    """The durable log learns that a run is over beside what comes next, so that it would count for the next turn."""

    async def is_over() -> bool:
        return counts["ends"] == 1

    await poll(is_over)


async def test_a_plain_turn_makes_few_statements_and_commits_and_one_model_request(home: Home) -> None:
    least: dict[str, int] = {}
    async with model_server() as server:
        home.write(CONFIG.format(url=server.openai_url))
        server.script(*[ModelAnswer(text="Hello.")] * (TURNS + 1))
        with counting() as counts:
            async with open_denizen(home.path, OpenOptions(ModelChoice())) as denizen:
                await denizen.turns.ask(make_request(denizen, "hello", "first"))
                await wait_for_end(counts)
                for number in range(TURNS):
                    counts.clear()
                    done = await denizen.turns.ask(make_request(denizen, "hello", f"m{number}"))
                    assert done.status is TurnStatus.DONE
                    await wait_for_end(counts)
                    # Other work may go on beside a turn, so the cheapest one counts.
                    least = {name: min(least.get(name, count), count) for name, count in counts.items()}
        assert len(server.bodies) == TURNS + 1
    assert 0 < least["statements"] <= MOST_STATEMENTS, least
    assert 0 < least["commits"] <= MOST_COMMITS, least

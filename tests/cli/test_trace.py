"""`denizen trace` of a turn whose model was chosen for the question."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from denizen.adapters.store import open_store
from denizen.cli.main import run
from denizen.domain.clock import SystemClock
from denizen.domain.routing import Complexity, Route
from denizen.domain.turn import TurnResult, TurnStatus
from tests.contracts.store.records import at, make_step, make_turn, open_conversation


@pytest.mark.proves("S1")
def test_the_route_its_reason_and_the_request_to_the_router_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fill() -> None:
        store = await open_store(f"sqlite:///{tmp_path / 'denizen.db'}", clock=SystemClock())
        _, session = await open_conversation(store)
        turn = make_turn(session, "turn_1")
        route = Route.of(Complexity.COMPLEX, "a crash to find")
        async with store.work() as work:
            await work.turns.open(turn)
            await work.turns.add_step(replace(make_step(turn, 0, model="acme/small"), purpose="route"))
            await work.turns.add_step(make_step(turn, 1, model="acme/large"))
            await work.turns.close(
                replace(
                    turn, status=TurnStatus.DONE, closed_at=at(1), result=TurnResult(reply="It is fixed."), route=route
                )
            )
        await store.aclose()

    anyio.run(fill)
    assert run(["--home", str(tmp_path), "trace", "--last"]) == 0
    said = capsys.readouterr().out
    for line in (
        "route: complex, so quality with at most 25 steps, by router: a crash to find\n",
        "steps: 1, with native tool calls\n",
        "  step 0 route on acme/small: ",
        "  step 1 act on acme/large: ",
    ):
        assert line in said
    assert run(["--home", str(tmp_path), "trace", "--last", "--json"]) == 0
    assert '"route": {"complexity": "complex", "max_steps": 25, "model": "quality"' in capsys.readouterr().out

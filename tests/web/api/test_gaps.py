"""What no document answers, and the review of proposed answers, over HTTP."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from denizen.engine.knowledge.coverage import MAX_GAPS
from tests.timing import HANG_LIMIT_S
from tests.web.gap_fixture import GAP, NOW, open_gaps

pytestmark = pytest.mark.anyio


async def test_admins_read_what_was_asked_in_public_and_how_often_in_private(tmp_path: Path) -> None:
    async with open_gaps(tmp_path) as server:
        status, told = await server.ask("GET", "/api/gaps")
        assert (status, told["total"], told["hidden"], told["days"]) == (200, 3, 1, 30)
        (gap,) = told["gaps"]
        assert (gap["question"], gap["times"], gap["askers"]) == ("How much is a berth?", 2, 2)
        assert "secret" not in str(told)


@pytest.mark.parametrize("days", ["0", "-1", "x", "99999999999999999999", "²"])
async def test_days_that_are_no_number_of_days_are_refused(tmp_path: Path, days: str) -> None:
    async with open_gaps(tmp_path) as server:
        assert (await server.ask("GET", f"/api/gaps?days={days}"))[0] == 400


async def test_the_report_looks_at_the_newest_only_and_says_so(tmp_path: Path) -> None:
    async with open_gaps(tmp_path) as server:
        async with server.store.work() as work:
            for number in range(MAX_GAPS):
                when = NOW + timedelta(seconds=1 + number)
                await work.gaps.add(replace(GAP, id=f"gap_b{number}", question="When is the bus?", created_at=when))
        _, told = await server.ask("GET", "/api/gaps")
        assert [(gap["question"], gap["times"]) for gap in told["gaps"]] == [("When is the bus?", MAX_GAPS)]
        assert (told["total"], told["hidden"], told["truncated"]) == (MAX_GAPS, 0, True)
        assert (await server.ask("POST", "/api/gaps/gap_1/close"))[0] == 404
        assert await server.ask("POST", "/api/gaps/gap_b0/close") == (200, {"closed": MAX_GAPS})
        _, told = await server.ask("GET", "/api/gaps")
        assert (told["total"], told["hidden"], told["truncated"]) == (3, 1, False)


async def test_members_are_told_nothing(tmp_path: Path) -> None:
    async with open_gaps(tmp_path) as server:
        for method, path in (
            ("GET", "/api/gaps"),
            ("POST", "/api/gaps/gap_1/close"),
            ("GET", "/api/gaps/proposals"),
            ("POST", "/api/gaps/proposals/prop_1"),
        ):
            assert (await server.ask(method, path, key="key-of-ann"))[0] == 403


async def test_a_gap_is_closed_with_its_like_and_a_private_one_is_not_there(tmp_path: Path) -> None:
    async with open_gaps(tmp_path) as server:
        assert (await server.ask("POST", "/api/gaps/gap_2/close"))[0] == 404
        assert await server.ask("POST", "/api/gaps/gap_1/close") == (200, {"closed": 2})
        assert (await server.ask("POST", "/api/gaps/gap_1/close"))[0] == 404
        assert (await server.ask("GET", "/api/gaps"))[1]["gaps"] == []


async def test_a_proposal_is_shown_as_the_file_that_it_becomes_and_accepted(tmp_path: Path) -> None:
    async with open_gaps(tmp_path) as server:
        _, (shown,) = await server.ask("GET", "/api/gaps/proposals")
        assert (shown["id"], shown["answer"], shown["message"]["author"]) == ("prop_1", "Ten euros.", "Ben")
        assert "+> Ten euros." in shown["document"]["diff"]
        status, told = await server.ask("POST", "/api/gaps/proposals/prop_1", decision="accept", text="Twelve euros.")
        assert (status, told["status"]) == (200, "accepted")
        with anyio.fail_after(HANG_LIMIT_S):
            await server.engine.sync.wait((await server.engine.sync.list_runs())[0])
        ((name, text),) = server.engine.files().items()
        assert name == f"docs/learned/{shown['document']['file']}"
        assert "> Twelve euros.\n\nAfter Ben (id 2), edited by api\\_key:ada, on " in text
        assert 'accepted_by: "api_key:ada"' in text
        assert (await server.ask("GET", "/api/gaps"))[1]["gaps"] == []
        assert (await server.ask("GET", "/api/gaps/proposals"))[1] == []
        assert (await server.ask("POST", "/api/gaps/proposals/prop_1", decision="reject"))[0] == 409


async def test_a_proposal_is_rejected_and_only_decisions_are_taken(tmp_path: Path) -> None:
    async with open_gaps(tmp_path) as server:
        assert (await server.ask("POST", "/api/gaps/proposals/prop_1", decision="maybe"))[0] == 400
        assert (await server.ask("POST", "/api/gaps/proposals/prop_2", decision="reject"))[0] == 404
        decided = await server.ask("POST", "/api/gaps/proposals/prop_1", decision="reject", reason="No.")
        assert decided == (200, {"status": "rejected", "sync": ""})
        assert (await server.ask("GET", "/api/gaps/proposals"))[1] == []

"""What no document answers, and the review of proposed answers, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from starlette.applications import Starlette

from denizen.domain.conversation import Place
from denizen.domain.gap import GapKind, KnowledgeGap
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.proposal import Proposal, ProposedAnswer
from denizen.engine.knowledge.coverage import MAX_GAPS, GapReport
from denizen.testing.memory_durable import MemoryDurable
from denizen.testing.temporary_store import TemporaryStore
from denizen.web.http.dependencies import GapServices
from tests.clock import ManualClock
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture
from tests.engine.knowledge.test_learning import build_learning
from tests.timing import HANG_LIMIT_S
from tests.web_fixture import ADA, ANN, open_web

pytestmark = pytest.mark.anyio

NOW = ManualClock().now()
GAP = KnowledgeGap(
    id="gap_1",
    agent=AgentName("ada"),
    question="How much is a berth?",
    asker="platform_user:discord:1",
    place=Place("discord", "1"),
    is_private=False,
    kind=GapKind.UNKNOWN,
    turn_id=TurnId("t"),
    created_at=NOW,
)
PRIVATE = replace(GAP, id="gap_2", question="Is my secret safe?", is_private=True)
PROPOSAL = Proposal(
    id="prop_1",
    answer=ProposedAnswer(
        place=GAP.place,
        post="7",
        text="Ten euros.",
        author="platform_user:discord:2",
        author_name="Ben",
        link="https://discord.com/channels/9/1/7",
        said_at=NOW,
    ),
    proposer="platform_user:discord:3",
    created_at=NOW,
    question=GAP.question,
    asker=GAP.asker,
    gap_id=GAP.id,
)


@dataclass
class GapFixture:
    app: Starlette
    store: TemporaryStore
    client: httpx2.AsyncClient
    engine: KnowledgeFixture

    async def ask(self, method: str, path: str, *, key: str = "key-of-ada", **body: Any) -> tuple[int, Any]:
        answer = await self.client.request(method, path, headers={"x-api-key": key}, json=body or None)
        return answer.status_code, answer.json()


@asynccontextmanager
async def open_gaps(root: Path) -> AsyncGenerator[GapFixture]:
    engines: list[KnowledgeFixture] = []

    def make(store: TemporaryStore, durable: MemoryDurable, clock: ManualClock) -> GapServices:
        engine = KnowledgeFixture(root, store=store, durable=durable)
        engines.append(engine)
        return GapServices(GapReport(store, clock), build_learning(engine))

    async with open_web(keys=[ADA, ANN], make_gaps=make) as web, web.client() as client:
        async with web.store.work() as work:
            for gap in (GAP, PRIVATE, replace(GAP, id="gap_3", asker="platform_user:discord:4")):
                await work.gaps.add(gap)
            await work.proposals.add(PROPOSAL)
        yield GapFixture(web.app, web.store, client, engines[0])


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

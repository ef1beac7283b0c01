"""A server with gaps and a proposed answer, for tests of their review over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
from starlette.applications import Starlette

from denizen.domain.conversation import Place
from denizen.domain.gap import GapKind, KnowledgeGap
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.proposal import Proposal, ProposedAnswer
from denizen.engine.knowledge.coverage import GapReport
from denizen.testing.memory_durable import MemoryDurable
from denizen.testing.temporary_store import TemporaryStore
from denizen.web.http.dependencies import GapServices
from tests.clock import ManualClock
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, build_learning
from tests.web_fixture import ADA, ANN, open_web

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

"""The search of documents over HTTP: what an agent's own tool finds, for whom the gate lets."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from denizen.builtin_skills.knowledge import skill
from denizen.domain.agent import Agent, ToolAccess
from denizen.domain.ids import AgentName
from denizen.domain.verdict import Decision
from denizen.engine.audit.audit_log import read_log
from denizen.engine.configuration.tool_policy import GatePolicy, ToolRule
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.knowledge.index import DocumentSearch
from denizen.skill import SkillToolset
from denizen_sdk import ApiError, DenizenClient
from denizen_sdk.knowledge import DocumentPassage
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, write
from tests.skill_fixture import ServicesFixture
from tests.web_fixture import ANN, BEN, LOCAL, WebFixture, open_web

pytestmark = pytest.mark.anyio

PATH = "/api/docs/search"
GUIDE = "# Guide\n\n## Hours\n\nThe pool opens at noon."


@asynccontextmanager
async def open_documents(home: Path, policy: GatePolicy | None = None) -> AsyncGenerator[WebFixture]:
    """A server whose agent `denizen` searches the source `site` and a file that all share; `mute` has no such tool."""
    notes = write(home / "notes", {"guide.md": GUIDE, "b.md": "Roses."})
    shared = write(home / "shared", {"rules.md": "No running at the pool."})

    def find_shared(skill: str) -> Path:
        del skill
        return shared

    agents = [Agent(AgentName("denizen")), Agent(AgentName("mute"), tool_access=ToolAccess(tools=("weather",)))]
    async with KnowledgeFixture(home) as engine:
        await engine.add(notes, "site")
        await engine.run()
        await engine.indexing.catch_up()
        services = ServicesFixture(home).services()
        services = replace(
            services,
            search_documents=DocumentSearch(engine.store, engine.library, BudgetedEmbedder()),
            folders=replace(services.folders, shared=find_shared),
        )
        toolset = SkillToolset(skill, services)
        async with open_web(keys=[ANN, BEN], agents=agents, policy=policy, more=[toolset]) as web:
            yield web


async def ask(web: WebFixture, key: str = "key-of-ann", **parameters: Any) -> tuple[int, Any]:
    async with web.client(**{"x-api-key": key}) as client:
        answer = await client.get(PATH, params=parameters)
    return answer.status_code, answer.json()


def sdk(web: WebFixture, key: str = "key-of-ann") -> DenizenClient:
    return DenizenClient(LOCAL, key, transport=httpx2.ASGITransport(web.app))


async def test_a_program_finds_what_the_agents_tool_finds_and_the_log_says_who_looked(tmp_path: Path) -> None:
    async with open_documents(tmp_path) as web, sdk(web) as client:
        guide = DocumentPassage("docs/site/guide.md", 1, 5, "Guide > Hours", GUIDE, "site")
        rules = DocumentPassage("shared/rules.md", 1, 1, "", "No running at the pool.")
        assert await client.search_docs("When does the pool open?") == (guide, rules)
        assert await client.search_docs("pool", limit=1) == (guide,)
        assert await client.search_docs("pool", source="site", agent="denizen") == (guide,)
        assert await client.search_docs("zeppelin") == ()
        log = [
            (each.event.actor, each.event.subject, each.event.details["origin"]) async for each in read_log(web.store)
        ]
    assert log == [("api_key:ann", "search_docs", "api")] * 4


async def test_what_cannot_be_asked_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with open_documents(tmp_path) as web:
        wrong: list[dict[str, Any]] = [
            {},
            {"q": " "},
            {"q": "x" * 501},
            {"q": "x", "limit": 0},
            {"q": "x", "limit": 16},
        ]
        for parameters in wrong:
            status, answer = await ask(web, **parameters)
            assert (status, answer["error"]["code"]) == (400, "field_invalid"), parameters
        status, answer = await ask(web, q="pool", source="gone")
        assert (status, answer["error"]["code"]) == (400, "search_refused")
        assert answer["error"]["message"] == "There is no source 'gone'."
        assert answer["error"]["fix"] == "Known sources: site."
        assert "gone" not in answer["error"]["why"]


async def test_who_has_no_key_no_such_agent_or_no_leave_of_the_gate_finds_nothing(tmp_path: Path) -> None:
    policy = GatePolicy(rules=(ToolRule("search_docs", Decision.DENY, reason="not today"),))
    async with open_documents(tmp_path / "denied", policy) as web:
        status, answer = await ask(web, q="pool")
        assert (status, answer["error"]["code"], answer["error"]["why"]) == (403, "call_denied", "not today")
    async with open_documents(tmp_path / "open") as web:
        assert (await ask(web, "wrong", q="pool"))[0] == 401
        for agent, code in (("mute", "tool_unknown"), ("nobody", "agent_unknown")):
            async with sdk(web) as client:
                with pytest.raises(ApiError) as caught:
                    await client.search_docs("pool", agent=agent)
            assert (caught.value.status, caught.value.problem.code) == (404, code)

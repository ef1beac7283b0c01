"""Who works on what: turns in flight and open tasks of each agent, and what the reader may not see."""

from __future__ import annotations

import anyio
import httpx2
import pytest

from denizen.engine.inspection.queries import Queries
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply
from tests.timing import HANG_LIMIT_S
from tests.web.admin_pages_fixture import KEYS, read
from tests.web.knowledge_web_fixture import OWNER
from tests.web_fixture import ADA, ANN, open_web

pytestmark = pytest.mark.anyio


async def test_turns_in_flight_stand_with_their_agent_and_those_in_private_are_counted_for_admins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def is_private(self: Queries, turn: object) -> bool:
        del self, turn
        return True

    monkeypatch.setattr(Queries, "is_private", is_private)
    before = ReplyGate()
    async with (
        open_web(ScriptedModel(ScriptedReply("One.", before=before)), keys=[OWNER, ADA, ANN]) as web,
        web.serve() as url,
        httpx2.AsyncClient(base_url=url, headers={"x-api-key": KEYS["ann"]}, timeout=HANG_LIMIT_S) as client,
        anyio.create_task_group() as group,
    ):
        assert "denizen idle" in (await read(web, "olga", "/admin/work")).text
        group.start_soon(lambda: client.post("/api/chat", json={"message": "hi"}))
        await before.reached.wait()
        seen, unseen = await read(web, "olga", "/admin/work"), await read(web, "ada", "/admin/work")
        [turn] = await web.turns()
        before.open.set()
        assert "denizen working" in seen.text
        assert [row[1:] for row in seen.rows] == [["ann", "web", "runs"]]
        assert {"href": f"/admin/turns/{turn.id}"} in seen.all("a")
        assert unseen.rows == []
        assert "1 more asked in private" in unseen.text


async def test_tasks_that_are_under_way_stand_with_the_agent_that_they_are_for() -> None:
    async with open_web(ScriptedModel(), keys=[OWNER]) as web:
        async with web.client(**{"x-api-key": KEYS["olga"]}) as client:
            for title, status in (("Sort", "in_progress"), ("Later", "backlog")):
                task = {"title": title, "status": status, "assignee": "Denizen"}
                assert (await client.post("/api/tasks", json=task)).status_code in {200, 201}
        page = await read(web, "olga", "/admin/work")
    assert "Tasks: Sort (in progress)" in page.text
    assert "Later" not in page.text


async def test_members_do_not_see_the_page() -> None:
    async with open_web(ScriptedModel(), keys=[ANN]) as web, web.client(**{"x-api-key": KEYS["ann"]}) as client:
        assert (await client.get("/admin/work")).status_code == 403

"""The page of the store: what it holds, and a move that owners begin and stop."""

from __future__ import annotations

import httpx2
import pytest

from denizen.domain.errors import InvalidInput
from denizen.domain.store_move import MoveProgress, MoveStage
from denizen.engine.audit.audit_log import AuditLog
from denizen.engine.commands.store import describe_progress
from denizen.testing.temporary_store import TemporaryStore
from denizen.web.http.dependencies import InstanceServices, StoreServices
from denizen_sdk import ApiError, DenizenClient
from tests.clock import ManualClock
from tests.engine.commands.test_store import COPYING, DONE, PLACE, ScriptedMove
from tests.web.admin_pages_fixture import KEYS, ask, read
from tests.web.api.test_chats import events
from tests.web.knowledge_web_fixture import OWNER
from tests.web_fixture import ADA, ANN, LOCAL, open_web

pytestmark = pytest.mark.anyio


def give_store(move: ScriptedMove) -> InstanceServices:
    return InstanceServices(store=StoreServices(move, AuditLog(TemporaryStore(), ManualClock())))


@pytest.mark.proves("V25")
async def test_an_owner_sees_the_rows_moves_everything_and_stops_that() -> None:
    move = ScriptedMove()
    async with open_web(keys=[OWNER], instance=give_store(move)) as web:
        before = await read(web, "olga", "/admin/store")
        assert "Database SQLite Place sqlite:////srv/denizen.db Rows 12,345 in 2 tables" in before.text
        assert before.rows == [["posts", "12,345"], ["turns", "0"]]
        assert f"Everything moves to {PLACE}" in before.text
        assert "Until that pause it can be stopped" in before.text
        begun = await ask(web, "olga", "POST", "/admin/store/move", action="start")
        assert begun.headers["location"] == "/admin/store?done=start"
        assert move.started == 1
        move.progress = COPYING
        running = await read(web, "olga", "/admin/store")
        assert "250 of 1,000 rows" in running.text
        assert "Stop the move" in running.text
        await ask(web, "olga", "POST", "/admin/store/move", action="cancel")
        assert move.progress.stage is MoveStage.CANCELLED
        assert "The move was cancelled." in (await read(web, "olga", "/admin/store")).text
        refused = await ask(web, "olga", "POST", "/admin/store/move", action="cancel")
        assert refused.status_code == 409
        assert "No move is under way." in refused.text
        move.progress = DONE
        assert f"Everything is in {PLACE} now." in (await read(web, "olga", "/admin/store")).text


@pytest.mark.proves("V25")
async def test_an_owner_moves_from_a_chat_and_is_told_how_far_it_is_until_it_is_done() -> None:
    move = ScriptedMove()
    async with (
        open_web(keys=[OWNER], instance=give_store(move)) as web,
        web.client(**{"x-api-key": KEYS["olga"]}) as olga,
    ):
        typed = {"input": "/migrate to-postgres confirm: yes"}
        *notices, done = events(await olga.post("/api/command", json=typed))
    assert [each["type"] for each in notices] == ["notice"] * 3
    assert "250 of 1,000 rows" in notices[0]["text"]
    assert (done["type"], done["text"]) == ("command", describe_progress(DONE))


async def test_a_target_that_cannot_be_used_is_told_beside_the_rows() -> None:
    move = ScriptedMove(unusable=InvalidInput("store.move_to: is no address.", code="config_invalid"))
    async with open_web(keys=[OWNER], instance=give_store(move)) as web:
        page = await read(web, "olga", "/admin/store")
        assert "store.move_to: is no address." in page.text
        assert "12,345" in page.text
        assert "Move the store" not in page.text


async def test_admins_look_and_do_not_move_and_members_do_neither() -> None:
    move = ScriptedMove(progress=MoveProgress())
    async with open_web(keys=[OWNER, ADA, ANN], instance=give_store(move)) as web:
        page = await read(web, "ada", "/admin/store")
        assert "Owners can begin it." in page.text
        assert "Move the store" not in page.text
        for who, path, method in (("ada", "/admin/store/move", "POST"), ("ann", "/admin/store", "GET")):
            assert (await ask(web, who, method, path)).status_code == 403
        assert move.started == 0


@pytest.mark.proves("V25")
async def test_an_owner_moves_the_store_over_the_api_and_nobody_else_does() -> None:
    move = ScriptedMove()
    async with open_web(keys=[OWNER, ANN], instance=give_store(move)) as web:
        for key, status in (("ann", 403), ("olga", 200)):
            async with web.client(**{"x-api-key": KEYS[key]}) as client:
                assert (await client.get("/api/store")).status_code == status
                assert (await client.post("/api/store/move")).status_code == status
        async with DenizenClient(LOCAL, KEYS["olga"], transport=httpx2.ASGITransport(web.app)) as denizen:
            found = await denizen.get_store()
            assert (found.backend, found.place, found.move.stage) == ("sqlite", "sqlite:////srv/denizen.db", "copying")
            assert [(each.table, each.rows) for each in found.tables] == [("turns", 0), ("posts", 12_345)]
            await denizen.start_store_move()
            assert move.started == 2
            move.progress = COPYING
            assert (await denizen.get_store()).move.done == 250
            assert (await denizen.cancel_store_move()).stage == "cancelled"
            with pytest.raises(ApiError) as refused:
                await denizen.cancel_store_move()
            assert refused.value.status == 409

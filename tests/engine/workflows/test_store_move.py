"""A store that is moved while a run is under way: what a node could not write is no result of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import anyio
import pytest

from denizen.adapters.durable.run import decode_error
from denizen.adapters.store.change_log import refuse_writes
from denizen.adapters.store.plain_rows import list_plain_tables
from denizen.adapters.store.sqlite import SqliteDialect
from denizen.domain.cloud_event import CloudEvent
from denizen.domain.errors import DenizenError
from denizen.domain.ids import CallId
from denizen.domain.store_move import STORE_MOVED
from denizen.domain.tool import ToolCall, ToolResult
from denizen.engine.outbox.answer_target import AnswerTargets
from denizen.engine.workflows.people import WaitingNodes
from denizen.engine.workflows.tools import POST, WorkflowTools
from denizen.ports.toolset import CallScope
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.platform_fixture import World, open_platform
from tests.engine.workflows.workflow_fixture import OPERATOR, make, start
from tests.skill_fixture import scope
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


def close_for_writing(store: TemporaryStore) -> None:
    """What a move does to the database that it leaves."""
    dialect = SqliteDialect(store.path)
    with dialect.engine.begin() as connection:
        refuse_writes(connection, list_plain_tables())
    dialect.engine.dispose()


async def test_a_post_that_finds_the_store_moved_is_no_result() -> None:
    async def publish(_: CloudEvent) -> bool:
        raise AssertionError

    async with open_platform() as server:
        targets = AnswerTargets(server.runtime, server.store, server.channels)
        tools = WorkflowTools(targets, server.outbox, server.world.clock, publish, platform="discord")
        post = ToolCall(CallId("c"), POST, {"channel": server.world.general.id, "text": "Hello."})
        close_for_writing(server.store)
        with pytest.raises(DenizenError) as caught:
            await tools.call(post, replace(scope(key="c"), principal=OPERATOR))
    assert caught.value.code == STORE_MOVED


async def test_a_wait_that_finds_the_store_moved_has_not_ended() -> None:
    async with open_platform() as server:
        clock = server.world.clock
        waiting = WaitingNodes(server.shared_services.services, clock.sleep)
        ask = partial(waiting.wait, "ask_owner", scope(key="ask"), {"question": "Who?"}, clock.now())
        close_for_writing(server.store)
        with pytest.raises(DenizenError) as caught:
            await waiting.race(scope(), {"ask": ask, "pause": anyio.sleep_forever})
    assert caught.value.code == STORE_MOVED


async def test_a_loop_that_finds_the_store_moved_is_not_tried_again() -> None:
    flow = make(
        {
            "start": {"type": "manual", "then": "each"},
            "each": {"type": "for_each", "items": ["a"], "each": "act", "retry": 3, "on_error": "say"},
            "act": {"type": "call_tool", "tool": "write", "args": {"q": "a"}},
            "say": {"type": "reply", "text": "on"},
        }
    )
    world = World()

    async def move(_: ToolCall, __: CallScope) -> ToolResult:
        close_for_writing(world.store)
        return ToolResult("written")

    async with open_platform(world, tools=ToolsetFixture(run=move), workflows=flow) as server:
        logged = world.log.runs[(await start(server)).id]
        with anyio.fail_after(HANG_LIMIT_S):
            await logged.ended.wait()
    assert logged.error is not None and decode_error(logged.error).code == STORE_MOVED
    assert world.clock.sleeps == []

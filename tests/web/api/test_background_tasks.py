"""Background tasks over HTTP and with the SDK: everybody has their own."""

from __future__ import annotations

import anyio
import pytest

from denizen.domain.agent import Agent, ToolAccess
from denizen.domain.ids import AgentName
from denizen.domain.turn import TurnStatus
from denizen.ports.model import ModelRequest
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply
from denizen_sdk import DenizenClient
from denizen_sdk.background import BackgroundTaskInfo
from denizen_sdk.errors import ApiError
from denizen_sdk.turns import ChatRequest
from tests.engine.delegation.delegation_fixture import hand_on
from tests.timing import HANG_LIMIT_S, poll
from tests.web_fixture import ANN, BEN, WebFixture, open_web

pytestmark = pytest.mark.anyio

AGENTS = (
    Agent(AgentName("denizen"), tool_access=ToolAccess(delegates_to=(AgentName("scribe"),))),
    Agent(AgentName("scribe"), "Takes notes."),
)
GIVE = hand_on("Write it all down", "scribe", is_async=True)


async def start_task(web: WebFixture, client: DenizenClient, gate: ReplyGate) -> BackgroundTaskInfo:
    """The one who asks gets an answer while the scribe works on the task."""

    def answer(request: ModelRequest) -> ScriptedReply:
        is_scribe = "Write it all" in str(request.messages[0])
        return ScriptedReply("written", before=gate) if is_scribe else ScriptedReply("It is started.")

    web.model.script(GIVE, answer, answer)
    assert (await client.ask(ChatRequest("Take notes", session="notes"))).reply == "It is started."
    [task] = await client.list_background_tasks()
    return task


async def test_a_background_task_is_listed_shown_and_cancelled_by_its_asker_only() -> None:
    gate = ReplyGate()
    async with (
        open_web(ScriptedModel(), keys=[ANN, BEN], agents=AGENTS) as web,
        web.serve() as url,
        DenizenClient(url, "key-of-ann") as ann,
        DenizenClient(url, "key-of-ben") as ben,
    ):
        task = await start_task(web, ann, gate)
        assert (task.state, task.agent, task.delegator, task.task) == (
            "running",
            "scribe",
            "denizen",
            "Write it all down",
        )
        assert await ben.list_background_tasks() == []
        for refused in (ben.get_background_task, ben.cancel_background_task):
            with pytest.raises(ApiError, match="There is no background task"):
                await refused(task.id)
        assert (await ann.cancel_background_task(task.id)).id == task.id

        async def find_stopped() -> bool:
            return (await ann.get_background_task(task.id)).state == "failed"

        await poll(find_stopped)
        with pytest.raises(ApiError, match="has ended already"):
            await ann.cancel_background_task(task.id)


async def test_the_result_of_a_background_task_is_read_and_its_turns_lead_to_each_other() -> None:
    gate = ReplyGate()
    async with (
        open_web(ScriptedModel(), keys=[ANN], agents=AGENTS) as web,
        web.serve() as url,
        DenizenClient(url, "key-of-ann") as ann,
    ):
        task = await start_task(web, ann, gate)
        gate.open.set()

        async def find_done() -> bool:
            return (await ann.get_background_task(task.id)).state == "completed"

        await poll(find_done)
        assert (await ann.get_background_task(task.id)).result == "written"
        parent, child = await ann.get_turn(task.parent_id), await ann.get_turn(task.turn_id)
        assert (parent.trace.delegated, child.trace.parent_id) == ((child.id,), parent.id)


async def test_removing_a_chat_stops_its_background_tasks_and_takes_what_they_are_about_along() -> None:
    gate = ReplyGate()
    async with (
        open_web(ScriptedModel(), keys=[ANN], agents=AGENTS) as web,
        web.serve() as url,
        DenizenClient(url, "key-of-ann") as ann,
    ):
        task = await start_task(web, ann, gate)
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.reached.wait()
        [chat] = await ann.list_chats()
        await ann.delete_chat(chat.id)
        assert await ann.list_background_tasks() == []
        [turn] = [each for each in await web.turns() if each.id == task.turn_id]
        assert turn.status is TurnStatus.CANCELLED
        async with web.store.work(write=False) as work:
            assert await work.messages.list_tail(turn.session_id, limit=10) == []

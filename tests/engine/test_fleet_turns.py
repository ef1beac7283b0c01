"""Turns of a fleet: they are handed in by one process and run by another."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from denizen.adapters.documents.pdf import read_pdf
from denizen.adapters.uploads.folder import UploadFolder
from denizen.adapters.uploads.images import encode_image
from denizen.domain.chat import Chat, ChatId
from denizen.domain.clock import SystemClock
from denizen.domain.json import Json
from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.turn import TurnStatus
from denizen.engine.chats.live_chats import LiveChats
from denizen.engine.chats.removal import ChatRemoval
from denizen.engine.chats.uploads import ChatUploads
from denizen.ports.toolset import CallScope
from denizen.testing.memory_durable import MemoryLog
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.deaf_relay import DeafRelay
from tests.engine.engine_fixture import ANA, NAME, PLACE, ToolsetFixture, message, open_engine
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


async def test_a_stop_reaches_a_turn_of_another_process_whose_word_was_missed() -> None:
    gate, store, log, told = ReplyGate(), TemporaryStore(), MemoryLog(), DeafRelay(runs_turns=False)
    model = ScriptedModel(ScriptedReply("never", before=gate))
    async with (
        open_engine(ScriptedModel(), store=store, log=log, relay=told) as web,
        open_engine(model, store=store, log=log, relay=DeafRelay(runs_turns=True)) as worker,
    ):
        turn = await web.turns.submit(message("1"))
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.reached.wait()
            assert web.turns.cancel(turn.id)
            assert told.cancelled == [turn.id]
            await web.turns.stops.settle()
            await worker.turns.stops.settle()
            await worker.durable.wait(turn.id)
        assert (await web.turns.get(turn.id)).status is TurnStatus.CANCELLED


async def test_a_turn_that_was_stopped_before_a_worker_took_it_never_runs() -> None:
    store, log, model = TemporaryStore(), MemoryLog(), ScriptedModel(ScriptedReply("never"))
    async with open_engine(ScriptedModel(), store=store, log=log, relay=DeafRelay(runs_turns=False)) as web:
        turn = await web.turns.submit(message("1"))
        assert web.turns.cancel(turn.id)
        await web.turns.stops.settle()
        async with open_engine(model, store=store, log=log, relay=DeafRelay(runs_turns=True)) as worker:
            with anyio.fail_after(HANG_LIMIT_S):
                await worker.durable.wait(turn.id)
        assert (await web.turns.get(turn.id)).status is TurnStatus.CANCELLED
    assert not model.requests


async def test_what_a_worker_writes_in_a_chat_before_it_stops_goes_with_the_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, log, told = TemporaryStore(), MemoryLog(), DeafRelay(runs_turns=False)
    called, awaited = anyio.Event(), anyio.Event()

    async def look(_call: ToolCall, _scope: CallScope) -> ToolResult:
        called.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await awaited.wait()  # the removal has come as far as it does alone
        return ToolResult("never")

    model = ScriptedModel(ScriptedReply("A secret.", calls=[call("look", q="x")]))
    async with (
        open_engine(ScriptedModel(), store=store, log=log, relay=told) as web,
        open_engine(model, ToolsetFixture(run=look), store=store, log=log, relay=DeafRelay(runs_turns=True)) as worker,
    ):
        wait = web.durable.wait

        async def note_and_wait(run_id: str) -> Json:
            awaited.set()
            return await wait(run_id)

        monkeypatch.setattr(web.durable, "wait", note_and_wait)
        told.on_cancel = worker.turns.here.cancel
        turn = await web.turns.submit(message("1"))
        now = SystemClock().now()
        chat = Chat(
            id=ChatId("c"),
            conversation_id=PLACE.conversation_id,
            owner=ANA.key,
            agent=NAME,
            created_at=now,
            updated_at=now,
        )
        uploads = ChatUploads(store, UploadFolder(tmp_path), encode_image, read_pdf)
        with anyio.fail_after(HANG_LIMIT_S):
            await called.wait()
            await ChatRemoval(web.services, web.turns, uploads, LiveChats()).remove(chat)
        async with store.work(write=False) as work:
            assert not await work.turns.list_prompts(turn.id)
            assert not await work.messages.list_tail(turn.session_id, limit=10)
        assert not log.runs


async def test_an_account_that_ends_stops_its_open_turns_alone(tmp_path: Path) -> None:
    store, log, told = TemporaryStore(), MemoryLog(), DeafRelay(runs_turns=False)
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("ended"), ScriptedReply("never", before=gate))
    async with (
        open_engine(ScriptedModel(), store=store, log=log, relay=told) as web,
        open_engine(model, store=store, log=log, relay=DeafRelay(runs_turns=True)) as worker,
    ):
        told.on_cancel = worker.turns.here.cancel
        uploads = ChatUploads(store, UploadFolder(tmp_path), encode_image, read_pdf)
        with anyio.fail_after(HANG_LIMIT_S):
            ended = await web.turns.submit(message("1"))
            await web.durable.wait(ended.id)
            running = await web.turns.submit(message("2"))
            await gate.reached.wait()
            removal = ChatRemoval(web.services, web.turns, uploads, LiveChats())
            await removal.forget_owner(ANA.key, [ended.id, running.id])
        assert told.cancelled == [running.id]
        assert (await web.turns.get(running.id)).status is TurnStatus.CANCELLED


async def test_a_process_that_stops_waits_for_turns_that_work_and_not_for_those_that_wait() -> None:
    gate = ReplyGate()
    async with open_engine(ScriptedModel(ScriptedReply("done", before=gate))) as engine:
        turn = await engine.turns.submit(message("1"))
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.reached.wait()
            waiting = await engine.turns.submit(message("2"))
            await anyio.wait_all_tasks_blocked()
            assert engine.turns.here.count_idle() == 1
            async with anyio.create_task_group() as group:
                group.start_soon(engine.turns.here.wait_for_working)
                engine.turns.cancel(waiting.id)
                await engine.durable.wait(waiting.id)
                gate.open.set()
            assert (await engine.turns.get(turn.id)).status is TurnStatus.DONE

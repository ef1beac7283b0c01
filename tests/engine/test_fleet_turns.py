"""Turns of a fleet: they are handed in by one process and run by another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from denizen.adapters.documents.pdf import read_pdf
from denizen.adapters.uploads.folder import UploadFolder
from denizen.adapters.uploads.images import encode_image
from denizen.domain.chat import Chat, ChatId
from denizen.domain.clock import SystemClock
from denizen.domain.errors import DenizenError
from denizen.domain.events import TurnEvent
from denizen.domain.ids import AgentName, TurnId
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
from tests.engine.engine_fixture import ANA, NAME, PLACE, ToolsetFixture, message, open_engine
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


@dataclass
class DeafRelay:
    """A relay whose words nobody hears, unless `on_cancel` does."""

    runs_turns: bool
    on_cancel: Callable[[TurnId], object] = lambda _turn: None
    cancelled: list[TurnId] = field(default_factory=list[TurnId])

    def watch(self, turn_id: TurnId, *, on: bool) -> None: ...

    def is_watched(self, turn_id: TurnId) -> bool:
        return False

    def publish(self, turn_id: TurnId, sign: TurnEvent | DenizenError) -> None: ...

    def cancel(self, turn_id: TurnId) -> None:
        self.cancelled.append(turn_id)
        self.on_cancel(turn_id)

    def wake_outbox(self, platform: str, account: AgentName) -> None: ...


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
        told.on_cancel = worker.turns.cancel_here
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

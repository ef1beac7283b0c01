"""The life of a message: once, in order, resumable, stoppable."""

import logging
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from denizen.domain.agent import (
    Agent,
    AgentInstructions,
    CitationFormat,
    ResponseStyle,
    SamplingSettings,
    TurnLimits,
    WritingStyle,
)
from denizen.domain.conversation import Place
from denizen.domain.demands import AnswerDemands
from denizen.domain.errors import InvalidInput, LimitExceeded, NeedsAttention, NotFound, Unavailable
from denizen.domain.events import TurnFinished
from denizen.domain.message import ImagePart, Message, Role, TextPart, ToolCallPart, ToolResultPart, join_text
from denizen.domain.prompt import PromptMessage
from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.turn import SessionChoice, TurnStatus
from denizen.engine.inspection.queries import Queries
from denizen.engine.intake.turn_queue import TurnQueues
from denizen.engine.loop.steps import TurnSteps
from denizen.ports.model import Capabilities
from denizen.ports.store import UnitOfWork
from denizen.ports.toolset import CallScope
from denizen.testing.memory_durable import MemoryLog
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.engine_fixture import LOOK, NAME, PLACE, ToolsetFixture, generation, message, open_engine
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


async def test_the_same_message_twice_is_one_turn_with_one_answer() -> None:
    model = ScriptedModel(ScriptedReply("once"))
    async with open_engine(model) as engine:
        turn_request = message("hello")
        first, second = await engine.turns.ask(turn_request), await engine.turns.ask(turn_request)
        assert first.turn_id == second.turn_id
        assert (first.reply, second.reply) == ("once", "once")
        assert len(model.requests) == 1
        assert len(await engine.session()) == 2


async def test_a_turn_that_is_killed_is_finished_after_a_restart_without_repeating_what_was_done() -> None:
    store, log = TemporaryStore(), MemoryLog()
    reached, never = anyio.Event(), anyio.Event()

    async def hang_on_second(call: ToolCall, scope: CallScope) -> ToolResult:
        if call.args["q"] == "two":
            reached.set()
            await never.wait()
        return ToolResult("ok")

    before = ToolsetFixture(run=hang_on_second)
    model = ScriptedModel(ScriptedReply(calls=[call("write", q="one")]), ScriptedReply(calls=[call("write", q="two")]))
    turn_request = message("do both")
    async with open_engine(model, before, store=store, log=log) as engine:
        turn = await engine.turns.submit(turn_request)
        with anyio.fail_after(HANG_LIMIT_S):
            await reached.wait()
        await engine.durable.crash()

    after = ToolsetFixture()
    model = ScriptedModel(ScriptedReply("both done"))
    async with open_engine(model, after, store=store, log=log) as engine:
        await engine.turns.resume()
        with anyio.fail_after(HANG_LIMIT_S):
            done = await engine.turns.ask(turn_request)
        assert (done.turn_id, done.reply) == (turn.id, "both done")
        assert [c.args["q"] for c in after.calls] == ["two"], "the finished call is not repeated"
        assert after.keys == before.keys[1:], "the interrupted call comes again with its own key"
        assert len(model.requests) == 1
        roles = [m.role for m in await engine.session()]
        assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]


async def test_a_turn_that_was_opened_but_never_started_is_taken_up_after_a_restart() -> None:
    store, log = TemporaryStore(), MemoryLog()
    gate = ReplyGate()
    async with open_engine(ScriptedModel(ScriptedReply("never", before=gate)), store=store, log=log) as engine:
        turn = await engine.turns.submit(message("hello"))
        await engine.durable.crash()
    async with open_engine(ScriptedModel(ScriptedReply("hello yourself")), store=store, log=MemoryLog()) as engine:
        assert await engine.turns.resume() == 1
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(turn.id)
        assert (await engine.turns.get(turn.id)).result.reply == "hello yourself"


@pytest.mark.proves("X-busy")
async def test_turns_of_one_conversation_run_one_after_another_and_conversations_side_by_side() -> None:
    gate = ReplyGate()
    model = ScriptedModel(
        ScriptedReply("first", before=gate), otherwise=lambda r: ScriptedReply(f"saw {len(r.messages)}")
    )
    async with open_engine(model) as engine:
        first = await engine.turns.submit(message("1"))
        await gate.reached.wait()
        second = await engine.turns.submit(message("2"))
        with anyio.fail_after(HANG_LIMIT_S):
            elsewhere = await engine.say("3", place=Place("terminal", "elsewhere"))
        assert elsewhere.reply == "saw 1"
        assert (await engine.turns.get(second.id)).status is TurnStatus.OPEN
        gate.open.set()
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(first.id)
            await engine.durable.wait(second.id)
        assert (await engine.turns.get(second.id)).result.reply == "saw 3", (
            "the answer to the first message is in its history"
        )


async def test_a_full_queue_refuses_with_words_and_loses_nothing() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("first", before=gate), otherwise=ScriptedReply("later"))
    async with open_engine(model, queues=TurnQueues(max_waiting=1)) as engine:
        turns = [await engine.turns.submit(message("1"))]
        await gate.reached.wait()
        turns.append(await engine.turns.submit(message("2")))
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(LimitExceeded, match="still busy"):
            await engine.turns.submit(message("3"))
        gate.open.set()
        with anyio.fail_after(HANG_LIMIT_S):
            for turn in turns:
                await engine.durable.wait(turn.id)
        assert [m.text for m in await engine.session() if m.role is Role.USER] == ["1", "2"]


async def test_a_cancelled_turn_ends_at_once_and_the_next_one_runs() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("never", before=gate), ScriptedReply("next"))
    async with open_engine(model) as engine:
        turn_request = message("1")
        turn = await engine.turns.submit(turn_request)
        await gate.reached.wait()
        assert engine.turns.cancel(turn.id)
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(turn.id)
            assert (await engine.turns.get(turn.id)).status is TurnStatus.CANCELLED
            assert (await engine.say("2")).reply == "next"
        assert not engine.turns.cancel(turn.id)


async def test_what_a_stopped_turn_had_said_is_kept_and_is_what_the_model_sees_next() -> None:
    gate = ReplyGate()
    model = ScriptedModel(
        ScriptedReply("Listing now.", calls=[call("look", q="rooms")]),
        ScriptedReply("The hall is free, the attic is not.", halfway=gate),
        ScriptedReply("next"),
    )
    async with open_engine(model, ToolsetFixture()) as engine:
        turn = await engine.turns.submit(message("1"))
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.reached.wait()
            assert engine.turns.cancel(turn.id)
            await engine.durable.wait(turn.id)
            assert (await engine.turns.get(turn.id)).status is TurnStatus.CANCELLED
            assert (await engine.say("2")).reply == "next"
        kept = [each for each in await engine.session() if each.turn_id == turn.id and each.role is Role.ASSISTANT]
    said = kept[-1].text
    assert said
    assert "The hall is free, the attic is not.".startswith(said)
    assert len(said) < len("The hall is free, the attic is not.")
    told = [each for each in model.requests[-1].messages if each.role is Role.ASSISTANT]
    assert join_text(told[-1].parts) == said


async def test_a_stopped_turn_has_its_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "denizen.turn")
    gate = ReplyGate()
    async with open_engine(ScriptedModel(ScriptedReply("never", before=gate))) as engine:
        turn = await engine.turns.submit(message("1"))
        await gate.reached.wait()
        engine.turns.cancel(turn.id)
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(turn.id)
    lines = [record.__dict__ for record in caplog.records if record.message == "turn"]
    assert [(line["turn"], line["status"]) for line in lines] == [(turn.id, "cancelled")]


async def test_turns_that_another_process_runs_do_not_pile_up_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run_elsewhere(_workflow: str, _run: str, _payload: object, *, lane: object) -> None:
        """Another process wins the run."""

    monkeypatch.setattr("denizen.engine.intake.turns_here.MAX_OPENED", 2)
    async with open_engine(ScriptedModel()) as engine:
        monkeypatch.setattr(engine.durable, "submit", run_elsewhere)
        turns = [await engine.turns.submit(message(str(number))) for number in range(5)]
        assert engine.turns.cancel(turns[-1].id)
        kept = [turn.id for turn in turns if engine.turns.cancel(turn.id)]
        assert kept == [turn.id for turn in turns[-2:]]


async def test_a_turn_that_takes_too_long_ends_with_words() -> None:
    agent = Agent(NAME, limits=TurnLimits(turn_timeout_s=0.02))
    async with open_engine(ScriptedModel(ScriptedReply("never", before=ReplyGate())), agent=agent) as engine:
        with anyio.fail_after(HANG_LIMIT_S):
            assert (await engine.fail("x")).code == "turn_timeout"


async def test_a_fault_in_the_program_is_told_by_reference_only() -> None:
    def broken(_: object) -> ScriptedReply:
        raise ZeroDivisionError("secret detail")

    async with open_engine(ScriptedModel(broken)) as engine:
        failure = await engine.fail("x")
        assert failure.family == "DenizenError"
        assert "secret" not in failure.message


async def test_empty_messages_and_unknown_agents_are_refused_before_anything_is_stored() -> None:
    async with open_engine(ScriptedModel()) as engine:
        with pytest.raises(InvalidInput, match="empty"):
            await engine.say("")
        with pytest.raises(NotFound, match="no agent 'adda'") as caught:
            await engine.say("x", agent="adda")
        assert caught.value.fix == "Did you mean 'ada'?"
        assert await engine.session() == []


@pytest.mark.proves("T-store-reset")
async def test_a_fresh_session_forgets_and_keeps_the_old_one_readable() -> None:
    model = ScriptedModel(otherwise=lambda r: ScriptedReply(f"saw {len(r.messages)}"))
    async with open_engine(model) as engine:
        await engine.say("1")
        assert (await engine.say("2")).reply == "saw 3"
        turn_request = message("3", session=SessionChoice(is_new=True))
        assert (await engine.turns.ask(turn_request)).reply == "saw 1"
        await engine.turns.ask(turn_request)
        async with engine.store.work() as work:
            sessions = await work.sessions.list_sessions(PLACE.conversation_id, NAME)
            old = await work.messages.list_tail(sessions[-1].id, limit=10)
        assert len(sessions) == 2
        assert [m.text for m in old if m.role is Role.USER] == ["1", "2"]


async def test_a_client_that_brings_its_own_history_gets_an_answer_to_that() -> None:
    model = ScriptedModel(otherwise=lambda r: ScriptedReply(f"saw {len(r.messages)}"))
    async with open_engine(model) as engine:
        await engine.say("stored")
        supplied = tuple(PromptMessage(Role.USER, (TextPart(text),)) for text in "abc")
        done = await engine.say("d", session=SessionChoice(history=supplied), instructions="Be a pirate.")
        assert done.reply == "saw 4"
        assert any(segment.text == "Be a pirate." for segment in model.requests[-1].segments)


@pytest.mark.proves(
    "S-config-additional-prompt", "S-config-response-style", "S-config-language", "S-config-temperature"
)
async def test_style_language_and_sampling_reach_the_request() -> None:
    style = WritingStyle(ResponseStyle.FRIENDLY, "it", CitationFormat.FOOTNOTE, "Mention cats.", "Search twice.")
    agent = Agent(
        NAME,
        instructions=AgentInstructions(persona=(("IDENTITY.md", "You are Ada."),), style=style),
        sampling=SamplingSettings(temperature=0.3),
    )
    model = ScriptedModel(ScriptedReply("ciao"), ScriptedReply("again"))
    async with open_engine(model, agent=agent) as engine:
        await engine.say("x")
        prompt = "\n".join(segment.text for segment in model.requests[0].segments)
        for words in ("You are Ada.", "warmly", "'it'", "footnotes", "Mention cats.", "Search twice."):
            assert words in prompt
        assert prompt.index("You are Ada.") < prompt.index("Mention cats."), "it is appended"
        assert model.requests[0].sampling.temperature == 0.3
        await engine.say("y", demands=AnswerDemands(sampling=SamplingSettings(temperature=0.9)))
        assert model.requests[1].sampling.temperature == 0.9


@pytest.mark.proves("S-config-response-style")
@pytest.mark.parametrize(
    ("style", "asked"),
    [
        (WritingStyle(), "briefly"),
        (WritingStyle(ResponseStyle.CONCISE), "briefly"),
        (WritingStyle(ResponseStyle.DETAILED), "thoroughly"),
        (WritingStyle(ResponseStyle.TECHNICAL), "exact terms"),
        (WritingStyle(ResponseStyle.FRIENDLY), "warmly"),
    ],
)
async def test_the_prompt_asks_for_the_style_which_is_concise_by_default(style: WritingStyle, asked: str) -> None:
    model = ScriptedModel(ScriptedReply("hi"))
    async with open_engine(model, agent=Agent(NAME, instructions=AgentInstructions(style=style))) as engine:
        await engine.say("x")
    prompt = "\n".join(segment.text for segment in model.requests[0].segments)
    styles = ("briefly", "thoroughly", "exact terms", "warmly")
    assert [each for each in styles if each in prompt] == [asked]


@pytest.mark.proves("S-config-language", "S-config-additional-prompt")
async def test_by_default_nothing_is_said_about_the_language_or_besides() -> None:
    model = ScriptedModel(ScriptedReply("hi"))
    async with open_engine(model) as engine:
        await engine.say("x")
    texts = {segment.name: segment.text for segment in model.requests[0].segments}
    assert "language" not in "\n".join(texts.values())
    assert texts["style"] == "Answer briefly and to the point."


@pytest.mark.proves("C23")
async def test_a_model_that_cannot_see_is_told_that_there_was_an_image() -> None:
    parts = (TextPart("what is this?"), ImagePart("https://example.org/cat.png"))
    blind = ScriptedModel(ScriptedReply("?"))
    async with open_engine(blind) as engine:
        await engine.say("x", parts=parts)
        assert "cannot see" in str(blind.requests[0].messages[0].parts[1])
    seeing = ScriptedModel(ScriptedReply("a cat"), capabilities=Capabilities(images=True))
    async with open_engine(seeing) as engine:
        await engine.say("x", parts=parts)
        assert seeing.requests[0].messages[0].parts[1:] == parts[1:]


async def test_the_system_prompt_keeps_its_bytes_from_turn_to_turn() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("ok"))
    async with open_engine(model) as engine:
        await engine.say("1")
        await engine.say("2")
        assert model.requests[0].segments == model.requests[1].segments
        assert model.requests[1].messages[0] == model.requests[0].messages[0]


@pytest.mark.proves("TW19", "T1", "T4")
async def test_a_reload_spares_the_tools_of_a_turn_that_uses_them_and_the_next_turn_has_the_new_ones() -> None:
    gate = ReplyGate()
    old_model = ScriptedModel(ScriptedReply("old", before=gate))
    async with open_engine(old_model) as engine:
        turn = await engine.turns.submit(message("1"))
        await gate.reached.wait()
        waiting = await engine.turns.submit(message("in the queue behind it"))
        new_tools = ToolsetFixture([replace(LOOK, name="new_look")])
        new_model = ScriptedModel(otherwise=ScriptedReply("new"))
        await engine.runtime.swap(generation(new_model, new_tools, number=2))
        assert not engine.tools.closed
        gate.open.set()
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(turn.id)
            await engine.durable.wait(waiting.id)
            assert (await engine.turns.get(waiting.id)).result.reply == "new"
            assert (await engine.say("2")).reply == "new"
        assert [[tool.name for tool in request.tools] for request in new_model.requests] == [["new_look"]] * 2
        assert engine.tools.closed and not new_tools.closed


async def test_a_watcher_who_stops_watching_does_not_stop_the_turn() -> None:
    gate = ReplyGate()
    async with open_engine(ScriptedModel(ScriptedReply("a long answer", halfway=gate))) as engine:
        stream = engine.turns.stream(message("x"))
        await anext(stream)
        await stream.aclose()
        gate.open.set()
        async with engine.store.work() as work:
            (turn,) = await work.turns.list_turns()
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(turn.id)
        assert (await engine.turns.get(turn.id)).result.reply == "a long answer"


async def test_usage_of_all_steps_is_summed_and_recorded() -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("look", q="a")]), ScriptedReply("done"))
    async with open_engine(model) as engine:
        done = await engine.say("x")
        assert (done.usage.input_tokens, done.usage.output_tokens, done.usage.requests) == (20, 10, 2)
        async with engine.store.work() as work:
            steps = await work.turns.list_steps(done.turn_id)
        assert [(step.number, step.purpose, step.finish_reason) for step in steps] == [
            (1, "act", "tool_calls"),
            (2, "act", "stop"),
        ]


async def test_the_last_event_is_the_end_of_the_turn() -> None:
    async with open_engine(ScriptedModel(ScriptedReply("hello"))) as engine:
        events = await engine.watch("x")
        assert isinstance(events[-1], TurnFinished)
        assert sum(isinstance(event, TurnFinished) for event in events) == 1


async def test_an_image_in_the_history_stays_a_message_of_its_conversation() -> None:
    model = ScriptedModel(ScriptedReply("1"), ScriptedReply("2"))
    async with open_engine(model) as engine:
        await engine.say("x", parts=(TextPart("see"), ImagePart("data:image/png;base64,AAAA")))
        stored: Message = (await engine.session())[0]
        assert stored.parts[1] == ImagePart("data:image/png;base64,AAAA")


@pytest.mark.proves("X-max-output-tokens", "C-config-max-tokens", "C-config-agent-limits")
async def test_a_request_asks_for_4096_tokens_unless_the_agent_or_the_message_says_otherwise() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("ok"))
    async with open_engine(model) as engine:
        await engine.say("x")
        await engine.say("x", max_output_tokens=7)
    async with open_engine(model, agent=Agent(NAME, limits=TurnLimits(max_output_tokens=99))) as engine:
        await engine.say("x")
        await engine.say("x", max_output_tokens=5000)
    assert [request.max_output_tokens for request in model.requests] == [4096, 7, 99, 99]


@pytest.mark.proves("T-store-sessions")
async def test_a_session_is_stored_with_all_that_was_said_in_it_and_its_turns_with_their_model() -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("look", q="a")]), ScriptedReply("It is a."))
    async with open_engine(model) as engine:
        done = await engine.say("What is it?")
        turn = await engine.turns.get(done.turn_id)
        asked, called, found, answered = await engine.session()
        async with engine.store.work(write=False) as work:
            session = await work.sessions.get(turn.session_id)
            assert list(await work.sessions.list_sessions(PLACE.conversation_id, NAME)) == [session]
    assert (session.conversation_id, session.agent, session.closed_at) == (PLACE.conversation_id, NAME, None)
    assert session.created_at <= asked.created_at <= answered.created_at
    assert turn.result.model == "scripted/model"
    assert [(each.role, each.text) for each in (asked, answered)] == [
        (Role.USER, "What is it?"),
        (Role.ASSISTANT, "It is a."),
    ]
    (made,), (result,) = called.parts, found.parts
    assert isinstance(made, ToolCallPart) and (made.tool, made.args) == ("look", {"q": "a"})
    assert isinstance(result, ToolResultPart) and (result.call_id, result.text) == (made.id, "found a")


@pytest.mark.proves("T-store-resume", "T8")
async def test_a_session_goes_on_with_the_model_that_is_configured_now() -> None:
    async with open_engine(ScriptedModel(ScriptedReply("one"))) as engine:
        await engine.say("1")
        newer = ScriptedModel(otherwise=lambda r: ScriptedReply(f"saw {len(r.messages)}"), name="scripted/newer")
        await engine.runtime.swap(generation(newer, ToolsetFixture(), number=2))
        done = await engine.say("2")
        assert done.reply == "saw 3"
        assert (await engine.turns.get(done.turn_id)).result.model == "scripted/newer"


async def test_a_turn_whose_end_could_not_be_written_is_closed_after_the_restart() -> None:
    store, log = TemporaryStore(), MemoryLog()
    async with open_engine(ScriptedModel(ScriptedReply("never", before=ReplyGate())), store=store, log=log) as engine:
        turn = await engine.turns.submit(message("x"))
        await engine.durable.cancel(turn.id)
    async with open_engine(ScriptedModel(), store=store, log=log) as engine:
        await engine.turns.resume()
        closed = await engine.turns.get(turn.id)
        assert closed.result.failure
        assert (closed.status, closed.result.failure.code) == (TurnStatus.FAILED, "turn_lost")


async def test_an_older_copy_of_the_store_does_not_answer_again_what_the_durable_log_knows_as_answered() -> None:
    log = MemoryLog()
    async with open_engine(ScriptedModel(ScriptedReply("Hello.")), log=log) as engine:
        assert (await engine.say("x", platform_id="asked")).reply == "Hello."
    model = ScriptedModel(ScriptedReply("Hello again."))
    async with open_engine(model, store=TemporaryStore(), log=log) as engine:
        turn = await engine.turns.submit(message("x", platform_id="asked"))
        await engine.turns.resume()
        assert (await engine.turns.get(turn.id)).status is TurnStatus.CANCELLED
        assert (await engine.say("y")).reply == "Hello again."


async def test_what_the_operator_can_mend_in_a_failed_turn_is_a_warning_with_the_remedy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    key = NeedsAttention("The key is refused.", code="model_key", why="status 401", fix="Set KEY anew.")
    async with open_engine(ScriptedModel(key, ScriptedReply("Hello."))) as engine:
        await engine.fail("x")
        await engine.say("y")
    [warning] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.getMessage() == "a turn failed: The key is refused."
    assert {name: vars(warning)[name] for name in ("code", "why", "fix")} == {
        "code": "model_key",
        "why": "status 401",
        "fix": "Set KEY anew.",
    }


class LockedStore(TemporaryStore):
    """A store whose database is locked for the next `faults` writes that change a message; none of them is kept."""

    faults = 0

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[UnitOfWork]:
        return self._open_unit() if write and self.faults else super().work(write=write)

    @asynccontextmanager
    async def _open_unit(self) -> AsyncGenerator[UnitOfWork]:
        self.faults -= 1
        async with super().work() as work:
            yield work
            raise Unavailable("The database is busy.", code="store_busy")


async def test_the_end_of_a_turn_waits_for_a_database_that_is_locked_and_is_whole_then() -> None:
    store, gate = LockedStore(), ReplyGate()
    async with open_engine(ScriptedModel(ScriptedReply("a paid answer", before=gate)), store=store) as engine:
        turn = await engine.turns.submit(message("x"))
        await gate.reached.wait()
        store.faults = 1
        gate.open.set()
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(turn.id)
        assert (await engine.turns.get(turn.id)).result.reply == "a paid answer"
        assert [join_text(m.parts) for m in await engine.session()] == ["x", "a paid answer"]


async def test_what_was_done_before_a_fault_of_the_database_is_in_the_record_of_the_failed_turn() -> None:
    store, gate = LockedStore(), ReplyGate()
    model = ScriptedModel(ScriptedReply(calls=[call("look", q="one")], before=gate))
    async with open_engine(model, store=store) as engine:
        turn = await engine.turns.submit(message("x"))
        await gate.reached.wait()
        store.faults = 1
        gate.open.set()
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(turn.id)
        detail = await Queries(engine.runtime, engine.services).get_turn(turn.id)
        assert detail.turn.result.failure
        assert (detail.turn.status, detail.turn.result.failure.code) == (TurnStatus.FAILED, "store_busy")
        assert ([step.number for step in detail.steps], [c.tool_call.tool for c in detail.calls]) == ([1], ["look"])


async def test_whoever_watches_a_turn_hears_when_it_cannot_end_here() -> None:
    gate = ReplyGate()
    async with (
        open_engine(ScriptedModel(ScriptedReply("never", before=gate))) as engine,
        anyio.create_task_group() as tasks,
    ):

        async def watch() -> None:
            with pytest.raises(Unavailable) as caught:
                await engine.say("x")
            assert caught.value.code == "durable_closed"

        tasks.start_soon(watch)
        await gate.reached.wait()
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.aclose()


async def test_a_turn_that_is_stopped_before_it_began_never_asks_the_model() -> None:
    model = ScriptedModel()
    async with open_engine(model) as engine:
        turn_request = message("x")
        turn = await engine.turns.submit(turn_request)
        assert engine.turns.cancel_message(turn_request)
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(turn.id)
        assert (await engine.turns.get(turn.id)).status is TurnStatus.CANCELLED
        assert model.requests == []


async def test_a_turn_ends_even_when_what_happened_in_it_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise ValueError("secret detail")

    monkeypatch.setattr(TurnSteps, "write", fail)
    async with open_engine(ScriptedModel(ScriptedReply("hello"))) as engine:
        with anyio.fail_after(HANG_LIMIT_S):
            done = await engine.say("x")
        assert done.failure
        assert (done.status, done.failure.code) == (TurnStatus.FAILED, "bug")
        assert "secret" not in done.failure.message
        assert (await engine.turns.get(done.turn_id)).status is TurnStatus.FAILED

"""The life of a message: once, in order, resumable, stoppable."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from denizen.domain.agent import Agent, CitationFormat, Limits, ResponseStyle, Sampling, Style
from denizen.domain.conversation import Place
from denizen.domain.errors import Exhausted, InvalidInput, NotFound, Unavailable
from denizen.domain.events import TurnFinished
from denizen.domain.message import ImagePart, Message, Role, TextPart, text_of
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.prompt import PromptMessage
from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.turn import TurnStatus
from denizen.engine.inbox import Inbox
from denizen.engine.queries import Queries
from denizen.engine.steps import Steps
from denizen.ports.model import Capabilities
from denizen.ports.store import UnitOfWork
from denizen.ports.toolset import CallScope
from denizen.testing.memory_durable import MemoryLog
from denizen.testing.memory_store import MemoryStore
from denizen.testing.scripted_model import Gate, Say, ScriptedModel, call
from tests.engine.house import NAME, PLACE, Tools, generation, message, open_house

pytestmark = pytest.mark.anyio


async def test_the_same_message_twice_is_one_turn_with_one_answer() -> None:
    model = ScriptedModel(Say("once"))
    async with open_house(model) as house:
        inbound = message("hello")
        first, second = await house.turns.ask(inbound), await house.turns.ask(inbound)
        assert first.turn_id == second.turn_id
        assert (first.reply, second.reply) == ("once", "once")
        assert len(model.requests) == 1
        assert len(await house.session()) == 2


async def test_a_turn_that_is_killed_is_finished_after_a_restart_without_repeating_what_was_done() -> None:
    store, log = MemoryStore(), MemoryLog()
    reached, never = anyio.Event(), anyio.Event()

    async def hang_on_second(call: ToolCall, scope: CallScope) -> ToolResult:
        if call.args["q"] == "two":
            reached.set()
            await never.wait()
        return ToolResult("ok")

    before = Tools(run=hang_on_second)
    model = ScriptedModel(Say(calls=[call("write", q="one")]), Say(calls=[call("write", q="two")]))
    inbound = message("do both")
    async with open_house(model, before, store=store, log=log) as house:
        turn = await house.turns.submit(inbound)
        with anyio.fail_after(5):
            await reached.wait()
        await house.durable.crash()

    after = Tools()
    model = ScriptedModel(Say("both done"))
    async with open_house(model, after, store=store, log=log) as house:
        await house.turns.resume()
        with anyio.fail_after(5):
            done = await house.turns.ask(inbound)
        assert (done.turn_id, done.reply) == (turn.id, "both done")
        assert [c.args["q"] for c in after.calls] == ["two"], "the finished call is not repeated"
        assert after.keys == before.keys[1:], "the interrupted call comes again with its own key"
        assert len(model.requests) == 1
        roles = [m.role for m in await house.session()]
        assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]


async def test_a_turn_that_was_opened_but_never_started_is_taken_up_after_a_restart() -> None:
    store, log = MemoryStore(), MemoryLog()
    gate = Gate()
    async with open_house(ScriptedModel(Say("never", before=gate)), store=store, log=log) as house:
        turn = await house.turns.submit(message("hello"))
        await house.durable.crash()
    async with open_house(ScriptedModel(Say("hello yourself")), store=store, log=MemoryLog()) as house:
        assert await house.turns.resume() == 1
        with anyio.fail_after(5):
            await house.durable.wait(turn.id)
        assert (await house.turns.get(turn.id)).reply == "hello yourself"


async def test_turns_of_one_conversation_run_one_after_another_and_conversations_side_by_side() -> None:
    gate = Gate()
    model = ScriptedModel(Say("first", before=gate), otherwise=lambda r: Say(f"saw {len(r.messages)}"))
    async with open_house(model) as house:
        first = await house.turns.submit(message("1"))
        await gate.reached.wait()
        second = await house.turns.submit(message("2"))
        with anyio.fail_after(5):
            elsewhere = await house.say("3", place=Place("terminal", "elsewhere"))
        assert elsewhere.reply == "saw 1"
        assert (await house.turns.get(second.id)).status is TurnStatus.OPEN
        gate.open.set()
        with anyio.fail_after(5):
            await house.durable.wait(first.id)
            await house.durable.wait(second.id)
        assert (await house.turns.get(second.id)).reply == "saw 3", "the answer to the first message is in its history"


async def test_a_full_inbox_refuses_with_words_and_loses_nothing() -> None:
    gate = Gate()
    model = ScriptedModel(Say("first", before=gate), otherwise=Say("later"))
    async with open_house(model, inbox=Inbox(max_waiting=1)) as house:
        turns = [await house.turns.submit(message("1"))]
        await gate.reached.wait()
        turns.append(await house.turns.submit(message("2")))
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Exhausted, match="still busy"):
            await house.turns.submit(message("3"))
        gate.open.set()
        with anyio.fail_after(5):
            for turn in turns:
                await house.durable.wait(turn.id)
        assert [m.text for m in await house.session() if m.role is Role.USER] == ["1", "2"]


async def test_a_cancelled_turn_ends_at_once_and_the_next_one_runs() -> None:
    gate = Gate()
    model = ScriptedModel(Say("never", before=gate), Say("next"))
    async with open_house(model) as house:
        inbound = message("1")
        turn = await house.turns.submit(inbound)
        await gate.reached.wait()
        assert house.turns.cancel(turn.id)
        with anyio.fail_after(5):
            await house.durable.wait(turn.id)
            assert (await house.turns.get(turn.id)).status is TurnStatus.CANCELLED
            assert (await house.say("2")).reply == "next"
        assert not house.turns.cancel(turn.id)


async def test_a_turn_that_takes_too_long_ends_with_words() -> None:
    agent = Agent(NAME, limits=Limits(turn_timeout_s=0.02))
    async with open_house(ScriptedModel(Say("never", before=Gate())), agent=agent) as house:
        with anyio.fail_after(5):
            done = await house.say("x")
        assert (done.status, done.failure_code) == (TurnStatus.FAILED, "turn_timeout")


async def test_a_fault_in_the_program_is_told_by_reference_only() -> None:
    def broken(_: object) -> Say:
        raise ZeroDivisionError("secret detail")

    async with open_house(ScriptedModel(broken)) as house:
        done = await house.say("x")
        assert (done.status, done.failure_family) == (TurnStatus.FAILED, "DenizenError")
        assert "secret" not in done.failure


async def test_empty_messages_and_unknown_agents_are_refused_before_anything_is_stored() -> None:
    async with open_house(ScriptedModel()) as house:
        with pytest.raises(InvalidInput, match="empty"):
            await house.say("")
        with pytest.raises(NotFound, match="no agent 'adda'") as caught:
            await house.say("x", agent="adda")
        assert caught.value.fix == "Did you mean 'ada'?"
        assert await house.session() == []


async def test_people_of_a_platform_have_so_many_requests_an_hour_and_refused_ones_do_not_count() -> None:
    stranger = Principal(PrincipalKind.PLATFORM_USER, "7", "Seven")
    model = ScriptedModel(otherwise=Say("ok"))
    async with open_house(model) as house:
        await house.runtime.swap(replace(house.runtime.current, requests_per_hour=2))
        for _ in range(2):
            await house.say("x", principal=stranger)
        for _ in range(3):
            with pytest.raises(Exhausted, match="2 times"):
                await house.say("x", principal=stranger)
        await house.say("x")


@pytest.mark.proves("T-store-reset")
async def test_a_fresh_session_forgets_and_keeps_the_old_one_readable() -> None:
    model = ScriptedModel(otherwise=lambda r: Say(f"saw {len(r.messages)}"))
    async with open_house(model) as house:
        await house.say("1")
        assert (await house.say("2")).reply == "saw 3"
        inbound = message("3", new_session=True)
        assert (await house.turns.ask(inbound)).reply == "saw 1"
        await house.turns.ask(inbound)
        async with house.store.work() as work:
            sessions = await work.sessions.list_sessions(PLACE.conversation_id, NAME)
            old = await work.messages.list_tail(sessions[-1].id, limit=10)
        assert len(sessions) == 2
        assert [m.text for m in old if m.role is Role.USER] == ["1", "2"]


async def test_a_client_that_brings_its_own_history_gets_an_answer_to_that() -> None:
    model = ScriptedModel(otherwise=lambda r: Say(f"saw {len(r.messages)}"))
    async with open_house(model) as house:
        await house.say("stored")
        supplied = tuple(PromptMessage(Role.USER, (TextPart(text),)) for text in "abc")
        done = await house.say("d", supplied=supplied, instructions="Be a pirate.")
        assert done.reply == "saw 4"
        assert any(segment.text == "Be a pirate." for segment in model.requests[-1].segments)


@pytest.mark.proves(
    "S-config-additional-prompt", "S-config-response-style", "S-config-language", "S-config-temperature"
)
async def test_style_language_and_sampling_reach_the_request() -> None:
    style = Style(ResponseStyle.FRIENDLY, "it", CitationFormat.FOOTNOTE, "Mention cats.", "Search twice.")
    agent = Agent(NAME, persona=(("IDENTITY.md", "You are Ada."),), style=style, sampling=Sampling(temperature=0.3))
    model = ScriptedModel(Say("ciao"), Say("again"))
    async with open_house(model, agent=agent) as house:
        await house.say("x")
        prompt = "\n".join(segment.text for segment in model.requests[0].segments)
        for words in ("You are Ada.", "warmly", "'it'", "footnotes", "Mention cats.", "Search twice."):
            assert words in prompt
        assert model.requests[0].sampling.temperature == 0.3
        await house.say("y", temperature=0.9)
        assert model.requests[1].sampling.temperature == 0.9


@pytest.mark.proves("S-config-language", "S-config-additional-prompt")
async def test_english_needs_no_words_about_the_language() -> None:
    model = ScriptedModel(Say("hi"))
    async with open_house(model) as house:
        await house.say("x")
        assert "language" not in "\n".join(segment.text for segment in model.requests[0].segments)


@pytest.mark.proves("C23")
async def test_a_model_that_cannot_see_is_told_that_there_was_an_image() -> None:
    parts = (TextPart("what is this?"), ImagePart("https://example.org/cat.png"))
    blind = ScriptedModel(Say("?"))
    async with open_house(blind) as house:
        await house.say("x", parts=parts)
        assert "cannot see" in str(blind.requests[0].messages[0].parts[1])
    seeing = ScriptedModel(Say("a cat"), capabilities=Capabilities(images=True))
    async with open_house(seeing) as house:
        await house.say("x", parts=parts)
        assert seeing.requests[0].messages[0].parts[1:] == parts[1:]


async def test_the_system_prompt_keeps_its_bytes_from_turn_to_turn() -> None:
    model = ScriptedModel(otherwise=Say("ok"))
    async with open_house(model) as house:
        await house.say("1")
        await house.say("2")
        assert model.requests[0].segments == model.requests[1].segments
        assert model.requests[1].messages[0] == model.requests[0].messages[0]


@pytest.mark.proves("TW19", "T1")
async def test_a_reload_spares_the_tools_of_a_turn_that_uses_them_and_the_next_turn_has_the_new_ones() -> None:
    gate = Gate()
    old_model = ScriptedModel(Say("old", before=gate))
    async with open_house(old_model) as house:
        turn = await house.turns.submit(message("1"))
        await gate.reached.wait()
        new_tools, new_model = Tools(), ScriptedModel(Say("new"))
        await house.runtime.swap(generation(new_model, new_tools, number=2))
        assert not house.tools.closed
        gate.open.set()
        with anyio.fail_after(5):
            await house.durable.wait(turn.id)
            assert (await house.say("2")).reply == "new"
        assert house.tools.closed and not new_tools.closed


async def test_a_watcher_who_stops_watching_does_not_stop_the_turn() -> None:
    gate = Gate()
    async with open_house(ScriptedModel(Say("a long answer", halfway=gate))) as house:
        stream = house.turns.stream(message("x"))
        await anext(stream)
        await stream.aclose()
        gate.open.set()
        async with house.store.work() as work:
            (turn,) = await work.turns.list_turns()
        with anyio.fail_after(5):
            await house.durable.wait(turn.id)
        assert (await house.turns.get(turn.id)).reply == "a long answer"


async def test_usage_of_all_steps_is_summed_and_recorded() -> None:
    model = ScriptedModel(Say(calls=[call("look", q="a")]), Say("done"))
    async with open_house(model) as house:
        done = await house.say("x")
        assert (done.usage.input_tokens, done.usage.output_tokens, done.usage.requests) == (20, 10, 2)
        async with house.store.work() as work:
            steps = await work.turns.list_steps(done.turn_id)
        assert [(step.number, step.purpose, step.finish_reason) for step in steps] == [
            (1, "act", "tool_calls"),
            (2, "act", "stop"),
        ]


async def test_the_last_event_is_the_end_of_the_turn() -> None:
    async with open_house(ScriptedModel(Say("hello"))) as house:
        events = await house.watch("x")
        assert isinstance(events[-1], TurnFinished)
        assert sum(isinstance(event, TurnFinished) for event in events) == 1


async def test_an_image_in_the_history_stays_a_message_of_its_conversation() -> None:
    model = ScriptedModel(Say("1"), Say("2"))
    async with open_house(model) as house:
        await house.say("x", parts=(TextPart("see"), ImagePart("data:image/png;base64,AAAA")))
        stored: Message = (await house.session())[0]
        assert stored.parts[1] == ImagePart("data:image/png;base64,AAAA")


@pytest.mark.proves("X-max-output-tokens")
async def test_a_request_asks_for_4096_tokens_unless_the_agent_or_the_message_says_otherwise() -> None:
    model = ScriptedModel(otherwise=Say("ok"))
    async with open_house(model) as house:
        await house.say("x")
        await house.say("x", max_output_tokens=7)
    async with open_house(model, agent=Agent(NAME, limits=Limits(max_output_tokens=99))) as house:
        await house.say("x")
        await house.say("x", max_output_tokens=5000)
    assert [request.max_output_tokens for request in model.requests] == [4096, 7, 99, 99]


@pytest.mark.proves("T-store-resume", "T-store-sessions")
async def test_a_session_goes_on_with_the_model_that_is_configured_now() -> None:
    async with open_house(ScriptedModel(Say("one"))) as house:
        await house.say("1")
        newer = ScriptedModel(otherwise=lambda r: Say(f"saw {len(r.messages)}"), name="scripted/newer")
        await house.runtime.swap(generation(newer, Tools(), number=2))
        done = await house.say("2")
        assert done.reply == "saw 3"
        assert (await house.turns.get(done.turn_id)).model == "scripted/newer"


async def test_a_turn_whose_end_could_not_be_written_is_closed_after_the_restart() -> None:
    store, log = MemoryStore(), MemoryLog()
    async with open_house(ScriptedModel(Say("never", before=Gate())), store=store, log=log) as house:
        turn = await house.turns.submit(message("x"))
        await house.durable.cancel(turn.id)
    async with open_house(ScriptedModel(), store=store, log=log) as house:
        await house.turns.resume()
        closed = await house.turns.get(turn.id)
        assert (closed.status, closed.failure_code) == (TurnStatus.FAILED, "turn_lost")


class TroubledStore(MemoryStore):
    """A store whose database is locked for the next `faults` writes that change a message; none of them is kept."""

    faults = 0

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[UnitOfWork]:
        return self._troubled() if write and self.faults else super().work(write=write)

    @asynccontextmanager
    async def _troubled(self) -> AsyncGenerator[UnitOfWork]:
        self.faults -= 1
        async with super().work() as work:
            yield work
            raise Unavailable("The database is busy.", code="store_busy")


async def test_the_end_of_a_turn_waits_for_a_database_that_is_locked_and_is_whole_then() -> None:
    store, gate = TroubledStore(), Gate()
    async with open_house(ScriptedModel(Say("a paid answer", before=gate)), store=store) as house:
        turn = await house.turns.submit(message("x"))
        await gate.reached.wait()
        store.faults = 1
        gate.open.set()
        with anyio.fail_after(10):
            await house.durable.wait(turn.id)
        assert (await house.turns.get(turn.id)).reply == "a paid answer"
        assert [text_of(m.parts) for m in await house.session()] == ["x", "a paid answer"]


async def test_what_was_done_before_a_fault_of_the_database_is_in_the_record_of_the_failed_turn() -> None:
    store, gate = TroubledStore(), Gate()
    model = ScriptedModel(Say(calls=[call("look", q="one")], before=gate))
    async with open_house(model, store=store) as house:
        turn = await house.turns.submit(message("x"))
        await gate.reached.wait()
        store.faults = 1
        gate.open.set()
        with anyio.fail_after(10):
            await house.durable.wait(turn.id)
        detail = await Queries(house.runtime, house.services).get_turn(turn.id)
        assert (detail.turn.status, detail.turn.failure_code) == (TurnStatus.FAILED, "store_busy")
        assert ([step.number for step in detail.steps], [c.tool for c in detail.calls]) == ([1], ["look"])


async def test_whoever_watches_a_turn_hears_when_it_cannot_end_here() -> None:
    gate = Gate()
    async with open_house(ScriptedModel(Say("never", before=gate))) as house, anyio.create_task_group() as tasks:

        async def watch() -> None:
            with pytest.raises(Unavailable) as caught:
                await house.say("x")
            assert caught.value.code == "durable_closed"

        tasks.start_soon(watch)
        await gate.reached.wait()
        with anyio.fail_after(10):
            await house.durable.aclose()


async def test_a_turn_that_is_stopped_before_it_began_never_asks_the_model() -> None:
    model = ScriptedModel()
    async with open_house(model) as house:
        inbound = message("x")
        turn = await house.turns.submit(inbound)
        assert house.turns.cancel_message(inbound)
        with anyio.fail_after(5):
            await house.durable.wait(turn.id)
        assert (await house.turns.get(turn.id)).status is TurnStatus.CANCELLED
        assert model.requests == []


async def test_a_turn_ends_even_when_what_happened_in_it_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise ValueError("secret detail")

    monkeypatch.setattr(Steps, "write", fail)
    async with open_house(ScriptedModel(Say("hello"))) as house:
        with anyio.fail_after(10):
            done = await house.say("x")
        assert (done.status, done.failure_code) == (TurnStatus.FAILED, "bug")
        assert "secret" not in done.failure
        assert (await house.turns.get(done.turn_id)).status is TurnStatus.FAILED

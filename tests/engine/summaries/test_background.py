"""Summaries in the background: made beside the talk, read in place of what they sum up, gone with whom they quote."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import pytest
from anyio import create_task_group

from denizen.domain.agent import Agent, AgentInstructions, SummaryPolicy, ToolAccess, TurnLimits
from denizen.domain.budget import BudgetLimits as MoneyLimits
from denizen.domain.budget import BudgetPolicy, BudgetScopeKind
from denizen.domain.conversation import Place
from denizen.domain.errors import Unavailable
from denizen.domain.ids import AgentName, CallId, MessageId, SessionId, TurnId
from denizen.domain.message import Author, Role, TextPart, ToolResultPart, join_text
from denizen.domain.prompt_messages import count_tokens
from denizen.domain.summary import Summary
from denizen.domain.tool import Taint
from denizen.domain.turn import TurnStatus
from denizen.engine.memory.history_search import SessionHistorySearch
from denizen.engine.prompt.session_history import summary_message
from denizen.ports.model import Capabilities, ModelRequest
from denizen.ports.toolset import CallScope
from denizen.testing.memory_durable import MemoryLog
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedModels, ScriptedReply, ScriptStep, call
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.engine_fixture import LOOK, NAME, PLACE, EngineFixture, ToolsetFixture, open_engine

pytestmark = pytest.mark.anyio

LIMITS = TurnLimits(max_history_tokens=1000)
AGENT = Agent(NAME, limits=LIMITS, tool_access=ToolAccess(tools=()))
LONG = "word " * 70
"""A question of 91 tokens with its number and marks."""


def make_answering_model() -> ScriptedModel:
    return ScriptedModel(otherwise=ScriptedReply("ok"))


def make_summary_model(*steps: ScriptStep, small: bool = False, **more: object) -> ScriptedModel:
    can = Capabilities(context_tokens=8192, small=small)
    return ScriptedModel(*steps, name="acme/cheap", capabilities=can, **more)  # pyright: ignore[reportArgumentType]


def list_texts(request: ModelRequest) -> list[str]:
    """The messages of a request, without the notes that only it has."""
    return [join_text(message.parts) for message in request.messages if message.kind not in ("note", "date")]


@asynccontextmanager
async def open_platform(
    model: ScriptedModel,
    cheap: ScriptedModel,
    agent: Agent = AGENT,
    *,
    store: TemporaryStore | None = None,
    log: MemoryLog | None = None,
    budgets: BudgetPolicy | None = None,
) -> AsyncGenerator[EngineFixture]:
    async with open_engine(model, agent=agent, store=store, log=log) as engine:
        both = ScriptedModels({"balanced": model, "cheap": cheap})
        now = engine.runtime.current
        await engine.runtime.swap(replace(now, number=2, models=both, budgets=budgets or now.budgets))
        yield engine


async def wait_for_background(engine: EngineFixture) -> None:
    """Until everything has ended that runs in the background."""
    for run_id in await engine.durable.pending():
        await engine.durable.wait(run_id)


async def ask_questions(engine: EngineFixture, *numbers: int) -> None:
    for number in numbers:
        assert (await engine.say(f"q{number} {LONG}")).status is TurnStatus.DONE
        await wait_for_background(engine)


async def list_summaries(engine: EngineFixture) -> Sequence[Summary]:
    messages = await engine.session()
    async with engine.store.work(write=False) as work:
        return await work.summaries.list_summaries(messages[-1].session_id or SessionId(""))


@pytest.mark.proves("T12", "TW13", "V8")
async def test_the_oldest_part_is_summed_up_and_the_rest_begins_right_behind_it() -> None:
    model, cheap = make_answering_model(), make_summary_model(ScriptedReply("They spoke of q1 to q5."))
    async with open_platform(model, cheap) as engine:
        await ask_questions(engine, *range(1, 9))
        (summary,) = await list_summaries(engine)
        assert summary.text == "They spoke of q1 to q5."
        assert summary.first == 1
        await ask_questions(engine, 9)
        first, *rest = list_texts(model.requests[-1])
        assert first == f"[Messages {summary.reference} of this conversation, summed up: They spoke of q1 to q5.]"
        stored = [message.text for message in await engine.session() if message.sequence > summary.last]
        assert rest == stored[:-1]  # all that was said since, up to the question
        assert (await engine.session())[0].text.endswith(f"q1 {LONG}")
        asked = join_text(cheap.requests[0].messages[0].parts)
        assert "q1 word" in asked and "q9 word" not in asked
        assert "Write a few plain sentences" in cheap.requests[0].segments[0].text


async def test_no_answer_waits_for_a_summary() -> None:
    gate = ReplyGate()
    model, cheap = make_answering_model(), make_summary_model(ScriptedReply("Summary.", before=gate))
    async with open_platform(model, cheap) as engine:
        for number in range(1, 14):
            assert (await engine.say(f"q{number} {LONG}")).status is TurnStatus.DONE
        await gate.reached.wait()
        assert len(cheap.requests) == 1  # nor is a second one begun
        assert not await list_summaries(engine)
        assert sum(map(count_tokens, model.requests[-1].messages)) <= LIMITS.max_history_tokens
        gate.open.set()
        await wait_for_background(engine)
        assert len(await list_summaries(engine)) == 1


@pytest.mark.proves("TW13")
async def test_what_left_the_prompt_while_a_summary_was_made_is_in_the_next_one() -> None:
    gate = ReplyGate()
    model = make_answering_model()
    cheap = make_summary_model(ScriptedReply("First.", before=gate), otherwise=ScriptedReply("Second."))
    agent = replace(AGENT, limits=replace(LIMITS, max_history_tokens=100_000, max_history_messages=10))
    async with open_platform(model, cheap, agent) as engine:
        for number in range(1, 15):
            await engine.say(f"question {number}.")
        gate.open.set()
        await wait_for_background(engine)
        (made,) = await list_summaries(engine)
        assert "question 7." not in "".join(list_texts(model.requests[-1]))
        await engine.say("question 15.")
        await wait_for_background(engine)
        first, second = await list_summaries(engine)
    assert (first, second.first) == (made, made.last + 1)
    told = join_text(cheap.requests[1].messages[0].parts)
    assert all(f"question {number}." in told for number in range(made.last // 2 + 1, second.last // 2 + 1))


@pytest.mark.proves("T12")
async def test_when_summing_up_fails_the_oldest_are_left_out_without_a_word_but_for_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "denizen")
    model, cheap = make_answering_model(), make_summary_model(Unavailable("The model is away.", fix="Try again later."))
    async with open_platform(model, cheap) as engine:
        await ask_questions(engine, *range(1, 16))
        assert not await list_summaries(engine)
        assert len(cheap.requests) == 1  # it is left alone for a while
    said = [record.message for record in caplog.records]
    assert "summary failed: The model is away." in said
    assert "history trimmed" in said
    assert all("away" not in text for request in model.requests for text in list_texts(request))


@pytest.mark.proves("T12")
@pytest.mark.parametrize("rule", [SummaryPolicy(enabled=False), SummaryPolicy()])
async def test_nothing_is_summed_up_where_it_is_switched_off_or_by_a_small_model(rule: SummaryPolicy) -> None:
    model, cheap = make_answering_model(), make_summary_model(small=rule.enabled is None)
    async with open_platform(model, cheap, replace(AGENT, history=replace(AGENT.history, summaries=rule))) as engine:
        await ask_questions(engine, *range(1, 12))
        assert not cheap.requests


async def test_a_small_model_sums_up_where_it_is_told_to_in_pieces_that_it_can_read() -> None:
    model, cheap = make_answering_model(), make_summary_model(otherwise=ScriptedReply("Summary."), small=True)
    big = replace(
        AGENT,
        limits=TurnLimits(max_history_tokens=20_000),
        history=replace(AGENT.history, summaries=SummaryPolicy(enabled=True)),
    )
    async with open_platform(model, cheap, big) as engine:
        for number in range(1, 10):
            await engine.say(f"q{number} " + "word " * 1500)
            await wait_for_background(engine)
        assert len(cheap.requests) > 1
        assert len(await list_summaries(engine)) == 1
        for request in cheap.requests:
            assert sum(map(count_tokens, request.messages)) + request.max_output_tokens < 8192


@pytest.mark.proves("T12", "TW13")
async def test_summaries_that_grow_are_merged_into_one_and_nothing_is_lost() -> None:
    number = iter(range(1, 100))

    def numbered(request: ModelRequest) -> ScriptedReply:
        del request
        return ScriptedReply(f"Summary {next(number)}. " + "z" * 500)

    model, cheap = make_answering_model(), make_summary_model(otherwise=numbered)
    async with open_platform(model, cheap) as engine:
        references: list[list[str]] = []
        for at in range(1, 30):
            await ask_questions(engine, at)
            references.append([each.reference for each in await list_summaries(engine)])
        assert any(len(each) == 2 for each in references)
        asked = [join_text(request.messages[0].parts) for request in cheap.requests]
        assert any("Summary of what came before" in text for text in asked)
        covered = 0
        for each in await list_summaries(engine):
            assert each.first == covered + 1
            covered = each.last
        for request in model.requests:
            assert sum(map(count_tokens, request.messages)) <= LIMITS.max_history_tokens


@pytest.mark.proves("T10", "T12")
async def test_the_prompt_keeps_its_bytes_but_for_a_few_steps() -> None:
    for cheap in (
        make_summary_model(otherwise=ScriptedReply("Summary.")),
        make_summary_model(otherwise=Unavailable("Away.", fix="Wait.")),
    ):
        model = make_answering_model()
        async with open_platform(model, cheap) as engine:
            await ask_questions(engine, *range(1, 41))
        prompts = [list_texts(request) for request in model.requests]
        broken = sum(after[: len(before)] != before for before, after in pairwise(prompts))
        assert 4 <= broken <= 12
        assert max(len(prompt) for prompt in prompts) > 8


@pytest.mark.proves("V6")
async def test_every_message_is_written_as_it_arrives_and_read_again_after_a_restart() -> None:
    store, gate = TemporaryStore(), ReplyGate()
    before, after = (
        ScriptedModel(
            ScriptedReply("Let me see.", calls=[call("look", q="a")]),
            ScriptedReply("ok", before=gate),
            otherwise=ScriptedReply("ok"),
        ),
        make_answering_model(),
    )
    looks = replace(AGENT, tool_access=ToolAccess(tools=("look",)))
    async with (
        open_platform(before, make_summary_model(otherwise=ScriptedReply("Summary.")), looks, store=store) as engine,
        create_task_group() as group,
    ):
        group.start_soon(ask_questions, engine, 1)
        await gate.reached.wait()
        arrived = [(message.role, message.text) for message in await engine.session()]  # before there is an answer
        assert arrived[:2] == [(Role.USER, f"q1 {LONG}"), (Role.ASSISTANT, "Let me see.")]
        assert [role for role, _ in arrived[2:]] == [Role.TOOL]
        gate.open.set()
    async with open_platform(before, make_summary_model(otherwise=ScriptedReply("Summary.")), store=store) as engine:
        await ask_questions(engine, *range(2, 10))
        assert len(await engine.session()) == 20
        stored, summed_up = await engine.session(), await list_summaries(engine)
    async with open_platform(after, make_summary_model(otherwise=ScriptedReply("Summary.")), store=store) as engine:
        await ask_questions(engine, 10)
    expected = [join_text(summary_message(each).parts) for each in summed_up]
    expected += [message.text for message in stored if message.sequence > summed_up[-1].last]
    assert list_texts(after.requests[0]) == [*expected, f"q10 {LONG}"]


async def test_a_run_that_is_cut_off_goes_on_after_a_restart_and_asks_the_model_no_second_time() -> None:
    store, log = TemporaryStore(), MemoryLog()
    gate = ReplyGate()
    big = replace(AGENT, limits=TurnLimits(max_history_tokens=20_000))
    first = make_summary_model(ScriptedReply("First piece."), ScriptedReply("Both.", before=gate))
    async with open_platform(make_answering_model(), first, big, store=store, log=log) as engine:
        for number in range(1, 9):
            await engine.say(f"q{number} " + "word " * 1500)
        await gate.reached.wait()
    again = make_summary_model(otherwise=ScriptedReply("All."))
    async with open_platform(make_answering_model(), again, big, store=store, log=log) as engine:
        await wait_for_background(engine)
        asked = [join_text(request.messages[0].parts) for request in again.requests]
        assert asked[0].startswith("Summary of what came before:\nFirst piece.")
        assert "q1 word" in join_text(first.requests[0].messages[0].parts)
        assert not any("q1 word" in text for text in asked)
        assert [each.text for each in await list_summaries(engine)] == ["All."]


async def test_words_that_are_forgotten_go_from_summaries_and_come_into_no_new_one() -> None:
    def repeat(request: ModelRequest) -> ScriptedReply:
        return ScriptedReply(join_text(request.messages[0].parts)[:80])

    model, cheap = make_answering_model(), make_summary_model(otherwise=repeat)
    discord = Place("discord", "1")
    async with open_platform(model, cheap) as engine:

        async def say(number: int, author: str) -> None:
            await engine.say(f"q{number} {LONG}", place=discord, author=Author(author, author))
            await wait_for_background(engine)

        async def texts() -> list[str]:
            messages = await engine.session(discord)
            async with engine.store.work(write=False) as work:
                found = await work.summaries.list_summaries(messages[0].session_id or SessionId(""))
            return [each.text for each in found]

        await say(1, "eve")
        for number in range(2, 9):
            await say(number, "ana")
        assert "q1 word" in (await texts())[0]
        async with engine.store.work() as work:
            await work.archive.forget_author("discord", "eve")
        assert await texts() == []
        for number in range(9, 12):
            await say(number, "ana")
        (summary,) = await texts()
        assert "q1 word" not in summary
        assert "forgotten" not in summary


@pytest.mark.proves("TW13")
async def test_what_else_a_forgotten_summary_told_is_summed_up_anew_before_the_later_one() -> None:
    model, cheap = make_answering_model(), make_summary_model(otherwise=ScriptedReply("z" * 500))
    discord = Place("discord", "1")
    async with open_platform(model, cheap) as engine:

        async def say(number: int, author: str = "ana") -> list[Summary]:
            await engine.say(f"q{number} {LONG}", place=discord, author=Author(author, author))
            await wait_for_background(engine)
            messages = await engine.session(discord)
            async with engine.store.work(write=False) as work:
                return list(await work.summaries.list_summaries(messages[0].session_id or SessionId("")))

        made, number = await say(1, "eve"), 1
        while len(made) < 2:
            made = await say(number := number + 1)
        asked = len(cheap.requests)
        async with engine.store.work() as work:
            await work.archive.forget_author("discord", "eve")
        again = await say(number + 1)
        assert [(each.first, each.last) for each in again[:2]] == [(each.first, each.last) for each in made]
        told = join_text(cheap.requests[asked].messages[0].parts)
        assert "q2 word" in told and "q1 word" not in told


async def test_words_that_are_forgotten_while_they_are_summed_up_are_not_kept() -> None:
    gate = ReplyGate()
    model, cheap = (
        make_answering_model(),
        make_summary_model(ScriptedReply("Eve said q1.", before=gate), otherwise=ScriptedReply("Nothing of Eve.")),
    )
    discord = Place("discord", "1")
    async with open_platform(model, cheap) as engine:
        for number in range(1, 9):
            author = Author("eve", "Eve") if number == 1 else Author("ana", "Ana")
            await engine.say(f"q{number} {LONG}", place=discord, author=author)
        await gate.reached.wait()
        async with engine.store.work() as work:
            await work.archive.forget_author("discord", "eve")
        gate.open.set()
        await wait_for_background(engine)
        messages = await engine.session(discord)
        async with engine.store.work(write=False) as work:
            assert not await work.summaries.list_summaries(messages[0].session_id or SessionId(""))


@pytest.mark.proves("P5")
async def test_no_summary_is_made_when_the_budget_is_used_up() -> None:
    model = make_answering_model()
    cheap = make_summary_model(otherwise=ScriptedReply("Summary."), price_usd=(Decimal("0.01"), Decimal("0.01")))
    poor = BudgetPolicy({BudgetScopeKind.SERVER: MoneyLimits(per_day_usd=Decimal(1))})
    async with open_platform(model, cheap, budgets=poor) as engine:
        await ask_questions(engine, *range(1, 12))
        assert not cheap.requests
        assert not await list_summaries(engine)


@pytest.mark.proves("T11")
async def test_a_prompt_that_the_model_cannot_read_is_reported_and_does_not_starve_the_history() -> None:
    can = Capabilities(context_tokens=1000)
    model = ScriptedModel(otherwise=ScriptedReply("ok"), capabilities=can)
    agent = replace(AGENT, instructions=AgentInstructions(persona=(("SOUL.md", "x" * 4100),)))
    async with open_engine(model, agent=agent) as engine:
        failure = await engine.fail("hello")
        assert "longer than what its model can read" in failure.message
        assert "Shorten the agent's files" in failure.fix
        assert not model.requests


@pytest.mark.proves("TW12", "T11")
@pytest.mark.parametrize("length", [8000, 18_000])
async def test_a_system_prompt_of_more_tokens_than_the_history_may_have_leaves_it_whole(length: int) -> None:
    model = ScriptedModel(otherwise=ScriptedReply("ok"), capabilities=Capabilities(context_tokens=8192))
    agent = replace(AGENT, instructions=AgentInstructions(persona=(("SOUL.md", "x" * length),)))
    async with open_engine(model, agent=agent) as engine:
        for number in range(5):
            await engine.say(f"q{number} {LONG}")
    assert sum(len(segment.text) for segment in model.requests[-1].segments) > 4 * LIMITS.max_history_tokens
    texts = list_texts(model.requests[-1])
    assert [f"q{number} " in text for number, text in enumerate(texts[::2])] == [True] * 5


@pytest.mark.proves("T11", "T8", "T-config-limits")
async def test_system_prompt_and_tools_are_taken_off_the_room_for_history() -> None:
    can = Capabilities(context_tokens=1400)

    async def count(agent: Agent) -> int:
        model = ScriptedModel(otherwise=ScriptedReply("ok"), capabilities=can)
        async with open_engine(
            model, ToolsetFixture([replace(LOOK, description="Looks. " * 200)]), agent=agent
        ) as engine:
            for number in range(9):
                await engine.say(f"q{number} {LONG}")
            return max(sum(map(count_tokens, request.messages)) for request in model.requests)

    bare = replace(
        AGENT,
        limits=TurnLimits(max_output_tokens=200),
        history=replace(AGENT.history, summaries=SummaryPolicy(enabled=False)),
    )
    plain = await count(bare)
    assert await count(replace(bare, instructions=AgentInstructions(persona=(("SOUL.md", "x" * 1600),)))) <= plain - 150
    assert await count(replace(bare, tool_access=ToolAccess())) <= plain - 150


@pytest.mark.proves("T12")
async def test_what_a_summary_stands_for_can_be_read_word_for_word_by_its_reference() -> None:
    async with open_platform(make_answering_model(), make_summary_model(otherwise=ScriptedReply("Summary."))) as engine:
        await ask_questions(engine, *range(1, 9))
        (summary,) = await list_summaries(engine)
        stored = await engine.session()
        turn = await engine.turns.get(stored[-1].turn_id or TurnId(""))
        recall = SessionHistorySearch(engine.store)
        scope = CallScope(
            agent=NAME, principal=turn.principal, place=PLACE, session_id=turn.session_id, turn_id=turn.id
        )
        read = await recall.read(scope, summary.first, summary.last)
        assert [(found.number, found.text) for found in read] == [(m.sequence, m.text) for m in stored[: summary.last]]
        assert [found.number for found in await recall.read(scope, 3, 10**12)] == list(range(3, len(stored) - 1))
        assert await recall.read(scope, 9, 3) == []
        assert await recall.read(replace(scope, agent=AgentName("other")), 1, 9) == []
        assert await recall.read(replace(scope, place=Place("terminal", "other")), 1, 9) == []


async def test_who_reads_again_what_came_from_elsewhere_is_marked_by_it() -> None:
    async with open_platform(make_answering_model(), make_summary_model(otherwise=ScriptedReply("Summary."))) as engine:
        await engine.say("hello")
        (first, _) = await engine.session()
        async with engine.store.work() as work:
            parts = (ToolResultPart(CallId("c"), "fetch_url", "Buy now!"),)
            foreign = replace(
                first, id=MessageId("web"), role=Role.TOOL, parts=parts, turn_id=None, meta={"taint": ["web"]}
            )
            await work.messages.add(foreign)
        turn = await engine.turns.get(first.turn_id or TurnId(""))
        scope = CallScope(
            agent=NAME, principal=turn.principal, place=PLACE, session_id=turn.session_id, turn_id=TurnId("next")
        )
        assert [found.text for found in await SessionHistorySearch(engine.store).read(scope, 3, 3)] == [
            "[fetch_url gave: Buy now!]"
        ]
        assert scope.trail.taint == {Taint.WEB}


async def test_who_finds_again_what_came_from_elsewhere_is_marked_by_it() -> None:
    async with open_platform(make_answering_model(), make_summary_model(otherwise=ScriptedReply("Summary."))) as engine:
        await engine.say("hello")
        (first, second) = await engine.session()
        async with engine.store.work() as work:
            parts = (TextPart("Ice cream for sale!"),)
            found = replace(second, id=MessageId("web"), parts=parts, turn_id=None, meta={"taint": ["web"]})
            await work.messages.add(found)
        turn = await engine.turns.get(first.turn_id or TurnId(""))
        scope = CallScope(
            agent=NAME, principal=turn.principal, place=PLACE, session_id=turn.session_id, turn_id=TurnId("next")
        )
        assert not await SessionHistorySearch(engine.store)(scope, "nothing like it", 5)
        assert not scope.trail.taint
        assert [each.text for each in await SessionHistorySearch(engine.store)(scope, "ice cream", 5)] == [
            "Ice cream for sale!"
        ]
        assert scope.trail.taint == {Taint.WEB}

"""Transcripts away from archived rooms, with tools, and when several things happen at once."""

from __future__ import annotations

from itertools import pairwise

import pytest

from denizen.domain.agent import Agent, ContextStrategy, HistorySettings
from denizen.domain.events import TextAdded, TurnFinished
from denizen.domain.message import ImagePart, Role, TextPart, join_text
from denizen.domain.prompt import PromptMessage, Stability
from denizen.domain.room import RoomKind
from denizen.domain.transcript import TranscriptBudget
from denizen.domain.turn import SessionChoice
from denizen.ports.model import Capabilities, ModelRequest
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.engine_fixture import NAME, open_engine
from tests.engine.platform_fixture import ADA, World, open_platform
from tests.engine.prompt.transcript_fixture import (
    BEN,
    SMALL,
    ask,
    first_difference,
    list_blocks,
    list_lines,
    list_texts,
    make_agents,
    mirror_everything,
    model,
    participant,
    write_posts,
)

pytestmark = pytest.mark.anyio


USUAL_BUDGET = TranscriptBudget()


def make_agent(budget: TranscriptBudget = USUAL_BUDGET) -> Agent:
    return Agent(NAME, history=HistorySettings(context=ContextStrategy.TRANSCRIPT, transcript=budget))


def lines(request: ModelRequest) -> list[str]:
    return "\n".join(join_text(message.parts) for message in request.messages[:-1]).split("\n")


@pytest.mark.proves("X-history", "C28", "CW2", "C24", "C27")
async def test_where_nothing_is_archived_the_conversation_is_the_transcript() -> None:
    scripted = ScriptedModel(otherwise=ScriptedReply(f"{NAME}: Quite."))
    async with open_engine(scripted, agent=make_agent()) as engine:
        finished = [await engine.say(text) for text in ("one", "two", "three")]
    assert {turn.reply for turn in finished} == {"Quite."}
    assert lines(scripted.requests[-1]) == ["Ana: one", f"{NAME}: Quite.", "Ana: two", f"{NAME}: Quite.", "Ana: three"]
    for earlier, later in pairwise(scripted.requests):
        assert not first_difference(earlier, later)


@pytest.mark.proves("C24", "C26", "C27", "E6")
@pytest.mark.parametrize("rest", ["", f"\n{NAME}: And more.\nAna: I agree."])
@pytest.mark.parametrize("plans", [0, 1])
async def test_neither_watchers_nor_the_reply_have_what_is_cut_or_an_echoed_name(rest: str, plans: int) -> None:
    script = (*[ScriptedReply('{"tool": "none"}')] * plans, ScriptedReply(f"{NAME}: Well, yes.{rest}"))
    scripted = ScriptedModel(*script, capabilities=Capabilities(native_tools=not plans))
    async with open_engine(scripted, agent=make_agent()) as engine:
        *events, done = await engine.watch("hm")
    assert isinstance(done, TurnFinished)
    assert done.reply == "Well, yes."
    assert "".join(event.text for event in events if isinstance(event, TextAdded)).rstrip() == "Well, yes."


async def test_tools_are_used_behind_the_transcript_and_their_steps_stay_out_of_the_next() -> None:
    scripted = ScriptedModel(
        ScriptedReply("Let me see.", calls=[call("look")]), ScriptedReply("It is red."), ScriptedReply("Still red.")
    )
    async with open_engine(scripted, agent=make_agent()) as engine:
        await engine.say("which colour?")
        await engine.say("and now?")
    second, third = scripted.requests[1:]
    assert [message.role for message in second.messages] == [Role.USER, Role.USER, Role.ASSISTANT, Role.TOOL]
    assert lines(third) == ["Ana: which colour?", f"{NAME}: It is red.", "Ana: and now?"]


async def test_the_budget_trims_the_oldest_lines_of_a_conversation() -> None:
    scripted = ScriptedModel(otherwise=ScriptedReply("Quite so, I would say."))
    async with open_engine(scripted, agent=make_agent(TranscriptBudget(total=1000, tail=50))) as engine:
        for number in range(60):
            await engine.say(f"and this is remark number {number}")
    told = lines(scripted.requests[-1])
    assert told[-1] == "Ana: and this is remark number 59"
    assert 800 < sum(-(-len(line) // 4) + 4 for line in told) <= 1000


async def test_a_client_that_carries_its_own_history_is_believed() -> None:
    scripted = ScriptedModel(otherwise=ScriptedReply("Quite."))
    supplied = (PromptMessage(Role.USER, (TextPart("before"),)), PromptMessage(Role.ASSISTANT, (TextPart("yes"),)))
    async with open_engine(scripted, agent=make_agent()) as engine:
        await engine.say("now", session=SessionChoice(history=supplied))
    assert [join_text(message.parts) for message in scripted.requests[0].messages] == ["before", "yes", "now"]


async def test_a_new_session_begins_with_an_empty_transcript() -> None:
    scripted = ScriptedModel(otherwise=ScriptedReply("Quite."))
    async with open_engine(scripted, agent=make_agent()) as engine:
        await engine.say("before")
        await engine.say("after", session=SessionChoice(is_new=True))
    assert lines(scripted.requests[-1]) == ["Ana: after"]


@pytest.mark.proves("C22")
@pytest.mark.parametrize("prefill", [False, True])
async def test_pictures_of_the_question_are_shown_in_its_own_turn_only_behind_what_is_cached(*, prefill: bool) -> None:
    world = World()
    async with open_platform(world, model(images=True, prefill=prefill), agents={ADA: participant()}) as fixture:
        picture = ImagePart("https://cdn.example/cat.png", "image/png")
        world.platform.say(world.general, "ana", "@ada look", parts=(picture,))
        await fixture.settled()
        second = await ask(fixture)
        first = fixture.model.requests[0]
    *talk, cue = first.messages
    if prefill:
        *talk, shown = talk
        assert (shown.parts, cue.parts) == ((picture,), (TextPart("ada:"),))
    else:
        shown = cue
        assert shown.parts == (picture, TextPart("ada:"))
    assert shown.stability >= Stability.TURN > talk[-1].stability
    later = [each.parts for each in second.messages]
    assert later[: len(talk)] == [each.parts for each in talk]
    assert not any(isinstance(part, ImagePart) for message in second.messages for part in message.parts)


@pytest.mark.proves("CW11")
async def test_two_agents_that_are_asked_at_once_close_each_block_once() -> None:
    world = World()
    write_posts(world, 100)
    async with open_platform(world, model(), agents=make_agents(), prepare=mirror_everything(world)) as fixture:
        await ask(fixture, "@ada @ben well?")
        async with fixture.store.work(write=False) as work:
            kept = await work.transcripts.list_blocks(world.general.place)
        one, other = fixture.model.requests
    assert list_blocks(one) == list_blocks(other) != []
    ends = [(block.first, block.last) for block in kept]
    assert all(int(last) < int(first) for (_, last), (first, _) in pairwise(ends))


async def test_after_a_long_absence_only_what_fits_the_budget_is_read() -> None:
    world = World()
    write_posts(world, 60)
    async with open_platform(world, model(), agents={ADA: participant()}, prepare=mirror_everything(world)) as fixture:
        before = await ask(fixture)
        write_posts(world, 400, words="much was said meanwhile")
        await mirror_everything(world)(None)
        after = await ask(fixture)
        again = await ask(fixture)
    assert not set(list_blocks(before)) & set(list_blocks(after))
    assert sum(-(-len(line) // 4) + 4 for line in list_lines(after)) <= SMALL.total
    stayed = [block for block in list_blocks(again) if block in list_blocks(after)]
    assert list_blocks(after)[-len(stayed) :] == stayed == list_blocks(again)[: len(stayed)] != []


@pytest.mark.proves("C7", "E4")
async def test_the_tail_is_guaranteed_also_past_the_budget() -> None:
    world = World()
    write_posts(world, 300)
    large, small = TranscriptBudget(total=2400, tail=200, block=1000), TranscriptBudget(total=100, tail=300)
    agents = {ADA: participant(budget=large), BEN: participant(BEN, small)}
    async with open_platform(world, model(), agents=agents, prepare=mirror_everything(world)) as fixture:
        request = await ask(fixture, "@ben well?")
    told = list_lines(request)
    assert list_blocks(request) == []
    said = [f"{('Ana', 'Bob')[number % 2]}: we talk about the weather {number}" for number in range(300)]
    assert told == [*said[1 - len(told) :], "Ana: @ben well?"], "the oldest are dropped first"
    assert 280 < sum(-(-len(line) // 4) + 4 for line in told) <= 300


@pytest.mark.proves("C7", "C8", "C10", "E4", "E5")
async def test_an_agent_that_is_too_small_for_the_blocks_of_another_reads_the_end_of_them() -> None:
    world, small = World(), TranscriptBudget(total=20_000)
    write_posts(world, 300, words="x" * 390)
    agents = {ADA: participant(budget=USUAL_BUDGET), BEN: participant(BEN, small)}
    async with open_platform(world, model(), agents=agents, prepare=mirror_everything(world)) as fixture:
        first, second = [await ask(fixture, "@ben well?") for _ in range(2)]
        async with fixture.store.work(write=False) as work:
            [closed] = await work.transcripts.list_blocks(world.general.place)
        starter = world.platform.write(world.general, "bob", "shall we make a thread?")
        thread = world.platform.add_room("aside", RoomKind.THREAD, parent=world.general, room_id=starter.id)
        await mirror_everything(world)(None)
        aside = await ask(fixture, "@ben here", room=thread)
    assert closed.tokens > small.total, "a whole one is too large"
    told = list_lines(first)
    said = [f"{('Ana', 'Bob')[number % 2]}: {'x' * 390} {number}" for number in range(300)]
    assert told == [*said[1 - len(told) :], "Ana: @ben well?"], "the newest, without a gap"
    assert small.tail - 110 < sum(-(-len(line) // 4) + 4 for line in told) <= small.total
    assert not first_difference(first, second)
    above = list_lines(aside)[:-1]
    assert above[-1] == "Bob: shall we make a thread?" and said[-1] in above
    assert small.tail - 110 < sum(-(-len(line) // 4) + 4 for line in above) <= small.parent_tokens


@pytest.mark.proves("C10")
@pytest.mark.parametrize("block", [1000, None])
async def test_a_small_model_gets_what_it_can_read_and_no_more(block: int | None) -> None:
    world = World()
    write_posts(world, 2320)
    scripted = ScriptedModel(otherwise=ScriptedReply("Quite."), capabilities=Capabilities(context_tokens=5000))
    agents = {ADA: participant(budget=TranscriptBudget(block=block))}
    async with open_platform(world, scripted, agents=agents, prepare=mirror_everything(world)) as fixture:
        request = await ask(fixture)
    assert 1000 < sum(-(-len(text) // 4) + 4 for text in list_lines(request)) <= 5000 // 2, (
        "the answer takes the other half"
    )
    assert list_texts(request)[-1] == "ada:"


async def test_only_names_of_those_who_talk_here_are_guarded() -> None:
    scripted = ScriptedModel(otherwise=ScriptedReply("Done.\nBob: no"))
    async with open_engine(scripted, agent=make_agent()) as engine:
        assert (await engine.say("go")).reply == "Done.\nBob: no"

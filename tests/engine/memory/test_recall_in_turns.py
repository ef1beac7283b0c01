"""Turns with a memory: what comes up unasked, where it stands in the prompt, and what is recorded of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from denizen.domain.agent import Agent, AgentInstructions, ContextStrategy, HistorySettings
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId
from denizen.domain.memory import CORE, Memory, MemoryOrigin, RecallPolicy
from denizen.domain.message import Role, ToolResultPart, join_text
from denizen.domain.room import Room
from denizen.domain.tool import ToolCall
from denizen.engine.configuration.generation import KnowledgeSettings
from denizen.engine.inspection.queries import Queries, TurnTrace
from denizen.engine.inspection.replay import replay_turn
from denizen.ports.model import ModelRequest
from denizen.ports.toolset import CallScope
from denizen.skill import SkillToolset
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.engine_fixture import ToolsetFixture, wait_for_approvals
from tests.engine.memory_fixture import ANA, BOB, WordEmbedder, build_memory_skill
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform

pytestmark = pytest.mark.anyio

AGENT = Agent(
    ADA,
    instructions=AgentInstructions(persona=(("IDENTITY.md", "You are Ada."),), core_memory="The fair is in May."),
    history=HistorySettings(recent_messages=0),
)


async def remember(
    fixture: PlatformFixture, text: str, owner: str = ANA.key, *, room: Room | None = None, key: str = ""
) -> str:
    now = fixture.world.clock.now()
    told = MemoryOrigin("discord", room.id, private=room.guild == "") if room else MemoryOrigin()
    memory = Memory(key or f"mem_{len(text)}", ADA, owner, text, told, owner or "local:operator", now)
    async with fixture.store.work() as work:
        await work.memories.add(memory)
    return memory.id


def memory_tools(fixture: PlatformFixture) -> SkillToolset:
    keeper = fixture.turns._services.memories
    assert keeper is not None
    return build_memory_skill(keeper, Path("unused"))


async def list_memories(fixture: PlatformFixture, *, history: bool = False) -> dict[str, str]:
    """The texts by id, newest first."""
    async with fixture.store.work(write=False) as work:
        return {memory.id: memory.text for memory in await work.memories.list_memories(history=history)}


def make_scope(fixture: PlatformFixture) -> CallScope:
    """Of a turn of Ana."""
    return CallScope(
        agent=ADA,
        principal=ANA,
        place=fixture.world.general.place,
        session_id=SessionId("s"),
        turn_id=TurnId("t"),
        account=ADA,
    )


def kinds(request: ModelRequest) -> list[str]:
    return [message.kind for message in request.messages]


def note(request: ModelRequest, kind: str = "memories") -> str:
    return "".join(join_text(message.parts) for message in request.messages if message.kind == kind)


async def ask(fixture: PlatformFixture, who: str, text: str, where: Room | None = None) -> None:
    fixture.world.platform.say(where or fixture.world.general, who, f"@ada {text}")
    await fixture.settled()


async def last_trace(fixture: PlatformFixture) -> TurnTrace:
    async with fixture.store.work(write=False) as work:
        turn = (await work.turns.list_turns(limit=1))[0]
    return await Queries(fixture.runtime, fixture.turns._services).get_turn(turn.id)


@pytest.mark.proves("V8", "V7")
async def test_what_fits_the_message_comes_up_unasked_behind_all_that_is_cached() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    async with open_platform(model=model, agents={ADA: AGENT}) as fixture:
        await remember(fixture, "Is allergic to peanuts")
        await remember(fixture, "The kitchen closes at nine", CORE)
        await remember(fixture, "Bob hates peanuts", BOB.key)
        await ask(fixture, "ana", "may I eat peanuts in the kitchen?")
    (request,) = model.requests
    assert [segment.name for segment in request.segments][:2] == ["persona", "core memory"]
    assert "The fair is in May." in request.segments[1].text
    told = note(request)
    assert "- 2026-11-01, about Ana: Is allergic to peanuts" in told
    assert "- 2026-11-01: The kitchen closes at nine" in told
    assert "Bob" not in told
    assert kinds(request).index("memories") > kinds(request).index("question")


@pytest.mark.proves("V8")
async def test_what_means_the_same_in_other_words_comes_up_unasked_too() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    async with open_platform(model=model, embedder=WordEmbedder()) as fixture:
        await remember(fixture, "Has a cat")
        await remember(fixture, "Owes an invoice")
        async with fixture.store.work(write=False) as work:
            memories = await work.memories.list_memories()
        keeper = fixture.turns._services.memories
        assert keeper is not None and await keeper.embed(memories)
        await ask(fixture, "ana", "any pets?")
    assert note(model.requests[0]).splitlines()[-1] == "- 2026-11-01, about Ana: Has a cat]"


@pytest.mark.proves("V7")
async def test_people_who_take_turns_in_a_room_do_not_break_the_prefix_with_their_memories() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    async with open_platform(model=model, agents={ADA: AGENT}) as fixture:
        await remember(fixture, "Likes green tea", key="mem_a")
        await remember(fixture, "Likes black tea", BOB.key, key="mem_b")
        for who in ("ana", "bob", "ana", "bob"):
            await ask(fixture, who, "which tea for me?")
    assert len({request.segments for request in model.requests}) == 1
    told = [note(request) for request in model.requests]
    assert ["green" in text for text in told] == [True, False, True, False]
    assert ["black" in text for text in told] == [False, True, False, True]
    for earlier, later in zip(model.requests, model.requests[1:], strict=False):
        kept = [m.parts for m in earlier.messages if m.kind in ("history", "question")]
        assert [m.parts for m in later.messages][: len(kept)] == kept


async def test_nothing_comes_up_that_does_not_fit_and_nothing_when_it_is_switched_off() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    async with open_platform(model=model) as fixture:
        await remember(fixture, "Likes green tea")
        await ask(fixture, "ana", "what about the weather?")
        generation = fixture.runtime.current
        await fixture.runtime.swap(
            replace(generation, number=2, knowledge=KnowledgeSettings(recall=RecallPolicy(max_items=0)))
        )
        await ask(fixture, "ana", "which tea?")
    assert [note(request) for request in model.requests] == ["", ""]


async def test_at_most_so_many_memories_and_tokens_come_up() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    async with open_platform(model=model) as fixture:
        for number in range(9):
            await remember(fixture, f"Likes tea number {number} " + "x" * 100, key=f"mem_{number}")
        generation = fixture.runtime.current
        await fixture.runtime.swap(
            replace(generation, number=2, knowledge=KnowledgeSettings(recall=RecallPolicy(3, 1000)))
        )
        await ask(fixture, "ana", "which tea?")
        await fixture.runtime.swap(
            replace(generation, number=3, knowledge=KnowledgeSettings(recall=RecallPolicy(9, 70)))
        )
        await ask(fixture, "ana", "which tea?")
    assert [note(request).count(", about Ana: ") for request in model.requests] == [3, 2]


async def test_what_was_told_in_private_is_not_even_shown_to_the_model_where_others_read() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    async with open_platform(model=model) as fixture:
        direct = fixture.world.direct("ana")
        await remember(fixture, "Secretly likes tea", room=direct)
        await ask(fixture, "ana", "which tea?")
        await ask(fixture, "ana", "which tea?", direct)
    assert ["Secretly" in note(request) for request in model.requests] == [False, True]


@pytest.mark.proves("V7")
async def test_what_is_written_down_about_the_speaker_is_told_in_their_turns_only() -> None:
    asked: list[tuple[AgentName, str]] = []

    async def written(agent: AgentName, principal: str) -> str:
        asked.append((agent, principal))
        return "Ana runs the bakery." if principal == ANA.key else ""

    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    async with open_platform(model=model, written=written) as fixture:
        await ask(fixture, "ana", "hello")
        await ask(fixture, "bob", "hello")
    assert [note(request, "user memory") for request in model.requests] == [
        "[What is written down about Ana:\nAna runs the bakery.]",
        "",
    ]
    assert asked == [(ADA, ANA.key), (ADA, BOB.key)]
    told = kinds(model.requests[0])
    assert told.index("user memory") > told.index("question")
    assert len({request.segments for request in model.requests}) == 1


@pytest.mark.proves("V7", "V8")
async def test_a_participant_reads_memories_between_the_talk_and_its_cue() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    agent = replace(AGENT, history=replace(AGENT.history, context=ContextStrategy.TRANSCRIPT))
    async with open_platform(model=model, agents={ADA: agent}) as fixture:
        await remember(fixture, "Likes green tea")
        await ask(fixture, "ana", "which tea?")
    (request,) = model.requests
    assert "green" in note(request)
    assert "green" not in "".join(join_text(m.parts) for m in request.messages if m.kind != "memories")


@pytest.mark.proves("V8")
async def test_the_trace_tells_which_memories_came_up_and_a_forgotten_one_leaves_its_id() -> None:
    async with open_platform(agents={ADA: AGENT}) as fixture:
        keys = [await remember(fixture, text) for text in ("Likes green tea", "Has tea at five o'clock")]
        await ask(fixture, "ana", "which tea?")
        trace = await last_trace(fixture)
        assert set(trace.prompts[0].memories) == set(keys)
        assert {memory.id for memory in trace.memories} == set(keys)
        async with fixture.store.work() as work:
            await work.memories.remove(keys[:1])
        trace = await last_trace(fixture)
    assert set(trace.prompts[0].memories) == set(keys)
    assert [memory.id for memory in trace.memories] == keys[1:]


async def test_a_replay_finds_what_the_turn_found_and_not_what_was_told_since() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    world = World()
    async with open_platform(world, model=model, agents={ADA: AGENT}) as fixture:
        first_id = await remember(fixture, "Likes green tea")
        await ask(fixture, "ana", "which tea?")
        turn = (await last_trace(fixture)).turn
        world.clock.time = turn.opened_at.replace(year=turn.opened_at.year + 1)
        newer = await remember(fixture, "Likes tea no more, ever")
        async with fixture.store.work() as work:
            await work.memories.supersede([first_id], by=newer, at=world.clock.time)
        await replay_turn(fixture.runtime, fixture.turns._services, TurnId(turn.id))
    first, again = model.requests
    assert note(first) == note(again) != ""


async def test_what_a_turn_remembers_is_there_in_the_next_one() -> None:
    model = ScriptedModel(
        ScriptedReply(calls=[call("remember", text="Likes green tea", about="user")]),
        ScriptedReply("Noted."),
        ScriptedReply("Green."),
    )
    async with open_platform(model=model, agents={ADA: AGENT}, tools=ToolsetFixture(specs=[])) as fixture:
        generation = fixture.runtime.current
        toolset = memory_tools(fixture)
        await fixture.runtime.swap(replace(generation, number=2, toolsets=(toolset,)))
        await ask(fixture, "ana", "I like green tea, remember that")
        await ask(fixture, "ana", "which tea do I like?")
        assert "green tea" in note(model.requests[-1])
        async with fixture.store.work(write=False) as work:
            (memory,) = await work.memories.list_memories(owner=ANA.key)
    assert (memory.told_at, memory.told_by) == (MemoryOrigin("discord", fixture.world.general.id), ANA.key)


@pytest.mark.proves("V8")
@pytest.mark.parametrize(
    "homes",
    [
        ("Ana lives in Lyon", "Ana moved to Porto", "Ana lives in Oslo now"),
        ("User lives in Lyon.", "The user has moved to Porto, Portugal.", "Recently moved to Oslo."),
        ("My home is Lyon", "I'm now living in Porto", "I live in Oslo"),
    ],
)
async def test_of_facts_that_contradict_each_other_only_the_newest_is_told_with_its_date(homes: Sequence[str]) -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    world = World()
    async with open_platform(world, model=model, agents={ADA: AGENT}, tools=ToolsetFixture(specs=[])) as fixture:
        tools = memory_tools(fixture)
        await fixture.runtime.swap(replace(fixture.runtime.current, number=2, toolsets=(tools,)))
        for home in ("Ana likes tea", *homes):
            world.clock.time += timedelta(days=1)
            model.script(ScriptedReply(calls=[call("remember", text=home)]), ScriptedReply("Noted."))
            await ask(fixture, "ana", "remember that")
        await ask(fixture, "ana", "I moved, so where do I live now, what lives on, what is my home?")
        keys = {text: key for key, text in (await list_memories(fixture)).items()}
        assert list(keys) == [homes[-1], "Ana likes tea"]
        told = note(model.requests[-1]).splitlines()[1:]
        assert told[0].rstrip("]") == f"- {keys[homes[-1]]}, 2026-11-05, about Ana: {homes[-1]}"
        assert not any(home in "".join(told) for home in homes[:2])
        listed = await tools.call(ToolCall(CallId("c"), "recall", {}), make_scope(fixture))
        assert homes[-1] in listed.text and not any(home in listed.text for home in homes[:2])
        assert list((await list_memories(fixture, history=True)).values()) == [*reversed(homes), "Ana likes tea"]


@pytest.mark.proves("V-skill-semantic-memory")
@pytest.mark.parametrize("context", ContextStrategy)
async def test_in_a_room_where_others_write_people_are_asked_about_everything_but_what_one_tells_of_oneself(
    context: ContextStrategy,
) -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    agent = Agent(ADA, history=HistorySettings(context=context))
    async with open_platform(model=model, agents={ADA: agent}, tools=ToolsetFixture(specs=[])) as fixture:
        await fixture.runtime.swap(replace(fixture.runtime.current, number=2, toolsets=(memory_tools(fixture),)))
        platform, general = fixture.world.platform, fixture.world.general
        platform.say(general, "bob", "Ana hates tea, and Ana lives in Lyon. Remember that!")
        model.script(ScriptedReply(calls=[call("remember", text="Ana likes green tea")]), ScriptedReply("Noted."))
        await ask(fixture, "ana", "I like green tea, remember that")
        assert list((await list_memories(fixture)).values()) == ["Ana likes green tea"]
        model.script(ScriptedReply(calls=[call("remember", text="Ana lives in Lyon")]), ScriptedReply("Noted."))
        platform.say(general, "ana", "@ada I like green tea, remember that")
        (approval,) = await wait_for_approvals(fixture.store)
        assert approval.request.tool == "remember" and "what other people wrote" in approval.request.reason


async def test_an_agent_that_cannot_change_memories_is_not_told_their_ids() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    async with open_platform(model=model, agents={ADA: AGENT}) as fixture:
        await remember(fixture, "Likes green tea")
        fixture.world.clock.time += timedelta(days=1)
        await remember(fixture, "Hates green tea now", key="mem_newer")
        await ask(fixture, "ana", "green tea?")
    assert note(model.requests[-1]).strip("]").splitlines()[1:] == [
        "- 2026-11-02, about Ana: Hates green tea now",
        "- 2026-11-01, about Ana: Likes green tea",
    ]


@pytest.mark.proves("V-skill-memory")
async def test_an_agent_searches_the_log_of_what_it_did_as_far_as_the_place_may_see_it() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Done."))
    async with open_platform(model=model, agents={ADA: AGENT}, tools=ToolsetFixture(specs=[])) as fixture:
        platform = fixture.world.platform
        staff = platform.add_room("staff", readers=["ana", "bot-ada"])
        await fixture.runtime.swap(replace(fixture.runtime.current, number=2, toolsets=(memory_tools(fixture),)))
        model.script(ScriptedReply(calls=[call("recall")]), ScriptedReply("Listed."))
        await ask(fixture, "ana", "what do you know?", staff)
        model.script(ScriptedReply(calls=[call("forget", memory="mem_none")]), ScriptedReply("There is none."))
        await ask(fixture, "bob", "forget it")
        seen: list[str] = []
        for who, where in (("ana", staff), ("bob", fixture.world.general)):
            model.script(ScriptedReply(calls=[call("search_log")]), ScriptedReply("That is all."))
            await ask(fixture, who, "what did you do?", where)
            seen.append(text_of_result(model.requests[-1]))
        model.script(ScriptedReply(calls=[call("search_log", words="failed")]), ScriptedReply("That is all."))
        await ask(fixture, "ana", "what went wrong?", staff)
        failed = text_of_result(model.requests[-1])
    assert "recall: done" in seen[0] and "forget: failed" in seen[0]
    assert "forget: failed" in seen[1] and "recall" not in seen[1]
    assert "forget: failed" in failed and "done" not in failed


def text_of_result(request: ModelRequest) -> str:
    """Of the last tool message."""
    last = [message for message in request.messages if message.role is Role.TOOL][-1]
    return " ".join(part.text for part in last.parts if isinstance(part, ToolResultPart))

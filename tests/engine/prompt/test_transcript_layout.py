"""The switches that lay out a transcript for one agent, and that none of them costs it the stability of its bytes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from denizen.domain.agent import Agent, TimestampPolicy, TranscriptLayout
from denizen.domain.message import Role, join_text
from denizen.domain.prompt import Stability
from denizen.domain.transcript import TranscriptBudget, TranscriptLine
from denizen.engine.prompt.transcript_messages import TranscriptStyle, make_messages
from denizen.ports.model import Capabilities, ModelRequest
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.clock import NOON
from tests.engine.platform_fixture import ADA, World, open_platform
from tests.engine.prompt.transcript_fixture import BEN, ask, list_texts, participant

pytestmark = pytest.mark.anyio

SMALL = TranscriptBudget(total=2400, tail=200, block=300)


def make_agent(name: str = "ada", *, timestamps: TimestampPolicy | None = None, **switches: bool) -> Agent:
    agent = participant(ADA if name == "ada" else BEN, SMALL)
    history = replace(agent.history, layout=TranscriptLayout(**switches), timestamps=timestamps)
    return replace(agent, history=history)


def make_model(**can: bool) -> ScriptedModel:
    return ScriptedModel(otherwise=ScriptedReply("Quite."), capabilities=Capabilities(**can))  # pyright: ignore[reportArgumentType]


async def ask_three_times(agent: Agent, model: ScriptedModel, chat: int = 0) -> ModelRequest:
    """The last of three requests."""
    world = World()
    async with open_platform(world, model, agents={agent.name: agent}) as fixture:
        for number in range(chat):
            world.platform.say(world.general, "bob", f"we talk about the weather and so on {number}")
        for _ in range(3):
            await ask(fixture, "@ada well?")
    return model.requests[-1]


@pytest.mark.proves("C-config-toggles")
async def test_names_stand_above_the_words_in_the_vertical_form() -> None:
    request = await ask_three_times(make_agent(vertical=True), make_model())
    asked, answered = "Ana:\n@ada well?", "ada:\nQuite."
    assert "\n\n".join(list_texts(request)) == "\n\n".join([asked, answered, asked, answered, asked, "ada:"])


@pytest.mark.proves("C3", "C24", "C-config-toggles", "CW1")
async def test_closed_blocks_are_one_message_unless_they_are_to_be_separate_or_the_cache_needs_marks() -> None:
    joined, separate, marked = (
        await ask_three_times(make_agent(), make_model(), 60),
        await ask_three_times(make_agent(separate_blocks=True), make_model(), 60),
        await ask_three_times(make_agent(), make_model(cache_marks=True), 60),
    )
    count = [sum(message.kind == "block" for message in each.messages) for each in (joined, separate, marked)]
    assert count[0] == 1 and count[1] == count[2] > 1
    assert "\n".join(list_texts(joined)) == "\n".join(list_texts(separate)) == "\n".join(list_texts(marked))


@pytest.mark.proves("C3", "CW1")
@pytest.mark.parametrize(
    ("agent", "cache_marks", "kept"),
    [
        (make_agent(), False, Stability.SESSION),
        (make_agent(), True, Stability.FOREVER),
        (make_agent(separate_blocks=True), False, Stability.FOREVER),
    ],
    ids=["joined", "marked", "separate"],
)
async def test_a_cache_may_keep_closed_blocks_and_the_tail_up_to_the_question(
    agent: Agent, cache_marks: bool, kept: Stability
) -> None:
    request = await ask_three_times(agent, make_model(cache_marks=cache_marks), 60)
    found = {kind: [m.stability for m in request.messages if m.kind == kind] for kind in ("block", "tail", "cue")}
    assert set(found["block"]) == {kept}
    *answered, asked = found["tail"]
    assert answered and set(answered) == {Stability.TURN} and asked is Stability.SESSION
    assert found["cue"] == [Stability.TURN]


@pytest.mark.proves("C-config-toggles")
async def test_own_words_go_as_assistant_turns_where_that_is_switched_on() -> None:
    request = await ask_three_times(make_agent(turns=True), make_model(prefill=True))
    assert [(message.role, join_text(message.parts)) for message in request.messages] == [
        (Role.USER, "Ana: @ada well?"),
        (Role.ASSISTANT, "Quite."),
        (Role.USER, "Ana: @ada well?"),
        (Role.ASSISTANT, "Quite."),
        (Role.USER, "Ana: @ada well?"),
    ]


@pytest.mark.proves("C-config-toggles", "C13")
async def test_a_transcript_has_time_lines_where_they_are_switched_on() -> None:
    world, model = World(), make_model()
    async with open_platform(
        world, model, agents={ADA: make_agent(timestamps=TimestampPolicy("Europe/Berlin", 600))}
    ) as fixture:
        await ask(fixture, "@ada one")
        world.platform.skip(s=3600)
        request = await ask(fixture, "@ada two")
    lines = "\n".join(list_texts(request)).split("\n")
    marks = [place for place, line in enumerate(lines) if line.startswith("[20")]
    assert len(marks) == 2 and lines[marks[0]].endswith(" Europe/Berlin]")
    assert lines[marks[0] + 1] == "Ana: @ada one" and lines[marks[1] + 1] == "Ana: @ada two"


@pytest.mark.proves("C13")
@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("separate_blocks", [False, True])
async def test_the_zone_is_named_once_and_no_time_stands_between_what_follows_shortly(
    *, turns: bool, separate_blocks: bool
) -> None:
    world, model = World(), make_model()
    agent = make_agent(timestamps=TimestampPolicy(), turns=turns, separate_blocks=separate_blocks)
    async with open_platform(world, model, agents={ADA: agent}) as fixture:
        for _ in range(3):
            for number in range(20):
                world.platform.say(world.general, "bob", f"we talk about the weather and so on {number}")
            await ask(fixture, "@ada well?")
            await ask(fixture, "@ada and?")
            world.platform.skip(s=600)
    request = model.requests[-1]
    lines = "\n".join(list_texts(request)).split("\n")
    marks = [place for place, line in enumerate(lines) if line.startswith("[")]
    assert any(message.kind == "block" for message in request.messages)
    assert [lines[place + 1] for place in marks] == ["Bob: we talk about the weather and so on 0"] * 3
    assert ["UTC" in lines[place] for place in marks] == [True, False, False]


@pytest.mark.proves("C13")
async def test_a_pause_before_the_agents_own_turn_is_told_behind_it() -> None:
    said = [("ada", 0), ("Bob", 1), ("ada", 21), ("Bob", 22), ("ada", 23), ("Bob", 24)]
    lines = [
        TranscriptLine(str(minute), name, f"{name}: Well.", NOON + timedelta(minutes=minute), is_bot=name == "ada")
        for name, minute in said
    ]
    style = TranscriptStyle(TranscriptLayout(turns=True), TimestampPolicy())
    assert [join_text(each.parts) for each in make_messages([lines[:1]], lines[1:], (), "ada", style)] == [
        "Well.",
        "[2026-11-21 12:01 UTC]\nBob: Well.",
        "Well.",
        "[2026-11-21 12:22]\nBob: Well.",
        "Well.",
        "Bob: Well.",
    ]


@pytest.mark.proves("C-config-toggles")
async def test_every_switch_is_off_by_default() -> None:
    agent = Agent(ADA)
    assert (agent.history.layout, agent.history.timestamps, agent.reasoning, agent.show_reasoning) == (
        TranscriptLayout(),
        None,
        False,
        False,
    )
    assert agent.history.layout == TranscriptLayout(vertical=False, separate_blocks=False, turns=False)


@pytest.mark.proves("C3")
@pytest.mark.parametrize(
    "agent",
    [
        make_agent(),
        make_agent(vertical=True),
        make_agent(turns=True),
        make_agent(separate_blocks=True),
        make_agent(timestamps=TimestampPolicy("UTC", 1)),
        make_agent(vertical=True, turns=True, separate_blocks=True),
    ],
)
async def test_in_every_layout_blocks_keep_their_bytes_across_turns_restarts_and_beside_other_agents(
    agent: Agent,
) -> None:
    world, seen = World(), list[str]()
    for _ in range(2):
        model = make_model()
        agents = {ADA: agent, BEN: make_agent("ben", vertical=not agent.history.layout.vertical)}
        async with open_platform(world, model, agents=agents) as fixture:
            for number in range(40):
                world.platform.say(world.general, "bob", f"we talk about the weather and so on {number}")
            for _ in range(2):
                request = await ask(fixture, "@ada well?")
                seen.append("\n".join(join_text(m.parts) for m in request.messages if m.kind == "block"))
    told = [text for text in seen if text]
    assert len(told) >= 3
    assert all(later.startswith(earlier) for earlier, later in pairwise(told))

"""What the talk of a turn is about: kept with it, told to the model, and there for whoever routes the question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.conversation import Place
from denizen.domain.message import Author
from denizen.domain.room import Post
from denizen.domain.subject import ROUTED_CHARS, Subject, subject_from_json, subject_to_json
from denizen.domain.taint import with_taint
from denizen.domain.tool import Taint
from denizen.engine.intake.opening import OpenTurn, load_turn
from denizen.engine.prompt.notes import load_subject, load_subject_note
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.clock import NOON
from tests.engine.engine_fixture import EngineFixture, open_engine

pytestmark = pytest.mark.anyio

WHERE = Place("github", "harbour/boats#7")
OPENING = "17000000000000000000000007"
LEAK = Subject("harbour/boats", 7, "It leaks", "issue", ("bug", "hull"), OPENING)


async def ask(
    engine: EngineFixture, subject: Subject | None, *, platform_id: str = "18000000000000000000000001"
) -> OpenTurn:
    """A turn about it, ended."""
    await engine.say("why?", place=WHERE, subject=subject, platform_id=platform_id)
    async with engine.store.work(write=False) as work:
        (turn, *_) = await work.turns.list_turns()
    return await load_turn(engine.store, turn.id)


async def keep(engine: EngineFixture, text: str) -> None:
    post = Post("github", OPENING, WHERE.channel, Author("1", "ana"), text, NOON)
    async with engine.store.work() as work:
        await work.archive.put([post])


def read_prompt(engine: EngineFixture) -> str:
    (request,) = engine.model.requests[-1:]
    return "\n".join(str(message.parts) for message in request.messages)


@pytest.mark.proves("S33-context")
async def test_the_model_is_told_the_title_the_labels_and_a_thousand_characters_of_the_opening() -> None:
    async with open_engine(ScriptedModel(ScriptedReply("A hole."))) as engine:
        await keep(engine, "w" * 1500)
        await ask(engine, LEAK)
        prompt = read_prompt(engine)
    assert "harbour/boats\\n#7 It leaks\\nLabels: bug, hull" in prompt
    assert "w" * 1000 in prompt and "w" * 1001 not in prompt


async def test_what_is_kept_is_found_again_with_the_opening_as_it_is_now() -> None:
    async with open_engine(ScriptedModel(otherwise=ScriptedReply("A hole."))) as engine:
        opened = await ask(engine, LEAK)
        assert await load_subject(engine.store, opened) == LEAK
        await keep(engine, "Water comes in.")
        assert await load_subject(engine.store, opened) == replace(LEAK, body="Water comes in.")
        async with engine.store.work() as work:
            await work.archive.mark_deleted("github", [OPENING], at=NOON)
        assert await load_subject(engine.store, opened) == LEAK


async def test_a_turn_without_a_subject_has_none_and_tells_nothing() -> None:
    async with open_engine(ScriptedModel(ScriptedReply("A hole."))) as engine:
        opened = await ask(engine, None)
        assert await load_subject(engine.store, opened) is None
        assert await load_subject_note(engine.store, opened) == []


async def test_others_wrote_it_and_a_question_by_the_opening_does_not_repeat_it() -> None:
    async with open_engine(ScriptedModel(ScriptedReply("A hole."))) as engine:
        await keep(engine, "Water comes in.")
        (note,) = await load_subject_note(engine.store, await ask(engine, LEAK, platform_id=OPENING))
    assert "Water" not in str(note.parts) and "It leaks" in str(note.parts)
    assert note == with_taint(note, Taint.OTHERS)


def test_a_router_is_shown_the_origin_number_title_labels_and_five_hundred_characters() -> None:
    shown = replace(LEAK, body="w" * 1000).describe(body_chars=ROUTED_CHARS)
    assert shown == f"harbour/boats\n#7 It leaks\nLabels: bug, hull\n{'w' * 500}"


def test_json_keeps_everything_but_the_body() -> None:
    assert subject_from_json(subject_to_json(replace(LEAK, body="secret"))) == LEAK
    assert subject_from_json({}) == Subject("", 0, "")

"""The store's promises about what prompts were made of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.errors import NotFound
from denizen.domain.ids import TurnId
from denizen.domain.prompt import Segment, Stability
from denizen.domain.trace import MessageUse, PromptUse, SegmentUse
from denizen.domain.turn import Turn
from denizen.ports.store import Store
from denizen.testing.store_records import ANA, PLATFORM, make_turn, open_conversation

SEGMENTS = (
    SegmentUse.of(Segment("persona", "You are Ada.\x00 \ud800", Stability.FOREVER)),
    SegmentUse.of(Segment("style", "Be brief.")),
    SegmentUse.of(Segment("instructions", "Call me Ana.", Stability.SESSION)),
)
MESSAGES = (MessageUse("history", 7, 900), MessageUse("question", 1, 12))


def make_prompt(turn: Turn, step: int = 1) -> PromptUse:
    return PromptUse(turn.id, step, "acme/large", SEGMENTS, MESSAGES, ("look", "write"), 340, ("mem_1", "mem_2"))


async def open_turns(store: Store, *keys: str) -> list[Turn]:
    _, session = await open_conversation(store)
    turns = [make_turn(session, key) for key in keys]
    async with store.work() as work:
        for turn in turns:
            await work.turns.open(turn)
    return turns


@pytest.mark.anyio
class TraceContract:
    async def test_prompts_come_back_by_step_with_the_texts_that_are_kept(self, store: Store) -> None:
        (turn,) = await open_turns(store, "t1")
        later = replace(make_prompt(turn, 10), segments=SEGMENTS[1:2], tools=(), tool_tokens=0)
        async with store.work() as work:
            for prompt in (later, make_prompt(turn), replace(make_prompt(turn, 2), segments=(), messages=())):
                await work.turns.add_prompt(prompt)
        async with store.work(write=False) as work:
            first, second, third = await work.turns.list_prompts(turn.id)
            assert await work.turns.list_prompts(TurnId("none")) == []
        assert (first, third) == (make_prompt(turn), later)
        assert [segment.text for segment in first.segments] == ["You are Ada.\x00 \ud800", "Be brief.", None]
        assert (second.step, second.segments, second.messages) == (2, (), ())

    async def test_a_prompt_written_again_is_the_first_one(self, store: Store) -> None:
        (turn,) = await open_turns(store, "t1")
        for model in ("acme/large", "other"):
            async with store.work() as work:
                await work.turns.add_prompt(replace(make_prompt(turn), model=model))
        async with store.work(write=False) as work:
            assert await work.turns.list_prompts(turn.id) == [make_prompt(turn)]

    async def test_turns_with_the_same_segment_share_its_text(self, store: Store) -> None:
        turns = await open_turns(store, "t1", "t2")
        bare = tuple(replace(segment, text=None) for segment in SEGMENTS)
        async with store.work() as work:
            await work.turns.add_prompt(make_prompt(turns[0]))
            await work.turns.add_prompt(replace(make_prompt(turns[1]), segments=bare))
        async with store.work(write=False) as work:
            (second,) = await work.turns.list_prompts(turns[1].id)
        assert second.segments == SEGMENTS

    async def test_a_prompt_of_an_unknown_turn_is_refused(self, store: Store) -> None:
        (turn,) = await open_turns(store, "t1")
        with pytest.raises(NotFound):
            async with store.work() as work:
                await work.turns.add_prompt(replace(make_prompt(turn), turn_id=TurnId("none")))

    async def test_what_prompts_were_made_of_stays_when_an_author_is_forgotten(self, store: Store) -> None:
        """It holds nothing that they said."""
        (turn,) = await open_turns(store, "t1")
        async with store.work() as work:
            await work.turns.add_prompt(make_prompt(turn))
            await work.archive.forget_author(PLATFORM, ANA.id)
        async with store.work(write=False) as work:
            assert await work.turns.list_prompts(turn.id) == [make_prompt(turn)]

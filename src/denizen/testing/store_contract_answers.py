"""The store's promises about citations and gaps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.citation import Citation, Doubt, Ref
from denizen.domain.conversation import Place
from denizen.domain.errors import NotFound
from denizen.domain.gap import Gap, GapKind
from denizen.domain.ids import TurnId
from denizen.ports.store import Store
from denizen.testing.store_records import AGENT, at, open_talk, turn_of

ANA, BOB = "platform_user:discord:1", "platform_user:discord:2"
PROVED = Citation(Ref("docs/\x00 a.md", 3, 9), "guide", "c0ffee", "https://example.org/a\ud800")
DOUBTED = Citation(Ref("docs/b.md"), doubt=Doubt.NOT_READ)


def gap_of(key: str, *, hours: float = 0, asker: str = ANA) -> Gap:
    return Gap(
        id=key, agent=AGENT, question=f"what is {key}? \x00", asker=asker, place=Place("discord", "1", "2"),
        is_private=key == "private", kind=GapKind.UNKNOWN, turn_id=TurnId("t"), created_at=at(hours),
    )  # fmt: skip


@pytest.mark.anyio
class AnswerContract:
    async def test_what_a_turn_cites_comes_back_in_order_and_is_told_once(self, store: Store) -> None:
        _, session = await open_talk(store)
        turn = turn_of(session, "t1")
        async with store.work() as work:
            await work.turns.open(turn)
            await work.citations.add(turn.id, [PROVED, DOUBTED])
            await work.citations.add(turn.id, [DOUBTED])
            await work.citations.add(TurnId("none"), [])
        async with store.work(write=False) as work:
            assert await work.citations.list_for(turn.id) == [PROVED, DOUBTED]
            assert await work.citations.list_for(TurnId("none")) == []

    async def test_citations_of_a_turn_that_is_not_there_are_refused(self, store: Store) -> None:
        with pytest.raises(NotFound):
            async with store.work() as work:
                await work.citations.add(TurnId("none"), [PROVED])

    async def test_gaps_come_back_newest_first_until_they_are_closed(self, store: Store) -> None:
        old, new, private = gap_of("old", hours=-9), gap_of("new"), gap_of("private", hours=-1)
        async with store.work() as work:
            assert [await work.gaps.add(each) for each in (new, old, private, replace(old, asker=BOB))] == [
                True, True, True, False,
            ]  # fmt: skip
        async with store.work() as work:
            assert await work.gaps.list_gaps() == [new, private, old]
            assert await work.gaps.list_gaps(since=at(-1)) == [new, private]
            assert await work.gaps.list_gaps(limit=1) == [new]
            assert await work.gaps.close(["new", "none"]) == 1
            assert await work.gaps.close(["new"]) == 0
            assert await work.gaps.close([]) == 0
            assert await work.gaps.list_gaps() == [private, old]
            assert await work.gaps.list_gaps(closed=True) == [replace(new, is_closed=True)]

    async def test_who_is_forgotten_leaves_no_question_behind(self, store: Store) -> None:
        async with store.work() as work:
            for each in (gap_of("a"), gap_of("b", asker=BOB), gap_of("c")):
                await work.gaps.add(each)
            assert await work.gaps.forget_asker(ANA) == 2
            assert await work.gaps.forget_asker(ANA) == 0
            assert [gap.id for gap in await work.gaps.list_gaps()] == ["b"]

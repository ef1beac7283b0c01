"""The contract of questions to the owner."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.conversation import Place
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.question import OwnerQuestion, QuestionAnswer, QuestionStatus
from denizen.ports.store import Store
from tests.contracts.store.records import AGENT, PLACE, at
from tests.contracts.store.settings import ODD

ANA = "platform_user:discord:1"


def make_question(key: str, *, asker: str = ANA) -> OwnerQuestion:
    return OwnerQuestion(
        id=key,
        turn_id=TurnId("t1"),
        agent=AGENT,
        asker=asker,
        asker_name="Ana",
        place=PLACE,
        text=f"text of {key}",
        created_at=at(0),
    )


async def add_questions(store: Store, *rows: OwnerQuestion) -> None:
    async with store.work() as work:
        for row in rows:
            assert await work.questions.add(row)


@pytest.mark.anyio
class QuestionContract:
    async def test_a_question_comes_back_as_it_was_asked_and_is_asked_once(self, store: Store) -> None:
        odd = OwnerQuestion(
            id="b",
            turn_id=TurnId("t2"),
            agent=AgentName(ODD),
            asker=ODD,
            asker_name=ODD,
            place=Place(ODD, ODD, ODD),
            text=ODD,
            created_at=at(1),
            status=QuestionStatus.DELIVERED,
            is_told=True,
            reply=QuestionAnswer(answer=ODD, answered_by=ODD, answerer=ODD, answered_at=at(2)),
        )
        await add_questions(store, make_question("a"), odd)
        async with store.work() as work:
            assert not await work.questions.add(replace(make_question("a"), text="another"))
            assert await work.questions.find("a") == make_question("a")
            assert await work.questions.find("b") == odd
            assert await work.questions.find("none") is None

    async def test_what_an_answer_changes_is_written_and_the_rest_stays(self, store: Store) -> None:
        await add_questions(store, make_question("a"))
        reply = QuestionAnswer(answer="yes", answered_by="local:operator", answerer="operator", answered_at=at(3))
        async with store.work() as work:
            taken = await work.questions.take("a")
            changed = replace(taken, text="another", status=QuestionStatus.ANSWERED, is_told=True, reply=reply)
            await work.questions.update(changed)
        async with store.work() as work:
            assert await work.questions.find("a") == replace(changed, text="text of a")
            with pytest.raises(NotFound):
                await work.questions.take("none")
            with pytest.raises(NotFound):
                await work.questions.update(make_question("none"))

    async def test_questions_are_listed_by_what_they_wait_for(self, store: Store) -> None:
        told = replace(make_question("b"), is_told=True)
        over = replace(make_question("c"), status=QuestionStatus.ANSWERED)
        other = replace(make_question("d"), agent=AgentName("other"))
        await add_questions(store, make_question("a"), told, over, other)
        async with store.work(write=False) as work:
            listed = work.questions.list_questions
            assert [each.id for each in await listed()] == ["d", "c", "b", "a"]
            assert [each.id for each in await listed(status=QuestionStatus.OPEN, limit=2)] == ["d", "b"]
            assert [each.id for each in await work.questions.list_untold()] == ["a", "d"]
            assert await work.questions.list_untold(limit=0) == []
            assert await work.questions.count_open(AGENT) == 2
            assert await work.questions.count_open(AGENT, asker=ANA) == 2
            assert await work.questions.count_open(AGENT, asker="platform_user:discord:2") == 0

    async def test_who_is_forgotten_leaves_no_question_behind(self, store: Store) -> None:
        await add_questions(store, make_question("a"), make_question("b", asker="platform_user:discord:2"))
        async with store.work() as work:
            assert await work.questions.forget_asker(ANA) == 1
            assert [each.id for each in await work.questions.list_questions()] == ["b"]

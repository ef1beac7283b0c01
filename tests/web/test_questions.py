"""The inbox of the owner on the page and over HTTP."""

from __future__ import annotations

import pytest

from denizen.domain.question import OwnerQuestion, QuestionStatus
from denizen.web.pages.questions import PATH
from denizen_sdk.client import DenizenClient
from denizen_sdk.errors import ApiError
from tests.web.admin_pages_fixture import ask, read
from tests.web.knowledge_web_fixture import OWNER
from tests.web.question_fixture import QUESTION
from tests.web_fixture import ADA, ANN, WebFixture, open_web

pytestmark = pytest.mark.anyio


async def leave(web: WebFixture) -> None:
    async with web.store.work() as work:
        await work.questions.add(QUESTION)


async def load(web: WebFixture) -> OwnerQuestion:
    async with web.store.work(write=False) as work:
        found = await work.questions.find("qst_1")
    assert found is not None
    return found


async def test_the_owner_sees_a_question_and_answers_it_with_the_form_of_the_page() -> None:
    async with open_web(keys=[OWNER, ADA]) as web:
        await leave(web)
        page = await read(web, "olga", PATH)
        assert "denizen asks Which colour? <b>now</b> In a talk with Ben" in page.text
        [form] = [each for each in page.all("form") if each.get("class") == "decide"]
        assert [each["name"] for each in page.all("textarea")] == ["answer"]
        action = str(form["action"])
        refused = await ask(web, "olga", "POST", action, answer="x" * 4001)
        assert (refused.status_code, "too long" in refused.text, "x" * 4001 in refused.text) == (400, True, True)
        done = await ask(web, "olga", "POST", action, answer="blue")
        assert (done.status_code, done.headers["location"]) == (303, PATH)
        assert ((await load(web)).status, (await load(web)).reply.answer) == (QuestionStatus.ANSWERED, "blue")
        page = await read(web, "olga", PATH)
        assert "No question waits." in page.text
        assert page.rows[0][2:] == ["blue olga", "answered"]


async def test_a_question_is_dismissed_with_the_other_button() -> None:
    async with open_web(keys=[OWNER]) as web:
        await leave(web)
        assert (await ask(web, "olga", "POST", f"{PATH}/qst_1", answer="", dismiss="yes")).status_code == 303
        assert (await load(web)).status is QuestionStatus.DISMISSED
        late = await ask(web, "olga", "POST", f"{PATH}/qst_1", answer="blue")
        assert (late.status_code, "dismissed already" in late.text) == (409, True)


async def test_programs_list_answer_and_dismiss_questions() -> None:
    async with open_web(keys=[OWNER]) as web, web.serve() as url:
        await leave(web)
        async with DenizenClient(url, "key-of-olga") as client:
            [question] = await client.list_questions(status="open")
            assert (question.question, question.asker, question.answered_at) == (QUESTION.text, "Ben", None)
            answered = await client.answer_question("qst_1", "blue")
            assert (answered.status, answered.answer, answered.answered_by) == ("answered", "blue", "olga")
            assert await client.list_questions(status="open") == []
            for late in (client.answer_question("qst_1", "red"), client.dismiss_question("qst_1")):
                with pytest.raises(ApiError) as refused:
                    await late
                assert refused.value.problem.status == 409
            with pytest.raises(ApiError) as missing:
                await client.answer_question("qst_2", "red")
            assert missing.value.problem.status == 404


@pytest.mark.parametrize("who", ["ada", "ann"])
async def test_nobody_but_owners_sees_or_answers_questions(who: str) -> None:
    async with open_web(keys=[OWNER, ADA, ANN]) as web:
        await leave(web)
        for method, path in (
            ("GET", PATH),
            ("POST", f"{PATH}/qst_1"),
            ("GET", "/api/questions"),
            ("POST", "/api/questions/qst_1"),
            ("POST", "/api/questions/qst_1/dismiss"),
        ):
            assert (await ask(web, who, method, path)).status_code == 403
        assert (await load(web)).status is QuestionStatus.OPEN

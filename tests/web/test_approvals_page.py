"""The inbox of approvals: what it shows, and that its buttons decide as the API does."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from denizen.domain.approval import ApprovalRule, Deciders
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from denizen.web.pages.approvals import PATH
from tests.timing import poll
from tests.web.admin_pages_fixture import PageText, ask, read
from tests.web.api.test_approvals import ChatUser, asks, script
from tests.web.knowledge_web_fixture import OWNER
from tests.web_fixture import ADA, ANN, WebFixture, open_web

pytestmark = pytest.mark.anyio

ADMINS = ApprovalRule(deciders=Deciders.ROLE, role="admin")


@asynccontextmanager
async def waiting(rule: ApprovalRule = ADMINS, model: ScriptedModel | None = None) -> AsyncGenerator[WebFixture]:
    """A server on which a call that Ann asked for waits."""
    async with (
        open_web(model or script(), keys=[ADA, ANN, OWNER], policy=asks(rule)) as web,
        web.serve() as url,
        anyio.create_task_group() as group,
    ):
        ann = ChatUser(web, "ann", url)
        group.start_soon(ann.chat)
        await ann.waits.wait()
        yield web
        group.cancel_scope.cancel()


def find_id(page: PageText) -> str:
    [card] = [attrs["id"] for attrs in page.all("article")]
    return str(card)


async def test_a_call_that_waits_is_shown_with_who_asked_its_tier_its_reason_and_its_end() -> None:
    async with waiting() as web:
        page = await read(web, "ada", PATH)
    assert "weather tier 0" in page.text
    assert "Asked by ann api_key:ann Agent denizen Where web, the turn" in page.text
    assert "Why it costs money Since" in page.text
    assert "Until 2026-11-21 12:05 UTC , then denied" in page.text
    assert "Paris" in page.text
    assert "s3cret" not in page.text
    assert [attrs["value"] for attrs in page.all("button") if attrs.get("name") == "decision"] == [
        "once",
        "hour",
        "deny",
    ]


async def test_the_page_of_who_works_on_what_says_that_a_turn_waits_for_people() -> None:
    async with waiting() as web:
        page = await read(web, "olga", "/admin/work")
    assert [row[1:] for row in page.rows] == [["ann", "web", "waits for people"]]


@pytest.mark.parametrize(
    ("decision", "status", "ran"), [("once", "approved", 1), ("hour", "approved", 1), ("deny", "denied", 0)]
)
async def test_a_button_decides_and_leads_back_to_the_inbox(decision: str, status: str, ran: int) -> None:
    async with waiting() as web:
        path = f"{PATH}/{find_id(await read(web, 'ada', PATH))}"
        answer = await ask(web, "ada", "POST", path, decision=decision, reason="<i>not</i> on a Sunday")
        assert (answer.status_code, answer.headers["location"]) == (303, PATH)
        await poll(lambda: _is_ended(web))
        page = await read(web, "ada", PATH)
        html = (await ask(web, "ada", "GET", PATH)).text
    assert len(web.weather.calls) == ran
    assert "Nothing waits for you." in page.text
    assert page.rows[0][1:3] == ["weather tier 0", "ann"]
    assert page.rows[0][3].startswith(f"{status} ")
    assert "<i>not" not in html
    assert "<i>not</i> on a Sunday" in page.rows[0][3]


async def _is_ended(web: WebFixture) -> bool:
    return (await web.turns())[0].status.is_final


async def test_an_hour_of_yes_lets_the_next_call_pass_unasked() -> None:
    again = ScriptedReply(calls=[call("weather", city="Rome")])
    first = ScriptedReply(calls=[call("weather", city="Paris")])
    async with waiting(model=ScriptedModel(first, again, ScriptedReply("Done."))) as web:
        path = f"{PATH}/{find_id(await read(web, 'ada', PATH))}"
        await ask(web, "ada", "POST", path, decision="hour")
        await poll(lambda: _is_ended(web))
    assert [each.args["city"] for each in web.weather.calls] == ["Paris", "Rome"]


async def test_only_who_may_decide_a_call_sees_it_and_can() -> None:
    async with waiting(ApprovalRule(deciders=Deciders.ROLE, role="owner")) as web:
        card = find_id(await read(web, "olga", PATH))
        assert "Nothing waits for you." in (await read(web, "ada", PATH)).text
        refused = await ask(web, "ada", "POST", f"{PATH}/{card}", decision="once")
        assert refused.status_code == 403
        assert "This is not yours to decide." in PageText(refused.text).text
        assert (await ask(web, "ann", "POST", f"{PATH}/{card}", decision="once")).status_code == 403
        assert (await ask(web, "ann", "GET", PATH)).status_code == 403
    assert not web.weather.calls


async def test_what_is_no_decision_or_about_nothing_is_explained_on_the_page() -> None:
    async with waiting() as web:
        card = find_id(await read(web, "ada", PATH))
        odd = await ask(web, "ada", "POST", f"{PATH}/{card}", decision="perhaps")
        unknown = await ask(web, "ada", "POST", f"{PATH}/appr_nothing", decision="once")
    assert odd.status_code == 400
    assert "This is no decision." in PageText(odd.text).text
    assert unknown.status_code == 404
    assert "There is no approval appr_nothing." in PageText(unknown.text).text


async def test_a_sign_in_decides_only_with_the_token_that_stands_in_the_form() -> None:
    async with waiting() as web, web.client() as client:
        await client.post("/login", data={"key": "key-of-ada"})
        page = PageText((await client.get(PATH)).text)
        tokens = {attrs["value"] for attrs in page.all("input") if attrs.get("name") == "csrf_token"}
        path = f"{PATH}/{find_id(page)}"
        forged = await client.post(path, data={"decision": "once"})
        assert (forged.status_code, len(web.weather.calls)) == (403, 0)
        [token] = tokens
        assert token
        done = await client.post(path, data={"decision": "once", "csrf_token": token})
        assert (done.status_code, done.headers["location"]) == (303, PATH)

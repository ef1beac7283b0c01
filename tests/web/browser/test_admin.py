"""The pages for administrators in a browser: a walk through all of them, and what moves by itself."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from playwright.async_api import expect

from denizen.adapters.log_files import LogFiles
from denizen.domain.approval import ApprovalRule, Deciders
from denizen.domain.diagnosis import Diagnosis, Severity
from denizen.domain.log import LogEntry, encode_entry
from denizen.domain.turn import TurnStatus
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from denizen.web.http.dependencies import InstanceServices
from tests.clock import NOON
from tests.timing import HANG_LIMIT_S
from tests.web.api.test_approvals import ChatUser, asks
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import DESKTOP, PHONE, open_browser
from tests.web.knowledge_web_fixture import OWNER
from tests.web.test_overview_page import Examiner
from tests.web_fixture import ANN, open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)

SCROLLING_TABLES = """() => [...document.querySelectorAll(".table-scroll")]
  .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.textContent)"""
PAGES = ("Overview", "Approvals", "Turns", "Logs", "Audit", "Tools", "Users", "Keys", "Usage")


@pytest.mark.proves("S-admin-logs")
async def test_an_owner_walks_through_all_pages_and_decides_what_comes_in_meanwhile(tmp_path: Path) -> None:
    logs = LogFiles(tmp_path)
    logs.append([encode_entry(LogEntry(NOON - timedelta(hours=1), "error", "a fault of yesterday", {}, "Traceback"))])
    examiner = Examiner(Diagnosis(Severity.WARNING, "nobody is an owner", "Write `owners`."), *_works())
    instance = InstanceServices(diagnose=examiner, logs=logs)
    model = ScriptedModel(ScriptedReply(calls=[call("weather", city="Paris")]), ScriptedReply("Sunny."))
    async with (
        open_web(model, keys=[ANN, OWNER], policy=asks(ApprovalRule(deciders=Deciders.ROLE)), instance=instance) as web,
        web.serve() as url,
        open_browser() as browser,
        anyio.create_task_group() as group,
    ):
        await browser.set_extra_http_headers({"x-api-key": "key-of-olga"})
        page = await browser.new_page()
        await page.goto(f"{url}/admin")
        for name in PAGES:
            await page.get_by_role("navigation", name="Parts of Denizen").get_by_role("link", name=name).click()
            await expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
            await expect(page.locator("a[aria-current=page]")).to_have_text(name)
            await expect(page.locator("a[aria-current=page]")).to_be_in_viewport()
            assert await find_violations(page) == []
        await expect(page.locator("#chart-messages canvas")).to_be_visible()

        for name in ("Turns", "Audit", "Tools", "Users", "Usage"):
            await page.get_by_role("navigation", name="Parts of Denizen").get_by_role("link", name=name).click()
            await expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
            await page.set_viewport_size(PHONE)
            assert await page.evaluate(SCROLLING_TABLES) == []
            await page.set_viewport_size(DESKTOP)

        # What was opened stays open while the page loads itself again.
        await page.get_by_role("link", name="Overview").click()
        await page.get_by_text("1 things work").click()
        ann = ChatUser(web, "ann", url)
        group.start_soon(ann.chat)
        await ann.waits.wait()
        await expect(page.get_by_text("1 turns in flight")).to_be_visible()
        await expect(page.get_by_text("tools: 3 known")).to_be_visible()

        await page.get_by_role("link", name="Approvals").click()
        await expect(page.get_by_role("heading", name="weather")).to_be_visible()
        await page.get_by_label("Reason").fill("Why not")
        async with page.expect_response(lambda answer: answer.request.headers.get("hx-request") == "true"):
            pass
        await expect(page.get_by_label("Reason")).to_have_value("Why not")
        assert await find_violations(page) == []
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        await web.ended(TurnStatus.DONE)
        assert len(web.weather.calls) == 1

        await page.get_by_role("link", name="Turns").click()
        await page.locator("table.list a").first.click()
        await expect(page.get_by_role("heading", name="Reply")).to_be_visible()
        assert await find_violations(page) == []

        await page.get_by_role("link", name="Logs").click()
        logs.append([encode_entry(LogEntry(NOON, "info", "it goes on"))])
        await expect(page.get_by_text("it goes on")).to_be_visible()
        await page.get_by_role("link", name="Investigate").click()
        await expect(page.get_by_label("Message", exact=True)).to_have_value(re.compile("a fault of yesterday"))
        [chat] = await (await page.request.get(f"{url}/api/chats")).json()
        assert chat["mode"] == "admin"


def _works() -> list[Diagnosis]:
    return [Diagnosis(Severity.OK, "tools: 3 known")]

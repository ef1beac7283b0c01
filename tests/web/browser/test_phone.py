"""Denizen on a phone, by touch alone: a member from the invitation to the end of the account, and an owner's chat."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from denizen.domain.principal import RoleName
from denizen.testing.scripted_model import ReplyGate, ScriptedReply, call
from tests.timing import HANG_LIMIT_S
from tests.web.api.test_approvals import asks
from tests.web.browser.browser import PHONE, open_browser
from tests.web.browser.test_accounts import sign_up
from tests.web.browser.test_chat import PIXEL, answering
from tests.web.people import OPERATOR, PASSWORD, add_user
from tests.web_fixture import open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)


async def test_an_invited_member_asks_shares_and_leaves_on_a_phone() -> None:
    model = answering(ScriptedReply("It is **seven**."), ScriptedReply("A dot."), images=True)
    async with (
        open_web(model, titles=True) as web,
        web.serve() as url,
        open_browser(viewport=PHONE, is_touch=True) as browser,
    ):
        await add_user(web, "ada", RoleName.OWNER)
        invitation, _ = await web.users.registration.invite(OPERATOR, role=RoleName.MEMBER)
        page = await browser.new_page()
        page.on("dialog", lambda dialog: dialog.accept())
        await page.goto(f"{url}/sign-up?invite={invitation}")
        await sign_up(page, "ben")
        await expect(page.locator("#agent option").first).to_be_attached()

        box, send = page.get_by_label("Message", exact=True), page.get_by_role("button", name="Send", exact=True)
        await box.tap()
        await page.keyboard.type("How warm is it")
        await page.keyboard.press("Enter")
        await page.keyboard.type("in Oslo?")
        await expect(box).to_have_value("How warm is it\nin Oslo?")
        await send.tap()
        await expect(page.locator(".message.assistant strong")).to_have_text("seven")
        await expect(page.get_by_role("log")).to_have_attribute("aria-busy", "false")
        lines = "(each) => each.offsetHeight / parseFloat(getComputedStyle(each).lineHeight)"
        assert round(await page.locator(".message.user p:not(.author)").evaluate(lines)) == 2
        await page.get_by_label("Attach files").set_input_files(
            {"name": "dot.png", "mimeType": "image/png", "buffer": PIXEL}
        )
        await expect(page.get_by_label("Files to send").locator("img")).to_be_visible()
        await box.tap()
        await page.keyboard.type("What is it?")
        await send.tap()
        await expect(page.locator(".message.assistant").last).to_contain_text("A dot.")

        await page.get_by_role("button", name="Share", exact=True).tap()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("button", name="Share", exact=True).tap()
        await expect(dialog.get_by_label("Link")).to_be_visible()
        await dialog.get_by_role("button", name="End sharing").tap()
        await expect(dialog).to_contain_text("does not work any more")
        await dialog.get_by_role("button", name="Close").tap()

        await page.get_by_role("button", name="Menu").tap()
        await expect(page.get_by_role("link", name="Weather in Oslo")).to_be_visible()
        await page.get_by_role("link", name="Settings").tap()
        await page.get_by_label("Name", exact=True).fill("Ben B.")
        await page.get_by_role("button", name="Save").tap()
        await expect(page.get_by_label("Name", exact=True)).to_have_value("Ben B.")
        assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        await page.locator("#confirm").fill("ben@example.org")
        await page.locator("#delete-password").fill(PASSWORD)
        await page.get_by_role("button", name="Delete the account").tap()
        await expect(page).to_have_url(f"{url}/login")


async def test_an_owner_stops_an_answer_reads_a_source_and_decides_about_a_call_on_a_phone() -> None:
    gate = ReplyGate()
    model = answering(
        ScriptedReply("Said so far, and never said.", halfway=gate),
        ScriptedReply("It is seven [docs/weather.md:1]."),
        ScriptedReply(calls=[call("weather", city="Paris")]),
        ScriptedReply("Sunny."),
        ScriptedReply(calls=[call("weather", city="Rome")]),
        ScriptedReply("Sunny again."),
    )
    async with (
        open_web(model, titles=True, policy=asks()) as web,
        web.serve() as url,
        open_browser(viewport=PHONE, is_touch=True) as browser,
    ):
        page = await browser.new_page()
        page.on("dialog", lambda dialog: dialog.accept("Second" if dialog.type == "prompt" else None))
        await page.goto(url)
        await expect(page.locator("#agent option").first).to_be_attached()
        box, log = page.get_by_label("Message", exact=True), page.get_by_role("log")
        send = page.locator("#send")

        async def say(text: str) -> None:
            await box.tap()
            await page.keyboard.type(text)
            await send.tap()

        await say("Tell me")
        await gate.reached.wait()
        await expect(log).to_contain_text("Said so far")
        await page.get_by_role("button", name="Stop").tap()
        await expect(log).to_contain_text("Stopped.")
        await expect(log).to_have_attribute("aria-busy", "false")

        await box.tap()
        await page.keyboard.type("/model l")
        await page.get_by_role("option", name="/model list").tap()
        await expect(box).to_have_value("/model list")
        await send.tap()
        await expect(page.get_by_role("article", name="Command /model list")).to_contain_text("You chose none")
        await expect(log).to_have_attribute("aria-busy", "false")

        await say("How warm is it?")
        await expect(page.locator(".message.assistant").last.get_by_role("button", name="Why?")).to_be_visible()
        await page.get_by_role("button", name="weather.md:1").tap()
        panel = page.locator("#panel")
        await expect(panel.get_by_role("heading", name="docs/weather.md:1")).to_be_visible()
        assert await panel.evaluate("each => each.getBoundingClientRect().width") == PHONE["width"]
        await panel.get_by_role("button", name="Close").tap()
        await expect(panel).to_be_hidden()

        await say("And in Paris?")
        card = page.get_by_role("group", name="Approval of weather")
        await card.get_by_role("button", name="Approve").tap()
        await expect(page.locator(".message.assistant").last).to_contain_text("Sunny.")
        assert len(web.weather.calls) == 1

        await page.get_by_role("button", name="Menu").tap()
        row = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="Weather in Oslo"))
        await row.locator("summary").tap()
        await row.get_by_role("button", name="Rename").tap()
        second = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="Second"))
        await expect(second).to_be_visible()
        await second.locator("summary").tap()
        await second.get_by_role("button", name="Pin").tap()
        await expect(second.locator(".pin")).to_be_visible()
        await second.locator("summary").tap()
        await second.get_by_role("button", name="Delete").tap()
        await expect(page.locator("#chats li")).to_have_count(0)
        await expect(log).not_to_contain_text("Sunny.")
        assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]

        await say("And in Rome?")
        await expect(card).to_be_visible()
        await page.get_by_role("button", name="Menu").tap()
        await page.get_by_role("link", name="Administration").tap()
        await page.get_by_role("button", name="Menu").tap()
        await page.get_by_role("link", name="Approvals").tap()
        await expect(page.get_by_role("heading", name="weather")).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        await page.get_by_role("button", name="Approve").tap()
        await expect(page.get_by_role("row").filter(has_text="weather")).to_contain_text("approved")
        assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        await page.get_by_role("button", name="Menu").tap()
        await page.get_by_role("link", name="Chat", exact=True).tap()
        await page.get_by_role("button", name="Menu").tap()
        await page.get_by_role("link", name="Weather in Oslo").tap()
        await expect(page.locator(".message.assistant").last).to_contain_text("Sunny again.")

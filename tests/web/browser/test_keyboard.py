"""The chat, sign-in and approvals by keyboard alone: what has the focus is seen, and no act loses it."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from denizen.testing.scripted_model import ScriptedReply, call
from tests.timing import HANG_LIMIT_S
from tests.web.api.test_approvals import asks
from tests.web.browser.browser import open_browser
from tests.web.browser.test_chat import answering
from tests.web_fixture import ADA, open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)

MOST_STOPS = 80
FOCUS = """() => {
  const at = document.activeElement;
  const shape = getComputedStyle(at);
  const label = at.labels?.[0]?.textContent ?? at.textContent;
  const isSeen = at.checkVisibility() && (shape.outlineStyle !== "none" || shape.boxShadow !== "none");
  return { tag: at.tagName, name: (at.getAttribute("aria-label") ?? label).trim(), isSeen };
}"""


async def go_to(page: Page, name: str, *, back: bool = False) -> None:
    """Presses Tab, or Shift and Tab, until what has that name has the focus, and sees each stop on the way."""
    passed: list[str] = []
    for _ in range(MOST_STOPS):
        await page.keyboard.press("Shift+Tab" if back else "Tab")
        now = await page.evaluate(FOCUS)
        assert now["tag"] == "BODY" or now["isSeen"], now
        passed.append(now["name"])
        if now["name"] == name:
            return
    raise AssertionError(f"the keyboard does not come to {name}, but to {passed}")


async def write(page: Page, text: str) -> None:
    await expect(page.get_by_label("Message", exact=True)).to_be_focused()
    await page.keyboard.type(text)
    await page.keyboard.press("Enter")


async def test_somebody_signs_in_and_chats_by_keyboard_alone() -> None:
    model = answering(ScriptedReply("First answer."), ScriptedReply("Second answer."), ScriptedReply("Third answer."))
    async with open_web(model, titles=True, keys=[ADA]) as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await page.goto(url)
        await go_to(page, "API key")
        await page.keyboard.type("key-of-ada")
        await page.keyboard.press("Enter")
        await expect(page.locator("#agent option").first).to_be_attached()
        await write(page, "One")
        await expect(page.get_by_role("log")).to_contain_text("First answer.")
        await expect(page.get_by_role("log")).to_have_attribute("aria-busy", "false")
        await page.keyboard.type("/mod")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("listbox", name="Commands")).to_be_hidden()
        await page.keyboard.press("Control+A")
        await page.keyboard.press("Delete")

        await go_to(page, "Agent", back=True)
        await page.keyboard.press("ArrowDown")
        await expect(page.get_by_label("Agent", exact=True)).to_have_value("scribe")
        await go_to(page, "Message")
        await write(page, "Two")
        await expect(page.get_by_role("log")).to_contain_text("Second answer.")
        await expect(page.get_by_role("log")).to_have_attribute("aria-busy", "false")

        await go_to(page, "Good answer", back=True)
        await page.keyboard.press("Space")
        await expect(page.get_by_role("button", name="Good answer").last).to_have_attribute("aria-pressed", "true")
        await expect(page.get_by_role("button", name="Good answer").last).to_be_focused()
        await go_to(page, "Why?")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Why this answer")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("button", name="Why?").last).to_be_focused()

        await go_to(page, "Edit", back=True)
        await page.keyboard.press("Enter")
        await page.keyboard.press("Escape")
        await expect(page.locator("form.edit")).to_be_hidden()
        await expect(page.get_by_role("button", name="Edit").last).to_be_focused()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Control+A")
        await page.keyboard.type("Three")
        await go_to(page, "Send as a new version")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("log")).to_contain_text("Third answer.")
        await expect(page.get_by_label("Message", exact=True)).to_be_focused()

        await page.keyboard.press("Control+Home")
        await go_to(page, "New chat", back=True)
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Message", exact=True)).to_be_focused()
        await go_to(page, "Weather in Oslo", back=True)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("log")).to_contain_text("Third answer.")
        await page.reload()
        await page.keyboard.press("Escape")
        await page.get_by_label("Message", exact=True).blur()
        await go_to(page, "Skip to the content")
        await page.keyboard.press("Enter")
        await expect(page.locator("#main")).to_be_focused()


async def test_an_approval_is_decided_by_keyboard_alone() -> None:
    model = answering(ScriptedReply(calls=[call("weather", city="Paris")]), ScriptedReply("Done."))
    async with (
        open_web(model, titles=True, keys=[ADA], policy=asks()) as web,
        web.serve() as url,
        open_browser() as browser,
    ):
        page = await browser.new_page()
        await page.goto(url)
        await go_to(page, "API key")
        await page.keyboard.type("key-of-ada")
        await page.keyboard.press("Enter")
        await expect(page.locator("#agent option").first).to_be_attached()
        await write(page, "go")
        card = page.get_by_role("group", name="Approval of weather")
        await expect(card).to_be_focused()
        await go_to(page, "Approve")
        await page.keyboard.press("Space")
        await expect(page.get_by_role("log")).to_contain_text("Done.")
        await expect(page.locator("body")).not_to_be_focused()
        assert len(web.weather.calls) == 1

"""The chat, sign-in and approvals by keyboard alone: what has the focus is seen, and no act loses it."""

from __future__ import annotations

import anyio
import pytest
from playwright.async_api import Page, expect

from denizen.domain.approval import ApprovalRule, Deciders
from denizen.domain.turn import TurnStatus
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from tests.timing import HANG_LIMIT_S
from tests.web.api.test_approvals import ChatUser, asks
from tests.web.browser.browser import open_browser
from tests.web.browser.test_chat import answering
from tests.web.knowledge_web_fixture import OWNER
from tests.web_fixture import ADA, ANN, open_web

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


async def test_an_answer_is_stopped_a_command_completed_and_a_citation_opened_by_keyboard_alone() -> None:
    gate = ReplyGate()
    cited = ScriptedReply("It is seven [docs/weather.md:1].")
    model = answering(ScriptedReply("Said so far, and never said.", halfway=gate), cited)
    async with open_web(model, titles=True) as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await page.goto(url)
        await expect(page.locator("#agent option").first).to_be_attached()
        box, log = page.get_by_label("Message", exact=True), page.get_by_role("log")
        await write(page, "Tell me")
        await gate.reached.wait()
        await expect(log).to_contain_text("Said so far")
        await go_to(page, "Stop")
        await page.keyboard.press("Enter")
        await expect(log).to_contain_text("Stopped.")
        await expect(log).to_have_attribute("aria-busy", "false")

        await expect(box).to_be_focused()
        await page.keyboard.type("/mod")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(box).to_have_value("/model ")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Tab")
        await expect(box).to_have_value("/model list")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("article", name="Command /model list")).to_contain_text("You chose none")
        await expect(log).to_have_attribute("aria-busy", "false")

        await write(page, "How warm is it?")
        await expect(page.locator(".message.assistant").last.get_by_role("button", name="Why?")).to_be_visible()
        await go_to(page, "weather.md:1", back=True)
        citation, panel = page.get_by_role("button", name="weather.md:1"), page.locator("#panel")
        for closed_by in ("Escape", "Enter"):
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("heading", name="docs/weather.md:1")).to_be_visible()
            await expect(panel).to_be_focused()
            await go_to(page, "Close")
            await page.keyboard.press(closed_by)
            await expect(panel).to_be_hidden()
            await expect(citation).to_be_focused()


async def test_a_chat_is_renamed_pinned_and_deleted_by_keyboard_alone() -> None:
    async with (
        open_web(answering(ScriptedReply("Hello.")), titles=True) as web,
        web.serve() as url,
        open_browser() as browser,
    ):
        page = await browser.new_page()
        page.on("dialog", lambda dialog: dialog.accept("Second" if dialog.type == "prompt" else None))
        await page.goto(url)
        await expect(page.locator("#agent option").first).to_be_attached()
        await write(page, "One")
        await expect(page.get_by_role("link", name="Weather in Oslo")).to_be_visible()
        await expect(page.get_by_role("log")).to_have_attribute("aria-busy", "false")
        await go_to(page, "New chat", back=True)
        await page.keyboard.press("Enter")
        web.clock.advance(60)  # the second stands above the first
        await write(page, "Two")
        await expect(page.get_by_role("link", name="Weather in Oslo")).to_have_count(2)
        await expect(page.get_by_role("log")).to_have_attribute("aria-busy", "false")

        await go_to(page, "New chat", back=True)
        await go_to(page, "More about Weather in Oslo")
        opener = page.locator("summary:focus")
        await page.keyboard.press("Enter")
        await go_to(page, "Rename")
        await page.keyboard.press("Enter")
        await expect(opener).to_have_attribute("aria-label", "More about Second")
        await page.keyboard.press("Enter")
        await go_to(page, "Pin")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("listitem").filter(has_text="Second").locator(".pin")).to_be_visible()
        await expect(opener).to_have_attribute("aria-label", "More about Second")

        await page.keyboard.press("Enter")
        await go_to(page, "Rename")
        await page.keyboard.press("Escape")
        await expect(page.locator("details.chat-menu[open]")).to_have_count(0)
        await expect(opener).to_have_attribute("aria-label", "More about Second")

        # The other chat goes, and then the one that is shown.
        await go_to(page, "More about Weather in Oslo")
        await page.keyboard.press("Enter")
        await go_to(page, "Delete")
        await page.keyboard.press("Enter")
        await expect(page.locator("#chats li")).to_have_count(1)
        await expect(page.get_by_role("link", name="Second")).to_be_focused()
        await go_to(page, "More about Second")
        await page.keyboard.press("Enter")
        await go_to(page, "Delete")
        await page.keyboard.press("Enter")
        await expect(page.locator("#chats li")).to_have_count(0)
        await expect(page.get_by_label("Message", exact=True)).to_be_focused()


async def test_the_page_of_approvals_is_used_by_keyboard_alone() -> None:
    rule = ApprovalRule(deciders=Deciders.ROLE)
    model = ScriptedModel(ScriptedReply(calls=[call("weather", city="Paris")]), ScriptedReply("I may not."))
    async with (
        open_web(model, keys=[ANN, OWNER], policy=asks(rule)) as web,
        web.serve() as url,
        open_browser() as browser,
        anyio.create_task_group() as group,
    ):
        page = await browser.new_page()
        await page.goto(url)
        await go_to(page, "API key")
        await page.keyboard.type("key-of-olga")
        await page.keyboard.press("Enter")
        await expect(page.locator("#agent option").first).to_be_attached()
        await go_to(page, "Administration", back=True)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
        await go_to(page, "Approvals")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        ann = ChatUser(web, "ann", url)
        group.start_soon(ann.chat)
        await expect(page.get_by_role("heading", name="weather")).to_be_visible()
        await go_to(page, "Reason, which the agent is told when you deny")
        await page.keyboard.type("not on a ")
        async with page.expect_response(lambda answer: answer.request.headers.get("hx-request") == "true"):
            pass
        await page.keyboard.type("Sunday")
        await go_to(page, "Deny")
        await page.keyboard.press("Space")
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        await web.ended(TurnStatus.DONE)
    assert web.weather.calls == []
    assert "not on a Sunday" in str(model.requests[-1].messages)

"""A chat with more messages than are shown at once, in a browser: reading back, searching in it, going by keyboard."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from playwright.async_api import Page, expect

from denizen.domain.ids import TurnId
from denizen.domain.message import Role
from denizen.domain.turn import TurnResult, TurnStatus
from denizen.testing.scripted_model import ScriptedReply
from tests.clock import NOON
from tests.contracts.store.records import make_message, make_turn
from tests.timing import HANG_LIMIT_S
from tests.web.browser.browser import open_browser
from tests.web.browser.test_chat import answering, ask
from tests.web_fixture import WebFixture, open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)

PAIRS = 180
"""Questions with an answer each: ten pages of messages, with the one that is asked first."""

TEXTS = "all => all.map((each) => each.textContent.trim())"
TOP_OF = "each => each.getBoundingClientRect().top"

SLOW_CLOCK = """() => {
  let now = 0;
  performance.now = () => (now += 10);
  window.ticks = 0;
  const tick = () => { window.ticks += 1; setTimeout(tick); };
  tick();
  const get = window.fetch;
  window.fetch = async (...args) => {
    const answer = await get(...args);
    if (String(args[0]).includes("before=")) window.beganAt = window.ticks;
    return answer;
  };
  new MutationObserver((_, watcher) => {
    if (!document.querySelector("#log .block")) return;
    window.endedAt = window.ticks;
    watcher.disconnect();
  }).observe(document.getElementById("log"), { childList: true });
}"""
"""On this clock drawing a turn takes longer than a frame has, and other work is counted that has its turn meanwhile."""


@asynccontextmanager
async def open_long_chat() -> AsyncGenerator[tuple[WebFixture, Page]]:
    """The page of a chat that is opened anew, with so many messages that earlier ones are behind its top."""
    model = answering(ScriptedReply("Hello."))
    async with open_web(model, titles=True) as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await page.goto(url)
        await ask(page, "Hi")
        await expect(page.locator(".message.assistant .tools")).to_be_visible()
        await fill(web)
        await page.reload()
        await expect(page.get_by_text(f"Answer {PAIRS - 1}.", exact=True)).to_be_in_viewport()
        yield web, page


async def fill(web: WebFixture) -> None:
    async with web.store.work() as work:
        (conversation,) = await work.conversations.list_recent(platform="web")
        (session,) = await work.sessions.list_all(conversation.id)
        for number in range(PAIRS):
            turn, _ = await work.turns.open(make_turn(session, f"turn-{number}"))
            answer = f"Answer {number}.\n\n" + "It goes on.\n\n" * (number % 5)
            for role, text in ((Role.USER, f"Question {number}?"), (Role.ASSISTANT, answer)):
                message = make_message(session, f"{role}-{number}", text, role=role)
                await work.messages.add(replace(message, turn_id=TurnId(turn.id)))
            await work.turns.close(
                replace(turn, status=TurnStatus.DONE, closed_at=NOON, result=TurnResult(model="instant"))
            )


async def read_back(page: Page) -> None:
    """Scrolls to the first message."""
    scroller = page.locator("#scroll")
    while not await page.get_by_text("Hi", exact=True).count() or await scroller.evaluate("each => each.scrollTop"):
        await scroller.evaluate("each => { each.scrollTop -= 600; return new Promise(requestAnimationFrame); }")


async def test_what_is_read_stays_in_its_place_while_earlier_messages_come() -> None:
    async with open_long_chat() as (_, page):
        first = page.locator("#log .message").first
        await expect(first).to_contain_text("Question 160?")
        await page.locator("#scroll").evaluate("each => { each.scrollTop = 1000; }")
        read = page.get_by_text("Question 164?", exact=True)
        before = await read.evaluate(TOP_OF)
        await expect(page.get_by_text("Question 140?", exact=True)).to_be_attached()
        assert abs(await read.evaluate(TOP_OF) - before) <= 2
        await read_back(page)
        texts = await page.locator("#log .message.user .text").evaluate_all(TEXTS)
        assert texts == ["Hi", *(f"Question {number}?" for number in range(PAIRS))]


async def test_pages_of_messages_out_of_sight_are_skipped_and_found_all_the_same() -> None:
    async with open_long_chat() as (_, page):
        await read_back(page)
        is_shown = "each => each.checkVisibility({ contentVisibilityAuto: true })"
        far, near = page.get_by_text("Question 100?", exact=True), page.get_by_text("Question 1?", exact=True)
        await page.wait_for_function("() => document.querySelectorAll('.block').length === 9")
        assert await near.evaluate(is_shown)
        message = page.locator("#log .message").filter(has=far)
        assert not await message.evaluate(is_shown), "its whole page is skipped"

        assert await page.evaluate("window.find('Question 100?', true, false, true)")
        assert await page.evaluate("getSelection().toString()") == "Question 100?"
        await page.evaluate(
            "getSelection().anchorNode.parentElement.scrollIntoView()"
        )  # as the search of a browser does
        await expect(far).to_be_in_viewport()
        await page.locator("#log .message").filter(has=far).get_by_role("button", name="Edit").focus()
        await page.keyboard.press("Tab")
        answer = page.get_by_role("article").filter(has_text="Answer 100.")
        await expect(answer.get_by_role("button", name="Copy the answer")).to_be_focused()
        await expect(answer).to_be_in_viewport()
        for _ in range(5):
            await page.keyboard.press("Tab")
        question = page.get_by_role("article").filter(has_text="Question 101?")
        await expect(question.get_by_role("button", name="Copy the message")).to_be_focused()
        await expect(question).to_be_in_viewport()

        # A chat that goes on keeps what was read of it, in order.
        await ask(page, "And now?")
        await expect(page.locator(".message.assistant .tools")).to_have_count(PAIRS + 2)
        asked = await page.locator("#log .message.user .text").evaluate_all(TEXTS)
        assert asked == ["Hi", *(f"Question {number}?" for number in range(PAIRS)), "And now?"]


async def test_the_page_goes_on_while_earlier_messages_are_drawn() -> None:
    async with open_long_chat() as (_, page):
        await page.evaluate(SLOW_CLOCK)
        await page.locator("#scroll").evaluate("each => { each.scrollTop = 1000; }")
        await page.wait_for_function("() => window.endedAt")
        assert await page.evaluate("window.endedAt - window.beganAt") >= 20

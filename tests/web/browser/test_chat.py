"""The chat in a browser: what people see, click and type."""

from __future__ import annotations

import base64
import re
from typing import Any

import anyio
import pytest
from playwright.async_api import Page, Route, expect

from denizen.engine.chats import titles
from denizen.ports.model import Capabilities, ModelRequest
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, ScriptStep, call
from tests.timing import HANG_LIMIT_S
from tests.web.api.test_approvals import asks
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import PHONE, open_browser
from tests.web_fixture import ANN, open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)

MARKUP = """The **weather**:

| City | Degrees |
|------|--------:|
| Oslo | 7 |

```python
def hello(): return 1
```
"""
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

DROP = """text => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], "dot.png", { type: "image/png" }));
  return data;
}"""
"""What a browser gives to the page when somebody drops a picture on it."""


SET_HIDDEN = """isHidden => {
  Object.defineProperty(document, "hidden", { get: () => isHidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
"""What a browser does when somebody goes to another tab, or comes back."""


def answering(*replies: ScriptStep, title: str = "Weather in Oslo", images: bool = False) -> ScriptedModel:
    """A model that gives every chat that title, and the questions these answers, the last one again and again."""
    left = list(replies)

    def step(request: ModelRequest) -> Any:
        if any(segment.text == titles.INSTRUCTIONS for segment in request.segments):
            return ScriptedReply(title)
        return left.pop(0) if len(left) > 1 else left[0]

    return ScriptedModel(otherwise=step, capabilities=Capabilities(images=images))


async def ask(page: Page, text: str) -> None:
    await expect(page.locator("#agent option").first).to_be_attached()  # the page is ready
    await page.get_by_label("Message", exact=True).fill(text)
    await page.keyboard.press("Enter")


@pytest.mark.proves("T-ui-chat", "S-user-chat")
async def test_somebody_asks_and_finds_the_chat_again() -> None:
    model = answering(ScriptedReply(calls=[call("weather", city="Oslo")]), ScriptedReply(MARKUP), ScriptedReply("Bye."))
    async with open_web(model, titles=True) as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await browser.grant_permissions(["clipboard-read", "clipboard-write"])
        await page.goto(url)
        await page.get_by_label("Agent", exact=True).select_option("scribe")
        await page.get_by_label("Model", exact=True).select_option("scripted/model")
        async with page.expect_request("**/api/chats/*") as sent:
            await ask(page, "How warm is it in Oslo?")
        body: dict[str, Any] = (await sent.value).post_data_json or {}
        assert (body["agent"], body["model"]) == ("scribe", "scripted/model")
        answer = page.locator(".message.assistant")
        await expect(answer.get_by_role("cell", name="7")).to_be_visible()
        assert [turn.agent for turn in await web.turns()] == ["scribe"]
        await expect(answer.locator("strong")).to_have_text("weather")
        await expect(answer.locator(".hljs-keyword").first).to_have_text("def")
        await expect(page.get_by_role("link", name="Weather in Oslo")).to_be_visible()
        await expect(page).to_have_title("Weather in Oslo · Denizen")
        call_row = answer.locator("details.call")
        await expect(call_row.locator(".state")).to_have_text(re.compile(r"ms|s$"))
        await answer.get_by_role("button", name="Copy code").click()
        assert await page.evaluate("navigator.clipboard.readText()") == "def hello(): return 1\n"
        await answer.get_by_role("button", name="Copy the answer").click()
        assert await page.evaluate("navigator.clipboard.readText()") == MARKUP
        assert await find_violations(page) == []

        await page.reload()
        await expect(answer.get_by_role("cell", name="7")).to_be_visible()
        await call_row.locator("summary").click()
        await expect(call_row.locator(".result")).to_contain_text("Sunny.")
        await answer.get_by_role("button", name="Why?").click()
        await expect(page.get_by_role("heading", name="Why this answer")).to_be_visible()
        assert await find_violations(page) == []
        await page.keyboard.press("Escape")
        await expect(page.locator("#panel")).to_be_hidden()

        good, bad = page.get_by_role("button", name="Good answer"), page.get_by_role("button", name="Bad answer")
        await good.click()
        await expect(good).to_have_attribute("aria-pressed", "true")
        await bad.click()
        await page.get_by_label("Reason").fill("It is 8 degrees.")
        await page.get_by_role("button", name="Send", exact=True).last.click()
        await expect(bad).to_have_attribute("aria-pressed", "true")
        await expect(good).to_have_attribute("aria-pressed", "false")

        await page.get_by_role("link", name="New chat").first.click()
        await ask(page, "And bye")
        await expect(page.locator(".message.assistant")).to_contain_text("Bye.")
        search = page.get_by_label("Search your chats")
        await search.fill("degrees")
        await expect(page.locator("#chats li")).to_have_count(1)
        await search.fill("")
        await expect(page.locator("#chats li")).to_have_count(2)
        page.on("dialog", lambda dialog: dialog.accept())
        row = page.locator("#chats li").last
        await row.hover()
        await row.locator("summary").click()
        await row.get_by_role("button", name="Delete").click()
        await expect(page.locator("#chats li")).to_have_count(1)


async def test_what_is_typed_while_an_answer_comes_waits_and_drafts_survive() -> None:
    gate = ReplyGate()
    model = answering(ScriptedReply("First answer.", before=gate), ScriptedReply("Second answer."))
    async with open_web(model, titles=True) as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await page.goto(url)
        await ask(page, "One")
        await gate.reached.wait()
        await ask(page, "Two")
        await expect(page.get_by_label("Messages that wait")).to_contain_text("Two")
        gate.open.set()
        await expect(page.locator(".message.assistant").nth(1)).to_contain_text("Second answer.")
        await expect(page.get_by_label("Messages that wait")).to_be_hidden()
        await page.get_by_label("Message", exact=True).fill("half a thou")
        await page.reload()
        await expect(page.get_by_label("Message", exact=True)).to_have_value("half a thou")


@pytest.mark.proves("S-user-chat")
async def test_an_answer_is_stopped_retried_and_asked_for_in_other_words() -> None:
    gate = ReplyGate()
    model = answering(
        ScriptedReply("Said so far, and never said.", halfway=gate),
        ScriptedReply("The first."),
        ScriptedReply("The second."),
        ScriptedReply("The third."),
    )
    async with open_web(model, titles=True) as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await page.goto(url)
        await ask(page, "Tell me")
        await gate.reached.wait()
        answers = page.locator(".message.assistant")
        await expect(answers).to_contain_text("Said so far")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.get_by_text("Stopped.")).to_be_visible()
        await page.reload()
        await expect(answers).to_contain_text(re.compile("Said so far.*Stopped", re.DOTALL))
        await expect(answers).not_to_contain_text("never said")
        await ask(page, "Once more")
        await expect(answers.last).to_contain_text("The first.")
        await answers.last.get_by_role("button", name="Retry").click()
        await expect(answers.last).to_contain_text("The second.")
        question = page.locator(".message.user").last
        await expect(question).to_contain_text("2 / 2")
        await question.hover()
        await question.get_by_role("button", name="Edit").click()
        await page.get_by_label("The message, to be changed").fill("In other words")
        await page.get_by_role("button", name="Send as a new version").click()
        await expect(answers.last).to_contain_text("The third.")
        await expect(question).to_contain_text("3 / 3")
        await question.get_by_role("button", name="The version before").click()
        await expect(answers.last).to_contain_text("The second.")
        await expect(question).to_contain_text("Once more")


@pytest.mark.proves("P2")
@pytest.mark.parametrize(
    ("choice", "told", "ran"),
    [
        ("Approve", "Approved by ann", 1),
        ("For an hour here", "Approved by ann", 1),
        ("Deny", "Denied by ann: not on a Sunday", 0),
    ],
)
async def test_a_button_of_the_page_decides_about_a_call(choice: str, told: str, ran: int) -> None:
    model = answering(ScriptedReply(calls=[call("weather", city="Paris", api_key="s3cret")]), ScriptedReply("Done."))
    async with (
        open_web(model, titles=True, keys=[ANN], policy=asks()) as web,
        web.serve() as url,
        open_browser() as browser,
    ):
        page = await browser.new_page()
        await page.goto(url)
        await page.get_by_label("API key").fill("key-of-ann")
        await page.get_by_role("button", name="Sign in").click()
        await ask(page, "go")
        card = page.get_by_role("group", name="Approval of weather")
        await expect(card).to_contain_text("Asked because it costs money.")
        await expect(card).not_to_contain_text("s3cret")
        await page.reload()  # what waits is still there
        await expect(card.get_by_role("button", name="Approve")).to_be_visible()
        await card.get_by_label("Reason for denying").fill("not on a Sunday")
        await card.get_by_role("button", name=choice).click()
        await expect(card).to_contain_text(told)
        await expect(page.locator(".message.assistant").last).to_contain_text("Done.")
        assert len(web.weather.calls) == ran


@pytest.mark.proves("S-user-chat")
async def test_a_picture_is_dropped_shown_and_seen_by_the_model() -> None:
    model = answering(ScriptedReply("A dot."), images=True)
    async with open_web(model, titles=True) as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await page.goto(url)
        await expect(page.locator("#agent option").first).to_be_attached()
        dropped = await page.evaluate_handle(DROP, base64.b64encode(PIXEL).decode())
        await page.dispatch_event("main", "drop", {"dataTransfer": dropped})
        await expect(page.get_by_label("Files to send").locator("img")).to_be_visible()
        await page.get_by_label("Attach files").set_input_files(
            {"name": "x.svg", "mimeType": "image/svg+xml", "buffer": b"<svg/>"}
        )
        await expect(page.get_by_label("Files to send").locator(".bad")).to_contain_text("x.svg")
        await page.get_by_role("button", name="Remove x.svg").click()
        await ask(page, "What is it?")
        await expect(page.locator(".message.assistant")).to_contain_text("A dot.")
        await page.reload()
        await expect(page.locator(".message.user img")).to_be_visible()
    shown = [str(each.messages[-1].parts) for each in model.requests]
    assert any("What is it?" in each and "data:image/webp;base64," in each for each in shown)


@pytest.mark.proves("S-user-share", "S-user-shared-page")
async def test_a_chat_is_shared_read_without_signing_in_and_shared_no_more() -> None:
    model = answering(ScriptedReply("It is **seven**."))
    async with open_web(model, titles=True, keys=[ANN]) as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await page.goto(url)
        await page.get_by_label("API key").fill("key-of-ann")
        await page.get_by_role("button", name="Sign in").click()
        await ask(page, "How warm is it?")
        await expect(page.locator(".message.assistant strong")).to_have_text("seven")
        await page.get_by_role("button", name="Share", exact=True).click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("button", name="Share", exact=True).click()
        link = dialog.get_by_label("Link")
        await expect(link).to_have_value(re.compile(r"/shared/\S{20,}"))
        address = await link.input_value()
        async with open_browser(viewport=PHONE) as stranger:
            public = await stranger.new_page()
            await public.goto(address)
            await expect(public.locator(".message.assistant strong")).to_have_text("seven")
            await expect(public.get_by_text("How warm is it?")).to_be_visible()
            assert await find_violations(public) == []
        await dialog.get_by_role("button", name="End sharing").click()
        await expect(dialog).to_contain_text("does not work any more")
        async with open_browser() as stranger:
            public = await stranger.new_page()
            await public.goto(address)
            await expect(public.get_by_text("There is no shared chat here.")).to_be_visible()


async def test_a_second_tab_follows_what_happens_in_the_first() -> None:
    gate = ReplyGate()
    model = answering(ScriptedReply("Hello."), ScriptedReply("Slow answer here.", halfway=gate))
    async with open_web(model, titles=True) as web, web.serve() as url, open_browser() as browser:
        first, second = await browser.new_page(), await browser.new_page()
        await first.goto(url)
        await ask(first, "Hi")
        await expect(first.locator(".message.assistant")).to_contain_text("Hello.")
        await second.goto(first.url)
        await expect(second.locator(".message.assistant")).to_contain_text("Hello.")
        await ask(first, "Slowly")
        await gate.reached.wait()
        await expect(second.get_by_text("Slowly")).to_be_visible()
        await expect(second.locator(".message.assistant").last).to_contain_text("Slow")
        gate.open.set()
        for page in (first, second):
            await expect(page.locator(".message.assistant").last).to_contain_text("Slow answer here.")
            await expect(page.get_by_role("button", name="Stop")).to_be_hidden()


async def test_a_chat_is_shown_before_its_events_come_and_has_what_was_said_meanwhile() -> None:
    model = answering(ScriptedReply("Hello."), ScriptedReply("Good day."))
    may_follow = anyio.Event()

    async def hold(route: Route) -> None:
        await may_follow.wait()
        await route.continue_()

    async with open_web(model, titles=True) as web, web.serve() as url, open_browser() as browser:
        first, second = await browser.new_page(), await browser.new_page()
        await first.goto(url)
        await ask(first, "Hi")
        await expect(first.locator(".message.assistant")).to_contain_text("Hello.")
        await second.route("**/api/events/chats/*", hold)
        await second.goto(first.url)
        await expect(second.locator(".message.assistant")).to_contain_text("Hello.")
        await ask(first, "And again")
        await expect(first.locator(".message.assistant").last).to_contain_text("Good day.")
        await expect(second.locator(".message.assistant")).to_have_count(1)
        may_follow.set()
        await expect(second.locator(".message.assistant").last).to_contain_text("Good day.")


async def test_many_tabs_of_a_browser_work_side_by_side_and_show_what_they_missed() -> None:
    model = answering(ScriptedReply("Hello."), ScriptedReply("Good day."))
    async with open_web(model, titles=True) as web, web.serve() as url, open_browser() as browser:
        first = await browser.new_page()
        await first.goto(url)
        await ask(first, "Hi")
        await expect(first.locator(".message.assistant .tools")).to_be_visible()
        for _ in range(7):  # a browser has six connections to a server
            await browser.pages[-1].evaluate(SET_HIDDEN, True)
            page = await browser.new_page()
            await page.goto(first.url)
            await expect(page.locator(".message.assistant")).to_contain_text("Hello.")
        await ask(browser.pages[-1], "And again")
        await expect(browser.pages[-1].locator(".message.assistant").last).to_contain_text("Good day.")
        await expect(first.locator(".message.assistant")).to_have_count(1)
        await first.evaluate(SET_HIDDEN, False)
        await expect(first.locator(".message.assistant").last).to_contain_text("Good day.")


async def test_what_somebody_opened_and_selected_stays_when_the_chat_goes_on() -> None:
    gate = ReplyGate()
    model = answering(
        ScriptedReply(calls=[call("weather", city="Oslo")]),
        ScriptedReply("It is seven."),
        ScriptedReply(calls=[call("weather", city="Bergen")]),
        ScriptedReply("It is eight.", halfway=gate),
    )
    async with open_web(model, titles=True) as web, web.serve() as url, open_browser() as browser:
        page, other = await browser.new_page(), await browser.new_page()
        await page.goto(url)
        await ask(page, "How warm is it in Oslo?")
        await expect(page.locator(".message.assistant .tools")).to_be_visible()
        await page.locator("details.call summary").first.click()
        await page.locator(".message.assistant .text").first.select_text()
        await other.goto(page.url)
        await other.get_by_role("button", name="Good answer").click()
        await expect(page.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "true")
        await expect(page.locator("details.call").first).to_have_attribute("open", "")
        await page.locator(".message.assistant .text").first.select_text()
        await ask(other, "And in Bergen?")
        await gate.reached.wait()
        await expect(page.locator("details.call")).to_have_count(2)
        await other.reload()
        await expect(other.locator(".message.assistant").last).to_contain_text("It is")
        await expect(other.locator("details.call")).to_have_count(2)
        gate.open.set()
        await expect(page.locator(".message.assistant").last).to_contain_text("It is eight.")
        await expect(page.locator("#log")).to_have_attribute("aria-busy", "false")
        assert await page.evaluate("getSelection().toString().trim()") == "It is seven."


async def test_a_phone_has_the_list_behind_the_menu_and_nothing_is_cut_off() -> None:
    async with open_web(answering(ScriptedReply(MARKUP)), titles=True) as web, web.serve() as url:
        for is_dark in (False, True):
            async with open_browser(viewport=PHONE, is_dark=is_dark) as browser:
                page = await browser.new_page()
                await page.goto(url)
                await ask(page, "How warm is it in Oslo?")
                await expect(page.get_by_role("cell", name="7")).to_be_visible()
                assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
                assert await find_violations(page) == []
                await page.get_by_role("button", name="Menu").click()
                await expect(page.locator("#chats a").first).to_be_visible()
                assert await find_violations(page) == []
                await page.keyboard.press("Escape")
                await expect(page.locator("#chats a").first).to_be_hidden()

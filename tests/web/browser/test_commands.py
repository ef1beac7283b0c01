"""Commands in a browser: the menu that `/` opens, and the notes that answer."""

import re
from dataclasses import replace

import pytest
from playwright.async_api import expect

from denizen.engine.configuration.generation import CustomCommandSet
from denizen.testing.scripted_model import ScriptedReply
from tests.engine.commands.test_custom import ALLOWED, STATUS, ProgramToolset
from tests.timing import HANG_LIMIT_S
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import open_browser
from tests.web.browser.test_chat import answering, ask
from tests.web_fixture import open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)


async def test_commands_are_completed_by_keys_and_their_answers_are_notes_that_no_model_reads() -> None:
    model, programs = answering(ScriptedReply("Hello."), ScriptedReply("All is well.")), ProgramToolset()
    asking = replace(STATUS, name="explain", prompt="What is wrong?")
    asking_tool = replace(programs.tools.specs[0], name="command_explain")
    programs.tools.specs.append(asking_tool)
    commands = CustomCommandSet((STATUS, asking), programs.tools)
    async with open_web(model, commands=commands, policy=ALLOWED) as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await page.goto(url)
        await ask(page, "Hi")
        await expect(page.locator(".message.assistant")).to_contain_text("Hello.")
        box, menu = page.get_by_label("Message", exact=True), page.get_by_role("listbox", name="Commands")

        await box.press_sequentially("/mo")
        await expect(menu.get_by_role("option")).to_have_count(2)
        await expect(menu.get_by_role("option", selected=True)).to_contain_text("/mode")
        assert await find_violations(page) == []
        await page.keyboard.press("ArrowDown")
        await expect(menu.get_by_role("option", selected=True)).to_contain_text("/model")
        await page.keyboard.press("Escape")
        await expect(menu).to_be_hidden()
        await box.fill("")

        await box.press_sequentially("/mod")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(box).to_have_value("/model ")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Tab")
        await expect(box).to_have_value("/model list")
        await page.keyboard.press("Enter")
        note = page.get_by_role("article", name="Command /model list")
        await expect(note).to_contain_text("You chose none")
        assert await find_violations(page) == []

        await ask(page, "/status db")
        await expect(page.get_by_role("article", name="Command /status db")).to_contain_text("all is well")
        await ask(page, "/explain db")
        await expect(page.locator(".message.assistant").last).to_contain_text("All is well.")
        await expect(page.locator("#log")).to_have_attribute("aria-busy", "false")
        order = re.compile(r"Hi.*Hello.*/model list.*/status db.*/explain db.*All is well", re.DOTALL)
        await expect(page.locator("#log")).to_contain_text(order)
        await page.get_by_label("Message", exact=True).fill("")
        assert all("You chose none" not in str(request.messages) for request in model.requests)

        await ask(page, "/agent scribe")
        await expect(page.get_by_label("Agent", exact=True)).to_have_value("scribe")
        await ask(page, "/new")
        await expect(page.get_by_role("article", name="Command /new")).to_contain_text("starts a new session")
        await expect(page.locator(".message.assistant")).to_have_count(0)
        await page.reload()
        await expect(page.locator(".note")).to_have_count(0)

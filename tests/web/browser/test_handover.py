"""A chat that is handed over, in a browser: who answers is shown, also after a reload, and a button ends it."""

import pytest
from playwright.async_api import expect

from tests.timing import HANG_LIMIT_S
from tests.web.api.test_handover import AGENTS, script
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import open_browser
from tests.web.browser.test_chat import ask
from tests.web_fixture import open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)


async def test_the_page_shows_who_has_the_chat_until_somebody_ends_it() -> None:
    async with open_web(script(), agents=AGENTS) as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await page.goto(url)
        await ask(page, "bob, please")
        shown = page.locator("#handover")
        await expect(shown).to_contain_text("bob answers here until")
        await expect(page.get_by_label("Agent", exact=True)).to_be_disabled()
        assert await find_violations(page) == []
        await page.reload()
        await expect(shown).to_contain_text("for 20 more messages.")
        await ask(page, "How are boats made?")
        await expect(shown).to_contain_text("for 19 more messages.")
        await expect(page.locator(".message.assistant .author").last).to_have_text("bob")
        await page.get_by_role("button", name="End it").click()
        await expect(shown).to_be_hidden()
        await expect(page.get_by_label("Agent", exact=True)).to_have_value("ada")

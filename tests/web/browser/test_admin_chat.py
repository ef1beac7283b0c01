"""The way from the sidebar to a chat about the administration, in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.admin_chat_fixture import open_admin_chat
from tests.timing import HANG_LIMIT_S
from tests.web.browser.browser import open_browser

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)


async def test_an_admin_asks_about_the_server_from_the_sidebar(tmp_path: Path) -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("list_users")]), ScriptedReply("There is nobody yet."))
    async with open_admin_chat(tmp_path, model) as fixture, fixture.web.serve() as url, open_browser() as browser:
        await browser.set_extra_http_headers({"x-api-key": "key-of-ada"})
        page = await browser.new_page()
        await page.goto(url)
        await page.get_by_role("link", name="Ask about this server").click()
        await expect(page).to_have_url(re.compile(r"/c/[\w-]+$"))
        await page.get_by_label("Message", exact=True).fill("Who uses it?")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("There is nobody yet.")).to_be_visible()
        async with fixture.web.client(**{"x-api-key": "key-of-ada"}) as ada:
            chats = (await ada.get("/api/chats")).json()
    assert [(row["mode"], row["title"]) for row in chats] == [("admin", "Who uses it")]
    assert "list_users" in {tool.name for tool in model.requests[0].tools}

"""The page of the store in a browser: its progress moves by itself, at any width and in the dark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import expect

from denizen.domain.store_move import MoveProgress
from tests.engine.commands.test_store import COPYING, DONE, ScriptedMove
from tests.timing import HANG_LIMIT_S
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import DESKTOP, PHONE, open_browser
from tests.web.browser.test_chat import ask
from tests.web.knowledge_web_fixture import OWNER
from tests.web.test_store_page import give_store
from tests.web_fixture import open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)


@pytest.mark.proves("V25")
async def test_a_move_is_begun_and_its_progress_goes_on_without_a_reload() -> None:
    move = ScriptedMove(steps=[COPYING], progress=MoveProgress())
    async with open_web(keys=[OWNER], instance=give_store(move)) as web, web.serve() as url, open_browser() as browser:
        await browser.set_extra_http_headers({"x-api-key": "key-of-olga"})
        page = await browser.new_page()
        await page.goto(f"{url}/admin/store")
        assert await find_violations(page) == []
        page.on("dialog", lambda dialog: dialog.accept())
        await page.get_by_role("button", name="Move the store").click()
        await expect(page.get_by_text("250 of 1,000 rows")).to_be_visible()
        move.progress = replace(COPYING, done=800)
        await expect(page.get_by_text("800 of 1,000 rows")).to_be_visible()
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)
            for size in (PHONE, DESKTOP):
                await page.set_viewport_size(size)
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                assert await find_violations(page) == []
        await page.get_by_role("button", name="Stop the move").click()
        await expect(page.get_by_text("The move was cancelled.")).to_be_visible()

        move.steps = [COPYING, DONE]
        await page.goto(url)
        await ask(page, "/migrate to-postgres confirm: yes")
        note = page.get_by_role("article", name="Command /migrate to-postgres confirm: yes")
        await expect(note).to_contain_text("The store has moved to")
        await expect(note).not_to_contain_text("copying")  # it was replaced in place
        assert await find_violations(page) == []

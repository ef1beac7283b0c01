"""The gate, the forms of the configuration and a running turn in a browser, by clicks alone."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from playwright.async_api import expect

from denizen.app.configuration import HomeConfiguration
from denizen.app.reload import Reloader
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from tests.app.home_folder import Home, open_home
from tests.timing import HANG_LIMIT_S
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import open_browser
from tests.web.browser.test_knowledge_pages import TEXT
from tests.web.knowledge_web_fixture import OWNER
from tests.web.test_turns_pages import chat
from tests.web_fixture import ANN, open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)


async def test_an_owner_follows_a_turn_tries_a_rule_on_it_uses_it_and_changes_a_setting(tmp_path: Path) -> None:
    before = ReplyGate()
    model = ScriptedModel(ScriptedReply(calls=[call("weather", city="Paris")]), ScriptedReply("Sunny.", before=before))
    home = Home(tmp_path / "home")
    home.path.mkdir()
    async with open_home(home, TEXT) as denizen:
        files = HomeConfiguration(denizen, Reloader(denizen))
        async with (
            open_web(model, keys=[OWNER, ANN], configuration=files, plan_policy=files.plan_policy) as web,
            web.serve() as url,
            open_browser() as browser,
            anyio.create_task_group() as group,
        ):
            await browser.set_extra_http_headers({"x-api-key": "key-of-olga"})
            page = await browser.new_page()
            group.start_soon(chat, web, "ann", "How is Paris?")
            await before.reached.wait()
            await page.goto(f"{url}/admin/turns")
            await page.locator("table.list a").first.click()
            await expect(page.get_by_text("It is still running.")).to_be_visible()
            before.open.set()
            await expect(page.get_by_role("heading", name="Reply")).to_be_visible()  # without a reload
            await expect(page.get_by_text("It is still running.")).to_have_count(0)
            await expect(page.locator("#live[hx-get]")).to_have_count(0)

            await page.get_by_role("link", name="Gate", exact=True).click()
            assert await find_violations(page) == []
            await page.get_by_label("Tool", exact=True).fill("weather")
            await page.get_by_label("Action").select_option("deny")
            await page.get_by_role("button", name="Try", exact=True).click()
            await expect(page.get_by_text("1 of 1 past calls would come out otherwise")).to_be_visible()
            assert await find_violations(page) == []
            assert home.config.read_text() == TEXT
            await page.get_by_role("button", name="Use these rules").click()
            await expect(page.get_by_text("The rules are saved, and hold now.")).to_be_visible()
            assert 'tool: "weather"' in home.config.read_text()

            await page.get_by_role("link", name="Configuration").click()
            await page.get_by_role("link", name="Logging").click()
            await page.get_by_label("Level").select_option("debug")
            await page.get_by_label("File").fill("denizen.log")
            assert await find_violations(page) == []
            await page.get_by_role("button", name="Show what changes").click()
            await expect(page.get_by_text("+  level: debug")).to_be_visible()
            await page.get_by_role("button", name="Save").click()
            await expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
            assert "logging:\n  level: debug\n  file: denizen.log\n" in home.config.read_text()
            assert "# Ours." in home.config.read_text()

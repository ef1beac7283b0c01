"""The board of projects in a browser: tasks are made, moved by dragging and by keys, and seen when others move them."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from denizen.domain.principal import RoleName
from denizen.testing.scripted_model import ScriptedModel
from denizen.web.http.auth import ApiKey
from denizen_sdk import DenizenClient
from tests.timing import HANG_LIMIT_S
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import PHONE, open_browser
from tests.web_fixture import open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)

OLGA = ApiKey.from_text("olga", "key-of-olga-the-owner", [RoleName.OWNER])


async def sign_in(page: Page, url: str) -> None:
    await page.goto(f"{url}/login?next=/projects")
    await page.get_by_label("API key").fill("key-of-olga-the-owner")
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url(f"{url}/**")
    await page.goto(f"{url}/projects")


@pytest.mark.proves("T-ui-projects")
async def test_tasks_are_made_dragged_moved_by_keys_and_seen_when_others_move_them() -> None:
    async with open_web(ScriptedModel(), keys=[OLGA]) as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await sign_in(page, url)
        await page.get_by_text("New project").click()
        await page.get_by_label("Name", exact=True).fill("Website")
        await page.get_by_role("button", name="Make the project").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Website")
        await page.get_by_text("New task").click()
        await page.get_by_label("Title").fill("Fix <b>it</b>")
        await page.get_by_role("button", name="Add the task").click()
        columns = {
            name: page.get_by_role("region", name=name) for name in ("Backlog", "In progress", "Blocked", "Done")
        }
        task = page.get_by_role("link", name="Fix <b>it</b>")
        await expect(columns["Backlog"].get_by_role("link")).to_have_text("Fix <b>it</b>")
        assert await find_violations(page) == []
        assert await page.locator("#board").evaluate("(board) => board.scrollWidth <= board.clientWidth")

        await page.locator(".task").drag_to(columns["Blocked"])
        await expect(columns["Blocked"].get_by_role("link")).to_have_text("Fix <b>it</b>")
        await task.focus()
        await page.keyboard.press("Shift+ArrowLeft")
        await expect(columns["In progress"].get_by_role("link")).to_have_text("Fix <b>it</b>")
        await expect(task).to_be_focused()
        await expect(page.locator("#board-state")).to_have_text("Moved to In progress.")

        async with DenizenClient(url, "key-of-olga-the-owner") as other:
            [found] = await other.find_tasks()
            await other.change_task(found.id, status="done")
            await expect(columns["Done"].get_by_role("link")).to_have_text("Fix <b>it</b>")
            await other.delete_task(found.id)
        await expect(page.locator(".task")).to_have_count(0)


async def test_a_task_is_moved_discussed_and_deleted_on_a_phone() -> None:
    async with (
        open_web(ScriptedModel(), keys=[OLGA]) as web,
        web.serve() as url,
        open_browser(viewport=PHONE, is_touch=True) as browser,
    ):
        async with DenizenClient(url, "key-of-olga-the-owner") as client:
            await client.create_task("Fix it")
        page = await browser.new_page()
        await sign_in(page, url)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.get_by_label("Status of Fix it").select_option("done")
        await expect(page.get_by_role("region", name="Done").get_by_role("link")).to_have_text("Fix it")
        await page.get_by_role("link", name="Fix it").click()
        await page.get_by_label("Your comment").fill("Well done.")
        await page.get_by_role("button", name="Comment").click()
        await expect(page.get_by_role("article")).to_contain_text("Well done.")
        assert await find_violations(page) == []
        page.once("dialog", lambda dialog: dialog.accept())
        await page.get_by_role("button", name="Delete the task").click()
        await expect(page.get_by_text("Deleted.")).to_be_visible()
        await expect(page.locator(".task")).to_have_count(0)

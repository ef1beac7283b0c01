"""The forms of schedules in a browser: they show the fields of what is to be done, and keep what was typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import ViewportSize, expect

from tests.app.component_web_fixture import open_components
from tests.app.home_folder import LAB, Home
from tests.timing import HANG_LIMIT_S
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import DESKTOP, PHONE, open_browser
from tests.web.browser.test_knowledge_pages import sign_in

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)
WORKFLOW = """\
nodes:
  start: {type: manual, input: {since: noon}, then: say}
  say: {type: reply, text: "Since {{input.since}}."}
"""
ARGS = '{\n  "since": "{{schedule.last_run}}"\n}'
FIELDS = {
    "prompt": {"What the agent is told", "The answer goes"},
    "tool": {"Tool", "Arguments"},
    "workflow": {"Workflow", "Arguments"},
}


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_an_owner_makes_and_changes_the_schedule_of_a_workflow(tmp_path: Path, viewport: ViewportSize) -> None:
    home = Home(tmp_path)
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows/digest.yaml").write_text(WORKFLOW)
    async with (
        open_components(home, LAB) as server,
        server.web.serve() as url,
        open_browser(viewport=viewport) as browser,
    ):
        page = await browser.new_page()
        await sign_in(page, url)
        await page.goto(f"{url}/admin/add-schedule")
        for kind, fields in FIELDS.items():
            await page.get_by_label("What it does").select_option(kind)
            for label in set().union(*FIELDS.values()):
                await expect(page.get_by_label(label, exact=True)).to_be_visible(visible=label in fields)
            assert await find_violations(page) == []
            assert await page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
        await page.get_by_label("Name", exact=True).fill("evening")
        await page.get_by_label("When", exact=True).fill("every day at 18:00")
        await page.get_by_label("Workflow", exact=True).fill("digst")
        await page.get_by_label("Arguments", exact=True).fill(ARGS)
        await page.get_by_role("button", name="Add").click()
        await expect(page.get_by_role("alert")).to_contain_text("There is no workflow 'digst'. Did you mean 'digest'?")
        await expect(page.get_by_label("Arguments", exact=True)).to_have_value(ARGS)
        await page.get_by_label("Workflow", exact=True).fill("digest")
        await page.get_by_role("button", name="Add").click()
        await expect(page.get_by_text("The schedule was added.")).to_be_visible()
        assert "workflow: digest\n    args:\n      since: '{{schedule.last_run}}'\n" in server.text
        await expect(page.get_by_label("Arguments", exact=True)).to_have_value(ARGS)
        await page.get_by_label("Arguments", exact=True).fill('{"sinc": "noon"}')
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("no input 'sinc'")
        await page.get_by_label("Arguments", exact=True).fill('{"since": "noon"}')
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("The schedule was changed.")).to_be_visible()
        assert "workflow: digest\n    args:\n      since: noon\n" in server.text

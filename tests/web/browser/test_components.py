"""The pages of models, skills, MCP servers and agents in a browser, on a real home folder, by clicks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from denizen.testing.model_server import ModelAnswer, model_server
from tests.app.component_web_fixture import open_components
from tests.app.home_folder import LAB, Home
from tests.app.skill_loading.skill_folder_fixture import write_skill
from tests.timing import HANG_LIMIT_S
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import PHONE, open_browser
from tests.web.browser.test_knowledge_pages import sign_in

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)


async def follow(page: Page, name: str) -> None:
    await page.get_by_role("navigation", name="Parts of Denizen").get_by_role("link", name=name, exact=True).click()


async def test_an_owner_connects_a_provider_tests_it_and_names_its_model(tmp_path: Path) -> None:
    home = Home(tmp_path)
    async with (
        model_server() as provider,
        open_components(home, f"# Ours.\n{LAB}") as server,
        server.web.serve() as url,
        open_browser() as browser,
    ):
        page = await browser.new_page()
        await sign_in(page, url)
        await page.goto(f"{url}/admin")
        await follow(page, "Models")
        assert await find_violations(page) == []
        await page.get_by_role("link", name="Add a provider").click()
        await page.get_by_label("Name", exact=True).fill("den")
        await page.get_by_label("Kind").select_option("openai-compatible")
        await page.get_by_role("button", name="Add").click()
        await expect(page.get_by_text("needs base_url")).to_be_visible()  # and what was typed is still there
        await page.get_by_label("Address").fill(f"{provider.url}/v1")
        await page.get_by_label("Key", exact=True).fill("sk-abcdefghijklmnop")
        assert await find_violations(page) == []
        await page.get_by_role("button", name="Add").click()
        await expect(page.get_by_text("The provider is saved")).to_be_visible()
        await expect(page.get_by_text("sk-a...mnop")).to_be_visible()
        assert await find_violations(page) == []
        provider.script(ModelAnswer(text="OK."))
        await page.get_by_role("button", name="Test scripted").first.click()
        await expect(page.get_by_text("answers. It took")).to_be_visible()
        form = page.locator("#alias")
        await form.get_by_label("Name").fill("clever")
        await form.get_by_label("Model").fill("den/scripted")
        await page.get_by_role("button", name="Save the name").click()
        await page.get_by_role("link", name="Price of den/scripted").click()
        await page.get_by_label("Prompt, USD for a million tokens", exact=True).fill("3")
        await page.get_by_label("Answer, USD").fill("15")
        assert await find_violations(page) == []
        await page.get_by_role("button", name="Save the price").click()
        await expect(page.get_by_text("$3 in, $15 out")).to_be_visible()
        assert "# Ours." in server.text and "sk-abcdefghijklmnop" not in server.text


async def test_an_owner_reviews_a_skill_adds_an_mcp_server_and_talks_to_an_agent_on_a_phone(tmp_path: Path) -> None:
    home = Home(tmp_path)
    async with open_components(home, LAB) as server, server.web.serve() as url, open_browser(viewport=PHONE) as browser:
        write_skill(home, "echo")
        page = await browser.new_page()
        page.on("dialog", lambda dialog: dialog.accept())
        await sign_in(page, url)
        await page.goto(f"{url}/admin/skills")
        assert await find_violations(page) == []
        await page.get_by_role("link", name="Review echo").click()
        await expect(page.get_by_text("+WORD = 'one'")).to_be_visible()
        assert await find_violations(page) == []
        await page.get_by_role("button", name="Enable this").click()
        await expect(page.get_by_text("The skill is on.")).to_be_visible()
        write_skill(home, "echo", word="two")
        await page.goto(f"{url}/admin/skills/echo")
        await page.get_by_role("button", name="Refuse").click()
        await expect(page.get_by_text("It is refused")).to_be_visible()
        assert (home.path / "skills/echo/words.py").read_text() == "WORD = 'one'\n"

        await page.goto(f"{url}/admin/mcp")
        assert await find_violations(page) == []
        await page.get_by_role("link", name="Add a server").click()
        await page.get_by_label("Name", exact=True).fill("time")
        await page.get_by_label("Command").fill(f"{sys.executable} -m mcp_server_time")
        assert await find_violations(page) == []
        await page.get_by_role("button", name="Try it and add it").click()
        await expect(page.get_by_role("link", name="time_convert_time")).to_be_visible()  # without a reload
        await page.get_by_role("button", name="Restart").click()
        await expect(page.get_by_text("is being started anew")).to_be_visible()
        await expect(page.locator("dl").get_by_text("up", exact=True)).to_be_visible()
        assert await find_violations(page) == []

        await page.get_by_role("link", name="Change", exact=True).click()
        await page.get_by_label("Timeout, seconds", exact=True).fill("20")
        assert await find_violations(page) == []
        await page.get_by_role("button", name="Try it and show what changes").click()
        await expect(page.get_by_text("It answers like this.")).to_be_visible()
        await expect(page.get_by_text("timeout_s: 20")).to_be_visible()
        assert await find_violations(page) == []
        await page.get_by_role("button", name="Try it and save").click()
        await expect(page.get_by_text("The server has answered, and is changed.")).to_be_visible()
        assert "timeout_s: 20" in server.text
        for path in ("/admin/mcp/servers/time/edit", "/admin/models/add-provider"):
            await page.goto(f"{url}{path}")
            assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]

        await page.goto(f"{url}/admin/agents/denizen")
        assert await find_violations(page) == []
        await page.get_by_label("Message to denizen").fill("Who are you?")
        await page.get_by_label("Message to denizen").press("Enter")
        talk = page.get_by_role("log", name="Test talk")
        await expect(talk.get_by_text("Hello.")).to_be_visible()
        await page.get_by_label("Message to denizen").fill("And now?")
        await page.get_by_role("button", name="Send").click()
        await expect(talk.get_by_text("Hello.")).to_have_count(2)
        assert [len(request.messages) for request in server.web.model.requests] == [1, 3]  # one talk
        assert await find_violations(page) == []
        await talk.get_by_role("link", name="What it sent, used and cost").first.click()
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert "/admin/turns/" in page.url

"""First steps in a browser: from the first sign-up through all four steps, with a real server, provider and Discord."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from anyio import to_thread
from playwright.async_api import Page, expect

from benchmarks.pages import open_site
from denizen.testing.discord import DiscordServer, GatewayIntent, open_discord
from denizen.testing.discord.fixtures import build_discord_fixture
from denizen.testing.model_server import FailedAnswer, ModelAnswer, model_server
from tests.e2e.home import Home, Server
from tests.timing import HANG_LIMIT_S
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import PHONE, open_browser
from tests.web.browser.test_accounts import sign_up

pytestmark = [pytest.mark.anyio, pytest.mark.e2e, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)


@asynccontextmanager
async def run_server(home: Home, discord: DiscordServer, *options: str) -> AsyncGenerator[Server]:
    """`denizen run` in a home as `make run` finds it."""
    home.variables |= {"DENIZEN_DISCORD_API_URL": discord.api_url, "DENIZEN_DISCORD_GATEWAY_URL": discord.gateway_url}
    done = await to_thread.run_sync(lambda: home.do("setup", "--non-interactive", "--if-missing", "--no-verify"))
    assert done.code == 0
    server = await to_thread.run_sync(lambda: home.serve(*options))
    with server:
        yield server


async def check_kept(page: Page, **fields: str) -> None:
    """What was typed stands in the form, and no secret does."""
    for label, value in fields.items():
        await expect(page.get_by_label(label, exact=True)).to_have_value(value)
    for box in await page.locator("input[type=password]").all():
        await expect(box).to_have_value("")
    assert await find_violations(page) == []


async def test_an_owner_goes_from_the_first_sign_up_through_all_four_steps(tmp_path: Path) -> None:
    home, notes = Home(tmp_path / "home"), tmp_path / "notes"
    notes.mkdir()
    (notes / "harbour.md").write_text("# Harbour\n\nA berth is ten euros.\n")
    async with (
        model_server() as models,
        open_discord() as discord,
        run_server(home, discord) as server,
        open_browser(viewport=PHONE) as browser,
    ):
        sim = build_discord_fixture(discord)
        intents, sim.ada.intents = sim.ada.intents, GatewayIntent(0)
        models.models = ("tiny", "tiny-long")
        models.script(FailedAnswer(401), ModelAnswer(text="OK"))
        models.aside = lambda body: ModelAnswer(text="Ahoy, Ana.") if "ahoy" in str(body) else None
        page = await browser.new_page()
        await page.goto(f"{server.url}/sign-up")
        await sign_up(page, "ann")
        await expect(page.get_by_role("heading", name="First steps", level=1)).to_be_visible()
        assert await find_violations(page) == []

        await page.get_by_role("link", name=re.compile("A model")).click()
        await page.get_by_role("link", name=re.compile("openai-compatible")).click()
        await page.get_by_label("Address").fill(models.openai_url)
        await page.get_by_label("API key").fill("sk-a-mistyped-key-1234")
        await page.get_by_label("Model").fill("tiny")
        await page.get_by_role("button", name="Try it and use it").click()
        await expect(page.get_by_role("alert")).to_contain_text("refused the key")
        await check_kept(page, Address=models.openai_url, Model="tiny")
        await page.get_by_label("API key").fill("sk-the-right-key-1234")
        await page.get_by_role("button", name="Show its models").click()
        await page.get_by_label("Model", exact=True).select_option("tiny-long")
        await page.get_by_role("button", name="Try it and use it").click()
        await expect(page.get_by_role("status").filter(has_text="The model answered.")).to_be_visible()
        keys = [each.headers["authorization"] for each in models.requests]
        assert keys == ["Bearer sk-a-mistyped-key-1234", "Bearer sk-the-right-key-1234"]

        await page.get_by_label("Token of the bot").fill("a-wrong-token")
        await page.get_by_role("button", name="Check and connect").click()
        await expect(page.get_by_role("alert")).to_contain_text("Discord refuses this token.")
        await check_kept(page)
        await page.get_by_label("Token of the bot").fill(sim.ada.token)
        await page.get_by_role("button", name="Check").click()
        await expect(page.get_by_text("Message Content Intent is off.", exact=True)).to_be_visible()
        await expect(page.get_by_role("link", name="Invite the bot into a server")).to_be_visible()
        await check_kept(page)
        sim.ada.intents = intents
        await page.get_by_role("button", name="Check again").click()
        await expect(page.get_by_role("heading", name="A source of knowledge", level=1)).to_be_visible()

        await page.get_by_role("link", name="Folder of this machine").click()
        await page.get_by_label("Place").fill("not/absolute")
        await page.get_by_label("Name to show").fill("Notes")
        await page.get_by_role("button", name="Add it").click()
        await expect(page.get_by_role("alert")).to_be_visible()
        await check_kept(page, **{"Place": "not/absolute", "Name to show": "Notes"})
        await page.get_by_label("Place").fill(str(notes))
        await page.get_by_role("button", name="Add it").click()

        await page.get_by_label("Name", exact=True).fill("scribe")
        await page.get_by_label("Persona").fill("You take notes of the harbour.")
        assert await find_violations(page) == []
        await page.get_by_role("button", name="Add it").click()
        await expect(page.get_by_text("Everything is set up.")).to_be_visible()
        await page.get_by_role("link", name="overview").click()
        await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
        await expect(page.locator("#first-steps")).to_have_count(0)
        await expect(page.get_by_role("row", name="denizen discord").get_by_text("listening")).to_be_visible()

        # The server that was set up takes part, without a restart.
        discord.world.say(sim.ana, sim.general, f"{sim.ada.mention} ahoy")
        await discord.until(lambda: "Ahoy, Ana." in sim.general.texts)
    assert "sk-the-right-key-1234" not in server.running.err.text + home.config.read_text()
    assert sim.ada.token not in server.running.err.text + home.config.read_text()
    assert (home.folder / "agents" / "scribe" / "IDENTITY.md").read_text() == "You take notes of the harbour.\n"


async def test_the_benchmark_of_pages_signs_up_and_comes_to_the_chat(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.configure("http://127.0.0.1:9")
    server = await to_thread.run_sync(home.serve)
    with server:
        async with open_site(server.url) as site, site.page() as page:
            await page.goto(site.url)
            await expect(page.locator("#agent option").first).to_be_attached()

"""The pages about people and communities in a browser: memories, the archive, and a server owner's own server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import BrowserContext, Page, expect

from denizen.domain.ids import AgentName
from denizen.domain.memory import Memory, MemoryOrigin
from denizen.domain.user import IdentityProfile
from denizen.engine.users.credentials import Browser
from denizen.web.http.auth import LOGIN_COOKIE
from tests.clock import NOON
from tests.memory_channel import MemoryChannel
from tests.memory_platform import MemoryPlatform
from tests.timing import HANG_LIMIT_S
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import DESKTOP, PHONE, open_browser
from tests.web.people import add_user
from tests.web_fixture import WebFixture, open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)

BEA = "21"
PAGES = (
    *(
        "/admin/memory",
        "/admin/memory/mem_1",
        "/admin/archive?person=Bea&q=door",
        f"/admin/archive/forget?person={BEA}",
    ),
    *("/guilds", "/guilds/1"),
)


@asynccontextmanager
async def open_community() -> AsyncGenerator[WebFixture]:
    """Olga owns this Denizen, and manages Harbour on Discord, where she is Bea."""
    async with open_web() as web:
        platform = MemoryPlatform()
        account = MemoryChannel(platform, AgentName("denizen"))
        platform.add_person(BEA, "Bea")
        platform.set_managers([BEA])
        general = platform.add_room("general", room_id="71")
        platform.write(general, BEA, "Which door is open?")
        await web.mirror.rooms([general])
        await web.mirror.keep(platform.list_posts(general.id))
        web.channels.add(account)
        key = f"platform_user:discord:{BEA}"
        memory = Memory("mem_1", AgentName("denizen"), key, "Bea likes tea.", MemoryOrigin("discord", "71"), key, NOON)
        async with web.store.work() as work:
            await work.memories.add(memory)
        profile = IdentityProfile(provider="discord", site="Discord", subject=BEA, login="b", name="Bea", email="")
        await web.users.registration.link(profile, await add_user(web, "olga"))
        yield web


async def sign_in(web: WebFixture, browser: BrowserContext, url: str) -> Page:
    [olga] = await web.users.accounts.list_users()
    token = await web.users.credentials.open(olga, Browser("Chromium", "127.0.0.1"))
    await browser.add_cookies([{"name": LOGIN_COOKIE, "value": token, "url": url}])
    return await browser.new_page()


async def test_memories_are_mended_people_forgotten_and_a_server_set_up_by_clicks() -> None:
    async with open_community() as web, web.serve() as url, open_browser(viewport=DESKTOP) as browser:
        page = await sign_in(web, browser, url)
        page.on("dialog", lambda dialog: dialog.accept())
        await page.goto(f"{url}/admin/memory")
        await page.get_by_role("link", name="Bea likes tea.").click()
        await page.get_by_label("What is remembered").fill("Bea likes coffee.")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("The memory is changed.")).to_be_visible()
        await page.get_by_role("link", name="Bea likes coffee.").click()
        await page.get_by_role("button", name="Forget").click()
        await expect(page.get_by_text("Nothing is remembered yet.")).to_be_visible()
        await page.get_by_role("link", name="Your servers").click()
        await page.get_by_role("link", name="Harbour").click()
        await page.get_by_label("#general").check()
        await page.get_by_label("Tools that are not used here").fill("weather")
        await page.get_by_label("US dollars for a day").fill("2.50")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("It is set, and holds from now on.")).to_be_visible()
        await expect(page.get_by_label("#general")).to_be_checked()
        await page.goto(f"{url}/admin/archive")
        await page.get_by_label("As whom").fill("Bea")
        await page.get_by_label("Words").fill("door")
        await page.get_by_role("button", name="Search").click()
        await expect(page.get_by_text("Which door is open?")).to_be_visible()
        await page.get_by_role("button", name="Show what would go").click()
        await page.get_by_label("The id of this person").fill(BEA)
        await page.get_by_role("button", name="Forget this person").click()
        await expect(page.get_by_text(f"Forgotten: {BEA}, with 1 posts.")).to_be_visible()


@pytest.mark.parametrize(("viewport", "is_dark"), [(PHONE, False), (DESKTOP, True)])
async def test_the_pages_are_accessible_and_fit_on_a_phone_and_in_the_dark(viewport: object, is_dark: bool) -> None:
    async with (
        open_community() as web,
        web.serve() as url,
        open_browser(viewport=viewport, is_dark=is_dark) as browser,  # pyright: ignore[reportArgumentType]
    ):
        page = await sign_in(web, browser, url)
        for path in PAGES:
            await page.goto(f"{url}{path}")
            assert (path, await find_violations(page)) == (path, [])
            width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert (path, await page.evaluate(width)) == (path, 0)

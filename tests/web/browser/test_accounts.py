"""Sign-up, sign-in and settings in a browser: as people see and type them, on a phone, and by auditors' rules."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from denizen.app.users import read_admins
from denizen.domain.principal import RoleName
from denizen.engine.users.credentials import UserPolicy
from tests.timing import HANG_LIMIT_S
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import PHONE, open_browser
from tests.web.people import OPERATOR, PASSWORD
from tests.web_fixture import UserRegistration, make_hello_model, open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)


async def sign_up(page: Page, name: str) -> None:
    await page.get_by_label("E-mail").fill(f"{name}@example.org")
    await page.get_by_label("Name").fill(name.title())
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Make the account").click()


@pytest.mark.proves("S-user-login", "S-user-settings", "S-user-api-keys")
async def test_somebody_signs_up_changes_settings_and_signs_in_again() -> None:
    async with open_web(make_hello_model()) as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await page.goto(f"{url}/settings")
        await page.get_by_role("link", name="Make the first account").click()
        await sign_up(page, "ann")
        await expect(page).to_have_url(f"{url}/")
        await expect(page.locator("#agent option").first).to_be_attached()  # the page is ready
        await page.get_by_label("Message", exact=True).fill("Hi")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Hello.")).to_be_visible()

        await page.get_by_role("link", name="Settings").click()
        await page.get_by_label("Name of a new key").fill("laptop")
        await page.locator("#key-password").fill(PASSWORD)
        await page.get_by_role("button", name="Make a key").click()
        await expect(page.get_by_role("status").get_by_text(re.compile("dz_"))).to_be_visible()
        await page.get_by_role("button", name="Revoke laptop").click()
        await expect(page.get_by_role("button", name="Revoke laptop")).to_have_count(0)

        await page.get_by_role("button", name=re.compile("Sign out")).click()
        await expect(page).to_have_url(f"{url}/login")
        await page.goto(f"{url}/settings")
        await page.get_by_label("E-mail").fill("ann@example.org")
        await page.get_by_label("Password").fill(PASSWORD)
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(f"{url}/settings")


async def test_all_of_it_works_without_scripts() -> None:
    async with open_web() as web, web.serve() as url, open_browser() as browser:
        assert browser.browser is not None
        plain = await browser.browser.new_context(java_script_enabled=False)
        page = await plain.new_page()
        await page.goto(f"{url}/sign-up")
        await sign_up(page, "ann")
        await page.goto(f"{url}/settings")
        await page.get_by_label("Name", exact=True).fill("Ann B.")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_label("Name", exact=True)).to_have_value("Ann B.")
        await page.get_by_label(re.compile("to delete the account")).fill("ann@example.org")
        await page.locator("#delete-password").fill(PASSWORD)
        await page.get_by_role("button", name="Delete the account").click()
        await expect(page).to_have_url(f"{url}/")
        await plain.close()
        assert not await web.users.credentials.any_user()


@pytest.mark.parametrize("is_dark", [False, True])
async def test_the_pages_break_no_rule_of_accessibility_and_fit_a_phone(is_dark: bool) -> None:
    registration = UserRegistration(UserPolicy(is_open=True, admins=read_admins(["octo"])))
    async with (
        open_web(registration=registration) as web,
        web.serve() as url,
        open_browser(viewport=PHONE, is_dark=is_dark) as browser,
    ):
        page = await browser.new_page()

        async def look(name: str) -> None:
            assert await find_violations(page) == [], name
            width = await page.evaluate("document.documentElement.scrollWidth")
            assert width <= PHONE["width"], name

        await page.goto(f"{url}/sign-up")
        await look("sign-up")
        await sign_up(page, "ann")
        await page.goto(f"{url}/settings")
        await page.get_by_label("Name of a new key").fill("laptop")
        await page.get_by_role("button", name="Make a key").click()
        await look("settings")
        await browser.clear_cookies()
        await page.goto(f"{url}/login")
        await page.get_by_label("E-mail").fill("eve@example.org")
        await page.get_by_label("Password").fill("no")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_be_visible()
        await look("sign-in")
        text, _ = await web.users.registration.invite(OPERATOR, role=RoleName.MEMBER)
        await page.goto(f"{url}/sign-up?invite={text}")
        await look("invitation")

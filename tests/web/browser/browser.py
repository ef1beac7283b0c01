"""A headless Chromium for tests of the pages, driven as people do: by what they see, click and type."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import BrowserContext, Page, ViewportSize, async_playwright

from tests.timing import HANG_LIMIT_S

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PHONE: ViewportSize = {"width": 390, "height": 844}
DESKTOP: ViewportSize = {"width": 1280, "height": 800}


def find_chromium() -> str:
    """Returns the path of a Chromium. Skips the test where there is none, unless the tests must have one."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        reason = "no Chromium is installed: `scripts/browser` installs one"
        if os.environ.get("DENIZEN_TESTS_NEED_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@asynccontextmanager
async def open_browser(
    *, viewport: ViewportSize = DESKTOP, is_dark: bool = False, is_touch: bool = False
) -> AsyncGenerator[BrowserContext]:
    """A fresh profile; `is_touch` for a phone without a keyboard. A page that logs an error or breaks the policy
    for scripts fails the test.
    """
    path = find_chromium()
    faults: list[str] = []
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path, args=_QUIET, chromium_sandbox=False)
        context = await browser.new_context(
            viewport=viewport, color_scheme="dark" if is_dark else "light", has_touch=is_touch, is_mobile=is_touch
        )
        context.set_default_timeout(HANG_LIMIT_S * 1000)
        context.on("page", lambda page: _watch(page, faults))
        yield context
        await browser.close()
    assert faults == []


def _watch(page: Page, faults: list[str]) -> None:
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if "Content Security Policy" in said.text else None)

"""Chromium by Playwright, behind a proxy that lets pages reach the allowed origins only. Loaded with the first page."""

from denizen.adapters.browser.chromium import ChromiumBrowser

__all__ = ["ChromiumBrowser"]

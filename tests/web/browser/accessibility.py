"""Accessibility by axe-core, the rules that auditors use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.async_api import Page

from tests.npm_packages import install_packages

_LOCK = Path(__file__).parents[1] / "npm"


async def find_violations(page: Page) -> list[str]:
    """Returns the rules that the page breaks, each with the first element that breaks it."""
    script = (install_packages(_LOCK) / "axe-core" / "axe.min.js").read_text()
    await page.evaluate(script)
    found: dict[str, Any] = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]]

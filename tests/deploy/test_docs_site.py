"""`make docs-site` builds a folder for each version, and pages that lead nowhere leave the site as it was."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page

from scripts.docs_site import SiteError, build_version, list_versions, write_index
from tests.web.browser.browser import open_browser

ROOT = Path(__file__).parents[2]


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A checkout of what a site is made of, with few pages."""
    root = tmp_path / "checkout"
    for folder in ("docs/tutorial", "docs/how-to", "docs/explanation", "docs/reference", "docs/adr"):
        (root / folder).mkdir(parents=True)
        (root / folder / "page.md").write_text(f"# About {folder}\n\nA heron stands here.\n")
    (root / "README.md").write_text("# Denizen\n\n[A page](docs/how-to/page.md), [code](mkdocs.yml)\n")
    nav = "nav:\n  - Start: index.md\n  - Tutorial: [tutorial/page.md]\n"
    nav += "".join(f"  - {name}: {name}\n" for name in ("how-to", "explanation", "reference", "adr"))
    settings = (ROOT / "mkdocs.yml").read_text().partition("nav:\n")[0]
    (root / "mkdocs.yml").write_text(settings + nav)
    (root / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "site_links.py", root / "scripts")
    return root


@contextmanager
def serve_files(folder: Path) -> Generator[str]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


async def search(page: Page, words: str) -> None:
    """Types them once the search is ready, as its field says."""
    await page.locator("input[name=query]").click()
    await page.get_by_text("Type to start searching").wait_for()
    await page.keyboard.type(words)


@pytest.mark.anyio
async def test_people_choose_a_version_and_search_in_it(pages: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    build_version(pages, site, "0.10.0")
    (pages / "docs" / "how-to" / "page.md").write_text("# Old page\n\nA cormorant stood here.\n")
    build_version(pages, site, "0.9.0")
    assert json.loads((site / "versions.json").read_text()) == [
        {"version": "0.10.0", "title": "0.10.0", "aliases": ["latest"]},
        {"version": "0.9.0", "title": "0.9.0", "aliases": []},
    ]
    with serve_files(site) as url:
        async with open_browser() as browser:
            page = await browser.new_page()
            await page.goto(url)
            await page.wait_for_url("**/latest/index.html")
            await page.locator(".md-version").hover()
            await page.locator(".md-version__link", has_text="0.9.0").click()
            await page.wait_for_url("**/0.9.0/**")
            await search(page, "cormorant")
            await page.locator(".md-search-result__link", has_text="Old page").click()
            await page.wait_for_url("**/0.9.0/how-to/page.html**")
            await page.goto(f"{url}/latest/how-to/page.html")
            await search(page, "cormorant")
            await page.get_by_text("No matching documents").wait_for()


def test_a_link_that_leads_nowhere_leaves_the_site_as_it_was(pages: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    build_version(pages, site, "1.0.0")
    page = pages / "docs" / "how-to" / "page.md"
    for link in ("gone.md", "../adr/page.md#gone", "../../src/gone.py"):
        page.write_text(f"# A page\n\n[link]({link})\n")
        with pytest.raises(SiteError, match="gone"):
            build_version(pages, site, "1.0.0")
    assert "A heron" in (site / "1.0.0" / "how-to" / "page.html").read_text()
    assert {each.name for each in site.iterdir()} == {"1.0.0", "latest", "index.html", "versions.json"}


def test_the_latest_is_the_newest_version_and_never_a_branch_beside_one(tmp_path: Path) -> None:
    for name in ("main", "0.9.0", "0.10.0", "latest"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sitemap.xml").write_text(name)
    assert list_versions(tmp_path) == ["0.10.0", "0.9.0", "main"]
    write_index(tmp_path)
    assert (tmp_path / "latest" / "sitemap.xml").read_text() == "0.10.0"


@pytest.mark.parametrize("name", ["../elsewhere", "latest", ".git", ""])
def test_a_name_that_is_no_folder_of_the_site_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="cannot be the name of a version"):
        build_version(ROOT, tmp_path, name)

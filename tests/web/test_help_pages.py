"""The documentation inside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from denizen.web.pages.help import load_manual
from tests.web.test_source_pages import Browser
from tests.web_fixture import ADA, ANN, open_web

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.proves("T-ui-help", "S-admin-docs")
async def test_everybody_who_is_signed_in_reads_the_documentation_inside() -> None:
    async with open_web(keys=[ADA, ANN]) as web, web.client() as client:
        for key in ("key-of-ann", "key-of-ada"):
            reader = Browser(client, key)
            listed = set(re.findall(r'href="/help/([\w-]+)"', await reader.read("/help")))
            written = {
                path.stem for folder in ("tutorial", "how-to", "reference") for path in (DOCS / folder).glob("*.md")
            }
            assert listed == written - {"requirements"}
            page = await reader.read("/help/add-documents")
            assert ("YouTube channels" in page, "<h1>" in page) == (True, True)
        found = re.findall(
            r'href="/help/([\w-]+)"', await Browser(client, "key-of-ann").read("/help?q=postgres+max_connections")
        )
        assert 0 < len(found) < len(written)
        assert "No page has all of these words" in await Browser(client, "key-of-ann").read("/help?q=xyzzy")
        assert 'href="/help"' in await Browser(client, "key-of-ada").read("/admin")
        gone = await client.get("/help/..%2fpage", headers={"x-api-key": "key-of-ann"})
        assert gone.status_code == 404
        assert (await client.get("/help")).status_code == 303


def test_links_of_the_manual_lead_to_pages_that_are_there() -> None:
    pages = [page for part in load_manual() for page in part.pages]
    names = {page.name for page in pages}
    assert len(names) == len(pages)
    links = [(page.name, target) for page in pages for target in re.findall(r"\]\(/help/([\w-]+)", page.text)]
    assert links
    assert [link for link in links if link[1] not in names] == []
    assert [page.name for page in pages if re.search(r"\]\((?!/help/|#|https?://)", page.text)] == []

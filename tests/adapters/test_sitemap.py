"""Web sites as sources: what their sitemaps list is read, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from denizen.adapters.sitemap import MAX_PAGES
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, write
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

SITE = "https://docs.example"
MAP = f"{SITE}/sitemap.xml"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[KnowledgeFixture]:
    async with KnowledgeFixture(tmp_path) as engine:
        yield engine


def listing(*urls: str, changed: str = "2026-11-01", kind: str = "url") -> str:
    date = f"<lastmod>{changed}</lastmod>" if changed else ""
    return f"<x>{''.join(f'<{kind}><loc> {url} </loc>{date}</{kind}>' for url in urls)}</x>"


async def test_the_pages_of_a_site_are_read_by_their_paths(engine: KnowledgeFixture) -> None:
    engine.web.put(MAP, listing(f"{SITE}/deep.xml", "https://evil.example/x.xml", kind="sitemap"))
    engine.web.put(
        f"{SITE}/deep.xml",
        listing(
            f"{SITE}/",
            f"{SITE}/guide/a%20b.html",
            f"{SITE}/guide/c/?x=1&amp;y=2",
            f"{SITE}/..%2f..%2fetc/x",
            "https://other.example/no",
            "http://docs.example/no",
            "ftp://docs.example/no",
            f"{SITE}/.git/config",
            f"{SITE}/gone",
            f"{SITE}/data.csv",
        ),
    )
    engine.web.put(f"{SITE}/", "home")
    engine.web.put(f"{SITE}/guide/a%20b.html", "ab")
    engine.web.put(f"{SITE}/guide/c/?x=1&y=2", "c")
    engine.web.put(f"{SITE}/gone", "not found", status=404)
    engine.web.put(f"{SITE}/data.csv", "1,2", kind="text/csv")
    await engine.add(MAP, "site")
    run = await engine.run()
    assert run.failed == {}
    assert run.left_out == {"site": "2 left out: gone.html (HTTP 404); data.csv.html (text/csv instead of HTML)"}
    assert engine.files() == {
        "docs/site/guide/a b.html.md": "AB",
        "docs/site/guide/c.html.md": "C",
        "docs/site/index.html.md": "HOME",
    }
    assert not any("evil" in url or "other" in url or url.startswith("http:") for url in engine.web.asked)


async def test_only_pages_below_the_content_path_are_read(engine: KnowledgeFixture) -> None:
    engine.web.put(MAP, listing(f"{SITE}/docs", f"{SITE}/docs/a", f"{SITE}/docs2/b", f"{SITE}/blog"))
    for page in ("/docs", "/docs/a", "/docs2/b", "/blog"):
        engine.web.put(f"{SITE}{page}", "x")
    await engine.add(MAP, "site", content_path="docs")
    await engine.run()
    assert sorted(engine.files()) == ["docs/site/a.html.md", "docs/site/index.html.md"]


async def test_a_site_whose_dates_are_the_same_is_not_read_again_and_one_without_dates_daily(
    engine: KnowledgeFixture,
) -> None:
    for changed, after_a_day in (("2026-11-01", False), ("", True)):
        engine.web.put(MAP, listing(f"{SITE}/a", changed=changed))
        engine.web.put(f"{SITE}/a", "first")
        if changed:
            await engine.add(MAP, "site")
        await engine.run()
        engine.web.asked.clear()
        await engine.run()
        assert engine.web.asked == [MAP]
        engine.clock.advance(days=1)
        await engine.run()
        assert (f"{SITE}/a" in engine.web.asked) is after_a_day
    engine.web.put(MAP, listing(f"{SITE}/a", changed="2026-12-01"))
    engine.web.put(f"{SITE}/a", "second")
    await engine.run()
    assert engine.files() == {"docs/site/a.html.md": "SECOND"}


async def test_what_was_read_stays_when_the_site_is_away_or_empty(engine: KnowledgeFixture) -> None:
    engine.web.put(MAP, listing(f"{SITE}/a", f"{SITE}/b", f"{SITE}/c"))
    for page in "abc":
        engine.web.put(f"{SITE}/{page}", page)
    await engine.add(MAP, "site")
    await engine.run()
    before = engine.files()
    engine.web.put(MAP, listing(f"{SITE}/a", f"{SITE}/b", f"{SITE}/c", changed="2026-12-01"))
    for page in "ab":
        del engine.web.pages[f"{SITE}/{page}"]
    assert "Most pages" in (await engine.run()).failed["site"]
    for text, status, said in (("<x/>", 200, "no page"), ("", 404, "no such sitemap"), ("", 403, "may not be read")):
        engine.web.put(MAP, text, status=status)
        assert said in (await engine.run()).failed["site"]
    engine.web.put(MAP, "", status=503)
    assert "HTTP 503" in (await engine.run()).failed["site"]
    assert engine.files() == before


@pytest.mark.parametrize("text", ["<url>" * 200_000, "<url " * 200_000, f"<url><loc>{' ' * 200_000}x</loc></url>"])
async def test_a_hostile_sitemap_takes_no_longer_than_its_length(engine: KnowledgeFixture, text: str) -> None:
    engine.web.put(MAP, text + listing(f"{SITE}/a"))
    engine.web.put(f"{SITE}/a", "found")
    await engine.add(MAP, "site")
    with anyio.fail_after(HANG_LIMIT_S):
        await engine.run()
    assert engine.files() == {"docs/site/a.html.md": "FOUND"}


async def test_sitemaps_that_list_one_another_again_and_again_are_read_once(engine: KnowledgeFixture) -> None:
    more = [f"{SITE}/deep.xml"] * 500
    engine.web.put(MAP, listing(*more, MAP, kind="sitemap") + listing(f"{SITE}/a"))
    engine.web.put(f"{SITE}/deep.xml", listing(*more, MAP, kind="sitemap"))
    engine.web.put(f"{SITE}/a", "a")
    await engine.add(MAP, "site")
    await engine.run()
    assert engine.web.asked.count(f"{SITE}/deep.xml") <= 2  # once to look, once to read


async def test_addresses_in_cdata_and_with_prefixes_are_read(engine: KnowledgeFixture) -> None:
    engine.web.put(
        MAP,
        f"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><s:url><s:loc><![CDATA[ {SITE}/a ]]></s:loc>"
        f"<i:image><i:loc>{SITE}/no.png</i:loc></i:image></s:url><url><loc>{SITE}/&e;</loc></url>",
    )
    engine.web.put(f"{SITE}/a", "a")
    engine.web.put(f"{SITE}/&e;", "b")
    await engine.add(MAP, "site")
    await engine.run()
    assert engine.files() == {"docs/site/a.html.md": "A", "docs/site/&e;.html.md": "B"}


async def test_names_that_no_disk_takes_are_left_out_and_hold_up_no_other_source(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    long = "x" * 250  # with .html it fits, with what the text's name ends in it does not
    wide = "/".join(["𝒳" * 60] * 16)  # few characters, many bytes
    engine.web.put(MAP, listing(f"{SITE}/{long}", f"{SITE}/{wide}", f"{SITE}/a"))
    for page in (long, wide, "a"):
        engine.web.put(f"{SITE}/{page}", "a")
    await engine.add(write(tmp_path / "notes", {"a.md": "mine"}), "notes")
    await engine.add(MAP, "site")
    run = await engine.run()
    assert run.failed == {}
    assert engine.files() == {"docs/site/a.html.md": "A", "docs/notes/a.md": "mine"}


async def test_an_address_with_dots_is_the_one_that_a_browser_makes_of_it(engine: KnowledgeFixture) -> None:
    page = f"{SITE}/docs/../README.html"
    engine.web.put(MAP, listing(page, f"{SITE}/docs/..%2fetc"))
    engine.web.put(page, "read me")
    await engine.add(MAP, "site")
    await engine.run()
    assert engine.files() == {"docs/site/README.html.md": "READ ME"}


async def test_pages_that_do_not_answer_or_are_too_many_are_named_with_the_reason(engine: KnowledgeFixture) -> None:
    urls = [f"{SITE}/{number:04}" for number in range(MAX_PAGES + 2)]
    engine.web.put(MAP, listing(*urls))
    for url in urls[1:]:
        engine.web.put(url, "x")
    await engine.add(MAP, "site")
    run = await engine.run()
    assert run.left_out["site"] == (
        "3 left out: 0000.html (Connection refused); 1000.html (behind the first 1000 pages); "
        "1001.html (behind the first 1000 pages)"
    )
    assert len(engine.files()) == MAX_PAGES - 1

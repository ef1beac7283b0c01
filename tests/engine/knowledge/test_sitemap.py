"""Web sites as sources: what their sitemaps list is read, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from tests.engine.knowledge.house import House, write
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

SITE = "https://docs.example"
MAP = f"{SITE}/sitemap.xml"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path)
    await house.durable.start()
    yield house
    await house.durable.aclose()


def listing(*urls: str, changed: str = "2026-11-01", kind: str = "url") -> str:
    date = f"<lastmod>{changed}</lastmod>" if changed else ""
    return f"<x>{''.join(f'<{kind}><loc> {url} </loc>{date}</{kind}>' for url in urls)}</x>"


async def test_the_pages_of_a_site_are_read_by_their_paths(house: House) -> None:
    house.web.put(MAP, listing(f"{SITE}/deep.xml", "https://evil.example/x.xml", kind="sitemap"))
    house.web.put(
        f"{SITE}/deep.xml",
        listing(
            f"{SITE}/", f"{SITE}/guide/a%20b.html", f"{SITE}/guide/c/?x=1&amp;y=2", f"{SITE}/..%2f..%2fetc/x",
            "https://other.example/no", "http://docs.example/no", "ftp://docs.example/no", f"{SITE}/.git/config",
            f"{SITE}/gone", f"{SITE}/data.csv",
        ),
    )  # fmt: skip
    house.web.put(f"{SITE}/", "home")
    house.web.put(f"{SITE}/guide/a%20b.html", "ab")
    house.web.put(f"{SITE}/guide/c/?x=1&y=2", "c")
    house.web.put(f"{SITE}/gone", "not found", status=404)
    house.web.put(f"{SITE}/data.csv", "1,2", kind="text/csv")
    await house.add(MAP, "site")
    run = await house.run()
    assert run.failed == {}
    assert house.files() == {
        "docs/site/guide/a b.html.md": "AB", "docs/site/guide/c.html.md": "C", "docs/site/index.html.md": "HOME",
    }  # fmt: skip
    assert not any("evil" in url or "other" in url or url.startswith("http:") for url in house.web.asked)


async def test_only_pages_below_the_content_path_are_read(house: House) -> None:
    house.web.put(MAP, listing(f"{SITE}/docs", f"{SITE}/docs/a", f"{SITE}/docs2/b", f"{SITE}/blog"))
    for page in ("/docs", "/docs/a", "/docs2/b", "/blog"):
        house.web.put(f"{SITE}{page}", "x")
    await house.add(MAP, "site", content_path="docs")
    await house.run()
    assert sorted(house.files()) == ["docs/site/a.html.md", "docs/site/index.html.md"]


async def test_a_site_whose_dates_are_the_same_is_not_read_again_and_one_without_dates_daily(house: House) -> None:
    for changed, after_a_day in (("2026-11-01", False), ("", True)):
        house.web.put(MAP, listing(f"{SITE}/a", changed=changed))
        house.web.put(f"{SITE}/a", "first")
        if changed:
            await house.add(MAP, "site")
        await house.run()
        house.web.asked.clear()
        await house.run()
        assert house.web.asked == [MAP]
        house.clock.time += timedelta(days=1)
        await house.run()
        assert (f"{SITE}/a" in house.web.asked) is after_a_day
    house.web.put(MAP, listing(f"{SITE}/a", changed="2026-12-01"))
    house.web.put(f"{SITE}/a", "second")
    await house.run()
    assert house.files() == {"docs/site/a.html.md": "SECOND"}


async def test_what_was_read_stays_when_the_site_is_away_or_empty(house: House) -> None:
    house.web.put(MAP, listing(f"{SITE}/a", f"{SITE}/b", f"{SITE}/c"))
    for page in "abc":
        house.web.put(f"{SITE}/{page}", page)
    await house.add(MAP, "site")
    await house.run()
    before = house.files()
    house.web.put(MAP, listing(f"{SITE}/a", f"{SITE}/b", f"{SITE}/c", changed="2026-12-01"))
    for page in "ab":
        del house.web.pages[f"{SITE}/{page}"]
    assert "Most pages" in (await house.run()).failed["site"]
    for text, status, said in (("<x/>", 200, "no page"), ("", 404, "no such sitemap"), ("", 403, "may not be read")):
        house.web.put(MAP, text, status=status)
        assert said in (await house.run()).failed["site"]
    house.web.put(MAP, "", status=503)
    assert "HTTP 503" in (await house.run()).failed["site"]
    assert house.files() == before


@pytest.mark.parametrize("text", ["<url>" * 200_000, "<url " * 200_000, f"<url><loc>{' ' * 200_000}x</loc></url>"])
async def test_a_hostile_sitemap_takes_no_longer_than_its_length(house: House, text: str) -> None:
    house.web.put(MAP, text + listing(f"{SITE}/a"))
    house.web.put(f"{SITE}/a", "found")
    await house.add(MAP, "site")
    with anyio.fail_after(HANG_LIMIT_S):
        await house.run()
    assert house.files() == {"docs/site/a.html.md": "FOUND"}


async def test_sitemaps_that_list_one_another_again_and_again_are_read_once(house: House) -> None:
    more = [f"{SITE}/deep.xml"] * 500
    house.web.put(MAP, listing(*more, MAP, kind="sitemap") + listing(f"{SITE}/a"))
    house.web.put(f"{SITE}/deep.xml", listing(*more, MAP, kind="sitemap"))
    house.web.put(f"{SITE}/a", "a")
    await house.add(MAP, "site")
    await house.run()
    assert house.web.asked.count(f"{SITE}/deep.xml") <= 2  # once to look, once to read


async def test_addresses_in_cdata_and_with_prefixes_are_read(house: House) -> None:
    house.web.put(
        MAP,
        f"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><s:url><s:loc><![CDATA[ {SITE}/a ]]></s:loc>"
        f"<i:image><i:loc>{SITE}/no.png</i:loc></i:image></s:url><url><loc>{SITE}/&e;</loc></url>",
    )
    house.web.put(f"{SITE}/a", "a")
    house.web.put(f"{SITE}/&e;", "b")
    await house.add(MAP, "site")
    await house.run()
    assert house.files() == {"docs/site/a.html.md": "A", "docs/site/&e;.html.md": "B"}


async def test_names_that_no_disk_takes_are_left_out_and_hold_up_no_other_source(house: House, tmp_path: Path) -> None:
    long = "x" * 250  # with .html it fits, with what the text's name ends in it does not
    wide = "/".join(["𝒳" * 60] * 16)  # few characters, many bytes
    house.web.put(MAP, listing(f"{SITE}/{long}", f"{SITE}/{wide}", f"{SITE}/a"))
    for page in (long, wide, "a"):
        house.web.put(f"{SITE}/{page}", "a")
    await house.add(write(tmp_path / "notes", {"a.md": "mine"}), "notes")
    await house.add(MAP, "site")
    run = await house.run()
    assert run.failed == {}
    assert house.files() == {"docs/site/a.html.md": "A", "docs/notes/a.md": "mine"}

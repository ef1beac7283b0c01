"""The pages of the sources: list, filter, reminder, syncs, adding by hand, and changing one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import anyio
import httpx2
import pytest

from denizen.domain.source import SourceKind
from tests.engine.knowledge.knowledge_fixture import give_way, write
from tests.timing import HANG_LIMIT_S
from tests.web.knowledge_web_fixture import KnowledgeWebFixture, SlowReader, open_knowledge_web

pytestmark = pytest.mark.anyio


class Browser:
    """Reads pages and sends forms as somebody with a key."""

    def __init__(self, client: httpx2.AsyncClient, key: str) -> None:
        self._client = client
        self._headers = {"x-api-key": key}

    async def read(self, path: str) -> str:
        answer = await self._client.get(path, headers=self._headers)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def send(self, path: str, **fields: str) -> httpx2.Response:
        return await self._client.post(path, headers=self._headers, data=fields)


def names(page: str) -> list[str]:
    """The ids of the sources in a list, in its order."""
    return re.findall(r'<a href="/admin/sources/([^"]+)"', page)


async def ended(server: KnowledgeWebFixture) -> None:
    """Waits until the newest sync has ended."""
    with anyio.fail_after(HANG_LIMIT_S):
        while not any(run.ended_at for run in (await server.engine.sync.list_runs())[:1]):
            await give_way()


@pytest.mark.proves("S-admin-sources")
async def test_the_list_shows_five_sources_a_page_and_filters_them(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server, server.web.client() as client:
        ada = Browser(client, "key-of-ada")
        assert "Nothing to read yet" in await ada.read("/admin/sources")
        for number in range(6):
            await server.engine.add(write(tmp_path / f"notes{number}", {"a.md": "A"}), label=f"Notes {number}")
        await server.engine.add("lab/handbook")
        first, second = await ada.read("/admin/sources"), await ada.read("/admin/sources?page=2")
        assert names(first) == ["handbook", "notes0", "notes1", "notes2", "notes3"]
        assert names(second) == ["notes4", "notes5"]
        assert ('href="?page=2"' in first, 'href="?page=1"' in second) == (True, True)
        assert names(await ada.read("/admin/sources?kind=git")) == ["handbook"]
        assert names(await ada.read("/admin/sources?q=notes5")) == ["notes5"]
        assert names(await ada.read("/admin/sources?q=lab/hand&page=9")) == ["handbook"]
        assert "None of the 7 sources fits the filter" in await ada.read("/admin/sources?q=unheard")


@pytest.mark.proves("S-admin-sources")
async def test_people_are_reminded_when_the_last_sync_is_older_than_seven_days(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server, server.web.client() as client:
        ada = Browser(client, "key-of-ada")
        await server.engine.add(write(tmp_path / "notes", {"a.md": "A"}))
        assert "Nothing was read yet" in await ada.read("/admin/sources")
        await server.engine.sync.wait(await server.engine.sync.start())
        clock = server.web.clock
        for days, is_reminded in ((7.0, False), (0.01, True)):
            clock.advance(days=days)
            page = await ada.read("/admin/sources")
            assert ("more than 7 days ago" in page) is is_reminded, days


async def test_a_sync_is_started_on_the_page_and_shows_how_far_it_is(tmp_path: Path) -> None:
    reader = SlowReader()
    async with open_knowledge_web(tmp_path, {SourceKind.FOLDER: reader}) as server, server.web.client() as client:
        ada = Browser(client, "key-of-ada")
        await server.engine.add(write(tmp_path / "notes", {"a.md": "A"}))
        answer = await ada.send("/admin/sync")
        assert (answer.status_code, answer.headers["location"]) == (303, "/admin/sources?done=started")
        with anyio.fail_after(HANG_LIMIT_S):
            await reader.reached.wait()
        page = await ada.read("/admin/sources?done=started")
        assert ("The sync has begun." in page, "notes: looking" in page) == (True, True)
        reader.goes_on.set()
        await ended(server)
        page = await ada.read("/admin/sources")
        assert "1 read, 1 changed" in page
        assert (await ada.send("/admin/sync", source="gone")).status_code == 404


FORMS: Mapping[SourceKind, tuple[dict[str, str], dict[str, object]]] = {
    SourceKind.GIT: (
        {"location": "lab/a", "branch": "main", "content_path": "docs", "readme_only": "yes"},
        {"location": "https://github.com/lab/a.git", "branch": "main", "content_path": "docs", "readme_only": True},
    ),
    SourceKind.FOLDER: (
        {"location": "/srv/a", "content_path": "x", "output_path": "b", "sync_every_minutes": "30"},
        {"location": "/srv/a", "content_path": "x", "output_path": "b", "sync_every_minutes": 30, "readme_only": False},
    ),
    SourceKind.SITEMAP: (
        {"location": "https://a.example/map", "label": "A"},
        {"location": "https://a.example/map", "label": "A"},
    ),
    SourceKind.YOUTUBE: (
        {"location": "@ann", "max_videos": "7"},
        {"location": "https://www.youtube.com/@ann", "max_videos": 7},
    ),
    SourceKind.ARCHIVE: ({"location": "discord:12"}, {"location": "discord:12", "label": ""}),
}


@pytest.mark.proves("S-admin-new-source")
@pytest.mark.parametrize("kind", SourceKind)
async def test_a_source_of_each_kind_is_added_by_hand_with_the_fields_of_that_kind(
    kind: SourceKind, tmp_path: Path
) -> None:
    typed, kept = FORMS[kind]
    async with open_knowledge_web(tmp_path) as server, server.web.client() as client:
        olga = Browser(client, "key-of-olga")
        form = await olga.read(f"/admin/add-source?kind={kind}")
        offered = set(re.findall(r'<(?:input|select)[^>]* name="(\w+)"', form))
        assert offered >= typed.keys()
        assert ("branch" in offered, "max_videos" in offered) == (kind is SourceKind.GIT, kind is SourceKind.YOUTUBE)
        answer = await olga.send("/admin/add-source", kind=kind.value, id="one", **typed)
        assert (answer.status_code, answer.headers["location"]) == (303, "/admin/sources?done=added")
        source = (await server.engine.catalog.get("one")).source
        assert {name: getattr(source, name) for name in kept} == kept
        assert source.kind is kind
        shown = await olga.read("/admin/sources/one")
        assert source.location in shown


async def test_what_cannot_be_added_is_told_and_stays_typed(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server, server.web.client() as client:
        ada, ann = Browser(client, "key-of-ada"), Browser(client, "key-of-ann")
        answer = await ada.send("/admin/add-source", kind="git", location="lab/a", branch="no branch", label="<b>")
        assert answer.status_code == 400
        assert "is not the name of a branch" in answer.text
        assert ('value="no branch"' in answer.text, "&lt;b&gt;" in answer.text, "<b>" in answer.text) == (
            True,
            True,
            False,
        )
        answer = await ada.send("/admin/add-source", kind="youtube", location="@ann", max_videos="many")
        assert (answer.status_code, "is no whole number" in answer.text) == (400, True)
        refused = await ada.send("/admin/add-source", kind="folder", location="/etc")
        assert (refused.status_code, "Only an owner may name" in refused.text) == (403, True)
        assert (await ann.send("/admin/add-source", kind="git", location="lab/a")).status_code == 403
        assert await server.engine.catalog.list_known() == []


async def test_a_source_is_changed_and_removed_on_its_page(tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", {"a.md": "A", "more/b.md": "B", "more/c.md": "\0", "big.md": "x" * 9_000_000})
    async with open_knowledge_web(tmp_path) as server, server.web.client() as client:
        ada, olga = Browser(client, "key-of-ada"), Browser(client, "key-of-olga")
        await server.engine.add(notes, label="<i>Notes</i>")
        await server.engine.run()
        page = await ada.read("/admin/sources/notes")
        assert ("&lt;i&gt;Notes" in page, "<i>Notes" in page) == (True, False)
        assert ("Left out: " in page, "big.md" in page, "/api/sync/webhook/notes" in page) == (True, True, True)
        assert "left something out" in await ada.read("/admin/sources?state=partial")
        assert (await ada.send("/admin/sources/notes", location=str(notes), content_path="more")).status_code == 403
        wrong = await olga.send("/admin/sources/notes", location=str(notes), content_path="../up")
        assert (wrong.status_code, "cannot be the content path" in wrong.text) == (400, True)
        saved = await olga.send("/admin/sources/notes", location=str(notes), content_path="more", readme_only="yes")
        assert saved.headers["location"] == "/admin/sources/notes?done=changed"
        source = (await server.engine.catalog.get("notes")).source
        assert (source.content_path, source.readme_only, source.label) == ("more", True, "")
        gone = await ada.send("/admin/sources/notes/remove")
        assert gone.headers["location"] == "/admin/sources?done=removed"
        assert await server.engine.catalog.list_known() == []

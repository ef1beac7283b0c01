"""The consoles over documents: search, shell and snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.domain.snapshot import RemoteRepository
from tests.engine.knowledge.knowledge_fixture import write
from tests.web.full_web_fixture import open_full_web
from tests.web.knowledge_web_fixture import open_knowledge_web
from tests.web.test_source_pages import Browser, ended

pytestmark = pytest.mark.anyio


async def test_the_search_shows_each_passage_with_its_places_by_words_and_by_meaning(tmp_path: Path) -> None:
    files = {"harbour.md": "# Harbour\n\n<b>A berth</b> is ten euros.\n", "boats.md": "Vessels moor here.\n"}
    async with open_knowledge_web(tmp_path) as server, server.web.client() as client:
        ada = Browser(client, "key-of-ada")
        assert "There is no source yet" in await ada.read("/admin/search")
        await server.engine.add(write(tmp_path / "guide", files))
        await server.engine.run()
        await server.engine.indexing.catch_up()
        page = await ada.read("/admin/search?q=berth")
        assert "docs/guide/harbour.md:1-3" in page
        assert "words: place 1, 100 % of the question" in page
        assert ("&lt;b&gt;A berth" in page, "<b>A berth" in page, 'href="/admin/sources/guide"' in page) == (
            True,
            False,
            True,
        )
        assert "Nothing was found" in await ada.read("/admin/search?q=zeppelin")
        gone = await client.get("/admin/search?q=berth&source=gone", headers={"x-api-key": "key-of-ada"})
        assert (gone.status_code, "There is no source &#39;gone&#39;." in gone.text) == (404, True)


async def test_the_shell_runs_commands_one_a_line_and_tells_what_is_not_allowed(tmp_path: Path) -> None:
    async with open_full_web(tmp_path) as web, web.client() as client:
        ada = Browser(client, "key-of-ada")
        assert "For example" in await ada.read("/admin/shell")
        answer = await ada.send("/admin/shell", commands="ls <docs>\n\necho $HOME\n")
        assert answer.status_code == 200
        assert "$ ls &lt;docs&gt;" in answer.text
        assert ("<docs>" in answer.text, answer.text.count("not allowed")) == (False, 1)
        assert 'name="session" value="sess_1"' in answer.text
        many = await ada.send("/admin/shell", commands="ls\n" * 11)
        assert (many.status_code, "Write 1 to 10 commands" in many.text) == (400, True)
        unknown = await ada.send("/admin/shell", commands="ls", agent="nobody")
        assert (unknown.status_code, "There is no agent &#39;nobody&#39;." in unknown.text) == (404, True)


@pytest.mark.proves("S-admin-sandbox")
async def test_the_snapshots_page_shows_the_status_runs_a_sync_and_sets_the_remote(tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", {"a.md": "A"})
    async with open_knowledge_web(tmp_path) as server, server.web.client() as client:
        ada, olga = Browser(client, "key-of-ada"), Browser(client, "key-of-olga")
        await server.engine.add(notes)
        before = await ada.read("/admin/snapshots")
        assert ("a sync is needed" in before, "none: agents have no documents" in before) == (True, True)
        assert (await ada.send("/admin/snapshots/sync")).headers["location"] == "/admin/snapshots?done=started"
        await ended(server)
        status = await server.engine.snapshots.status()
        after = await ada.read("/admin/snapshots")
        assert ("up to date" in after, after.count(status.current)) == (True, 3)
        checked = await ada.send("/admin/snapshots/verify")
        assert checked.headers["location"] == "/admin/snapshots?done=fine"
        assert (await ada.send("/admin/snapshots/publish")).status_code == 303
        refused = await ada.send("/admin/snapshots/remote", repository=str(tmp_path / "remote"), branch="main")
        assert (refused.status_code, "Only an owner may name" in refused.text) == (403, True)
        wrong = await olga.send("/admin/snapshots/remote", repository="lab/docs", branch="no branch")
        assert (wrong.status_code, 'value="no branch"' in wrong.text) == (400, True)
        server.engine.clock.advance(minutes=1)
        saved = await olga.send("/admin/snapshots/remote", repository=str(tmp_path / "remote"), branch="docs")
        assert saved.headers["location"] == "/admin/snapshots?done=remote"
        assert server.engine.remote == RemoteRepository(str(tmp_path / "remote"), "docs")
        await ended(server)
        assert f'value="{tmp_path / "remote"}"' in await ada.read("/admin/snapshots")
        same = await olga.send("/admin/snapshots/remote", repository=str(tmp_path / "remote"), branch="docs")
        assert same.headers["location"] == "/admin/snapshots?done=same"


async def test_members_get_none_of_the_pages_about_documents(tmp_path: Path) -> None:
    async with open_full_web(tmp_path) as web, web.client() as client:
        for path in ("/admin/sources", "/admin/search", "/admin/shell", "/admin/snapshots", "/admin/import-sources"):
            answer = await client.get(path, headers={"x-api-key": "key-of-ann"})
            assert answer.status_code == 403, path

"""Sources, syncs and the snapshot over HTTP: who may do what, and what comes of it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from denizen.domain.snapshot import RemoteRepository
from denizen.domain.source import SourceKind, SyncRun
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.knowledge.index import DocumentIndexer
from denizen_sdk import ApiError
from denizen_sdk.knowledge import StartedSync
from tests.clock import NOON
from tests.engine.knowledge.knowledge_fixture import ThemeEmbedder, UnreliableReader, write
from tests.timing import HANG_LIMIT_S
from tests.web.knowledge_web_fixture import open_knowledge_web

pytestmark = pytest.mark.anyio


@pytest.mark.proves(
    "S-http-sources-get",
    "S-http-sources-post",
    "S-http-sources-id-put",
    "S-http-sources-id-delete",
    "S-http-sync-post",
    "S-http-sync-source-post",
    "S-http-snapshot-status-get",
    "S-http-snapshot-sync-post",
    "S-data-sources",
    "S29",
)
async def test_sources_are_added_read_changed_and_removed(tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", {"a.md": "A", "more/b.md": "B"})
    async with open_knowledge_web(tmp_path) as server:
        owner, admin = server.owner, server.admin
        assert await admin.ask("GET", "/api/sources") == (
            200,
            {"total": 0}
            | {kind: {"count": 0, "sources": []} for kind in ("git", "folder", "sitemap", "youtube", "archive")},
        )
        status, made = await owner.ask("POST", "/api/sources", location=str(notes), label="Notes")
        assert (status, made["id"], made["folder"], made["readme_only"]) == (201, "notes", "docs/notes", False)
        assert (made["max_videos"], made["created_at"], made["updated_at"]) == (50, *[NOON.isoformat()] * 2)
        _, before = await admin.ask("GET", "/api/snapshot/status")
        assert (before["needs_sync"], before["current"]) == (True, "")
        await owner.ask("POST", "/api/sources", location=str(write(tmp_path / "more", {"c.md": "C"})))
        _, listed = await server.member.ask("GET", "/api/sources")
        assert (listed["total"], listed["folder"]["count"], listed["git"]["count"]) == (2, 2, 0)
        run = await admin.sync()
        assert (run["status"], run["failed"], run["progress"]) == ("done", {}, {})
        assert run["sources"] == run["changed"] == ["more", "notes"]
        server.engine.clock.advance(hours=1)
        status, changed = await owner.ask("PUT", "/api/sources/notes", content_path="more")
        assert (status, changed["content_path"], changed["label"]) == (200, "more", "Notes")
        later = server.engine.clock.now().isoformat()
        assert (changed["created_at"], changed["updated_at"]) == (NOON.isoformat(), later)
        _, edited = await admin.ask("GET", "/api/snapshot/status")
        assert (edited["needs_sync"], edited["why"]) == (True, "The source 'notes' was changed since it was read.")
        write(notes, {"more/c.md": "C"})
        assert (await admin.sync("/api/sync/notes"))["sources"] == ["notes"]
        assert await owner.ask("DELETE", "/api/sources/more") == (204, None)
        await admin.sync(reset=True, sources=["notes"])
        _, listed = await server.member.ask("GET", "/api/sources")
        [row] = listed["folder"]["sources"]
        assert (listed["total"], listed["folder"]["count"], row["files"], row["documents"]) == (1, 1, 2, 2)
        _, after = await admin.ask("GET", "/api/snapshot/status")
        assert (after["needs_sync"], after["current"]) == (False, after["latest"])
        assert after["last_sync_at"] and after["latest_at"]
        assert await admin.ask("POST", "/api/snapshot/sync") == (200, {"current": after["current"]})
        assert await admin.ask("DELETE", "/api/sources/notes") == (204, None)
        assert (await admin.ask("DELETE", "/api/sources/notes"))[0] == 404
        assert (await admin.ask("GET", "/api/sources"))[1]["total"] == 0


async def test_a_field_that_nobody_reads_is_refused_with_the_one_that_was_meant(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        admin = server.admin
        status, answer = await admin.ask("POST", "/api/sources", location="nuxt/docs", branchh="next")
        assert (status, answer["error"]["code"]) == (400, "field_unknown") and "'branch'" in answer["error"]["fix"]
        _, made = await admin.ask("POST", "/api/sources", location="nuxt/docs")
        assert (await admin.ask("PUT", "/api/sources/docs", **{**made, "label": "Docs"}))[1]["label"] == "Docs"
        for method, path, wrong in (
            ("PUT", "/api/sources/docs", "content-path"),
            ("PUT", "/api/snapshot/config", "repo"),
            ("POST", "/api/sync", "source"),
        ):
            status, answer = await admin.ask(method, path, **{wrong: "x"})
            assert (status, answer["error"]["code"]) == (400, "field_unknown"), (method, path)


async def test_admins_are_told_how_far_search_by_meaning_is(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        engine = server.engine
        await server.owner.ask("POST", "/api/sources", location=str(write(tmp_path / "n", {"a.md": "A", "b.md": "B"})))
        assert (await server.admin.ask("GET", "/api/snapshot/status"))[1]["embedding"] is None
        embedder = BudgetedEmbedder(ThemeEmbedder)
        engine.indexing = DocumentIndexer(engine.store, engine.library, embedder, engine.clock)
        await server.admin.sync()
        await engine.indexing.catch_up()
        for done in (0, 2):
            told = (await server.admin.ask("GET", "/api/snapshot/status"))[1]["embedding"]
            assert told == {"done": done, "total": 2, "left_s": None, "text": f"{done} of 2 passages embedded"}
            await engine.indexing.embed_some()


async def test_a_source_tells_admins_what_was_left_out_of_it(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        await server.owner.ask("POST", "/api/sources", location=str(write(tmp_path / "n", {"a.md": "A", "b.md": "\0"})))
        await server.admin.sync()
        [row] = (await server.admin.ask("GET", "/api/sources"))[1]["folder"]["sources"]
        assert (row["files"], row["skipped"], row["left_out"]) == (1, 1, ["b.md (no text in it)"])
        [run] = (await server.admin.ask("GET", "/api/sync"))[1]
        assert run["left_out"] == {"n": "1 left out: b.md (no text in it)"}


@pytest.mark.proves(
    "S-data-sources",
    "S-http-sources-get",
    "S-http-sources-post",
    "S-http-sources-id-put",
    "S-http-sources-id-delete",
    "S-http-sync-post",
    "S-http-sync-source-post",
    "S-http-snapshot-status-get",
    "S-http-snapshot-sync-post",
    "S-http-snapshot-config-get",
    "S-http-snapshot-config-put",
)
async def test_a_member_reads_the_list_without_places_and_changes_nothing(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        assert (await server.admin.ask("POST", "/api/sources", location="nuxt/docs"))[0] == 201
        status, changed = await server.admin.ask("PUT", "/api/sources/docs", branch="next")
        assert (status, changed["branch"]) == (200, "next")
        site = {"location": "https://docs.example/sitemap.xml", "kind": "sitemap", "branch": ""}
        _, moved = await server.admin.ask("PUT", "/api/sources/docs", **site)
        assert {name: moved[name] for name in site} == site
        await server.admin.ask("PUT", "/api/sources/docs", location="nuxt/docs", kind="git")
        _, listed = await server.member.ask("GET", "/api/sources")
        [row] = listed["git"]["sources"]
        assert row == {"id": "docs", "label": "", "folder": "docs/docs", "files": 0, "documents": 0, "synced_at": None}
        for method, path in (
            ("POST", "/api/sources"),
            ("PUT", "/api/sources/docs"),
            ("DELETE", "/api/sources/docs"),
            ("GET", "/api/sync"),
            ("GET", "/api/snapshot/config"),
            ("PUT", "/api/snapshot/config"),
            ("POST", "/api/sync"),
            ("POST", "/api/sync/docs"),
            ("GET", "/api/snapshot/status"),
            ("POST", "/api/snapshot/sync"),
        ):
            status, body = await server.member.ask(method, path, location="nuxt/other")
            assert (status, body["error"]["code"]) == (403, "admin_only"), (method, path)
        assert (await server.member.ask("GET", "/api/sources"))[1]["total"] == 1
        async with server.web.client() as stranger:
            assert (await stranger.get("/api/sources")).status_code == 401
            server.web.keys.clear()
            assert (await stranger.get("/api/sources")).json()["total"] == 1, "who reaches a server without keys"


async def test_sources_for_one_server_are_named_to_admins_and_to_nobody_else(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        ask = server.admin.ask
        status, added = await ask("POST", "/api/sources", location="nuxt/docs", guild="111")
        assert (status, added["guild"], added["folder"]) == (201, "111", "guild-111/docs")
        await ask("POST", "/api/sources", location="nuxt/open")
        assert [row["guild"] for row in (await ask("GET", "/api/sources"))[1]["git"]["sources"]] == ["111", ""]
        _, listed = await server.member.ask("GET", "/api/sources")
        assert (listed["total"], [row["id"] for row in listed["git"]["sources"]]) == (1, ["open"])
        assert (await ask("PUT", "/api/sources/docs", **(added | {"branch": "next"})))[0] == 200
        for guild in ("222", ""):
            status, refused = await ask("PUT", "/api/sources/docs", guild=guild)
            assert (status, refused["error"]["code"]) == (400, "source_guild_fixed")
        assert (await ask("POST", "/api/sources", location="a/b", guild="x"))[0] == 400
        assert [each.settings.guild for each in await server.sdk.list_sources()] == ["111", ""]


@pytest.mark.proves("S-http-sources-post", "S-http-sources-id-put")
async def test_only_an_owner_names_a_path_of_the_machine(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        await server.admin.ask("POST", "/api/sources", location="nuxt/docs")
        for body in ({"location": "/etc"}, {"location": "/etc", "kind": "git"}, {"location": " FILE:///etc"}):
            for method, path in (("POST", "/api/sources"), ("PUT", "/api/sources/docs")):
                status, answer = await server.admin.ask(method, path, **body)
                assert (status, answer["error"]["code"]) == (403, "owner_only"), body
        assert (await server.admin.ask("PUT", "/api/sources/docs", kind="folder"))[0] == 403
        assert (await server.owner.ask("POST", "/api/sources", location="/srv/x"))[0] == 201


@pytest.mark.proves("S-http-sources-id-put")
async def test_an_empty_location_does_not_let_an_admin_change_an_owners_folder(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        notes = write(tmp_path / "notes", {"public/a.md": "a", "private/b.md": "b"})
        await server.owner.ask("POST", "/api/sources", location=str(notes), content_path="public")
        for empty in ("", " "):
            for body in ({"content_path": ""}, {"content_path": "private"}, {"kind": "git"}):
                status, answer = await server.admin.ask("PUT", "/api/sources/notes", location=empty, **body)
                assert (status, answer["error"]["code"]) == (403, "owner_only"), body


@pytest.mark.proves("S-http-sources-post", "S-http-sources-id-put")
async def test_only_an_owner_names_a_service_of_the_machine(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        await server.admin.ask("POST", "/api/sources", location="nuxt/docs")
        for method, path in (("POST", "/api/sources"), ("PUT", "/api/sources/docs")):
            for where in (
                *("http://127.0.0.1:8080/x.git", " HTTP://localhost/x.git", "https://127.0.0.1/x.git"),
                *("https://[::1]/x", "https://LOCALHOST:8443/x.git", "https://a.localhost./x.git"),
                *("https://127.1/x.git", "git@x.example:a/b"),
            ):
                status, answer = await server.admin.ask(method, path, location=where)
                assert (status, answer["error"]["code"]) == (403, "owner_only"), where
            for where in ("http://127.0.0.1/sitemap.xml", "https://0.0.0.0/sitemap.xml"):
                status, answer = await server.admin.ask(method, path, location=where, kind="sitemap")
                assert (status, answer["error"]["code"]) == (403, "owner_only"), where
        service = {"location": "http://127.0.0.1:8080/x.git"}
        assert (await server.owner.ask("POST", "/api/sources", **service))[0] == 201
        assert (await server.admin.ask("PUT", "/api/sources/x", label="Mine"))[0] == 403
        assert (await server.owner.ask("PUT", "/api/sources/docs", **service))[0] == 200


async def test_what_cannot_be_is_refused_with_a_remedy(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        status, answer = await server.admin.ask("POST", "/api/sync")
        assert (status, answer["error"]["code"]) == (400, "no_sources") and answer["error"]["fix"]
        for body in ({"location": ""}, {"location": "ext::sh"}, {"location": "a/b", "kind": "x"}, {"location": 1}):
            assert (await server.owner.ask("POST", "/api/sources", **body))[0] == 400, body
        await server.admin.ask("POST", "/api/sources", location="nuxt/docs")
        assert (await server.admin.ask("POST", "/api/sources", location="nuxt/docs"))[0] == 409
        assert (await server.admin.ask("POST", "/api/sources", location="b/c", output_path="docs"))[0] == 409
        assert (await server.admin.ask("POST", "/api/sync/nope"))[0] == 404
        assert (await server.admin.ask("POST", "/api/sync", sources="docs"))[0] == 400
        assert (await server.admin.ask("POST", "/api/sync", sources=[1]))[0] == 400
        assert (await server.admin.ask("PUT", "/api/sources/nope", label="x"))[0] == 404


@pytest.mark.proves("S31")
async def test_a_sync_asked_for_through_the_sdk_is_told_to_have_started_and_does_what_it_was_told(
    tmp_path: Path,
) -> None:
    async with open_knowledge_web(tmp_path) as server:
        server.engine.remote = RemoteRepository(str(tmp_path / "mirror"))
        for name in ("one", "two"):
            await server.owner.ask("POST", "/api/sources", location=str(write(tmp_path / name, {"a.md": name})))

        async def ended(run: StartedSync) -> SyncRun:
            assert run.status == "started"
            plain = SyncRun(id=run.run, sources=run.sources, started_at=server.engine.clock.now())
            with anyio.fail_after(HANG_LIMIT_S):
                return await server.engine.sync.wait(plain)

        assert (await ended(await server.sdk.sync(["two"], push=False))).changed == ("two",)
        assert not (tmp_path / "mirror").exists()
        assert server.engine.files() == {"docs/two/a.md": "two"}
        assert (await ended(await server.sdk.sync())).changed == ("one",)
        assert (tmp_path / "mirror/HEAD").is_file()
        (tmp_path / "library/kept").rename(tmp_path / "library/lost")
        assert (await ended(await server.sdk.sync(reset=True))).changed == ()
        assert server.engine.files() == {"docs/one/a.md": "one", "docs/two/a.md": "two"}
        with pytest.raises(ApiError) as refused:
            await server.sdk.sync(["three"])
        assert refused.value.problem.status == 404


@pytest.mark.proves("S31")
async def test_a_sync_asked_for_through_the_sdk_resets_only_what_it_is_told_to(tmp_path: Path) -> None:
    reader = UnreliableReader()
    async with open_knowledge_web(tmp_path, {SourceKind.GIT: reader}) as server:
        await server.admin.ask("POST", "/api/sources", location="owner/repo")
        for is_reset, opened in ((False, 1), (False, 1), (True, 2)):
            started = await (server.sdk.sync(reset=True) if is_reset else server.sdk.sync())
            with anyio.fail_after(HANG_LIMIT_S):
                await server.sdk.wait_for_sync(started.run)
            assert reader.opened == opened


@pytest.mark.proves("S-http-snapshot-config-get")
async def test_an_admin_reads_where_snapshots_are_pushed_to(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        nowhere = {"repository": "", "branch": "main", "allow_existing": False}
        assert await server.admin.ask("GET", "/api/snapshot/config") == (200, nowhere)
        server.engine.remote = RemoteRepository("https://git.example/x.git", "kept", allow_existing=True)
        _, told = await server.admin.ask("GET", "/api/snapshot/config")
        assert told == {"repository": "https://git.example/x.git", "branch": "kept", "allow_existing": True}


@pytest.mark.proves("S-http-snapshot-config-put")
async def test_an_admin_changes_where_snapshots_are_pushed_to_and_what_was_read_goes_there(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        wanted = {"repository": "https://git.example/x.git", "branch": "kept"}
        status, told = await server.admin.ask("PUT", "/api/snapshot/config", **wanted)
        assert (status, told) == (200, wanted | {"allow_existing": False, "run": ""})
        assert server.engine.remote == RemoteRepository("https://git.example/x.git", "kept")
        status, told = await server.admin.ask("PUT", "/api/snapshot/config", allow_existing=True)
        assert (told["repository"], told["branch"], told["allow_existing"]) == (*wanted.values(), True)
        await server.owner.ask("POST", "/api/sources", location=str(write(tmp_path / "notes", {"a.md": "A"})))
        mirror = str(tmp_path / "mirror")
        _, told = await server.owner.ask("PUT", "/api/snapshot/config", repository=mirror, branch="main")
        with anyio.fail_after(HANG_LIMIT_S):
            run = await server.engine.sync.wait(await server.engine.sync.get(told["run"]))
        assert run.failed == {} and (tmp_path / "mirror/HEAD").is_file()
        assert (await server.owner.ask("PUT", "/api/snapshot/config", repository=mirror))[1]["run"] == ""
        _, told = await server.admin.ask("PUT", "/api/snapshot/config", repository="")
        assert told["repository"] == "" and server.engine.remote == RemoteRepository("", allow_existing=True)


@pytest.mark.proves("S-http-snapshot-config-put")
async def test_a_remote_that_only_an_owner_may_name_or_that_holds_a_variable_is_refused(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        for body, code in (
            ({"repository": "/srv/mirror"}, "owner_only"),
            ({"repository": "http://127.0.0.1/x.git"}, "owner_only"),
            ({"repository": "git@git.example:operator/private.git"}, "owner_only"),
            ({"repository": "ssh://git@git.example/operator/private.git"}, "owner_only"),
            ({"repository": "https://git.example/${OPENAI_API_KEY}.git"}, "remote_invalid"),
            ({"repository": "https://git.example/x.git", "branch": "--force"}, "remote_invalid"),
            ({"repository": "ext::sh"}, "source_invalid"),
            ({"repository": 1}, "field_invalid"),
        ):
            status, answer = await server.admin.ask("PUT", "/api/snapshot/config", **body)
            assert (status, answer["error"]["code"]) == (403 if code == "owner_only" else 400, code), body
        assert (await server.member.ask("PUT", "/api/snapshot/config", branch="x"))[0] == 403
        assert server.engine.remote is None


@pytest.mark.proves("S-http-sandbox-snapshot-post", "S-http-snapshot-sync-post", "S-http-snapshot-status-get", "S29")
async def test_an_admin_has_a_snapshot_made_of_what_was_read_last(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        await server.owner.ask("POST", "/api/sources", location=str(write(tmp_path / "notes", {"a.md": "A"})))
        await server.admin.sync()
        write(tmp_path / "notes", {"b.md": "B"})
        await server.engine.snapshots.clear()
        _, status = await server.admin.ask("GET", "/api/snapshot/status")
        assert status["current"] == "" != status["latest"]
        assert await server.admin.ask("POST", "/api/snapshot/sync") == (200, {"current": status["latest"]})
        assert (await server.admin.ask("GET", "/api/snapshot/status"))[1]["current"] == status["latest"]
        assert server.engine.files() == {"docs/notes/a.md": "A"}
        await server.engine.snapshots.clear()
        run = await server.admin.sync("/api/sandbox/snapshot")
        assert (run["status"], run["sources"], run["changed"]) == ("done", [], [])
        assert server.engine.files() == {"docs/notes/a.md": "A"}
        assert (await server.member.ask("POST", "/api/sandbox/snapshot"))[0] == 403

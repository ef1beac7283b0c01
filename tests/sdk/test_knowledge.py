"""Sources, syncs and snapshots by the SDK, on the real routes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import httpx2
import pytest

from denizen.domain.source import SourceKind
from denizen.engine.knowledge.index import INDEX
from denizen.ports.source import ReadingProgress as Reached
from denizen_sdk import ApiError, ClientError, DenizenClient, NetworkError
from denizen_sdk.knowledge import (
    TRIES,
    RepositoryInfo,
    SnapshotRemoteChange,
    SnapshotRemoteInfo,
    SourceInfo,
    SourceProgress,
    SourceSettings,
    StartedSync,
    SyncEvent,
    SyncInfo,
    SyncProgress,
)
from denizen_sdk.turns import UnknownEvent
from tests.engine.knowledge.knowledge_fixture import write
from tests.timing import HANG_LIMIT_S
from tests.web.full_web_fixture import open_full_web
from tests.web.github_web_fixture import open_github_web
from tests.web.knowledge_web_fixture import SECRETS, SlowReader, open_knowledge_web
from tests.web_fixture import ADA, ANN, LOCAL, WebFixture

pytestmark = pytest.mark.anyio


def open_client(web: WebFixture, key: str = "") -> DenizenClient:
    return DenizenClient(LOCAL, key, transport=httpx2.ASGITransport(web.app))


@pytest.mark.proves("S-sdk-client")
async def test_sources_are_added_listed_changed_and_removed(tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", {"a.md": "A", "more/b.md": "B"})
    async with open_full_web(tmp_path) as web, open_client(web, "key-of-olga") as owner:
        made = await owner.add_source(str(notes), SourceSettings(label="Notes"), source_id="n")
        settings = SourceSettings(
            "folder", "Notes", "", "", "", readme_only=False, max_videos=50, sync_every_minutes=0, guild=""
        )
        assert made == SourceInfo(id="n", folder="docs/n", location=str(notes), settings=settings)
        changed = await owner.edit_source("n", SourceSettings(content_path="more", sync_every_minutes=60))
        assert changed.settings == replace(made.settings, content_path="more", sync_every_minutes=60)
        assert (await owner.edit_source("n", SourceSettings(label=""))).settings.label == ""
        with pytest.raises(ApiError) as refused:
            await owner.edit_source("n", SourceSettings(max_videos=-1))
        async with open_client(web, "key-of-ann") as member:
            assert await member.list_sources() == [
                SourceInfo(id="n", folder="docs/n", settings=SourceSettings("folder", ""))
            ]
            with pytest.raises(ApiError) as forbidden:
                await member.add_source("https://example.org/a.git")
        await owner.remove_source("n")
        assert await owner.list_sources() == []
        with pytest.raises(ApiError) as missing:
            await owner.remove_source("n")
    assert [each.value.status for each in (refused, forbidden, missing)] == [400, 403, 404]


@pytest.mark.proves("S-sdk-client", "S31")
async def test_a_sync_is_started_waited_for_and_looked_at(tmp_path: Path) -> None:
    notes, more = write(tmp_path / "notes", {"a.md": "A"}), write(tmp_path / "more", {"b.md": "B"})
    async with open_full_web(tmp_path) as web, open_client(web, "key-of-olga") as owner:
        for each in (notes, more):
            await owner.add_source(str(each))
        started = await owner.sync(["notes"], reset=True, push=False)
        assert started == StartedSync("started", started.run, ("notes",))
        with anyio.fail_after(HANG_LIMIT_S):
            ended = await owner.wait_for_sync(started.run)
        assert (ended.status, ended.changed, ended.failed, ended.progress) == ("done", ("notes",), {}, {})
        assert await owner.get_sync(started.run) == ended
        with anyio.fail_after(HANG_LIMIT_S):
            second = await owner.wait_for_sync((await owner.sync_source("more")).run)
        assert await owner.list_syncs() == [second, ended]
        [read, _] = sorted(await owner.list_sources(), key=lambda source: source.id, reverse=True)
        state = read.sync_state
        assert (read.id, state.files, state.synced_at is not None, state.error) == ("notes", 1, True, "")
        with pytest.raises(ApiError) as gone:
            await owner.sync_source("gone")
        with pytest.raises(ApiError) as unknown:
            await owner.get_sync("sync_none")
        with pytest.raises(ApiError) as nothing:
            await owner.wait_for_sync("sync_none")
        async with open_client(web, "key-of-ann") as member:
            with pytest.raises(ApiError) as refused:
                await member.sync()
            with pytest.raises(ApiError) as untold:
                await member.get_sync(started.run)
    assert [each.value.status for each in (gone, unknown, nothing, refused, untold)] == [404, 404, 404, 403, 403]


@pytest.mark.proves("S29", "S30", "S-sdk-client")
async def test_the_snapshot_is_looked_at_published_and_pushed_elsewhere(tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", {"a.md": "A"})
    async with open_full_web(tmp_path) as web, open_client(web, "key-of-olga") as owner:
        assert await owner.publish_snapshot() == ""
        await owner.add_source(str(notes))
        before = await owner.get_snapshot()
        assert (before.current, before.latest, before.latest_at, before.needs_sync) == ("", "", None, True)
        run = await owner.wait_for_sync((await owner.sync()).run)
        after = await owner.get_snapshot()
        assert (after.needs_sync, after.current, after.latest) == (False, run.snapshot, run.snapshot)
        assert after.latest_at == run.ended_at
        assert await owner.publish_snapshot() == after.current
        await owner.wait_for_sync((await owner.create_snapshot()).run)
        assert await owner.get_snapshot_remote() == SnapshotRemoteInfo("")
        wanted = SnapshotRemoteInfo("https://example.org/snapshots.git", "main", allow_existing=True)
        changed = await owner.set_snapshot_remote(wanted)
        assert changed == SnapshotRemoteChange(wanted.repository, "main", allow_existing=True, run=changed.run)
        assert (await owner.wait_for_sync(changed.run)).id == changed.run
        assert await owner.get_snapshot_remote() == wanted
        assert (await owner.set_snapshot_remote(wanted)).run == ""


async def test_a_program_has_one_source_read_with_the_secret_of_its_webhook(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server, open_client(server.web) as stranger:
        await server.owner.ask("POST", "/api/sources", location=str(write(tmp_path / "notes", {"a.md": "A"})))
        await server.owner.ask("POST", "/api/sources", location=str(write(tmp_path / "more", {"b.md": "B"})))
        known = {source.id: source.has_webhook for source in await server.sdk.list_sources()}
        assert known == {"notes": True, "more": False}
        started = await stranger.call_webhook("notes", SECRETS["notes"])
        assert (await server.sdk.wait_for_sync(started.run)).changed == ("notes",)
        with pytest.raises(ApiError) as wrong:
            await stranger.call_webhook("notes", "another")
    assert wrong.value.is_auth


async def test_repositories_that_can_become_sources_are_listed() -> None:
    async with open_github_web(keys=[ANN, ADA]) as server:
        async with open_client(server.web, "key-of-ada") as admin:
            shown, hidden = await admin.list_repositories()
        async with open_client(server.web, "key-of-ann") as member:
            assert await member.list_repositories() == [shown]
    location = f"{server.github.url}/harbour/boats.git"
    assert replace(shown, updated_at="") == RepositoryInfo(
        "harbour/boats", location, "main", description="Things that float"
    )
    assert (hidden.name, hidden.private) == ("harbour/vault", True)


# --- the stream of a sync --------------------------------------------------------------------------------------------


class InterruptibleTransport(httpx2.AsyncHTTPTransport):
    """Calls `on_run` after the first event of each stream."""

    def __init__(self, on_run: Callable[[], None]) -> None:
        super().__init__()
        self._on_run = on_run

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await super().handle_async_request(request)
        if request.url.path.endswith("/events"):
            assert isinstance(answer.stream, httpx2.AsyncByteStream)
            answer.stream = WatchedStream(answer.stream, self._on_run)
        return answer


class WatchedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, on_run: Callable[[], None]) -> None:
        self._stream = stream
        self._on_run = on_run

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield chunk
            if b"event: run" in chunk:
                self._on_run()

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def slow_sync(root: Path, cuts: int = 0) -> AsyncGenerator[tuple[DenizenClient, str, SlowReader]]:
    """A client at a real port, the id of a sync that has begun, and its reader, which waits to be told to go on."""
    slow, left = SlowReader(), iter(range(cuts))

    def cut() -> None:
        if next(left, None) is not None:
            raise httpx2.ReadError("the line is dead")

    async with open_knowledge_web(root, {SourceKind.FOLDER: slow}) as server, server.web.serve() as url:
        await server.owner.ask("POST", "/api/sources", location=str(write(root / "notes", {"a.md": "A"})))
        async with DenizenClient(url, "key-of-ada", transport=InterruptibleTransport(cut)) as client:
            run = (await client.sync()).run
            with anyio.fail_after(HANG_LIMIT_S):
                await slow.reached.wait()
                yield client, run, slow


@pytest.mark.parametrize("cuts", [0, 1, 3])
async def test_a_sync_is_followed_to_its_result_also_over_a_connection_that_breaks(tmp_path: Path, cuts: int) -> None:
    seen: list[SyncEvent] = []
    async with slow_sync(tmp_path, cuts) as (client, run, slow):
        async for event in client.follow_sync(run, pause_s=0):
            seen.append(event)
            if len(seen) > cuts:
                slow.goes_on.set()
    *before, end = seen
    stands = [event for event in before if isinstance(event, SyncInfo)]
    assert [(each.status, each.progress) for each in stands] == [("running", {"notes": SyncProgress("looking")})] * (
        cuts + 1
    )
    assert {type(event) for event in before[cuts + 1 :]} <= {SourceProgress}
    assert isinstance(end, SyncInfo)
    assert (end.id, end.status, end.changed) == (run, "done", ("notes",))


async def test_a_sync_that_has_ended_is_waited_for_until_it_is_indexed(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server, server.web.serve() as url:
        await server.owner.ask("POST", "/api/sources", location=str(write(tmp_path / "notes", {"a.md": "A"})))
        ended = await server.sdk.wait_for_sync((await server.sdk.sync()).run)
        indexing = server.engine.indexing

        def finish() -> None:
            indexing.progress = None

        async with DenizenClient(url, "key-of-ada", transport=InterruptibleTransport(finish)) as client:
            with anyio.fail_after(HANG_LIMIT_S):
                indexing.progress = Reached("indexing", 1, 2)
                seen = [event async for event in client.follow_sync(ended.id)]
                indexing.progress = Reached("indexing", 1, 2)
                waited_for = await client.wait_for_sync(ended.id)
    assert seen == [replace(ended, progress={INDEX: SyncProgress("indexing", 1, 2)}), ended]
    assert waited_for == ended


RUN = (
    'event: run\ndata: {"id":"r","sources":["a"],"status":"running","started_at":"2026-11-21T12:00:00+00:00"}\n\n'
    'event: mood\ndata: {"is":"good"}\n\n'
    'event: progress\ndata: {"source":"a","stage":"looking","done":1,"total":2}\n\n'
)


class BrokenStreamServer:
    """A server that tells something in the first answer, and after that what it is told to."""

    def __init__(self, after: httpx2.Response | None) -> None:
        self.calls = 0
        self._after = after

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.calls += 1
        if self.calls == 1:
            return httpx2.Response(200, text=RUN, headers={"content-type": "text/event-stream"})
        if self._after is None:
            raise httpx2.ConnectError("refused", request=request)
        return self._after


async def follow(server: BrokenStreamServer) -> tuple[list[SyncEvent], ClientError]:
    seen: list[SyncEvent] = []
    async with DenizenClient(LOCAL, transport=httpx2.MockTransport(server)) as client:
        events = client.follow_sync("r", pause_s=0)
        while True:
            try:
                seen.append(await anext(events))
            except ClientError as error:
                return seen, error


async def test_a_connection_that_stays_lost_ends_the_stream_with_the_error() -> None:
    server = BrokenStreamServer(None)
    seen, error = await follow(server)
    assert isinstance(error, NetworkError)
    assert server.calls == 1 + TRIES
    assert seen[1:] == [UnknownEvent("mood", {"is": "good"}), SourceProgress("a", "looking", 1, 2)]


class CuttingServer:
    """A server whose streams are all cut after their first event, which says how far the reading is."""

    def __init__(self, *done: int) -> None:
        self.calls = 0
        self._done = iter(done)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.calls += 1
        done = next(self._done, None)
        run = {"id": "r", "sources": ["a"], "status": "running", "started_at": "2026-11-21T12:00:00+00:00"}
        row = json.dumps({**run, "progress": {"a": {"stage": "looking", "done": done, "total": 9}}})
        text = f"event: {'end' if done is None else 'run'}\ndata: {row}\n\n"
        return httpx2.Response(200, text=text, headers={"content-type": "text/event-stream"})


async def test_a_line_that_is_cut_again_and_again_is_made_anew_only_while_there_is_news() -> None:
    stuck, going = CuttingServer(*[1] * 50), CuttingServer(*range(3 * TRIES))
    async with DenizenClient(LOCAL, transport=httpx2.MockTransport(stuck)) as client:
        with pytest.raises(NetworkError, match="ended the stream"):
            [event async for event in client.follow_sync("r", pause_s=0)]
    async with DenizenClient(LOCAL, transport=httpx2.MockTransport(going)) as client:
        seen = [event async for event in client.follow_sync("r", pause_s=0)]
    assert stuck.calls == 1 + TRIES
    assert len(seen) == going.calls == 3 * TRIES + 1


async def test_a_server_that_is_being_started_again_is_waited_for() -> None:
    server = BrokenStreamServer(httpx2.Response(502, text="Bad gateway"))
    _, error = await follow(server)
    assert isinstance(error, ApiError)
    assert (error.status, server.calls) == (502, 1 + TRIES)


async def test_a_refusal_is_not_tried_again() -> None:
    problem = {"code": "sync_not_found", "message": "There is no sync r.", "status": 404}
    told = f"event: error\ndata: {httpx2.Response(200, json=problem).text}\n\n"
    for after in (
        httpx2.Response(404, json={"error": problem}),
        httpx2.Response(200, text=told, headers={"content-type": "text/event-stream"}),
    ):
        server = BrokenStreamServer(after)
        _, error = await follow(server)
        assert isinstance(error, ApiError)
        assert (error.code, server.calls) == ("sync_not_found", 2)


async def test_a_server_that_was_never_there_is_not_waited_for() -> None:
    server = BrokenStreamServer(None)
    server.calls = 1
    seen, error = await follow(server)
    assert (seen, server.calls, isinstance(error, NetworkError)) == ([], 2, True)

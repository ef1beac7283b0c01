"""Knowledge: sources, syncs that read them, and the snapshots made of what was read. Times are ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, field, replace
from typing import Any, cast

import anyio

from denizen_sdk.calls import ClientCalls, quote_segment
from denizen_sdk.errors import ApiError, ClientError, NetworkError, ProblemDetails
from denizen_sdk.records import Json, from_json, record
from denizen_sdk.turns import UnknownEvent

TRIES = 5
"""How often the client reconnects a lost stream. The pauses double from 1 s, so it gives up after half a minute."""

PUBLISH_S = 600.0
"""How long to wait for publishing a snapshot: one of many files takes minutes, and the server sets no limit."""

REMOTE_S = 4500.0
"""How long to wait for a change of the remote: the server waits up to ten minutes for the repository to be free, and
allows half an hour each for fetching and pushing.
"""

OCR_S = 180.0
"""How long to wait for a model that reads a picture."""

_RESTARTING = frozenset({502, 503, 504})
"""Statuses that a proxy answers while the server behind it restarts."""


@record
class SourceSettings:
    """The settings of a source besides its location. In a change, None keeps the present value, or the server's
    default. In an answer, None is what only owners and admins are told. A source with a `guild` is for talk in that
    Discord server alone, which cannot be changed.
    """

    kind: str | None = None
    label: str | None = None
    branch: str | None = None
    content_path: str | None = None
    output_path: str | None = None
    readme_only: bool | None = None
    max_videos: int | None = None
    sync_every_minutes: int | None = None
    guild: str | None = None


@record(kw_only=True)
class SourceSyncState:
    """The state of a source after its last sync. `synced_at` is None before the first one; `left_out` names the first
    of the `skipped` files, each with the reason; `error` says why the last sync could not read the source. Only owners
    and admins get the fields from `revision` on.
    """

    files: int = 0
    documents: int = 0
    synced_at: str | None = None
    revision: str = ""
    skipped: int = 0
    left_out: tuple[str, ...] = ()
    error: str = ""


@record(kw_only=True)
class SourceInfo:
    """A source of knowledge. The JSON has the fields of `settings` and `sync_state` on one level with the others, so
    that it can be sent back as a change. `folder` is its folder in the shell. Only owners and admins get `location`,
    and `has_webhook`, which tells that the configuration holds a secret for `call_webhook`.
    """

    id: str
    folder: str = ""
    location: str = ""
    has_webhook: bool = False
    settings: SourceSettings = field(default_factory=SourceSettings)
    sync_state: SourceSyncState = field(default_factory=SourceSyncState)


@record(kw_only=True)
class ProposedSourceInfo:
    """A source that was found in a list or a picture, to be reviewed before it is added. `problem` says why it cannot
    be added, and is empty for one that can; `ignored` names fields of the list that no source has.
    """

    id: str
    location: str
    settings: SourceSettings = field(default_factory=SourceSettings)
    problem: str = ""
    ignored: tuple[str, ...] = ()


@record
class FoundSources:
    """The sources that were found in a list or a picture. None of them is added yet."""

    sources: tuple[ProposedSourceInfo, ...]


@record
class RepositoryInfo:
    """A repository that can become a source, by its `location` and `branch`."""

    name: str
    location: str
    branch: str
    private: bool = False
    description: str = ""
    updated_at: str = ""


@record
class StartedSync:
    """The answer to a request for a sync. `status` is "started"; `run` is the sync's id, `sources` what it reads."""

    status: str
    run: str
    sources: tuple[str, ...]


@record
class SyncProgress:
    """How far a sync is with one source: its stage, and `done` of `total` (0 if the total is not known)."""

    stage: str
    done: int = 0
    total: int = 0


@record
class SyncInfo:
    """One sync. `status` is running, done, partial (some sources could not be read, and keep what was last read) or
    failed; the sync is over once `ended_at` is set. `failed` maps sources (and `(remote)`, the repository for
    snapshots, or `(snapshot)` where none could be made) to the reason; `skipped` does so for sources that were not
    read; `left_out` maps sources to how many of their files were not kept, and to names and reasons of the first.
    `progress` has each source that the answering process has begun to read. `snapshot` is the current snapshot at the
    end of the sync, empty where none could be made.
    """

    id: str
    sources: tuple[str, ...]
    status: str
    started_at: str
    ended_at: str | None = None
    snapshot: str = ""
    changed: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict[str, str])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    progress: dict[str, SyncProgress] = field(default_factory=dict[str, SyncProgress])


@record
class SourceProgress:
    """An event of a sync: one of its sources progressed."""

    source: str
    stage: str
    done: int = 0
    total: int = 0


@record
class StartedSnapshot:
    """The answer to a request for a snapshot. `status` is "started"; `run` is the id of the sync that makes it, empty
    if the server does not tell.
    """

    status: str
    run: str = ""


@record
class EmbeddingInfo:
    """How many of the documents' passages can be found by meaning: `done` of `total`, which `text` says for people.
    `left_s` is how long the rest takes at the measured pace, None while nobody embeds. All are found by words
    meanwhile.
    """

    done: int
    total: int
    left_s: float | None
    text: str


@record
class SnapshotInfo:
    """The current snapshot and the latest one; empty if there is none. With `needs_sync` a sync is due, and `why` says
    for what reason. `embedding` is None without an embedder.
    """

    current: str
    latest: str
    latest_at: str | None
    last_sync_at: str | None
    needs_sync: bool
    why: str = ""
    embedding: EmbeddingInfo | None = None


@record
class SnapshotRemoteInfo:
    """The repository that snapshots are pushed to; empty for none. Without `allow_existing` the server refuses a
    repository that holds something else.
    """

    repository: str
    branch: str = "main"
    allow_existing: bool = False


@record
class SnapshotRemoteChange(SnapshotRemoteInfo):
    """The answer to a change of the remote. `run` is the sync that publishes to it; empty if nothing changed, or if
    there is nothing to read.
    """

    run: str = ""


@record
class PublishedSnapshot:
    """The answer to publishing. `current` is the snapshot in use now; empty if nothing was read yet."""

    current: str


@record
class DocumentPassage:
    """A passage of a document: lines `first_line` to `last_line` of the file at `path`, as agents cite it. `title` is
    made of the headings above it. `source` is the id of its source, empty for a file of a knowledge folder.
    """

    path: str
    first_line: int
    last_line: int
    title: str
    text: str
    source: str = ""


@record
class DocumentMatches:
    """The passages that a search found, the best first."""

    passages: tuple[DocumentPassage, ...]


SyncEvent = SyncInfo | SourceProgress | UnknownEvent

SYNC_EVENTS: Mapping[str, type[SyncInfo | SourceProgress]] = {
    "run": SyncInfo,
    "progress": SourceProgress,
    "end": SyncInfo,
}
"""The records by the name of their event: the state at the beginning, a source that progressed, the result."""


def decode_sync_event(name: str, row: Json) -> SyncEvent:
    """Returns the event of that name. Raises TypeError when a field that has no default is missing."""
    kind = SYNC_EVENTS.get(name)
    return UnknownEvent(name, row) if kind is None else from_json(kind, row)


class KnowledgeCalls(ClientCalls):
    """The calls of `/api/docs`, `/api/sources`, `/api/sync`, `/api/snapshot` and `/api/github/repos`.

    All raise NetworkError, and ApiError (403 for everybody but owners and admins, but of the first two).
    """

    async def search_docs(
        self, query: str, *, limit: int = 6, source: str = "", agent: str = ""
    ) -> tuple[DocumentPassage, ...]:
        """Returns passages of the documents of the default agent, or another, that fit the query, the best first.

        With `source` only those of that source. Raises ApiError: 404 for an agent that has no documents, 403 or 429
        where the gate does not let the call through.
        """
        found = await self._get(DocumentMatches, "/api/docs/search", q=query, limit=limit, source=source, agent=agent)
        return found.passages

    async def list_sources(self) -> list[SourceInfo]:
        """Returns the sources of knowledge, by kind in the server's order. Everybody may call this."""
        row = await self._connection.request("GET", "/api/sources")
        return [
            _read_source({"kind": kind, **each})
            for kind, group in row.items()
            if isinstance(group, Mapping)
            for each in cast("Mapping[str, Any]", group).get("sources", [])
        ]

    async def add_source(
        self, location: str, settings: SourceSettings | None = None, *, source_id: str = ""
    ) -> SourceInfo:
        """Adds a source without reading it yet.

        `location` is an address, or a path of the server's machine, which only owners may name. The server derives the
        kind of the source from it unless the settings name one.
        """
        body = {"location": location, "id": source_id, **_without_none(settings)}
        return _read_source(await self._connection.request("POST", "/api/sources", body=body))

    async def edit_source(
        self, source: str, settings: SourceSettings | None = None, *, location: str = ""
    ) -> SourceInfo:
        """Changes the given settings of a source. They apply to its next sync."""
        body = {"location": location, **_without_none(settings)}
        path = f"/api/sources/{quote_segment(source)}"
        return _read_source(await self._connection.request("PUT", path, body=body, at_least_s=PUBLISH_S))

    async def find_sources_in(self, *, text: str = "", image: str = "") -> tuple[ProposedSourceInfo, ...]:
        """Returns the sources in a list (YAML, JSON, or one place a line), or in a picture of one as a data URI.

        Nothing is added. Raises ApiError: 400 where no source is found, 503 without a model that reads pictures.
        """
        body = {"text": text} if text else {"image": image}
        row = await self._connection.request("POST", "/api/sources/ocr", body=body, at_least_s=OCR_S)
        return from_json(FoundSources, row).sources

    async def remove_source(self, source: str) -> None:
        """Removes a source with all that was read from it."""
        await self._connection.request("DELETE", f"/api/sources/{quote_segment(source)}", at_least_s=PUBLISH_S)

    async def list_repositories(self) -> list[RepositoryInfo]:
        """Returns the GitHub repositories that can become sources; private ones for owners and admins only."""
        return await self._list(RepositoryInfo, "/api/github/repos")

    async def sync(self, sources: Sequence[str] = (), *, reset: bool = False, push: bool = True) -> StartedSync:
        """Starts a sync of all sources, or of these, without waiting for it (`wait_for_sync`). Sources that a Discord
        server added itself are read only by their ids.

        With `reset` the sync fetches everything anew; without `push` it does not push the snapshot.
        """
        body = {"sources": list(sources), "reset": reset, "push": push}
        return from_json(StartedSync, await self._connection.request("POST", "/api/sync", body=body))

    async def sync_source(self, source: str) -> StartedSync:
        """Starts a sync of one source. Raises ApiError (404) for an unknown one."""
        return from_json(StartedSync, await self._connection.request("POST", f"/api/sync/{quote_segment(source)}"))

    async def call_webhook(self, source: str, secret: str) -> StartedSync:
        """Starts a sync of one source with the secret of its webhook: for programs that may do nothing else.

        The client needs no key. Raises ApiError (401) both for an unknown source and for a wrong secret.
        """
        path, headers = f"/api/sync/webhook/{quote_segment(source)}", {"Authorization": f"Bearer {secret}"}
        return from_json(StartedSync, await self._connection.request("POST", path, headers=headers))

    async def list_syncs(self) -> list[SyncInfo]:
        """Returns the last syncs, newest first."""
        return await self._list(SyncInfo, "/api/sync")

    async def get_sync(self, run: str) -> SyncInfo:
        """Returns one sync. Raises ApiError (404) for an unknown one."""
        return await self._get(SyncInfo, f"/api/sync/{quote_segment(run)}")

    async def follow_sync(self, run: str, *, pause_s: float = 1.0) -> AsyncGenerator[SyncEvent]:
        """Yields the state of the sync, each source that progresses, and last the result as a `SyncInfo`.

        The result comes once the documents can be searched, which is after the `ended_at` of the sync. Reconnects a
        lost connection after `pause_s`, doubling the pause each time; the server then sends the whole state again.
        Raises NetworkError when reconnecting fails `TRIES` times, or brings nothing new that often.
        """
        lost = TRIES  # so that a stream which never began is not tried again
        known: SyncEvent | None = None
        while True:
            try:
                async with aclosing(self._stream_events(run)) as events:
                    async for event in events:
                        yield event
                        # Each connection begins with the whole state, which counts as progress only if it changed:
                        # else a server that drops every connection would be asked for ever.
                        lost = lost if event == known else 0
                        known = event if isinstance(event, SyncInfo) else known
            except ClientError as error:
                is_restarting = isinstance(error, ApiError) and error.status in _RESTARTING
                if lost == TRIES or not (is_restarting or isinstance(error, NetworkError)):
                    raise
            else:
                return
            await anyio.sleep(pause_s * 2**lost)
            lost += 1

    async def wait_for_sync(self, run: str) -> SyncInfo:
        """Returns the result of a sync, once its documents can be searched. Raises as `follow_sync` does."""
        last: SyncEvent | None = None
        async with aclosing(self.follow_sync(run)) as events:
            async for event in events:
                last = event
        if isinstance(last, SyncInfo):
            return last
        raise AssertionError("following a sync that does not raise ends with its result")

    async def create_snapshot(self) -> StartedSnapshot:
        """Starts making a snapshot of what was read last, without waiting for it."""
        return from_json(StartedSnapshot, await self._connection.request("POST", "/api/sandbox/snapshot"))

    async def get_snapshot(self) -> SnapshotInfo:
        """Returns the current snapshot, and whether a sync is due."""
        return await self._get(SnapshotInfo, "/api/snapshot/status")

    async def publish_snapshot(self) -> str:
        """Makes what was read last the current snapshot. Returns its id, empty if nothing was read yet."""
        row = await self._connection.request("POST", "/api/snapshot/sync", at_least_s=PUBLISH_S)
        return from_json(PublishedSnapshot, row).current

    async def get_snapshot_remote(self) -> SnapshotRemoteInfo:
        """Returns the repository that snapshots are pushed to."""
        return await self._get(SnapshotRemoteInfo, "/api/snapshot/config")

    async def set_snapshot_remote(self, remote: SnapshotRemoteInfo) -> SnapshotRemoteChange:
        """Changes the repository that snapshots are pushed to, and starts a sync that pushes to it.

        Agents have no snapshot until that sync has published one. Raises ApiError (409) for a repository that holds
        something else, unless `allow_existing`.
        """
        body = {"repository": remote.repository, "branch": remote.branch, "allow_existing": remote.allow_existing}
        row = await self._connection.request("PUT", "/api/snapshot/config", body=body, at_least_s=REMOTE_S)
        return from_json(SnapshotRemoteChange, row)

    async def _stream_events(self, run: str) -> AsyncGenerator[SyncEvent]:
        async with self._connection.stream("GET", f"/api/sync/{quote_segment(run)}/events") as source:
            async for sent in source:
                row: Any = sent.json()
                if sent.event == "error":
                    raise ApiError(from_json(ProblemDetails, row))
                yield decode_sync_event(sent.event, row)
                if sent.event == "end":
                    return
        raise NetworkError("The server ended the stream before the sync had ended.")


def _read_source(row: Mapping[str, Any]) -> SourceInfo:
    info = from_json(SourceInfo, row)
    return replace(info, settings=from_json(SourceSettings, row), sync_state=from_json(SourceSyncState, row))


def _without_none(settings: SourceSettings | None) -> dict[str, Any]:
    return {name: value for name, value in asdict(settings or SourceSettings()).items() if value is not None}

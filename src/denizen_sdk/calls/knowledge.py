"""Knowledge: sources, reading them, and snapshots. All but the list of sources is for owners and admins."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, cast

import anyio

from denizen_sdk.calls.calls import ClientCalls
from denizen_sdk.errors import ApiError, ClientError, NetworkError
from denizen_sdk.knowledge import (
    PublishedSnapshot,
    RepositoryInfo,
    SnapshotInfo,
    SnapshotRemoteChange,
    SnapshotRemoteInfo,
    SourceInfo,
    SourceSettings,
    StartedSnapshot,
    StartedSync,
    SyncInfo,
)
from denizen_sdk.wire import ProblemDetails, SyncEvent, decode_sync_event, from_json

TRIES = 5
"""How often a lost stream is asked for again, with ever longer pauses: half a minute in all."""

PUBLISH_S = 600.0
"""Making a snapshot of many files takes minutes; the server sets it no limit."""

REMOTE_S = 4500.0
"""The server allows ten minutes until the repository is free, and half an hour each to fetch and to push."""

_PASSING = frozenset({502, 503, 504})
"""What is answered for a server that is being started again."""


class KnowledgeCalls(ClientCalls):
    """`/api/sources`, `/api/sync`, `/api/snapshot`, `/api/github/repos`. All raise ApiError (403 but for owners and
    admins) and NetworkError.
    """

    async def list_sources(self) -> list[SourceInfo]:
        """The sources of knowledge, by kind in the server's order; for everybody."""
        return _sources_from(await self._connection.request("GET", "/api/sources"))

    async def add_source(
        self, location: str, settings: SourceSettings | None = None, *, source_id: str = ""
    ) -> SourceInfo:
        """`location` is an address, or a path of the server's machine, which only owners may name; what it is can be
        seen from it, as a rule. Nothing is read yet.
        """
        body = {"location": location, "id": source_id, **_given(settings)}
        return from_json(SourceInfo, await self._connection.request("POST", "/api/sources", body=body))

    async def edit_source(
        self, source: str, settings: SourceSettings | None = None, *, location: str = ""
    ) -> SourceInfo:
        """Changes what is given. The next sync reads it so."""
        body = {"location": location, **_given(settings)}
        return from_json(
            SourceInfo,
            await self._connection.request(
                "PUT", f"/api/sources/{quote_segment(source)}", body=body, at_least_s=PUBLISH_S
            ),
        )

    async def remove_source(self, source: str) -> None:
        """With all that was read of it."""
        await self._connection.request("DELETE", f"/api/sources/{quote_segment(source)}", at_least_s=PUBLISH_S)

    async def list_repositories(self) -> list[RepositoryInfo]:
        """Those of GitHub that can become sources; private ones for owners and admins only."""
        return await self._list(RepositoryInfo, "/api/github/repos")

    async def sync(self, sources: Sequence[str] = (), *, reset: bool = False, push: bool = True) -> StartedSync:
        """Starts reading all sources of knowledge, or these, and does not wait (`wait_for_sync`). With `reset`
        everything is fetched anew; without `push` the remote for snapshots gets nothing.
        """
        body = {"sources": list(sources), "reset": reset, "push": push}
        return from_json(StartedSync, await self._connection.request("POST", "/api/sync", body=body))

    async def sync_source(self, source: str) -> StartedSync:
        """Starts reading one source. Raises ApiError (404) for one that is not there."""
        return from_json(StartedSync, await self._connection.request("POST", f"/api/sync/{quote_segment(source)}"))

    async def call_webhook(self, source: str, secret: str) -> StartedSync:
        """Starts reading one source with the secret of its webhook: for programs that should do nothing else. The
        client needs no key for it. Raises ApiError (401) whatever is wrong.
        """
        path, headers = f"/api/sync/webhook/{quote_segment(source)}", {"Authorization": f"Bearer {secret}"}
        return from_json(StartedSync, await self._connection.request("POST", path, headers=headers))

    async def list_syncs(self) -> list[SyncInfo]:
        """The last ones, newest first."""
        return await self._list(SyncInfo, "/api/sync")

    async def get_sync(self, run: str) -> SyncInfo:
        """As it is now. Raises ApiError (404) for one that is not known."""
        return await self._get(SyncInfo, f"/api/sync/{quote_segment(run)}")

    async def follow_sync(self, run: str, *, pause_s: float = 1.0) -> AsyncGenerator[SyncEvent]:
        """Yields how the sync stands, each source that goes on, and the result: a `SyncInfo`, the last. It comes when
        what was read can be searched, which is after the `ended_at` of the sync.

        A connection that is lost on the way is made again, after `pause_s` and then twice as long each time; who comes
        back is told how all of it stands. Raises NetworkError when it stays lost, or is lost so often without any news.
        """
        lost = TRIES  # what cannot even be begun is not tried again
        stood: SyncEvent | None = None
        while True:
            try:
                async with aclosing(self._events_of(run)) as events:
                    async for event in events:
                        yield event
                        # each connection begins with how it stands, which need not be news
                        lost = lost if event == stood else 0
                        stood = event if isinstance(event, SyncInfo) else stood
            except ClientError as error:
                if lost == TRIES or not _is_passing(error):
                    raise
            else:
                return
            await anyio.sleep(pause_s * 2**lost)
            lost += 1

    async def wait_for_sync(self, run: str) -> SyncInfo:
        """Its result, once what was read can be searched. Raises as `follow_sync`."""
        last: SyncEvent | None = None
        async with aclosing(self.follow_sync(run)) as events:
            async for event in events:
                last = event
        if isinstance(last, SyncInfo):
            return last
        raise AssertionError("following a sync that does not raise ends with its result")

    async def create_snapshot(self) -> StartedSnapshot:
        """Starts making a snapshot of what is known, and does not wait."""
        return from_json(StartedSnapshot, await self._connection.request("POST", "/api/sandbox/snapshot"))

    async def get_snapshot(self) -> SnapshotInfo:
        """Which one is used, and whether something should be read."""
        return await self._get(SnapshotInfo, "/api/snapshot/status")

    async def publish_snapshot(self) -> str:
        """Makes what was read last the current snapshot, at once: its id, empty when nothing was read yet."""
        row = await self._connection.request("POST", "/api/snapshot/sync", at_least_s=PUBLISH_S)
        return from_json(PublishedSnapshot, row).current

    async def get_snapshot_remote(self) -> SnapshotRemoteInfo:
        """Where snapshots are pushed to."""
        return await self._get(SnapshotRemoteInfo, "/api/snapshot/config")

    async def set_snapshot_remote(self, remote: SnapshotRemoteInfo) -> SnapshotRemoteChange:
        """Has snapshots pushed there, and starts a sync that does. Agents have no snapshot until it has. Raises
        ApiError (409) for a repository with something else in it, unless `allow_existing`.
        """
        body = {"repository": remote.repository, "branch": remote.branch, "allow_existing": remote.allow_existing}
        row = await self._connection.request("PUT", "/api/snapshot/config", body=body, at_least_s=REMOTE_S)
        return from_json(SnapshotRemoteChange, row)

    async def _events_of(self, run: str) -> AsyncGenerator[SyncEvent]:
        async with self._connection.stream("GET", f"/api/sync/{quote_segment(run)}/events") as source:
            async for sent in source:
                row: Any = sent.json()
                if sent.event == "error":
                    raise ApiError(from_json(ProblemDetails, row))
                yield decode_sync_event(sent.event, row)
                if sent.event == "end":
                    return
        raise NetworkError("The server ended the stream before the sync had ended.")


def _is_passing(error: ClientError) -> bool:
    return isinstance(error, NetworkError) or (isinstance(error, ApiError) and error.status in _PASSING)


def _given(settings: SourceSettings | None) -> dict[str, Any]:
    return {name: value for name, value in asdict(settings or SourceSettings()).items() if value is not None}


def _sources_from(row: Mapping[str, Any]) -> list[SourceInfo]:
    found: list[SourceInfo] = []
    for name, kind in row.items():
        if isinstance(kind, Mapping):
            listed = cast("Mapping[str, Any]", kind).get("sources", [])
            found += [from_json(SourceInfo, {"kind": name, **each}) for each in listed]
    return found

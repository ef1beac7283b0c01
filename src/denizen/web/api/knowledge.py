"""`/api/sources` and `/api/snapshot`: what agents look things up in (inventory 2.7). Reading it is in `syncs`.

Everybody who may reach the server reads the list; the rest is for owners and admins. A path of the server's own machine
is named by owners only: an admin of the community need not be somebody who may read its disk.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.principal import RoleName
from denizen.domain.snapshot import Remote
from denizen.domain.source import Source, SourceKind, is_branch, read_location
from denizen.engine.knowledge.sources import Change, Known
from denizen.web.api.chat import may_see_all, require_admin
from denizen.web.http.request import JsonBody, check_field_names, field_error, read_flag, read_number, read_object, read_text
from denizen.web.http.dependencies import KnowledgeServices
from denizen.web.http.auth import get_principal
from denizen_sdk.knowledge import PublishedSnapshot, SnapshotInfo, SnapshotRemoteChange, SnapshotRemoteInfo, SourceInfo
import hashlib
import hmac
import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, cast
from denizen.domain.errors import NotAllowed
from denizen.domain.source import SyncRun
from denizen.engine.knowledge.following import Stand, follow
from denizen.ports.source import Progress
from denizen.web.api.chat import require_admin
from denizen.web.http.request import (
    JsonBody,
    WebhookBodyReader,
    check_field_names,
    field_error,
    has_body,
    read_flag,
    read_object,
)
from denizen.web.http.dependencies import KnowledgeServices, WebTiming
from denizen.web.http.errors import describe_problem
from denizen.web.http.event_stream import Chunks, EventStream, StreamOptions
from denizen.web.http.auth import SYNC_WEBHOOKS
from denizen_sdk.knowledge import SourceProgress, StartedSync, SyncInfo, SyncProgress

_TEXTS = ("label", "branch", "content_path", "output_path")
_FIELDS = ("id", "location", "kind", *_TEXTS, "readme_only", "max_videos", "sync_every_minutes")
_ANSWERED = (*(each.name for each in fields(SourceInfo)), "created_at", "updated_at")
_REMOTE_ANSWERED = tuple(each.name for each in fields(SnapshotRemoteChange))
"""Whoever changes something may send back what they were told of it."""


class KnowledgeRoutes:
    """The routes."""

    def __init__(self, parts: KnowledgeServices) -> None:
        self._catalog = parts.catalog
        self._sync = parts.sync
        self._snapshots = parts.snapshots
        self._remote = parts.remote
        self._change_remote = parts.change_remote
        self._webhooks = parts.webhooks

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/api/sources", self.list_sources, methods=["GET"]),
            Route("/api/sources", self.add, methods=["POST"]),
            Route("/api/sources/{source}", self.edit, methods=["PUT"]),
            Route("/api/sources/{source}", self.remove, methods=["DELETE"]),
            Route("/api/snapshot/status", self.status, methods=["GET"]),
            Route("/api/snapshot/config", self.config, methods=["GET"]),
            Route("/api/snapshot/config", self.configure, methods=["PUT"]),
            Route("/api/snapshot/sync", self.publish, methods=["POST"]),
        ]

    async def list_sources(self, request: Request) -> Response:
        """By kind, with counts. Where a source is read and what went wrong with it is for owners and admins."""
        found, in_full = await self._catalog.list_known(), may_see_all(get_principal(request))
        kinds: dict[str, Any] = {}
        for kind in SourceKind:
            rows = [self._known(known, in_full=in_full) for known in found if known.source.kind is kind]
            kinds[kind.value] = {"count": len(rows), "sources": rows}
        return JSONResponse({"total": len(found), **kinds})

    async def add(self, request: Request) -> Response:
        require_admin(request)
        body = await read_object(request)
        check_field_names(body, _FIELDS)
        _check_local(request, read_text(body, "location"), _kind(body))
        source = await self._catalog.add(read_text(body, "location"), _change(body), source_id=read_text(body, "id"))
        return JSONResponse(self._source(source), status_code=201)

    async def edit(self, request: Request) -> Response:
        """Fields that are missing stay as they are."""
        require_admin(request)
        body, which = await read_object(request), request.path_params["source"]
        check_field_names(body, _ANSWERED)
        source = (await self._catalog.get(which)).source
        location = read_text(body, "location").strip() or source.location  # an empty one leaves it as it is
        _check_local(request, location, _kind(body))
        return JSONResponse(self._source(await self._catalog.edit(which, _change(body))))

    async def remove(self, request: Request) -> Response:
        require_admin(request)
        await self._catalog.remove(request.path_params["source"])
        return Response(status_code=204)

    async def status(self, request: Request) -> Response:
        require_admin(request)
        found = await self._snapshots.status()
        told = SnapshotInfo(
            current=found.current,
            latest=found.latest,
            latest_at=found.latest_at.isoformat() if found.latest_at else None,
            last_sync_at=found.last_sync_at.isoformat() if found.last_sync_at else None,
            needs_sync=found.needs_sync,
            why=found.why,
        )
        return JSONResponse(asdict(told))

    async def config(self, request: Request) -> Response:
        """Where snapshots are pushed to; an empty repository means nowhere."""
        require_admin(request)
        remote = self._remote()
        return JSONResponse(asdict(SnapshotRemoteInfo(remote.location, remote.branch, remote.allow_existing)))

    async def configure(self, request: Request) -> Response:
        """Changes it in the configuration, after the repository was made or found to be Denizen's; fields that are
        missing stay as they are. Agents have no snapshot then until the sync that begins at once has published one.
        """
        require_admin(request)
        body, known = await read_object(request), self._remote()
        check_field_names(body, _REMOTE_ANSWERED)
        remote = _read_remote(body, known)
        _check_local(request, remote.location, SourceKind.GIT)
        await self._change_remote(remote)
        run = await self._sync.start() if remote != known and await self._catalog.list_known() else None
        told = SnapshotRemoteChange(remote.location, remote.branch, remote.allow_existing, run.id if run else "")
        return JSONResponse(asdict(told))

    async def publish(self, request: Request) -> Response:
        """Makes what was read last the current snapshot."""
        require_admin(request)
        made = await self._snapshots.publish()
        return JSONResponse(asdict(PublishedSnapshot("" if made is None else made.id)))

    def _source(self, source: Source) -> dict[str, Any]:
        times = {"created_at": source.created_at.isoformat(), "updated_at": source.updated_at.isoformat()}
        has_webhook = bool(self._webhooks().get(source.id))
        return asdict(source) | times | {"folder": source.folder, "has_webhook": has_webhook}

    def _known(self, known: Known, *, in_full: bool) -> dict[str, Any]:
        source, state = known.source, known.state
        taken = state.taken if state else None
        told = {
            "id": source.id,
            "label": source.label,
            "folder": source.folder,
            "files": taken.files if taken else 0,
            "documents": taken.documents if taken else 0,
            "synced_at": state.synced_at.isoformat() if state and state.synced_at else None,
        }
        if not in_full:
            return told
        last: dict[str, Any] = {
            "skipped": taken.skipped if taken else 0,
            "left_out": taken.left_out if taken else (),
            "revision": state.revision if state else "",
            "error": state.error if state else "",
        }
        return self._source(source) | told | last


def _check_local(request: Request, location: str, kind: SourceKind | None) -> None:
    """Addresses without TLS are those of its own services: `domain/source` refuses all others. Over ssh git shows the
    keys of whoever runs the server.
    """
    given = location.strip().lower()
    is_local = kind is SourceKind.FOLDER or given.startswith(("/", "file:", "http:"))
    if given and not is_local:
        found, address = read_location(location, kind)
        is_local = found is SourceKind.GIT and not address.startswith("https:")
    if is_local and RoleName.OWNER not in get_principal(request).roles:
        raise NotAllowed(
            "Only an owner may name a path, a service or a key of the server's machine.",
            code="owner_only",
            fix="Use a key with the role owner, or `denizen sources add` on that machine.",
        )


def _kind(body: JsonBody) -> SourceKind | None:
    given = read_text(body, "kind")
    if given and given not in tuple(SourceKind):
        raise InvalidInput(
            f"'{given}' is no kind of source.", code="field_invalid", fix=f"Send one of {', '.join(SourceKind)}."
        )
    return SourceKind(given) if given else None


def _change(body: JsonBody) -> Change:
    texts = {name: read_text(body, name) if name in body else None for name in _TEXTS}
    return Change(
        location=read_text(body, "location") or None,
        kind=_kind(body),
        readme_only=read_flag(body, "readme_only") if "readme_only" in body else None,
        max_videos=_number(body, "max_videos"),
        sync_every_minutes=_number(body, "sync_every_minutes"),
        **texts,
    )


def _read_remote(body: JsonBody, known: Remote) -> Remote:
    """Raises InvalidInput, also for what the configuration would take for a variable: its value could be a secret."""
    location = read_text(body, "repository", known.location).strip()
    branch = read_text(body, "branch", known.branch).strip() or "main"
    if location:
        location = read_location(location, SourceKind.GIT)[1]
    if "$" in location or not is_branch(branch):
        raise InvalidInput("This is no repository and branch.", code="remote_invalid", fix="Write them in full.")
    allow_existing = read_flag(body, "allow_existing") if "allow_existing" in body else known.allow_existing
    return Remote(location, branch, allow_existing)


def _number(body: JsonBody, name: str) -> int | None:
    """What it may be is `domain/source`'s."""
    value = read_number(body, name, low=0, high=1_000_000)
    if value is not None and not value.is_integer():
        raise field_error(name, "a whole number")
    return None if value is None else int(value)


MAX_PAYLOAD_BYTES = 2 * 1024 * 1024


class SyncRoutes:
    """The routes."""

    def __init__(self, parts: KnowledgeServices, timing: WebTiming) -> None:
        self._sync = parts.sync
        self._indexing = parts.indexing
        self._webhooks = parts.webhooks
        self._timing = timing
        self._strangers = WebhookBodyReader()

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/api/sync", self.list_runs, methods=["GET"]),
            Route("/api/sync", self.start, methods=["POST"]),
            Route(f"{SYNC_WEBHOOKS}{{source}}", self.hear, methods=["POST"]),
            Route("/api/sync/{run}/events", self.events, methods=["GET"]),
            Route("/api/sync/{run}", self.get_run, methods=["GET"]),
            Route("/api/sync/{source}", self.start_one, methods=["POST"]),
            Route("/api/sandbox/snapshot", self.snapshot, methods=["POST"]),
        ]

    async def list_runs(self, request: Request) -> Response:
        """The last syncs, newest first; of those that run here how far each source is."""
        require_admin(request)
        runs = await self._sync.list_runs()
        return JSONResponse([asdict(_sync_to_wire(run, self._sync.progress(run.id))) for run in runs])

    async def get_run(self, request: Request) -> Response:
        require_admin(request)
        progress = self._sync.progress(request.path_params["run"])
        return JSONResponse(asdict(_sync_to_wire(await self._sync.get(request.path_params["run"]), progress)))

    async def start(self, request: Request) -> Response:
        require_admin(request)
        body: JsonBody = await read_object(request) if has_body(request) else {}
        check_field_names(body, ("sources", "reset", "push"))
        push = read_flag(body, "push") if "push" in body else True
        return _started(await self._sync.start(_names(body), reset=read_flag(body, "reset"), push=push))

    async def start_one(self, request: Request) -> Response:
        require_admin(request)
        return _started(await self._sync.start((request.path_params["source"],)))

    async def snapshot(self, request: Request) -> Response:
        """Has a snapshot made of what was read last, without reading anything, and pushed where one is configured."""
        require_admin(request)
        return _started(await self._sync.start_publishing())

    async def events(self, request: Request) -> Response:
        """`run` with all that is known, `progress` for each source and for the search index whenever they go on, and
        `end` with the result.
        """
        require_admin(request)
        conduct = StreamOptions(
            on_error=lambda error: _encode_sync_event("error", asdict(describe_problem(error))),
            on_gone=lambda: None,
            start_after_s=self._timing.chat_start_s,
            keep_alive_s=self._timing.keep_alive_s,
        )
        return EventStream(self._chunks(request.path_params["run"]), conduct, {})

    async def _chunks(self, run_id: str) -> Chunks:
        told: Mapping[str, Progress] | None = None
        async with aclosing(follow(self._sync, run_id, self._indexing)) as stands:
            async for stand in stands:
                for chunk in _changes(stand, told):
                    yield chunk
                told = stand.progress

    async def hear(self, request: Request) -> Response:
        """Raises NotAllowed (401) whatever is wrong: nobody learns which sources there are, or have a webhook."""
        source = request.path_params["source"]
        payload = await self._strangers.read(request, limit=MAX_PAYLOAD_BYTES) if self._webhooks() else b""
        if not is_signed(self._webhooks().get(source, ""), request.headers, payload):
            raise NotAllowed(
                "This webhook is not known, or its secret is wrong.",
                code="credentials_wrong",
                fix=f"Look at knowledge.webhooks.{source[:64]} and at the secret on the other side.",
            )
        if request.headers.get("x-github-event") == "ping":
            return JSONResponse({"status": "pong"})
        return _started(await self._sync.ask(source))


def is_signed(secret: str, headers: Mapping[str, str], payload: bytes) -> bool:
    """Whether the payload is signed with the secret as GitHub does it, or the secret is the bearer token. Takes the
    same time wherever it differs. Never for an empty secret.
    """
    signature = headers.get("x-hub-signature-256", "")
    if signature:
        made = f"sha256={hmac.new(secret.encode(), payload, hashlib.sha256).hexdigest()}"
        is_right = hmac.compare_digest(made.encode(), signature.encode())
    else:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else ""
        is_right = hmac.compare_digest(_digest(secret), _digest(given))
    return is_right and bool(secret)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _changes(stand: Stand, told: Mapping[str, Progress] | None) -> list[bytes]:
    if stand.is_over:
        return [_encode_sync_event("end", asdict(_sync_to_wire(stand.run)))]
    if told is None:
        return [_encode_sync_event("run", asdict(_sync_to_wire(stand.run, stand.progress)))]
    return [
        _encode_sync_event("progress", asdict(SourceProgress(source, progress.stage, progress.done, progress.total)))
        for source, progress in stand.progress.items()
        if told.get(source) != progress
    ]


def _encode_sync_event(event: str, row: Mapping[str, Any]) -> bytes:
    return f"event: {event}\ndata: {json.dumps(row, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


def _started(run: SyncRun) -> Response:
    return JSONResponse(asdict(StartedSync("started", run.id, run.sources)), status_code=202)


def _sync_to_wire(run: SyncRun, progress: Mapping[str, Progress] | None = None) -> SyncInfo:
    return SyncInfo(
        id=run.id,
        sources=run.sources,
        status=run.status.value,
        started_at=run.started_at.isoformat(),
        ended_at=run.ended_at.isoformat() if run.ended_at else None,
        snapshot=run.snapshot,
        changed=run.changed,
        failed=run.failed,
        skipped=run.skipped,
        progress={source: SyncProgress(each.stage, each.done, each.total) for source, each in (progress or {}).items()},
    )


def _names(body: JsonBody) -> tuple[str, ...]:
    names: Any = body.get("sources") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in cast("list[Any]", names)):
        raise field_error("sources", "a list of ids")
    return tuple(cast("list[str]", names))

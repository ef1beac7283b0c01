"""`/api/sync`: reading sources now, following that, and webhooks of those who change what is read (inventory 2.7).

All is for owners and admins but the webhook, which brings a secret of its own: as GitHub signs what it sends, or as a
bearer token. It has one source read, and nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from denizen.domain.errors import NotAllowed
from denizen.domain.source import SyncRun
from denizen.engine.knowledge.following import Stand, follow
from denizen.ports.source import Progress
from denizen.web.api.inbound import require_admin
from denizen.web.body import (
    JsonBody,
    WebhookBodyReader,
    check_field_names,
    field_error,
    has_body,
    read_flag,
    read_object,
)
from denizen.web.dependencies import KnowledgeServices, WebTiming
from denizen.web.errors import describe_problem
from denizen.web.event_stream import Chunks, EventStream, StreamOptions
from denizen.web.guard import SYNC_WEBHOOKS
from denizen_sdk.knowledge import SourceProgress, StartedSync, SyncInfo, SyncProgress

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

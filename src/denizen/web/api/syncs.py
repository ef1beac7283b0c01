"""`/api/sync`: starting and following syncs, which read sources, and the webhooks that start one.

Everything is for owners and admins except the webhook. That brings a secret of its own, as a signature in GitHub's form
or as a bearer token, and can start a sync of its one source, nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.errors import NotAllowed
from denizen.domain.source import SyncRun
from denizen.engine.knowledge.sync import SyncState, follow_sync
from denizen.ports.hosting import SIGNATURE_HEADER, is_signature
from denizen.ports.source import ReadingProgress
from denizen.web.http.dependencies import KnowledgeServices, WebTiming
from denizen.web.http.event_stream import Chunks, EventStream, StreamOptions, encode_sse
from denizen.web.http.openapi import ANY_OBJECT, FLAG, TEXT, ApiRoute, Operation, list_schema, object_schema
from denizen.web.http.problems import describe_problem, fill_in
from denizen.web.http.request import (
    JsonBody,
    WebhookBodyReader,
    check_field_names,
    field_error,
    has_body,
    read_flag,
    read_object,
)
from denizen.web.http.routing import Access
from denizen_sdk.knowledge import SYNC_EVENTS, SourceProgress, StartedSync, SyncInfo, SyncProgress

MAX_PAYLOAD_BYTES = 2 * 1024 * 1024


class SyncRoutes:
    """The routes of syncs."""

    def __init__(self, services: KnowledgeServices, timing: WebTiming) -> None:
        self._sync = services.sync
        self._indexing = services.indexing
        self._webhooks = services.webhooks
        self._timing = timing
        self._bodies = WebhookBodyReader()

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET",
                "/api/sync",
                self.list_runs,
                Access.ADMIN,
                Operation("The last syncs, newest first", answer=list[SyncInfo]),
            ),
            ApiRoute(
                "POST",
                "/api/sync",
                self.start,
                Access.ADMIN,
                Operation(
                    "Start reading all sources, or some",
                    object_schema(sources=list_schema(TEXT), reset=FLAG, push=FLAG),
                    StartedSync,
                    202,
                    needs_body=False,
                ),
            ),
            ApiRoute(
                "POST",
                "/api/sync/webhook/{source}",
                self.receive_webhook,
                Access.SIGNED,
                Operation(
                    "Start reading one source, signed as GitHub does or with the secret as bearer token",
                    ANY_OBJECT,
                    StartedSync,
                    202,
                    needs_body=False,
                ),
            ),
            ApiRoute(
                "GET",
                "/api/sync/{run}/events",
                self.follow,
                Access.ADMIN,
                Operation(
                    "Follow a sync to its end",
                    stream="`run` with the whole state, `progress` of each source, `end` with the result.",
                    events=tuple(dict.fromkeys(SYNC_EVENTS.values())),
                ),
            ),
            ApiRoute(
                "GET",
                "/api/sync/{run}",
                self.get_run,
                Access.ADMIN,
                Operation("One sync, and how far each of its sources is", answer=SyncInfo),
            ),
            ApiRoute(
                "POST",
                "/api/sync/{source}",
                self.start_one,
                Access.ADMIN,
                Operation("Start reading one source", answer=StartedSync, status=202),
            ),
            ApiRoute(
                "POST",
                "/api/sandbox/snapshot",
                self.make_snapshot,
                Access.ADMIN,
                Operation("Start making a snapshot of what was read last", answer=StartedSync, status=202),
            ),
        ]

    async def list_runs(self, request: Request) -> Response:
        runs = await self._sync.list_runs()
        return JSONResponse([asdict(_sync_to_wire(run, self._sync.progress(run.id))) for run in runs])

    async def get_run(self, request: Request) -> Response:
        progress = self._sync.progress(request.path_params["run"])
        return JSONResponse(asdict(_sync_to_wire(await self._sync.get(request.path_params["run"]), progress)))

    async def start(self, request: Request) -> Response:
        body: JsonBody = await read_object(request) if has_body(request) else {}
        check_field_names(body, ("sources", "reset", "push"))
        push = read_flag(body, "push") if "push" in body else True
        return _answer_started(await self._sync.start(_read_sources(body), reset=read_flag(body, "reset"), push=push))

    async def start_one(self, request: Request) -> Response:
        return _answer_started(await self._sync.start((request.path_params["source"],)))

    async def make_snapshot(self, request: Request) -> Response:
        """Starts a sync that reads nothing: it makes a snapshot, and pushes it if a remote is configured."""
        return _answer_started(await self._sync.start_publishing())

    async def follow(self, request: Request) -> Response:
        """Streams `run` with the whole state, `progress` of each source and of the search index, and `end` with the
        result.
        """
        options = StreamOptions(
            on_error=lambda error: encode_sse("error", asdict(fill_in(describe_problem(error)))),
            on_gone=lambda: None,
            start_after_s=self._timing.chat_start_s,
            keep_alive_s=self._timing.keep_alive_s,
        )
        return EventStream(self._stream(request.path_params["run"]), options, {})

    async def _stream(self, run_id: str) -> Chunks:
        previous: Mapping[str, ReadingProgress] | None = None
        async with aclosing(follow_sync(self._sync, run_id, self._indexing)) as updates:
            async for state in updates:
                for chunk in _changes(state, previous):
                    yield chunk
                previous = state.progress

    async def receive_webhook(self, request: Request) -> Response:
        """Starts a sync of the source. Answers 401 to an unknown source too, so that nobody learns which there are."""
        source = request.path_params["source"]
        is_readable = self._webhooks() and is_signature(request.headers.get(SIGNATURE_HEADER, ""))
        payload = await self._bodies.read(request, limit=MAX_PAYLOAD_BYTES) if is_readable else b""
        if not is_signed(self._webhooks().get(source, ""), request.headers, payload):
            raise NotAllowed(
                "This webhook is not known, or its secret is wrong.",
                code="credentials_wrong",
                fix=f"Compare knowledge.webhooks.{source[:64]} with the secret that the sender uses.",
            )
        if request.headers.get("x-github-event") == "ping":  # GitHub sends it when somebody sets the webhook up
            return JSONResponse({"status": "pong"})
        return _answer_started(await self._sync.ask(source))


def is_signed(secret: str, headers: Mapping[str, str], payload: bytes) -> bool:
    """Tells whether the payload is signed with the secret in GitHub's form, or the secret is the bearer token.

    Takes the same time wherever they differ. An empty secret never fits.
    """
    signature = headers.get(SIGNATURE_HEADER, "")
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


def _changes(state: SyncState, previous: Mapping[str, ReadingProgress] | None) -> list[bytes]:
    """Returns the events for a state that follows one with the `previous` progress; None before the first."""
    if state.is_over:
        return [encode_sse("end", asdict(_sync_to_wire(state.run)))]
    if previous is None:
        return [encode_sse("run", asdict(_sync_to_wire(state.run, state.progress)))]
    return [
        encode_sse("progress", asdict(SourceProgress(source, progress.stage, progress.done, progress.total)))
        for source, progress in state.progress.items()
        if previous.get(source) != progress
    ]


def _answer_started(run: SyncRun) -> Response:
    return JSONResponse(asdict(StartedSync("started", run.id, run.sources)), status_code=202)


def _sync_to_wire(run: SyncRun, progress: Mapping[str, ReadingProgress] | None = None) -> SyncInfo:
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
        left_out=run.left_out,
        progress={source: SyncProgress(each.stage, each.done, each.total) for source, each in (progress or {}).items()},
    )


def _read_sources(body: JsonBody) -> tuple[str, ...]:
    names: Any = body.get("sources") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in cast("list[Any]", names)):
        raise field_error("sources", "a list of ids")
    return tuple(cast("list[str]", names))

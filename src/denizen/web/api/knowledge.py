"""`/api/sources`, `/api/sync` and `/api/snapshot`: what agents look things up in (inventory 2.7).

Everybody who may reach the server reads the list; the rest is for owners and admins. A path of the server's own machine
is named by owners only: an admin of the community need not be somebody who may read its disk.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.principal import RoleName
from denizen.domain.snapshot import Remote
from denizen.domain.source import Source, SourceKind, SyncRun
from denizen.engine.knowledge.sources import Change, Known
from denizen.web.api.inbound import may_see_all
from denizen.web.body import Body, read_flag, read_number, read_object, read_text, wrong_type
from denizen.web.dependencies import KnowledgeParts
from denizen.web.guard import principal_of
from denizen_sdk.wire import SyncStarted

_TEXTS = ("label", "branch", "content_path", "output_path")


class Knowledge:
    """The routes."""

    def __init__(self, parts: KnowledgeParts) -> None:
        self._catalog = parts.catalog
        self._sync = parts.sync
        self._snapshots = parts.snapshots
        self._remote = parts.remote

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/api/sources", self.list_sources, methods=["GET"]),
            Route("/api/sources", self.add, methods=["POST"]),
            Route("/api/sources/{source}", self.edit, methods=["PUT"]),
            Route("/api/sources/{source}", self.remove, methods=["DELETE"]),
            Route("/api/sync", self.list_runs, methods=["GET"]),
            Route("/api/sync", self.start, methods=["POST"]),
            Route("/api/sync/{source}", self.start_one, methods=["POST"]),
            Route("/api/snapshot/status", self.status, methods=["GET"]),
            Route("/api/snapshot/config", self.config, methods=["GET"]),
            Route("/api/snapshot/sync", self.publish, methods=["POST"]),
        ]

    async def list_sources(self, request: Request) -> Response:
        """By kind, with counts. Where a source is read and what went wrong with it is for owners and admins."""
        found, in_full = await self._catalog.list_known(), may_see_all(principal_of(request))
        kinds: dict[str, Any] = {}
        for kind in SourceKind:
            rows = [_known(known, in_full=in_full) for known in found if known.source.kind is kind]
            kinds[kind.value] = {"count": len(rows), "sources": rows}
        return JSONResponse({"total": len(found), **kinds})

    async def add(self, request: Request) -> Response:
        require_admin(request)
        body = await read_object(request)
        _check_local(request, read_text(body, "location"), _kind(body))
        source = await self._catalog.add(read_text(body, "location"), _change(body), source_id=read_text(body, "id"))
        return JSONResponse(_source(source), status_code=201)

    async def edit(self, request: Request) -> Response:
        """Fields that are missing stay as they are."""
        require_admin(request)
        body, which = await read_object(request), request.path_params["source"]
        source = (await self._catalog.get(which)).source
        location = read_text(body, "location").strip() or source.location  # an empty one leaves it as it is
        _check_local(request, location, _kind(body))
        return JSONResponse(_source(await self._catalog.edit(which, _change(body))))

    async def remove(self, request: Request) -> Response:
        require_admin(request)
        await self._catalog.remove(request.path_params["source"])
        return Response(status_code=204)

    async def list_runs(self, request: Request) -> Response:
        """The last syncs, newest first; of those that run here how far each source is."""
        require_admin(request)
        runs = await self._sync.list_runs()
        return JSONResponse([{**_run(run), "progress": self._progress(run)} for run in runs])

    async def start(self, request: Request) -> Response:
        require_admin(request)
        body: Body = await read_object(request) if _has_body(request) else {}
        push = read_flag(body, "push") if "push" in body else True
        return await self._started(_names(body), reset=read_flag(body, "reset"), push=push)

    async def start_one(self, request: Request) -> Response:
        require_admin(request)
        return await self._started((request.path_params["source"],))

    async def status(self, request: Request) -> Response:
        require_admin(request)
        found = await self._snapshots.status()
        return JSONResponse(
            {
                "current": found.current,
                "latest": found.latest,
                "latest_at": found.latest_at.isoformat() if found.latest_at else None,
                "last_sync_at": found.last_sync_at.isoformat() if found.last_sync_at else None,
                "needs_sync": found.needs_sync,
                "why": found.why,
            }
        )

    async def config(self, request: Request) -> Response:
        """Where snapshots are pushed to; an empty repository means nowhere. It is changed in the configuration."""
        require_admin(request)
        remote = self._remote() or Remote("")
        told = {"repository": remote.location, "branch": remote.branch, "allow_existing": remote.allow_existing}
        return JSONResponse(told)

    async def publish(self, request: Request) -> Response:
        """Makes what was read last the current snapshot."""
        require_admin(request)
        made = await self._snapshots.publish()
        return JSONResponse({"current": "" if made is None else made.id})

    async def _started(self, only: tuple[str, ...], *, reset: bool = False, push: bool = True) -> Response:
        run = await self._sync.start(only, reset=reset, push=push)
        return JSONResponse(asdict(SyncStarted("started", run.id, run.sources)), status_code=202)

    def _progress(self, run: SyncRun) -> dict[str, Any]:
        return {name: asdict(told) for name, told in self._sync.progress(run.id).items()}


def require_admin(request: Request) -> None:
    """Raises NotAllowed for everybody but owners and admins."""
    if not may_see_all(principal_of(request)):
        raise NotAllowed("This is for owners and admins.", code="admin_only", fix="Use a key with the role admin.")


def _has_body(request: Request) -> bool:
    length = request.headers.get("content-length", "0")
    return length != "0" or "transfer-encoding" in request.headers


def _check_local(request: Request, location: str, kind: SourceKind | None) -> None:
    """Addresses without TLS are those of its own services: `domain/source` refuses all others."""
    is_local = kind is SourceKind.FOLDER or location.strip().lower().startswith(("/", "file:", "http:"))
    if is_local and RoleName.OWNER not in principal_of(request).roles:
        raise NotAllowed(
            "Only an owner may name a path or a service of the server's machine.",
            code="owner_only",
            fix="Use a key with the role owner, or `denizen sources add` on that machine.",
        )


def _kind(body: Body) -> SourceKind | None:
    given = read_text(body, "kind")
    if given and given not in tuple(SourceKind):
        raise InvalidInput(
            f"'{given}' is no kind of source.", code="field_invalid", fix=f"Send one of {', '.join(SourceKind)}."
        )
    return SourceKind(given) if given else None


def _change(body: Body) -> Change:
    texts = {name: read_text(body, name) if name in body else None for name in _TEXTS}
    return Change(
        location=read_text(body, "location") or None,
        kind=_kind(body),
        readme_only=read_flag(body, "readme_only") if "readme_only" in body else None,
        max_videos=_number(body, "max_videos"),
        sync_every_minutes=_number(body, "sync_every_minutes"),
        **texts,
    )


def _number(body: Body, name: str) -> int | None:
    """What it may be is `domain/source`'s."""
    value = read_number(body, name, low=0, high=1_000_000)
    if value is not None and not value.is_integer():
        raise wrong_type(name, "a whole number")
    return None if value is None else int(value)


def _names(body: Body) -> tuple[str, ...]:
    names: Any = body.get("sources") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in cast("list[Any]", names)):
        raise wrong_type("sources", "a list of ids")
    return tuple(cast("list[str]", names))


def _source(source: Source) -> dict[str, Any]:
    times = {"created_at": source.created_at.isoformat(), "updated_at": source.updated_at.isoformat()}
    return asdict(source) | times | {"folder": source.folder}


def _known(known: Known, *, in_full: bool) -> dict[str, Any]:
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
    return _source(source) | told | {"revision": state.revision if state else "", "error": state.error if state else ""}


def _run(run: SyncRun) -> dict[str, Any]:
    ended_at = run.ended_at.isoformat() if run.ended_at else None
    return asdict(run) | {"started_at": run.started_at.isoformat(), "ended_at": ended_at}

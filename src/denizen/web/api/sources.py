"""`/api/sources` and `/api/snapshot`: the documents that agents search, and where snapshots of them are pushed to.

Everybody who may reach the server reads the list of sources; the rest is for owners and admins. Only owners may name a
path of the server's own machine: an admin of the community need not be somebody who may read its disk.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.embedding_progress import EmbeddingProgress
from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.location import is_on_this_machine
from denizen.domain.principal import RoleName
from denizen.domain.snapshot import RemoteRepository
from denizen.domain.source import SOURCE_SETTINGS, Source, SourceKind, is_branch, read_location
from denizen.domain.source_list import ProposedSource
from denizen.engine.knowledge.source_import import SourceImporter
from denizen.engine.knowledge.sources import SourceChange, SourceListing
from denizen.web.http.auth import get_principal, may_see_all
from denizen.web.http.dependencies import KnowledgeServices
from denizen.web.http.openapi import FLAG, NUMBER, TEXT, TIME, ApiRoute, Operation, Schema, list_schema, object_schema
from denizen.web.http.request import (
    JsonBody,
    check_field_names,
    field_error,
    read_flag,
    read_number,
    read_object,
    read_text,
)
from denizen.web.http.routing import Access
from denizen_sdk.knowledge import (
    EmbeddingInfo,
    FoundSources,
    ProposedSourceInfo,
    PublishedSnapshot,
    SnapshotInfo,
    SnapshotRemoteChange,
    SnapshotRemoteInfo,
    SourceInfo,
    SourceSettings,
    SourceSyncState,
)

_FIELDS = ("id", "location", "kind", *SOURCE_SETTINGS)

# A client that changes something may send back the whole answer that it got, so these fields are known there too.
_ANSWERED_FIELDS = (
    *(each.name for record in (SourceInfo, SourceSettings, SourceSyncState) for each in fields(record)),
    *("created_at", "updated_at"),
)
_ANSWERED_REMOTE_FIELDS = tuple(each.name for each in fields(SnapshotRemoteChange))

_SOURCE_FIELDS: dict[str, Schema] = {
    "location": TEXT,
    "kind": TEXT,
    **{name: {str: TEXT, bool: FLAG, int: NUMBER}[kind] for name, kind in SOURCE_SETTINGS.items()},
}
_SOURCE = object_schema("id", "folder", id=TEXT, folder=TEXT, has_webhook=FLAG, **_SOURCE_FIELDS)
_LISTED_SOURCE = object_schema(
    *("id", "label", "folder", "files", "documents", "synced_at"),
    id=TEXT,
    label=TEXT,
    folder=TEXT,
    files=NUMBER,
    documents=NUMBER,
    synced_at=TIME,
)
_SOURCES_OF_KIND = object_schema("count", "sources", count=NUMBER, sources=list_schema(_LISTED_SOURCE))


class KnowledgeRoutes:
    """The routes of sources and snapshots."""

    def __init__(self, services: KnowledgeServices) -> None:
        self._catalog = services.catalog
        self._sync = services.sync
        self._snapshots = services.snapshots
        self._remote = services.remote
        self._change_remote = services.change_remote
        self._webhooks = services.webhooks
        self._find_embedding = services.embedding

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET",
                "/api/sources",
                self.list_sources,
                Access.MEMBER,
                Operation(
                    "The sources of knowledge by kind",
                    answer={**object_schema("total", total=NUMBER), "additionalProperties": _SOURCES_OF_KIND},
                ),
            ),
            ApiRoute(
                "POST",
                "/api/sources",
                self.add,
                Access.ADMIN,
                Operation("Add a source", object_schema("location", id=TEXT, **_SOURCE_FIELDS), _SOURCE, 201),
            ),
            ApiRoute(
                "PUT",
                "/api/sources/{source}",
                self.edit,
                Access.ADMIN,
                Operation("Change a source", object_schema(**_SOURCE_FIELDS), _SOURCE),
            ),
            ApiRoute(
                "DELETE", "/api/sources/{source}", self.remove, Access.ADMIN, Operation("Remove a source", status=204)
            ),
            ApiRoute(
                "GET",
                "/api/snapshot/status",
                self.get_status,
                Access.ADMIN,
                Operation("The current snapshot and the latest one", answer=SnapshotInfo),
            ),
            ApiRoute(
                "GET",
                "/api/snapshot/config",
                self.get_remote,
                Access.ADMIN,
                Operation("The repository that snapshots are pushed to", answer=SnapshotRemoteInfo),
            ),
            ApiRoute(
                "PUT",
                "/api/snapshot/config",
                self.change_remote,
                Access.ADMIN,
                Operation(
                    "Change the repository that snapshots are pushed to, and start a sync that publishes to it",
                    object_schema(repository=TEXT, branch=TEXT, allow_existing=FLAG),
                    SnapshotRemoteChange,
                ),
            ),
            ApiRoute(
                "POST",
                "/api/snapshot/sync",
                self.publish,
                Access.ADMIN,
                Operation("Make the latest snapshot the current one", answer=PublishedSnapshot),
            ),
        ]

    async def list_sources(self, request: Request) -> Response:
        """Answers with the sources by kind. Only owners and admins get their locations and errors, and the sources that
        are for one community alone.
        """
        in_full = may_see_all(get_principal(request))
        found = [each for each in await self._catalog.list_known() if in_full or not each.source.guild]
        kinds: dict[str, Any] = {}
        for kind in SourceKind:
            rows = [self._known(known, in_full=in_full) for known in found if known.source.kind is kind]
            kinds[kind.value] = {"count": len(rows), "sources": rows}
        return JSONResponse({"total": len(found), **kinds})

    async def add(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, _FIELDS)
        check_local(request, read_text(body, "location"), _kind(body))
        source = await self._catalog.add(read_text(body, "location"), _change(body), source_id=read_text(body, "id"))
        return JSONResponse(self._source(source), status_code=201)

    async def edit(self, request: Request) -> Response:
        """Changes a source. A missing field stays as it is."""
        body, which = await read_object(request), request.path_params["source"]
        check_field_names(body, _ANSWERED_FIELDS)
        source = (await self._catalog.get(which)).source
        location = read_text(body, "location").strip() or source.location
        check_local(request, location, _kind(body))
        return JSONResponse(self._source(await self._catalog.edit(which, _change(body))))

    async def remove(self, request: Request) -> Response:
        await self._catalog.remove(request.path_params["source"])
        return Response(status_code=204)

    async def get_status(self, request: Request) -> Response:
        found = await self._snapshots.status()
        info = SnapshotInfo(
            current=found.current,
            latest=found.latest,
            latest_at=found.latest_at.isoformat() if found.latest_at else None,
            last_sync_at=found.last_sync_at.isoformat() if found.last_sync_at else None,
            needs_sync=found.needs_sync,
            why=found.why,
            embedding=_embedding_to_wire(await self._find_embedding()),
        )
        return JSONResponse(asdict(info))

    async def get_remote(self, request: Request) -> Response:
        remote = self._remote()
        return JSONResponse(asdict(SnapshotRemoteInfo(remote.location, remote.branch, remote.allow_existing)))

    async def change_remote(self, request: Request) -> Response:
        """Writes the remote to the configuration, once the repository is created or found to be Denizen's. A missing
        field stays as it is. Agents have no snapshot until the sync that this starts has published one.
        """
        body, known = await read_object(request), self._remote()
        check_field_names(body, _ANSWERED_REMOTE_FIELDS)
        remote = read_remote(body, known)
        check_local(request, remote.location, SourceKind.GIT)
        await self._change_remote(remote)
        run = await self._sync.start() if remote != known and await self._catalog.list_known() else None
        change = SnapshotRemoteChange(remote.location, remote.branch, remote.allow_existing, run.id if run else "")
        return JSONResponse(asdict(change))

    async def publish(self, request: Request) -> Response:
        made = await self._snapshots.publish()
        return JSONResponse(asdict(PublishedSnapshot("" if made is None else made.id)))

    def _source(self, source: Source) -> dict[str, Any]:
        times = {"created_at": source.created_at.isoformat(), "updated_at": source.updated_at.isoformat()}
        has_webhook = bool(self._webhooks().get(source.id))
        return asdict(source) | times | {"folder": source.folder, "has_webhook": has_webhook}

    def _known(self, known: SourceListing, *, in_full: bool) -> dict[str, Any]:
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


class SourceImportRoutes:
    """The route that finds sources in a list or a picture."""

    def __init__(self, importer: SourceImporter) -> None:
        self._importer = importer

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "POST",
                "/api/sources/ocr",
                self.find,
                Access.ADMIN,
                Operation(
                    "Find sources in a list, or in a screenshot of one, to review them; none is added",
                    object_schema(text=TEXT, image=TEXT),
                    FoundSources,
                ),
            )
        ]

    async def find(self, request: Request) -> Response:
        """`text` is YAML, JSON or lines with a place each, `image` a picture as a data URI."""
        body = await read_object(request)
        check_field_names(body, ("text", "image"))
        text, image = read_text(body, "text"), read_text(body, "image")
        if bool(text) == bool(image):
            raise InvalidInput("Send either 'text' or 'image'.", code="field_invalid", fix="Leave the other one out.")
        importer = self._importer
        found = await (importer.read_text(text) if text else importer.read_picture(get_principal(request), image))
        return JSONResponse(asdict(FoundSources(tuple(map(_proposal_to_wire, found)))))


def _proposal_to_wire(proposal: ProposedSource) -> ProposedSourceInfo:
    given = {name: getattr(proposal.given, name) for name in SOURCE_SETTINGS}
    return ProposedSourceInfo(
        id=proposal.id,
        location=proposal.location,
        settings=SourceSettings(kind=proposal.kind.value if proposal.kind else None, **given),
        problem=proposal.problem,
        ignored=proposal.ignored,
    )


def _embedding_to_wire(progress: EmbeddingProgress | None) -> EmbeddingInfo | None:
    if progress is None:
        return None
    return EmbeddingInfo(progress.done, progress.total, progress.left_s, progress.describe())


def check_local(request: Request, location: str, kind: SourceKind | None) -> None:
    """Raises NotAllowed unless an owner names something of the server's own machine.

    That includes its services, of which `domain/location` allows addresses without TLS, and addresses over ssh, for
    which git uses the keys of whoever runs the server.
    """
    given = location.strip().lower()
    is_local = kind is SourceKind.FOLDER or given.startswith(("/", "file:", "http:"))
    if given and not is_local:
        found, address = read_location(location, kind)
        is_local = is_on_this_machine(address) or (found is SourceKind.GIT and not address.startswith("https:"))
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


def _change(body: JsonBody) -> SourceChange:
    read = {str: read_text, bool: read_flag, int: _number}
    settings: dict[str, Any] = {name: read[kind](body, name) for name, kind in SOURCE_SETTINGS.items() if name in body}
    return SourceChange(location=read_text(body, "location") or None, kind=_kind(body), **settings)


def read_remote(body: JsonBody, known: RemoteRepository) -> RemoteRepository:
    """Returns the remote in a body.

    Raises InvalidInput, also for a `$`: the configuration would replace a variable, whose value could be a secret.
    """
    location = read_text(body, "repository", known.location).strip()
    branch = read_text(body, "branch", known.branch).strip() or "main"
    if location:
        location = read_location(location, SourceKind.GIT)[1]
    if "$" in location or not is_branch(branch):
        raise InvalidInput("This is no repository and branch.", code="remote_invalid", fix="Write them in full.")
    allow_existing = read_flag(body, "allow_existing") if "allow_existing" in body else known.allow_existing
    return RemoteRepository(location, branch, allow_existing)


def _number(body: JsonBody, name: str) -> int | None:
    # Only the type is checked here; `domain/source` knows the limits of each kind of source.
    value = read_number(body, name, low=0, high=1_000_000)
    if value is not None and not value.is_integer():
        raise field_error(name, "a whole number")
    return None if value is None else int(value)

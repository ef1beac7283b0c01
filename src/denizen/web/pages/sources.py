"""The sources of knowledge: the list at `/admin/sources` with filter and syncs, a form for each kind, and one source.

Only owners may name something of the server's own machine, as over the API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.record import record
from denizen.domain.source import (
    SOURCE_SETTINGS,
    Source,
    SourceChange,
    SourceKind,
    SyncRun,
    describe_left_out,
    is_sync_due,
)
from denizen.engine.knowledge.sources import SourceListing
from denizen.engine.knowledge.sync import INDEX
from denizen.ports.source import ReadingProgress
from denizen.web.api.sources import check_local
from denizen.web.http.dependencies import KnowledgeServices, WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.forms import ListPart, cut_list, find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

SOURCES = "/admin/sources"
SHOWN, SHOWN_RUNS = 5, 5
_NOTICES = {
    "added": "The source was added. Read it, so that agents find what it says.",
    "imported": "The sources were added. Read them, so that agents find what they say.",
    "changed": "The source was changed. It holds from the next sync on.",
    "removed": "The source was removed, with everything that was read of it.",
    "started": "The sync has begun.",
}
KIND_LABELS = {
    SourceKind.GIT: "Git repository",
    SourceKind.FOLDER: "Folder of this machine",
    SourceKind.SITEMAP: "Web site by sitemap",
    SourceKind.YOUTUBE: "YouTube channel",
    SourceKind.ARCHIVE: "Community channel",
}
LOCATION_HINTS = {
    SourceKind.GIT: "owner/repo on GitHub, https://host/repo.git, or ssh://git@host/owner/repo for a private one.",
    SourceKind.FOLDER: "An absolute path, such as /srv/handbook. Only owners may name one.",
    SourceKind.SITEMAP: "The address of the sitemap: https://docs.example.org/sitemap.xml",
    SourceKind.YOUTUBE: "The handle, address or id of the channel: @name. It needs a key under knowledge.youtube.",
    SourceKind.ARCHIVE: "discord: and the id of the channel, or its link. Only channels that everybody there may read.",
}
SETTINGS_BY_KIND: Mapping[SourceKind, Sequence[str]] = {
    SourceKind.GIT: ("branch", "content_path", "readme_only", "output_path", "sync_every_minutes", "guild"),
    SourceKind.FOLDER: ("content_path", "readme_only", "output_path", "sync_every_minutes", "guild"),
    SourceKind.SITEMAP: ("content_path", "output_path", "sync_every_minutes", "guild"),
    SourceKind.YOUTUBE: ("max_videos", "output_path", "sync_every_minutes", "guild"),
    SourceKind.ARCHIVE: ("output_path", "sync_every_minutes", "guild"),
}
STATES = {"failing": "could not be read", "unread": "not read yet", "partial": "left something out", "good": "fine"}


@record
class SourceRow:
    """One source in the list. `state` is one of `STATES`."""

    source: Source
    kind: str
    state: str
    files: int
    documents: int
    synced_at: datetime | None
    error: str
    left_out: str


@record(kw_only=True)
class RunRow:
    """One sync. `progress` is told while it runs: what is read, the stage, done and total."""

    run: SyncRun
    progress: Sequence[tuple[str, ReadingProgress]] = ()


@record(kw_only=True)
class SourcesPage:
    """The context of `sources.html`. `is_due` reminds of a sync."""

    frame: Frame
    listed: ListPart[SourceRow]
    known: int
    runs: Sequence[RunRow]
    last_sync_at: datetime | None
    is_due: bool
    query: str
    kind: str
    state: str
    kinds: Sequence[tuple[str, str]]
    states: Sequence[tuple[str, str]]
    address: str
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class SourceForm:
    """The fields of a new source of one kind, with what was typed."""

    kind: str
    kinds: Sequence[tuple[str, str]]
    hint: str
    settings: Sequence[str]
    values: Mapping[str, Any]


@record(kw_only=True)
class SourceFormPage:
    """The context of `source_new.html`."""

    frame: Frame
    form: SourceForm
    problem: ProblemDetails | None = None


@record(kw_only=True)
class SourcePage:
    """The context of `source.html`. `left_out` names files that were not kept; `webhook` is the address that starts a
    sync, empty without a secret for it.
    """

    frame: Frame
    row: SourceRow
    revision: str
    left_out: Sequence[str]
    more_left_out: int
    webhook: str
    hint: str
    settings: Sequence[str]
    values: Mapping[str, Any]
    notice: str = ""
    problem: ProblemDetails | None = None


class SourcePages:
    """The routes of the sources."""

    def __init__(self, deps: WebDependencies, knowledge: KnowledgeServices) -> None:
        self._deps = deps
        self._knowledge = knowledge

    @property
    def routes(self) -> list[SitePageRoute]:
        one = f"{SOURCES}/{{source}}"
        return [
            SitePageRoute("GET", SOURCES, self.list, Access.ADMIN),
            SitePageRoute("GET", "/admin/add-source", self.show_form, Access.ADMIN),
            SitePageRoute("POST", "/admin/add-source", self.add, Access.ADMIN),
            SitePageRoute("POST", "/admin/sync", self.sync, Access.ADMIN),
            SitePageRoute("GET", one, self.show, Access.ADMIN),
            SitePageRoute("POST", one, self.edit, Access.ADMIN),
            SitePageRoute("POST", f"{one}/remove", self.remove, Access.ADMIN),
        ]

    async def list(self, request: Request) -> Response:
        return await self._show_list(request)

    async def show_form(self, request: Request) -> Response:
        return self._show_form(request, {"kind": request.query_params.get("kind", "")})

    async def add(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            await add_source(request, self._knowledge, form)
        except DenizenError as error:
            return self._show_form(request, form, error)
        return lead_to(SOURCES, done="started" if "sync" in form else "added")

    async def sync(self, request: Request) -> Response:
        """Starts reading the source that the form names, or all."""
        form = await read_form(request)
        try:
            await self._knowledge.sync.start([form["source"]] if form.get("source") else (), reset="reset" in form)
        except DenizenError as error:
            return await self._show_list(request, error)
        return lead_to(SOURCES, done="started")

    async def show(self, request: Request) -> Response:
        return await self._show(request, await self._knowledge.catalog.get(request.path_params["source"]))

    async def edit(self, request: Request) -> Response:
        known = await self._knowledge.catalog.get(request.path_params["source"])
        form = await read_form(request)
        try:
            location = form.get("location", "").strip() or known.source.location
            check_local(request, location, known.source.kind)
            change = read_source_form({**form, "location": location, "guild": known.source.guild}, known.source.kind)
            await self._knowledge.catalog.edit(known.source.id, change)
        except DenizenError as error:
            return await self._show(request, known, form, error)
        return lead_to(f"{SOURCES}/{known.source.id}", done="changed")

    async def remove(self, request: Request) -> Response:
        await self._knowledge.catalog.remove(request.path_params["source"])
        return lead_to(SOURCES, done="removed")

    async def _show_list(self, request: Request, error: DenizenError | None = None) -> Response:
        knowledge, asked = self._knowledge, request.query_params
        found = await knowledge.catalog.list_known()
        words, kind, state = (asked.get(name, "").strip() for name in ("q", "kind", "state"))
        rows = [
            row
            for row in map(describe_source, found)
            if _matches(row, words) and kind in ("", row.source.kind) and state in ("", row.state)
        ]
        status = await knowledge.snapshots.status()
        runs = await knowledge.sync.list_runs(limit=SHOWN_RUNS)
        is_running = any(run.ended_at is None for run in runs) or knowledge.indexing() is not None
        problem = find_problem(error)
        page = SourcesPage(
            frame=build_frame(request, self._deps),
            listed=cut_list(request, rows, size=SHOWN),
            known=len(found),
            runs=[self._describe_run(run, is_newest=run is runs[0]) for run in runs],
            last_sync_at=status.last_sync_at,
            is_due=bool(found) and not is_running and is_sync_due(status.last_sync_at, self._deps.clock.now()),
            query=words,
            kind=kind,
            state=state,
            kinds=[("", "every kind"), *((each.value, label) for each, label in KIND_LABELS.items())],
            states=[("", "every state"), *STATES.items()],
            address=f"{SOURCES}?{request.url.query}",
            notice=_NOTICES.get(asked.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/sources.html", page, status=problem.status if problem else 200)

    def _describe_run(self, run: SyncRun, *, is_newest: bool) -> RunRow:
        progress = list(self._knowledge.sync.progress(run.id).items())
        indexing = self._knowledge.indexing()
        if is_newest and indexing is not None:
            progress.append((INDEX, indexing))
        return RunRow(run=run, progress=progress)

    def _show_form(self, request: Request, values: Mapping[str, str], error: DenizenError | None = None) -> Response:
        problem = find_problem(error)
        page = SourceFormPage(
            frame=build_frame(request, self._deps, path=SOURCES),
            form=fill_source_form(read_kind(values.get("kind", "")), values),
            problem=problem,
        )
        return render("admin/source_new.html", page, status=problem.status if problem else 200)

    async def _show(
        self,
        request: Request,
        known: SourceListing,
        typed: Mapping[str, Any] | None = None,
        error: DenizenError | None = None,
    ) -> Response:
        source, state, problem = known.source, known.state, find_problem(error)
        values: dict[str, Any] = {name: getattr(source, name) for name in ("location", *SOURCE_SETTINGS)}
        if typed is not None:
            flags = {name: name in typed for name, kind in SOURCE_SETTINGS.items() if kind is bool}
            values |= {**typed, **flags}
        taken = state.taken if state else None
        page = SourcePage(
            frame=build_frame(request, self._deps),
            row=describe_source(known),
            revision=state.revision if state else "",
            left_out=taken.left_out if taken else (),
            more_left_out=taken.skipped - len(taken.left_out) if taken else 0,
            webhook=f"/api/sync/webhook/{source.id}" if self._knowledge.webhooks().get(source.id) else "",
            hint=LOCATION_HINTS[source.kind],
            settings=[each for each in SETTINGS_BY_KIND[source.kind] if each != "guild"],
            values=values,
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/source.html", page, status=problem.status if problem else 200)


async def add_source(request: Request, knowledge: KnowledgeServices, form: Mapping[str, str]) -> None:
    """Adds the source that a form describes, and reads it where the form says so. Raises what is wrong with it."""
    kind, location = read_kind(form.get("kind", "")), form.get("location", "")
    check_local(request, location, kind)
    change = read_source_form(form, kind)
    source = await knowledge.catalog.add(location, change, source_id=form.get("id", ""))
    if "sync" in form:
        await knowledge.sync.start([source.id])


def fill_source_form(kind: SourceKind, typed: Mapping[str, str]) -> SourceForm:
    return SourceForm(
        kind=kind.value,
        kinds=[(each.value, label) for each, label in KIND_LABELS.items()],
        hint=LOCATION_HINTS[kind],
        settings=SETTINGS_BY_KIND[kind],
        values={"location": "", "id": "", **list_defaults(), **typed},
    )


def list_defaults() -> Mapping[str, Any]:
    """Returns the settings of a new source, as a form shows them."""
    return {each.name: each.default for each in fields(Source) if each.name in SOURCE_SETTINGS}


def read_source_form(form: Mapping[str, str], kind: SourceKind) -> SourceChange:
    """Returns what a form says of a source of that kind. Raises InvalidInput for a number that is none."""
    given: dict[str, Any] = {"label": form.get("label", "")}
    for name in SETTINGS_BY_KIND[kind]:
        value = form.get(name, "").strip()
        match SOURCE_SETTINGS[name]:
            case t if t is bool:
                given[name] = name in form
            case t if t is int:
                given[name] = _read_number(name, value)
            case _:
                given[name] = value
    return SourceChange(location=form.get("location", "").strip() or None, kind=kind, **given)


def describe_source(known: SourceListing) -> SourceRow:
    source, state = known.source, known.state
    taken = state.taken if state else None
    left_out = describe_left_out(taken, most=3) if taken else ""
    error = state.error if state else ""
    return SourceRow(
        source=source,
        kind=KIND_LABELS[source.kind],
        state="failing" if error else "unread" if taken is None else "partial" if left_out else "good",
        files=taken.files if taken else 0,
        documents=taken.documents if taken else 0,
        synced_at=state.synced_at if state else None,
        error=error,
        left_out=left_out,
    )


def _matches(row: SourceRow, words: str) -> bool:
    text = f"{row.source.id} {row.source.label} {row.source.location}".casefold()
    return all(word in text for word in words.casefold().split())


def read_kind(given: str) -> SourceKind:
    return SourceKind(given) if given in tuple(SourceKind) else SourceKind.GIT


def _read_number(name: str, value: str) -> int | None:
    if not value:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) <= 9):
        message = f"'{value[:40]}' is no whole number."
        raise InvalidInput(message, code="field_invalid", fix="Write digits only.", field=name)
    return int(value)

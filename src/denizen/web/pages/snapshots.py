"""The snapshots at `/admin/snapshots`: what agents read now, the repository that it is pushed to, and a sync.

Only owners may name a repository on the server's own machine, as over the API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError
from denizen.domain.record import record
from denizen.domain.snapshot import Snapshot, SnapshotStatus
from denizen.domain.source import SourceKind, SyncRun
from denizen.web.api.sources import check_local, read_remote
from denizen.web.http.dependencies import KnowledgeServices, WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.forms import ListPart, cut_list, find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

SNAPSHOTS = "/admin/snapshots"
SHOWN = 10
_NOTICES = {
    "started": "The sync has begun.",
    "published": "What was read last is what agents read now.",
    "remote": "The repository was changed. Agents have no snapshot until the sync that has begun has published one.",
    "same": "Nothing was changed.",
    "fine": "Every file of the current snapshot is as it was made.",
}


@record(kw_only=True)
class SnapshotsPage:
    """The context of `snapshots.html`. `running` is the sync that goes on now. `faults` are what a check has found."""

    frame: Frame
    status: SnapshotStatus
    listed: ListPart[Snapshot]
    remote: Mapping[str, object]
    running: SyncRun | None
    address: str
    embedding: str
    faults: Sequence[str] = ()
    notice: str = ""
    problem: ProblemDetails | None = None


class SnapshotPages:
    """The routes of the snapshots."""

    def __init__(self, deps: WebDependencies, knowledge: KnowledgeServices) -> None:
        self._deps = deps
        self._knowledge = knowledge

    @property
    def routes(self) -> list[SitePageRoute]:
        return [
            SitePageRoute("GET", SNAPSHOTS, self.show, Access.ADMIN),
            SitePageRoute("POST", f"{SNAPSHOTS}/sync", self.sync, Access.ADMIN),
            SitePageRoute("POST", f"{SNAPSHOTS}/publish", self.publish, Access.ADMIN),
            SitePageRoute("POST", f"{SNAPSHOTS}/verify", self.verify, Access.ADMIN),
            SitePageRoute("POST", f"{SNAPSHOTS}/remote", self.change_remote, Access.ADMIN),
        ]

    async def show(self, request: Request) -> Response:
        return await self._render(request)

    async def sync(self, request: Request) -> Response:
        """Reads all sources, publishes a snapshot of them, and pushes it."""
        try:
            await self._knowledge.sync.start()
        except DenizenError as error:
            return await self._render(request, error=error)
        return lead_to(SNAPSHOTS, done="started")

    async def publish(self, request: Request) -> Response:
        """Makes what was read last current, without reading anything."""
        try:
            await self._knowledge.snapshots.publish()
        except DenizenError as error:
            return await self._render(request, error=error)
        return lead_to(SNAPSHOTS, done="published")

    async def verify(self, request: Request) -> Response:
        """Holds the files of the current snapshot against what they were."""
        try:
            faults = await self._knowledge.snapshots.verify()
        except DenizenError as error:
            return await self._render(request, error=error)
        return await self._render(request, faults=faults) if faults else lead_to(SNAPSHOTS, done="fine")

    async def change_remote(self, request: Request) -> Response:
        form, known = await read_form(request), self._knowledge.remote()
        typed = {**form, "allow_existing": "allow_existing" in form}
        try:
            remote = read_remote(typed, known)
            check_local(request, remote.location, SourceKind.GIT)
            if remote == known:
                return lead_to(SNAPSHOTS, done="same")
            await self._knowledge.change_remote(remote)
            if await self._knowledge.catalog.list_known():
                await self._knowledge.sync.start()
        except DenizenError as error:
            return await self._render(request, typed=typed, error=error)
        return lead_to(SNAPSHOTS, done="remote")

    async def _render(
        self,
        request: Request,
        *,
        faults: Sequence[str] = (),
        typed: Mapping[str, object] | None = None,
        error: DenizenError | None = None,
    ) -> Response:
        knowledge, problem, remote = self._knowledge, find_problem(error), self._knowledge.remote()
        runs = await knowledge.sync.list_runs(limit=1)
        progress = await knowledge.embedding()
        known = {"repository": remote.location, "branch": remote.branch, "allow_existing": remote.allow_existing}
        page = SnapshotsPage(
            frame=build_frame(request, self._deps),
            status=await knowledge.snapshots.status(),
            listed=cut_list(request, await knowledge.snapshots.list_snapshots(), size=SHOWN),
            remote={**known, **(typed or {})},
            running=next((run for run in runs if run.ended_at is None), None),
            address=f"{SNAPSHOTS}?{request.url.query}",
            embedding=progress.describe() if progress is not None else "",
            faults=faults,
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/snapshots.html", page, status=problem.status if problem else 200)

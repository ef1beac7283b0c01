"""Importing sources at `/admin/import-sources`: a list is read into proposals, which somebody reviews and adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError
from denizen.domain.record import record
from denizen.domain.source import SOURCE_SETTINGS, SourceKind
from denizen.domain.source_list import MAX_PROPOSALS, ProposedSource
from denizen.engine.knowledge.source_import import SourceImporter
from denizen.web.api.sources import check_local
from denizen.web.http.dependencies import KnowledgeServices, WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen.web.pages.sources import KIND_LABELS, SOURCES, read_source_form
from denizen_sdk.errors import ProblemDetails

IMPORT = "/admin/import-sources"


@record(kw_only=True)
class ProposalRow:
    """A proposal under review. `settings` are those that are not shown as fields of their own, with their values."""

    id: str
    location: str
    kind: str
    kind_label: str
    label: str
    settings: Mapping[str, str]
    problem: str = ""
    ignored: str = ""
    is_chosen: bool = True


@record(kw_only=True)
class ImportPage:
    """The context of `source_import.html`: the list as it was sent, and what was found in it."""

    frame: Frame
    text: str
    rows: Sequence[ProposalRow]
    reads_pictures: bool
    problem: ProblemDetails | None = None


class SourceImportPages:
    """The routes of the import."""

    def __init__(self, deps: WebDependencies, knowledge: KnowledgeServices, importer: SourceImporter) -> None:
        self._deps = deps
        self._knowledge = knowledge
        self._importer = importer

    @property
    def routes(self) -> list[SitePageRoute]:
        return [
            SitePageRoute("GET", IMPORT, self.show, Access.ADMIN),
            SitePageRoute("POST", IMPORT, self.read, Access.ADMIN),
            SitePageRoute("POST", f"{IMPORT}/add", self.add, Access.ADMIN),
        ]

    async def show(self, request: Request) -> Response:
        return self._render(request)

    async def read(self, request: Request) -> Response:
        """Reads the list. The proposals stand on the page and nowhere else."""
        text = (await read_form(request)).get("text", "")
        try:
            rows = [_describe(each) for each in await self._importer.read_text(text)]
        except DenizenError as error:
            return self._render(request, text, error=error)
        return self._render(request, text, rows)

    async def add(self, request: Request) -> Response:
        """Adds the chosen ones. Those that cannot be added are shown again, with why."""
        form = await read_form(request)
        left: list[ProposalRow] = []
        added = 0
        for number in range(MAX_PROPOSALS):
            own = {name.removeprefix(f"{number}-"): form[name] for name in form if name.startswith(f"{number}-")}
            if "use" not in own or own.get("kind") not in tuple(SourceKind):
                continue
            kind = SourceKind(own["kind"])
            try:
                check_local(request, own.get("location", ""), kind)
                change = read_source_form(own, kind)
                await self._knowledge.catalog.add(own.get("location", ""), change, source_id=own.get("id", ""))
                added += 1
            except DenizenError as error:
                left.append(_row(own, kind, " ".join(filter(None, (error.message, error.fix)))))
        return self._render(request, "", left) if left or not added else lead_to(SOURCES, done="imported")

    def _render(
        self, request: Request, text: str = "", rows: Sequence[ProposalRow] = (), error: DenizenError | None = None
    ) -> Response:
        problem = find_problem(error)
        page = ImportPage(
            frame=build_frame(request, self._deps, path=SOURCES),
            text=text,
            rows=rows,
            reads_pictures=self._importer.reads_pictures,
            problem=problem,
        )
        return render("admin/source_import.html", page, status=problem.status if problem else 200)


def _describe(proposal: ProposedSource) -> ProposalRow:
    given: dict[str, Any] = {name: getattr(proposal.given, name) for name in SOURCE_SETTINGS}
    settings = {name: "yes" if value is True else str(value) for name, value in given.items() if value}
    label = settings.pop("label", "")
    return ProposalRow(
        id=proposal.id,
        location=proposal.location,
        kind=proposal.kind.value if proposal.kind else "",
        kind_label=KIND_LABELS[proposal.kind] if proposal.kind else "",
        label=label,
        settings=settings,
        problem=proposal.problem,
        ignored=", ".join(proposal.ignored),
        is_chosen=not proposal.problem,
    )


def _row(own: Mapping[str, str], kind: SourceKind, problem: str) -> ProposalRow:
    return ProposalRow(
        id=own.get("id", ""),
        location=own.get("location", ""),
        kind=kind.value,
        kind_label=KIND_LABELS[kind],
        label=own.get("label", ""),
        settings={name: own[name] for name in SOURCE_SETTINGS if name in own and name != "label"},
        problem=problem,
    )

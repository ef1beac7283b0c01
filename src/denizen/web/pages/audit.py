"""The audit log at `/admin/audit`: searching it, and verifying its chain. For owners, as `denizen audit list` is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.audit import AuditEntry, AuditKind
from denizen.domain.record import record
from denizen.engine.audit.audit_log import Verification
from denizen.ports.store import AuditSearch
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import QueryParameter
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render

PATH = "/admin/audit"
SHOWN = 50
_KIND = QueryParameter(name="kind", choices=("", *AuditKind))
_WORDS = QueryParameter(name="words", max_chars=200)
_NOTED = QueryParameter(name="noted", max_chars=64)
_BEFORE = QueryParameter(name="before", default="0", low=0, high=999_999_999)


@record
class AuditRow:
    """An entry, with its details as text. `outcome` is a verdict or a state, and `turn` an id, or each empty."""

    entry: AuditEntry
    details: str
    outcome: str
    turn: str


@record(kw_only=True)
class AuditPage:
    """The context of `admin/audit.html`. `older` is the address of the next page, or empty. `verification` is there
    when the chain was just verified; `noted` is the digest that it should hold. `names` are those of persons, by key.
    """

    frame: Frame
    rows: Sequence[AuditRow]
    kinds: Sequence[str]
    kind: str
    words: str
    older: str
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    noted: str = ""
    verification: Verification | None = None


class AuditPages:
    """The routes of the audit log. They only read."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._queries = deps.engine.queries

    @property
    def routes(self) -> list[AccessRoute]:
        return [
            SitePageRoute("GET", PATH, self.show, Access.OWNER),
            SitePageRoute("GET", f"{PATH}/verification", self.verify, Access.OWNER),
        ]

    async def show(self, request: Request) -> Response:
        return await self._render(request, None)

    async def verify(self, request: Request) -> Response:
        return await self._render(request, await self._queries.verify_audit_log(_read_noted(request)))

    async def _render(self, request: Request, verification: Verification | None) -> Response:
        kind, words = _KIND.read_text(request), _WORDS.read_text(request).strip()
        before = _BEFORE.read_number(request)
        wanted = AuditSearch(kind=AuditKind(kind) if kind else None, words=words, before=before, limit=SHOWN + 1)
        entries = await self._queries.search_audit_log(wanted)
        shown = entries[:SHOWN]
        next_page = urlencode({"kind": kind, "words": words, "before": shown[-1].number if shown else 0})
        page = AuditPage(
            frame=build_frame(request, self._deps, path=PATH),
            rows=list(map(_row, shown)),
            kinds=tuple(AuditKind),
            kind=kind,
            words=words,
            older=f"{PATH}?{next_page}" if len(entries) > SHOWN else "",
            names=await self._queries.names.load_people(
                {each for entry in shown for each in (entry.event.actor, entry.event.subject)}
            ),
            noted=_read_noted(request),
            verification=verification,
        )
        return render("admin/audit.html", page)


def _row(entry: AuditEntry) -> AuditRow:
    details = entry.event.details
    outcome = details.get("decision") or details.get("status") or ""
    return AuditRow(
        entry,
        details=json.dumps(dict(details), ensure_ascii=False),
        outcome=str(outcome),
        turn=str(details.get("turn") or ""),
    )


def _read_noted(request: Request) -> str:
    return _NOTED.read_text(request).strip().lower()

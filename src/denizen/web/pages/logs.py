"""The log at `/admin/logs`: its volume, what it says about requests, entries as they come, and purging old ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from denizen.domain.errors import DenizenError
from denizen.domain.log import LEVELS, LogEntry, LogFilter, LogStatistics
from denizen.domain.record import record
from denizen.ports.log import LogArchive
from denizen.web.api.logs import (
    ANY_PROBLEM,
    HOURS,
    LEVEL,
    LIMIT,
    METHOD,
    PATH_PART,
    SEARCH,
    STATUS,
    plan_purge,
    purge_log,
    read_filter,
)
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.problems import describe_problem, fill_in
from denizen.web.http.request import QueryParameter, read_form
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

PATH = "/admin/logs"
SUMMED_EVERY_S = 30.0
_FILTERS = (LEVEL, METHOD, STATUS, PATH_PART, SEARCH, HOURS, LIMIT)
_FAULTS = frozenset({"error", "critical"})
_DELETED = QueryParameter(name="deleted", default="-1", max_chars=9)


@record
class LogRow:
    """An entry, with its fields as text. `question` is what to ask about a fault, empty for other entries."""

    entry: LogEntry
    fields: str
    question: str = ""


@record
class PurgePreview:
    """A purge that was not done yet: what it would delete."""

    before: str
    level: str
    count: int


@record(kw_only=True)
class LogsPage:
    """The context of `admin/logs.html`. `here` is its address with the filters; `deleted` tells what was just purged,
    or is empty.
    """

    frame: Frame
    rows: Sequence[LogRow]
    statistics: LogStatistics
    size_bytes: int
    levels: Sequence[str]
    methods: Sequence[str]
    chosen: Mapping[str, str]
    here: str
    preview: PurgePreview | None = None
    deleted: str = ""
    problem: ProblemDetails | None = None


class LogPages:
    """The routes of the log. What it says about requests is summed up now and then only, since that reads all of it."""

    def __init__(self, deps: WebDependencies, logs: LogArchive) -> None:
        self._deps = deps
        self._logs = logs
        self._summed: dict[int, tuple[float, LogStatistics]] = {}

    @property
    def routes(self) -> list[AccessRoute]:
        return [
            SitePageRoute("GET", PATH, self.show, Access.ADMIN),
            SitePageRoute("POST", f"{PATH}/purge", self.purge, Access.ADMIN),
        ]

    async def show(self, request: Request) -> Response:
        return await self._render(request)

    async def purge(self, request: Request) -> Response:
        """Tells first what would be deleted; deletes it when that was confirmed."""
        form = await read_form(request)
        before, level = form.get("before", ""), form.get("level", "")
        try:
            wanted = plan_purge(before, level)
            if not form.get("confirmed"):
                count = await self._logs.count(wanted)
                return await self._render(request, preview=PurgePreview(before, level, count))
            deleted = await purge_log(self._logs, wanted, by=get_principal(request).key)
        except DenizenError as error:
            return await self._render(request, problem=fill_in(describe_problem(error)))
        self._summed.clear()
        return RedirectResponse(f"{PATH}?deleted={deleted}", status_code=303)

    async def _sum_up(self, hours: int) -> LogStatistics:
        now_s = self._deps.clock.monotonic_s()
        summed_s, found = self._summed.get(hours, (0.0, None))
        if found is None or now_s - summed_s > SUMMED_EVERY_S:
            found = await self._logs.sum_up(LogFilter(since=self._deps.clock.now() - timedelta(hours=hours)))
            self._summed[hours] = now_s, found
        return found

    async def _render(
        self, request: Request, *, preview: PurgePreview | None = None, problem: ProblemDetails | None = None
    ) -> Response:
        chosen = {each.name: each.read_text(request) for each in _FILTERS}
        entries = await self._logs.search(read_filter(request, self._deps.clock), limit=LIMIT.read_number(request))
        deleted = _DELETED.read_text(request)
        page = LogsPage(
            frame=build_frame(request, self._deps, path=PATH),
            rows=[LogRow(each, _show_fields(each), _ask_about(each)) for each in entries],
            statistics=await self._sum_up(HOURS.read_number(request)),
            size_bytes=await self._logs.measure(),
            levels=(*LEVELS, ANY_PROBLEM),
            methods=[method for method in METHOD.choices if method],
            chosen=chosen,
            here=f"{PATH}?{urlencode(chosen)}",
            preview=preview,
            deleted=deleted if deleted.isdecimal() else "",
            problem=problem,
        )
        return render("admin/logs.html", page, status=problem.status if problem else 200)


def _ask_about(entry: LogEntry) -> str:
    """Returns what the chat about the server is asked about a fault."""
    if entry.level not in _FAULTS:
        return ""
    return (
        f"Investigate this {entry.level} of {entry.at:%Y-%m-%d %H:%M:%S} UTC: {entry.event[:300]}. "
        "Read the errors and the log around that time. What happened, how often, and what should I do?"
    )


def _show_fields(entry: LogEntry) -> str:
    """Those of a request in the order in which people say them, and without their names."""
    told = dict(entry.fields)
    request = [str(told.pop(name)) for name in ("method", "path", "status") if name in told]
    took = [f"{told.pop('duration_ms')} ms"] if request and "duration_ms" in told else []
    rest = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in told.items()]
    return " ".join([*request, *took, *rest])

"""`/api/admin/logs`: searching the log that is kept, what it says about requests, and deleting old entries.

For owners and admins. Entries hold no texts of people and no secrets.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput
from denizen.domain.log import LEVELS, PROBLEMS, LogEntry, LogFilter, LogStatistics, PathFigures
from denizen.ports.log import LogArchive
from denizen.web.http.auth import get_principal
from denizen.web.http.openapi import ApiRoute, Operation
from denizen.web.http.request import QueryParameter
from denizen.web.http.routing import Access
from denizen_sdk.logs import LogCount, LogEntryInfo, LogPurge, LogStatisticsInfo, PathStatistics, ResponseTimes

ANY_PROBLEM = "problems"
"""Stands for the levels of a warning and worse."""
MAX_HOURS = 168
LEVEL = QueryParameter(
    name="level",
    description=f"Only this level; `{ANY_PROBLEM}` are warnings and worse.",
    choices=("", *LEVELS, ANY_PROBLEM),
)
PATH_PART = QueryParameter(name="path", description="Part of a request's path pattern.", max_chars=200)
STATUS = QueryParameter(name="status", description="A status such as 404, or a class such as 5xx.", max_chars=3)
METHOD = QueryParameter(name="method", choices=("", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))
SEARCH = QueryParameter(name="search", description="Words anywhere in the entry, in whatever case.", max_chars=200)
HOURS = QueryParameter(name="hours", description="How many hours back.", default="24", low=1, high=MAX_HOURS)
LIMIT = QueryParameter(name="limit", default="50", low=1, high=200)
_PURGED = (
    QueryParameter(name="before", description="Only entries before this date or time (UTC).", max_chars=40),
    LEVEL,
)
_STATUS_FORM = re.compile(r"[1-5](?:\d\d|xx)")

_log = logging.getLogger("denizen.logs")


class LogRoutes:
    """The routes of the log."""

    def __init__(self, logs: LogArchive, clock: Clock) -> None:
        self._logs = logs
        self._clock = clock

    @property
    def routes(self) -> list[ApiRoute]:
        path, query = "/api/admin/logs", (LEVEL, PATH_PART, STATUS, METHOD, SEARCH, HOURS, LIMIT)
        return [
            ApiRoute(
                "GET",
                path,
                self.list_entries,
                Access.ADMIN,
                Operation("Entries of the log, newest first", answer=list[LogEntryInfo], query=query),
            ),
            ApiRoute(
                "GET",
                f"{path}/count",
                self.count,
                Access.ADMIN,
                Operation("How many entries a purge would delete", answer=LogCount, query=_PURGED),
            ),
            ApiRoute(
                "GET",
                f"{path}/stats",
                self.sum_up,
                Access.ADMIN,
                Operation("What the log says about requests", answer=LogStatisticsInfo, query=(HOURS,)),
            ),
            ApiRoute(
                "DELETE",
                path,
                self.purge,
                Access.ADMIN,
                Operation("Delete entries before a date, of a level or of all", answer=LogPurge, query=_PURGED),
            ),
        ]

    async def list_entries(self, request: Request) -> Response:
        found = await self._logs.search(read_filter(request, self._clock), limit=LIMIT.read_number(request))
        return JSONResponse([asdict(entry_to_wire(entry)) for entry in found])

    async def count(self, request: Request) -> Response:
        return JSONResponse(asdict(LogCount(await self._logs.count(_read_purge(request)))))

    async def sum_up(self, request: Request) -> Response:
        hours = HOURS.read_number(request)
        found = await self._logs.sum_up(LogFilter(since=self._clock.now() - timedelta(hours=hours)))
        return JSONResponse(asdict(statistics_to_wire(found, hours)))

    async def purge(self, request: Request) -> Response:
        deleted = await purge_log(self._logs, _read_purge(request), by=get_principal(request).key)
        return JSONResponse(asdict(LogPurge(deleted)))


def read_filter(request: Request, clock: Clock) -> LogFilter:
    """Returns the filter in a query. Raises InvalidInput."""
    status = STATUS.read_text(request).lower()
    if status and not _STATUS_FORM.fullmatch(status):
        raise InvalidInput("'status' must be such as 404 or 5xx.", code="field_invalid", field="status")
    return LogFilter(
        since=clock.now() - timedelta(hours=HOURS.read_number(request)),
        levels=read_levels(LEVEL.read_text(request)),
        path=PATH_PART.read_text(request),
        status=status,
        method=METHOD.read_text(request),
        words=SEARCH.read_text(request).strip(),
    )


def read_levels(name: str) -> frozenset[str]:
    return PROBLEMS if name == ANY_PROBLEM else frozenset({name} if name else ())


def _read_purge(request: Request) -> LogFilter:
    return plan_purge(_PURGED[0].read_text(request), LEVEL.read_text(request))


def plan_purge(before: str, level: str) -> LogFilter:
    """Returns the filter of a purge. Raises InvalidInput without a date: nobody deletes all by leaving it out."""
    try:
        moment = datetime.fromisoformat(before)
    except ValueError:
        moment = None
    if moment is None:
        raise InvalidInput(
            "A purge needs the date before which entries go.",
            code="field_invalid",
            why=f"before is '{before}'" if before else "before is missing",
            fix="Send before=2026-11-21, or a time such as 2026-11-21T12:00:00Z.",
            field="before",
        )
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return LogFilter(before=moment, levels=read_levels(level))


async def purge_log(logs: LogArchive, wanted: LogFilter, *, by: str) -> int:
    """Deletes entries, and enters that somebody did."""
    deleted = await logs.purge(wanted)
    before = wanted.before.isoformat() if wanted.before else ""
    _log.info("log purged", extra={"by": by, "deleted": deleted, "before": before, "levels": sorted(wanted.levels)})
    return deleted


def entry_to_wire(entry: LogEntry) -> LogEntryInfo:
    return LogEntryInfo(entry.at.isoformat(), entry.level, entry.event, dict(entry.fields), entry.trace)


def statistics_to_wire(found: LogStatistics, hours: int) -> LogStatisticsInfo:
    return LogStatisticsInfo(
        hours=hours,
        entries=found.entries,
        levels=dict(found.levels),
        requests=found.requests,
        errors=found.errors,
        error_rate=round(found.error_rate, 4),
        classes=dict(found.classes),
        times=ResponseTimes(found.p50_ms, found.p95_ms, found.p99_ms),
        slowest=_paths(found.slowest),
        busiest=_paths(found.busiest),
        failing=_paths(found.failing),
    )


def _paths(figures: Sequence[PathFigures]) -> tuple[PathStatistics, ...]:
    return tuple(PathStatistics(each.path, each.requests, each.errors, each.p95_ms) for each in figures)

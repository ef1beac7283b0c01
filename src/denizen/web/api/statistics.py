"""`POST /api/stats/usage` and `/api/stats/compute`: usage reported by other programs, and sums of days (inventory 2.7).

Everybody with a key may report: `source` (1 to 50 characters, the one field that must be there), `sourceId`, `model`,
`inputTokens`, `outputTokens`, `durationMs` and `metadata` (an object of up to 4000 characters); `source_id` and the
like are understood too. With an `Idempotency-Key` a report that is sent twice is kept once. A key may report 120 times
a minute and 5000 times a day.

A day (`date`, yesterday by default) is summed up for owners and admins; the server does that by itself once a day. What
can be read of it, `GET /api/stats` and `/api/stats/me`, is among the listings.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from denizen.domain.clock import Clock
from denizen.domain.ids import derive, fresh
from denizen.domain.principal import Principal
from denizen.domain.statistics import UNKNOWN_MODEL, Overview, Ranked, Report, Used, change_percent, read_day
from denizen.domain.usage import Usage
from denizen.engine.statistics import UsageStatistics
from denizen.web.api.chat import IDEMPOTENCY_HEADER
from denizen.web.api.knowledge import require_admin
from denizen.web.http.request import JsonBody, field_error, read_object, read_text
from denizen.web.http.auth import get_principal
from denizen_sdk.usage import ComputedDay, UsageOverview, UsageReceipt, UsageSum, UsageTrend

_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")


class StatisticsRoutes:
    """The routes."""

    def __init__(self, statistics: UsageStatistics, clock: Clock) -> None:
        self._statistics = statistics
        self._clock = clock

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/api/stats/usage", self.report, methods=["POST"]),
            Route("/api/stats/compute", self.compute, methods=["POST"]),
        ]

    async def report(self, request: Request) -> Response:
        reporter, key = get_principal(request), request.headers.get(IDEMPOTENCY_HEADER, "")
        kept = await self._statistics.report(self._read(await read_object(request), reporter, key))
        return JSONResponse(asdict(UsageReceipt(kept.id, recorded=True)), status_code=201)

    async def compute(self, request: Request) -> Response:
        require_admin(request)
        has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
        body: JsonBody = await read_object(request) if has_body else {}
        given = read_text(body, "date")
        day, rows = await self._statistics.compute(read_day(given) if given else None)
        return JSONResponse(asdict(ComputedDay(day.isoformat(), rows)))

    def _read(self, given: JsonBody, reporter: Principal, idempotency_key: str) -> Report:
        """Raises InvalidInput."""
        body = {_CAPITAL.sub(lambda match: f"_{match[0].lower()}", name): value for name, value in given.items()}
        return Report(
            id=derive("use", reporter.key, idempotency_key) if idempotency_key else fresh("use"),
            reporter=reporter.key,
            source=read_text(body, "source").strip(),
            reported_at=self._clock.now(),
            source_id=read_text(body, "source_id"),
            model=read_text(body, "model").strip() or UNKNOWN_MODEL,
            usage=Usage(_read_count(body, "input_tokens"), _read_count(body, "output_tokens"), requests=1),
            duration_ms=_read_count(body, "duration_ms"),
            metadata=_read_metadata(body),
        )


def _read_count(body: JsonBody, name: str) -> int:
    value = body.get(name)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise field_error(name, "a whole number")
    return value


def _read_metadata(body: JsonBody) -> dict[str, Any]:
    value: Any = body.get("metadata")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise field_error("metadata", "an object")
    return cast("dict[str, Any]", value)


def overview_to_wire(found: Overview) -> UsageOverview:
    """As clients see it."""
    total, before = found.total, found.before
    return UsageOverview(
        days=len(found.span.days),
        first_day=found.span.first.isoformat(),
        last_day=found.span.last.isoformat(),
        totals=_sum(Ranked("", total)),
        previous=_sum(Ranked("", before)),
        trend=UsageTrend(
            change_percent(total.messages, before.messages),
            change_percent(_tokens(total), _tokens(before)),
            change_percent(total.usage.cost_usd, before.usage.cost_usd),
        ),
        by_model=tuple(map(_sum, found.models)),
        by_source=tuple(map(_sum, found.sources)),
        daily=tuple(map(_sum, found.daily)),
        top_users=None if found.users is None else tuple(map(_sum, found.users)),
        hourly=None if found.hourly is None else tuple(map(_sum, found.hourly)),
    )


def _tokens(used: Used) -> int:
    return used.usage.input_tokens + used.usage.output_tokens


def _sum(row: Ranked) -> UsageSum:
    usage = row.used.usage
    return UsageSum(
        key=row.key,
        messages=row.used.messages,
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
        duration_ms=row.used.duration_ms,
        cost_usd=None if usage.cost_usd is None else f"{usage.cost_usd:f}",
        name=row.name,
    )

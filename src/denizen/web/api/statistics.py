"""`/api/stats`: usage reported by other programs, and the sums over days.

Everybody with a key may report: `source` (1 to 50 characters, the only required field), `sourceId`, `model`,
`inputTokens`, `outputTokens`, `durationMs` and `metadata` (an object of up to 4000 characters); snake case such as
`source_id` works too. Reports with the same `Idempotency-Key` count once. A key may report 120 times a minute and 5000
times a day.

Owners and admins may have a day (`date`, yesterday by default) summed up; the server does that by itself once a day.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.clock import Clock
from denizen.domain.ids import derive, fresh
from denizen.domain.statistics import (
    MAX_DURATION_MS,
    MAX_NAME_CHARS,
    MAX_REPORTED_TOKENS,
    MAX_SOURCE_CHARS,
    UNKNOWN_MODEL,
    UsageRanking,
    UsageReport,
    UsageSummary,
    UsageTotals,
    change_percent,
    parse_day,
)
from denizen.domain.usage import Usage
from denizen.engine.inspection.overview import BudgetUse
from denizen.engine.inspection.queries import Queries
from denizen.engine.inspection.statistics import UsageStatistics
from denizen.web.http.auth import get_principal
from denizen.web.http.openapi import ANY_OBJECT, ApiRoute, Operation, object_schema
from denizen.web.http.request import (
    IDEMPOTENCY_HEADER,
    JsonBody,
    QueryParameter,
    field_error,
    has_body,
    read_object,
    read_text,
)
from denizen.web.http.routing import Access
from denizen_sdk.usage import (
    BudgetStanding,
    ComputedDay,
    FeedbackDay,
    UsageOverview,
    UsageReceipt,
    UsageSum,
    UsageTrend,
)

_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
_DAYS = QueryParameter(name="days", description="How many days up to today (UTC).", default="30", low=1, high=365)
_SOURCE = QueryParameter(
    name="source", description="Only the usage of this source; empty for all.", max_chars=MAX_NAME_CHARS
)
_MODEL = QueryParameter(
    name="model", description="Only the usage of this model; empty for all.", max_chars=MAX_NAME_CHARS
)
_REPORT = object_schema(
    "source",
    source={"type": "string", "minLength": 1, "maxLength": MAX_SOURCE_CHARS},
    sourceId={"type": "string", "maxLength": MAX_NAME_CHARS},
    model={"type": "string", "maxLength": MAX_NAME_CHARS},
    inputTokens={"type": "integer", "minimum": 0, "maximum": MAX_REPORTED_TOKENS},
    outputTokens={"type": "integer", "minimum": 0, "maximum": MAX_REPORTED_TOKENS},
    durationMs={"type": "integer", "minimum": 0, "maximum": MAX_DURATION_MS},
    metadata=ANY_OBJECT,
)


class StatisticsRoutes:
    """The routes that take reports of usage and show the sums."""

    def __init__(self, statistics: UsageStatistics, queries: Queries, clock: Clock) -> None:
        self._statistics = statistics
        self._queries = queries
        self._clock = clock

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "POST",
                "/api/stats/usage",
                self.report,
                Access.MEMBER,
                Operation("Report what another program used", _REPORT, UsageReceipt, 201, headers=("Idempotency-Key",)),
            ),
            ApiRoute(
                "POST",
                "/api/stats/compute",
                self.compute,
                Access.ADMIN,
                Operation(
                    "Sum up the usage of a day, yesterday by default",
                    object_schema(date={"type": "string", "format": "date"}),
                    ComputedDay,
                    needs_body=False,
                ),
            ),
            ApiRoute(
                "GET",
                "/api/stats",
                self.get_overview,
                Access.ADMIN,
                Operation(
                    "Usage of everybody, for owners and admins", answer=UsageOverview, query=(_DAYS, _SOURCE, _MODEL)
                ),
            ),
            ApiRoute(
                "GET",
                "/api/stats/feedback",
                self.list_feedback,
                Access.ADMIN,
                Operation(
                    "The votes on answers by day, for owners and admins", answer=list[FeedbackDay], query=(_DAYS,)
                ),
            ),
            ApiRoute(
                "GET",
                "/api/stats/budgets",
                self.list_budgets,
                Access.ADMIN,
                Operation(
                    "The budgets of the server and of agents, with what is spent of them", answer=list[BudgetStanding]
                ),
            ),
            ApiRoute(
                "GET",
                "/api/stats/me",
                self.get_own_overview,
                Access.MEMBER,
                Operation("The caller's own usage", answer=UsageOverview, query=(_DAYS,)),
            ),
        ]

    async def get_overview(self, request: Request) -> Response:
        days, source, model = _DAYS.read_number(request), _SOURCE.read_text(request), _MODEL.read_text(request)
        overview = await self._statistics.overview(days, source=source, model=model)
        return JSONResponse(asdict(overview_to_wire(overview)))

    async def get_own_overview(self, request: Request) -> Response:
        overview = await self._statistics.get_user_overview(get_principal(request).key, _DAYS.read_number(request))
        return JSONResponse(asdict(overview_to_wire(overview)))

    async def list_feedback(self, request: Request) -> Response:
        overview = await self._statistics.overview(_DAYS.read_number(request))
        return JSONResponse([asdict(day) for day in feedback_to_wire(overview)])

    async def list_budgets(self, _: Request) -> Response:
        return JSONResponse([asdict(_budget_to_wire(use)) for use in await self._queries.list_budgets()])

    async def report(self, request: Request) -> Response:
        reporter, key = get_principal(request).key, request.headers.get(IDEMPOTENCY_HEADER, "")
        given = await read_object(request)
        # Camel case, as JavaScript programs write it, is accepted as well as snake case.
        body = {_CAPITAL.sub(lambda match: f"_{match[0].lower()}", name): value for name, value in given.items()}
        report = UsageReport(
            id=derive("use", reporter, key) if key else fresh("use"),
            reporter=reporter,
            source=read_text(body, "source").strip(),
            reported_at=self._clock.now(),
            source_id=read_text(body, "source_id"),
            model=read_text(body, "model").strip() or UNKNOWN_MODEL,
            usage=Usage(_read_count(body, "input_tokens"), _read_count(body, "output_tokens"), requests=1),
            duration_ms=_read_count(body, "duration_ms"),
            metadata=_read_metadata(body),
        )
        kept = await self._statistics.report(report)
        return JSONResponse(asdict(UsageReceipt(kept.id, recorded=True)), status_code=201)

    async def compute(self, request: Request) -> Response:
        body: JsonBody = await read_object(request) if has_body(request) else {}
        given = read_text(body, "date")
        day, rows = await self._statistics.compute(parse_day(given) if given else None)
        return JSONResponse(asdict(ComputedDay(day.isoformat(), rows)))


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


def feedback_to_wire(found: UsageSummary) -> list[FeedbackDay]:
    """Returns the votes of each day as clients get them; none of a filtered sum."""
    days = zip(found.span.days, found.feedback or (), strict=found.feedback is not None)
    return [FeedbackDay(day, votes.positive, votes.negative) for day, votes in days]


def overview_to_wire(found: UsageSummary) -> UsageOverview:
    """Returns the overview as clients get it."""
    total, before = found.total, found.before
    return UsageOverview(
        days=len(found.span.days),
        first_day=found.span.first.isoformat(),
        last_day=found.span.last.isoformat(),
        totals=_sum_to_wire(UsageRanking("", total)),
        previous=_sum_to_wire(UsageRanking("", before)),
        trend=UsageTrend(
            change_percent(total.messages, before.messages),
            change_percent(_tokens(total), _tokens(before)),
            change_percent(total.usage.cost_usd, before.usage.cost_usd),
        ),
        by_model=tuple(map(_sum_to_wire, found.models)),
        by_source=tuple(map(_sum_to_wire, found.sources)),
        daily=tuple(map(_sum_to_wire, found.daily)),
        top_users=None if found.users is None else tuple(map(_sum_to_wire, found.users)),
        hourly=None if found.hourly is None else tuple(map(_sum_to_wire, found.hourly)),
        feedback_score=found.feedback_score,
    )


def _budget_to_wire(use: BudgetUse) -> BudgetStanding:
    scope, limit = use.limit.scope, use.limit
    return BudgetStanding(scope.kind.value, scope.key, limit.period.value, f"{limit.usd:f}", f"{use.spent_usd:f}")


def _tokens(used: UsageTotals) -> int:
    return used.usage.input_tokens + used.usage.output_tokens


def _sum_to_wire(row: UsageRanking) -> UsageSum:
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

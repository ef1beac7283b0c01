"""Usage at `/admin/usage`: messages, tokens and money by day, hour, model, source, agent and user, and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.budget import SERVER, BudgetPeriod, BudgetScopeKind
from denizen.domain.record import record
from denizen.domain.statistics import MAX_NAME_CHARS, UsageGrouping, UsageSummary
from denizen.domain.usage import Usage
from denizen.engine.inspection.overview import BudgetUse
from denizen.web.api.statistics import feedback_to_wire, overview_to_wire
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import QueryParameter
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.usage import FeedbackDay, UsageOverview

PATH = "/admin/usage"
_DAYS = QueryParameter(name="days", default="30", low=1, high=365)
_SOURCE = QueryParameter(name="source", max_chars=MAX_NAME_CHARS)
_MODEL = QueryParameter(name="model", max_chars=MAX_NAME_CHARS)
_COLUMNS = (
    "day",
    "source",
    "model",
    "user",
    "messages",
    "requests",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "duration_ms",
    "cost_usd",
)
_FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins so is a formula for spreadsheets, and programs choose the names of models and sources."""


@record
class AgentUse:
    """The usage of an agent in those days, from whatever source and on whatever model."""

    agent: str
    usage: Usage


@record(kw_only=True)
class UsagePage:
    """The context of `admin/usage.html`. `sources` and `models` can be chosen; `query` is what was, as in an
    address.
    """

    frame: Frame
    usage: UsageOverview
    agents: Sequence[AgentUse]
    budgets: Sequence[BudgetUse]
    feedback: Sequence[FeedbackDay]
    sources: Sequence[str]
    models: Sequence[str]
    chosen: Mapping[str, str]
    query: str


class UsagePages:
    """The routes of usage: the page, what its charts show, and the table for spreadsheets."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._statistics = deps.engine.statistics

    @property
    def routes(self) -> list[AccessRoute]:
        return [
            SitePageRoute("GET", PATH, self.show, Access.ADMIN),
            AccessRoute("GET", f"{PATH}/days", self.list_days, Access.ADMIN),
            SitePageRoute("GET", f"{PATH}.csv", self.export, Access.ADMIN),
            SitePageRoute("GET", f"{PATH}/feedback.csv", self.export_feedback, Access.ADMIN),
        ]

    async def show(self, request: Request) -> Response:
        found, budgets = await self._load(request), await self._deps.engine.queries.list_budgets()
        usage = overview_to_wire(found)
        chosen = {"days": str(usage.days), "source": _SOURCE.read_text(request), "model": _MODEL.read_text(request)}
        is_all = not (chosen["source"] or chosen["model"])
        everything = usage if is_all else overview_to_wire(await self._statistics.overview(usage.days))
        page = UsagePage(
            frame=build_frame(request, self._deps, path=PATH),
            usage=usage,
            agents=await self._list_agents(usage.days),
            budgets=budgets,
            feedback=feedback_to_wire(found),
            sources=[row.key for row in everything.by_source],
            models=[row.key for row in everything.by_model],
            chosen=chosen,
            query=urlencode(chosen),
        )
        return render("admin/usage.html", page)

    async def list_days(self, request: Request) -> Response:
        """Answers with the points of the charts."""
        found = await self._load(request)
        usage = overview_to_wire(found)
        rows = {"daily": usage.daily, "hourly": usage.hourly or (), "feedback": feedback_to_wire(found)}
        points: dict[str, object] = {name: [asdict(row) for row in found] for name, found in rows.items()}
        limits = [each.limit for each in await self._deps.engine.queries.list_budgets()]
        of_day = [each.usd for each in limits if each.scope == SERVER and each.period is BudgetPeriod.DAY]
        return JSONResponse(points | {"day_budget_usd": f"{of_day[0]:f}" if of_day else None})

    async def export(self, request: Request) -> Response:
        """Answers with a row for each day, source, model and user."""
        days = _DAYS.read_number(request)
        by = (UsageGrouping.DAY, UsageGrouping.SOURCE, UsageGrouping.MODEL, UsageGrouping.USER)
        sums = await self._statistics.sum_up(days, by)
        rows: list[Sequence[object]] = []
        for key, used in sorted(sums.items()):
            usage = used.usage
            figures = (usage.requests, usage.input_tokens, usage.cache_read_tokens, usage.output_tokens)
            cost = "" if usage.cost_usd is None else f"{usage.cost_usd:f}"
            rows.append([*map(_cell, key), used.messages, *figures, used.duration_ms, cost])
        return self._answer_csv("usage", _COLUMNS, rows)

    async def export_feedback(self, request: Request) -> Response:
        """Answers with a row for each day."""
        found = await self._statistics.overview(_DAYS.read_number(request))
        rows = [(each.day, each.positive, each.negative) for each in feedback_to_wire(found)]
        return self._answer_csv("feedback", ("day", "positive", "negative"), rows)

    def _answer_csv(self, what: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Response:
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerows([columns, *rows])
        body = text.getvalue().encode("utf-8", "replace")
        name = f"denizen-{what}-{self._deps.clock.now():%Y-%m-%d}.csv"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(body, media_type="text/csv; charset=utf-8", headers=headers)

    async def _load(self, request: Request) -> UsageSummary:
        days, source, model = _DAYS.read_number(request), _SOURCE.read_text(request), _MODEL.read_text(request)
        return await self._statistics.overview(days, source=source, model=model)

    async def _list_agents(self, days: int) -> list[AgentUse]:
        """The most expensive first."""
        today = self._deps.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        rows = await self._deps.engine.queries.list_spend(BudgetScopeKind.AGENT, since=today - timedelta(days=days - 1))
        sums: dict[str, Usage] = {}
        for row in rows:
            sums[row.scope.key] = sums.get(row.scope.key, Usage()) + row.usage
        ranked = sorted(sums.items(), key=lambda item: (-(item[1].cost_usd or 0), -item[1].requests, item[0]))
        return [AgentUse(agent, usage) for agent, usage in ranked]


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA_MARKS) else text

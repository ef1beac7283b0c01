"""Tools of chats about the administration: use, people, sources, chats, settings, logs, charts and SQL.

All of them are declared with `administration`: they are offered, and run, only in chats of that mode, for owners and
admins. What they show may quote other people, who chose names and wrote what went wrong into the log.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Literal

from denizen.builtin_skills.charts import MAX_SERIES, MAX_VALUES, Series, draw_chart
from denizen.skill import (
    AdministrationAccess,
    ErrorGrouping,
    Json,
    JsonObject,
    LogEntry,
    LogFilter,
    NotAllowed,
    Param,
    PathFigures,
    Skill,
    SqlRows,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    UserOrder,
    quote_untrusted,
    truncate,
)

MAX_WEEK_HOURS = 168
CHART_DAYS = 30
LAST_ERRORS = 20
MAX_GROUPS = 30

Hours = Annotated[int, Param("back from now", ge=1, le=MAX_WEEK_HOURS)]

Cell = str | float | None
"""A value in a row of a chart."""

skill = Skill("admin", description="Tells administrators about this server, in chats of their own.")


@skill.tool(tier=Tier.LIMITED, read_only=True, reads=[Taint.OTHERS], administration=True)
async def query_stats(context: ToolContext, days: Annotated[int, Param("back from today", ge=1, le=365)] = 30) -> str:
    """Sums up usage: messages, tokens and cost in all, by day, hour, model, source, user, and of the time before."""
    return _quote(_dump(await _access(context).sum_usage(days)), "usage")


@skill.tool(tier=Tier.LIMITED, read_only=True, reads=[Taint.OTHERS], administration=True)
async def list_users(
    context: ToolContext,
    limit: Annotated[int, Param(ge=1, le=50)] = 20,
    sort: Annotated[UserOrder, Param("what comes first")] = "messages",
) -> str:
    """Lists users with their messages, tokens and last use."""
    return _table(await _access(context).list_users(order=sort, limit=limit), "users")


@skill.tool(tier=Tier.LIMITED, read_only=True, reads=[Taint.OTHERS], administration=True)
async def list_sources(context: ToolContext) -> str:
    """Lists the sources of knowledge and when they were synced."""
    return _table(await _access(context).list_sources(), "sources")


@skill.tool(tier=Tier.LIMITED, read_only=True, reads=[Taint.OTHERS], administration=True)
async def query_chats(
    context: ToolContext,
    limit: Annotated[int, Param(ge=1, le=100)] = 20,
    user: Annotated[str, Param("a name, or a key such as web_user:ID; empty for all", max_length=200)] = "",
) -> str:
    """Lists the newest chats of the web, without what was said in them."""
    return _table(await _access(context).list_chats(user=user, limit=limit), "chats")


@skill.tool(tier=Tier.LIMITED, read_only=True, administration=True)
async def get_agent_config(context: ToolContext) -> str:
    """Tells the settings of each agent: model, language, style, citations, creativity, depth, instructions."""
    return _dump([*await _access(context).list_agent_settings()])


@skill.tool(tier=Tier.LIMITED, read_only=True, reads=[Taint.OTHERS], administration=True)
async def run_sql(
    context: ToolContext,
    query: Annotated[str, Param("one SELECT; `views` lists what there is", min_length=1, max_length=4000)],
) -> str:
    """Runs one SELECT over read-only views, for what no other tool tells. Query `views` first to see their columns."""
    access = _access(context)
    if query.strip().lower() == "views":
        return access.describe_views()
    return _table(await access.run_sql(query), "sql")


# --- the log ----------------------------------------------------------------------------------------------------------


@skill.tool(tier=Tier.LIMITED, read_only=True, reads=[Taint.OTHERS], administration=True)
async def query_logs(  # noqa: PLR0913 - what people search logs by
    context: ToolContext,
    *,
    level: Annotated[Literal["", "debug", "info", "warning", "error", "critical"], Param("empty for all")] = "",
    path: Annotated[str, Param("a part of the path", max_length=200)] = "",
    status: Annotated[str, Param("such as 404 or 5xx", max_length=3)] = "",
    method: Annotated[str, Param("such as POST", max_length=10)] = "",
    search: Annotated[str, Param("a text anywhere in the entry", max_length=200)] = "",
    hours: Hours = 24,
    limit: Annotated[int, Param(ge=1, le=200)] = 50,
) -> str:
    """Searches the log, newest entries first."""
    levels = frozenset({level}) if level else frozenset[str]()
    wanted = _since(
        context, hours, LogFilter(levels=levels, path=path, status=status, method=method.upper(), words=search)
    )
    found = await _access(context).search_log(wanted, limit=limit)
    return _quote("\n".join(map(_entry_line, found)), "log") if found else "Nothing was found."


@skill.tool(tier=Tier.LIMITED, read_only=True, administration=True)
async def log_stats(context: ToolContext, hours: Hours = 24) -> str:
    """Sums up the log: error rate, status classes, percentiles of time, and the slowest, busiest and failing paths."""
    found = await _access(context).sum_log(_since(context, hours, LogFilter()))
    return _dump(
        {
            "hours": hours,
            "entries": found.entries,
            "levels": dict(found.levels),
            "requests": found.requests,
            "server_errors": found.errors,
            "error_rate": round(found.error_rate, 4),
            "status_classes": dict(found.classes),
            "ms": {"p50": found.p50_ms, "p95": found.p95_ms, "p99": found.p99_ms},
            "slowest": _figures(found.slowest),
            "busiest": _figures(found.busiest),
            "failing": _figures(found.failing),
        }
    )


MAX_ERRORS_READ = 5000


@skill.tool(tier=Tier.LIMITED, read_only=True, reads=[Taint.OTHERS], administration=True)
async def query_errors(
    context: ToolContext,
    hours: Hours = 24,
    path: Annotated[str, Param("a part of the path", max_length=200)] = "",
    group_by: Annotated[ErrorGrouping, Param("path or error")] = "error",
) -> str:
    """Groups errors by path or by error, with the last ones and how many there were in each hour."""
    access, severe = _access(context), frozenset({"error", "critical"})
    by_level = _since(context, hours, LogFilter(path=path, levels=severe))
    by_status = _since(context, hours, LogFilter(path=path, status="5xx"))
    failed = await access.search_log(by_level, limit=MAX_ERRORS_READ)
    refused = await access.search_log(by_status, limit=MAX_ERRORS_READ)
    others = [entry for entry in refused if entry.level not in severe]
    entries = sorted((*failed, *others), key=lambda entry: entry.at, reverse=True)
    if not entries:
        return "There were no errors."
    groups = Counter(_group(entry, group_by) for entry in entries)
    shown: JsonObject = {
        "errors": len(entries),
        "groups": [{group_by: name, "count": count} for name, count in groups.most_common(MAX_GROUPS)],
        "trend": _trend(entries, context.clock.now(), hours),
        "last": [_entry_line(entry) for entry in entries[:LAST_ERRORS]],
    }
    return _quote(_dump(shown), "log")


def _group(entry: LogEntry, by: ErrorGrouping) -> str:
    if by == "path":
        return str(entry.fields.get("path", "")) or "(no request)"
    last_line = entry.trace.strip().splitlines()[-1] if entry.trace.strip() else ""
    status = entry.fields.get("status")
    return truncate(last_line or (f"{entry.event} {status}" if status else entry.event), 200)


def _trend(entries: Sequence[LogEntry], now: datetime, hours: int) -> list[Json]:
    """Returns the number of errors in each hour, or each day where there are many hours, oldest first."""
    step = timedelta(hours=1) if hours <= 48 else timedelta(days=1)
    count = max(int(timedelta(hours=hours) / step), 1)
    first = now - step * count
    places = Counter(min(int((entry.at - first) / step), count - 1) for entry in entries)
    return [
        {"since": (first + step * place).astimezone(UTC).isoformat(timespec="minutes"), "errors": places[place]}
        for place in range(count)
    ]


def _since(context: ToolContext, hours: int, wanted: LogFilter) -> LogFilter:
    return LogFilter(
        since=context.clock.now() - timedelta(hours=hours),
        levels=wanted.levels,
        path=wanted.path,
        status=wanted.status,
        method=wanted.method,
        words=wanted.words,
    )


def _entry_line(entry: LogEntry) -> str:
    fields = " ".join(f"{name}={value}" for name, value in entry.fields.items())
    trace = entry.trace.strip().splitlines()[-1:] or [""]
    at = entry.at.astimezone(UTC).isoformat(timespec="seconds")
    return truncate(f"{at} {entry.level} {entry.event} {fields} {trace[0]}".strip(), 600)


def _figures(paths: Sequence[PathFigures]) -> list[Json]:
    return [
        {"path": each.path, "requests": each.requests, "errors": each.errors, "p95_ms": each.p95_ms} for each in paths
    ]


# --- charts -----------------------------------------------------------------------------------------------------------


@skill.tool(tier=Tier.LIMITED, read_only=True, administration=True)
def chart(  # noqa: PLR0913 - what a chart is made of
    context: ToolContext,
    *,
    title: Annotated[str, Param(min_length=1, max_length=150)],
    data: Annotated[list[dict[str, Cell]], Param("rows, each with the x key and the series", max_length=MAX_VALUES)],
    x_key: Annotated[str, Param("the key of x: dates as 2026-01-31, or names", min_length=1, max_length=100)],
    series: Annotated[list[str], Param("keys of numbers", min_length=1, max_length=MAX_SERIES)],
    labels: Annotated[list[str], Param("names of the series", max_length=MAX_SERIES)] = [],  # noqa: B006
    start_date: Annotated[str, Param("first day; 30 days back by default", max_length=10)] = "",
    end_date: Annotated[str, Param("last day; today by default", max_length=10)] = "",
) -> ToolOutput:
    """Draws a chart of the rows. With dates on the x axis, days without a row count as zero."""
    if labels and len(labels) != len(series):
        raise ToolError(f"There are {len(series)} series and {len(labels)} labels; give one label for each, or none.")
    is_dated = all(_read_day(row.get(x_key)) is not None for row in data)
    if not is_dated and (start_date or end_date):
        raise ToolError(f"start_date and end_date need days as 2026-01-31 in `{x_key}`.")
    if is_dated:
        days = list_days(start_date, end_date, context.clock.now().astimezone(UTC).date())
        rows = [_sum_day(data, x_key, day, series) for day in days]
        names = [day.isoformat() for day in days]
    else:
        rows = [[_read_number(row, key) for key in series] for row in data]
        names = [str(row.get(x_key, "")) for row in data]
    drawn = [Series([row[place] for row in rows], name) for place, name in enumerate(labels or series)]
    return draw_chart(context, "line" if is_dated else "bar", drawn, names, title, [x_key, ""])


def list_days(first: str, last: str, today: date) -> list[date]:
    """Returns the days of a window: the last 30 by default. Raises ToolError."""
    ends = _require_day(last, "end_date") if last else today
    starts = _require_day(first, "start_date") if first else ends - timedelta(days=CHART_DAYS - 1)
    count = (ends - starts).days + 1
    if not 1 <= count <= MAX_VALUES:
        raise ToolError(f"From {starts} to {ends} is no window of 1 to {MAX_VALUES} days.")
    return [starts + timedelta(days=place) for place in range(count)]


def _sum_day(data: Sequence[Mapping[str, Cell]], x_key: str, day: date, series: Sequence[str]) -> list[float]:
    rows = [row for row in data if _read_day(row.get(x_key)) == day]
    return [sum((_read_number(row, key) for row in rows), 0.0) for key in series]


def _read_day(value: Cell) -> date | None:
    try:
        return date.fromisoformat(str(value)[:10])
    except ValueError:
        return None


def _require_day(text: str, name: str) -> date:
    day = _read_day(text)
    if day is None:
        raise ToolError(f"{name} must be a day such as 2026-01-31.")
    return day


def _read_number(row: Mapping[str, Cell], key: str) -> float:
    value = row.get(key, 0)
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ToolError(f"`{key}` must be a number in each row, not {truncate(json.dumps(value), 40)}.")
    return float(value)


# --- the configuration ------------------------------------------------------------------------------------------------


@skill.tool(tier=Tier.LIMITED, read_only=True, administration=True, listed_only=True)
async def admin(
    context: ToolContext,
    action: Annotated[Literal["get_config", "list_agents"], Param("what to read")] = "get_config",
    section: Annotated[str, Param("such as agents or server.port; empty lists them", max_length=200)] = "",
) -> str:
    """Reads the configuration, without secrets, or lists the agents."""
    access = _access(context)
    return await access.read_configuration("agents" if action == "list_agents" else section)


@skill.tool(tier=Tier.DANGEROUS, administration=True, listed_only=True, destructive=True, changes_configuration=True)
async def admin_change(
    context: ToolContext,
    path: Annotated[str, Param("such as agents.ada.style.language", min_length=1, max_length=200)],
    value: Annotated[str | int | float | bool, Param("the new value")],
) -> str:
    """Changes one setting of an agent: how it writes and thinks, never what it may do. Owners are asked first."""
    await _access(context).change_configuration(context.principal, path, value)
    return f"{path} is {json.dumps(value, ensure_ascii=False)} now."


@skill.tool(tier=Tier.DANGEROUS, administration=True, listed_only=True, destructive=True, changes_configuration=True)
async def admin_create_agent(
    context: ToolContext,
    name: Annotated[str, Param("small letters, digits, - or _", min_length=1, max_length=32)],
    description: Annotated[str, Param("one sentence", max_length=300)],
    model: Annotated[str, Param("an alias or provider/model; empty for the usual one", max_length=200)] = "",
) -> str:
    """Creates an agent, without tools. Owners are asked first."""
    await _access(context).create_agent(context.principal, name, description=description, model=model)
    return f"The agent {name} is there now. Whoever edits the configuration gives it tools."


# --- shared -----------------------------------------------------------------------------------------------------------


def _access(context: ToolContext) -> AdministrationAccess:
    if context.administration is None:
        raise NotAllowed("this is for chats about the administration")
    return context.administration


def _table(found: SqlRows, source: str) -> str:
    if not found.rows:
        return "There are no rows."
    lines = [json.dumps(list(row), ensure_ascii=False) for row in (found.columns, *found.rows)]
    if found.is_cut:
        lines.append(f"[cut: only the first {len(found.rows)} rows]")
    return _quote("\n".join(lines), source)


def _quote(text: str, source: str) -> str:
    return quote_untrusted(text, source=f"denizen:{source}")


def _dump(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

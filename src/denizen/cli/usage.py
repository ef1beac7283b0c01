"""`denizen usage`: what was spent, by whom and on what."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from denizen.cli.home import with_denizen
from denizen.cli.terminal import echo
from denizen.domain.record import record
from denizen.domain.usage import Usage

if TYPE_CHECKING:
    from denizen.app.build import Denizen

MODEL, SOURCE, DAY = "model", "source", "day"
WAYS = ("agent", MODEL, "user", "job", "channel", "guild", SOURCE, DAY)


@record
class _Row:
    day: str
    key: str
    usage: Usage


@click.command()
@click.option(
    "--days", type=click.IntRange(1, 365), default=30, show_default=True, help="How many days back, including today."
)
@click.option("--by", type=click.Choice(WAYS), default="agent", show_default=True, help="What to sum up by.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each day and key, a line each.")
@with_denizen
async def command(denizen: Denizen, days: int, by: str, *, as_json: bool) -> None:
    """Show requests, tokens and money of the last days (UTC), the most expensive first.

    A channel or guild (a Discord server) is named as platform:id. A source is where messages come in (web, discord,
    terminal, ...), or the name under which another program reported what it used; by source and by day, such reports
    are counted too. Days are shown in order, the newest first.
    """
    today = denizen.services.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    rows = await _load(denizen, by, days, since=today - timedelta(days=days - 1))
    if as_json:
        for row in rows:
            click.echo(json.dumps({"day": row.day, by: row.key, **_fields(row.usage)}))
        return
    sums = _sum_up(rows)
    newest_first = sorted(sums.items(), reverse=True)
    dearest_first = sorted(sums.items(), key=lambda item: (-(item[1].cost_usd or 0), item[0]))
    for key, usage in newest_first if by == DAY else dearest_first:
        echo(f"{key}: {_format_usage(usage)}")
    echo(
        f"in all: {_format_usage(sum(sums.values(), Usage()))}"
        if sums
        else f"Nothing was used in the last {days} days."
    )


async def _load(denizen: Denizen, by: str, days: int, *, since: datetime) -> list[_Row]:
    from denizen.domain.budget import BudgetScopeKind

    if by in {SOURCE, DAY}:
        return await _load_sums(denizen, by, days)
    queries = denizen.queries
    if by == MODEL:
        used = await queries.list_usage(since=since)
        return list(_by_model(_Row(row.day, row.model, row.usage) for row in used))
    return [
        _Row(row.day, row.scope.key, row.usage) for row in await queries.list_spend(BudgetScopeKind(by), since=since)
    ]


async def _load_sums(denizen: Denizen, by: str, days: int) -> list[_Row]:
    """With what other programs reported."""
    from denizen.domain.statistics import UsageGrouping

    found = await denizen.statistics.sum_up(
        days, [UsageGrouping.DAY] if by == DAY else [UsageGrouping.DAY, UsageGrouping.SOURCE]
    )
    return [_Row(key[0], key[-1], used.usage) for key, used in sorted(found.items(), reverse=True)]


def _by_model(rows: Iterable[_Row]) -> Iterator[_Row]:
    """One row a day and model, whichever agents used it."""
    sums: dict[tuple[str, str], Usage] = {}
    for row in rows:
        sums[row.day, row.key] = sums.get((row.day, row.key), Usage()) + row.usage
    return (_Row(day, key, usage) for (day, key), usage in sums.items())


def _sum_up(rows: Iterable[_Row]) -> dict[str, Usage]:
    sums: dict[str, Usage] = {}
    for row in rows:
        sums[row.key] = sums.get(row.key, Usage()) + row.usage
    return sums


def _fields(usage: Usage) -> dict[str, object]:
    return {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": None if usage.cost_usd is None else str(usage.cost_usd),
    }


def _format_usage(usage: Usage) -> str:
    cost = "cost unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    return (
        f"{usage.requests:,} requests, {usage.input_tokens:,} tokens in ({usage.cache_read_tokens:,} cached), "
        f"{usage.output_tokens:,} out, {cost}"
    )

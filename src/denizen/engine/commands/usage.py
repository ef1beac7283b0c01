"""`/usage`: what was spent today and this month (promise 5). One's own is for everybody, the rest for admins."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from denizen.domain.budget import SERVER, BudgetLimits, BudgetScope, BudgetScopeKind, BudgetStatus
from denizen.engine.budget.budgets import place_scopes
from denizen.engine.commands.scene import Command, Given
from denizen.engine.commands.words import code_block, counted, say, table
from denizen.ports.channel import CommandReply, CommandSpec

_NAMES = {
    BudgetScopeKind.SERVER: "everything",
    BudgetScopeKind.GUILD: "this server",
    BudgetScopeKind.CHANNEL: "this channel",
    BudgetScopeKind.AGENT: "agent",
}


async def _usage(given: Given) -> CommandReply:
    mine = BudgetScope(BudgetScopeKind.USER, given.at.principal.key)
    others = _others(given) if given.at.is_admin else []
    now, policy = given.on.services.clock.now(), given.generation.budgets
    async with given.on.services.store.work(write=False) as work:
        standings = await work.spending.read([mine, *others], now=now)
    lines = list(_own(standings[mine], policy.get_limits(mine)))
    if others:
        rows = [_row(scope, standings[scope], policy.get_limits(scope)) for scope in others]
        body = [["USD", "today", "limit", "share", "month", "limit", "share"], *rows]
        room = given.at.manners.message_limit - sum(map(len, lines)) - 10
        lines.append(code_block(table(body), limit=room))
    return say(*lines, "-# Days and months are those of UTC.")


def _others(given: Given) -> list[BudgetScope]:
    """What an admin sees here, besides themselves."""
    room = given.command.room
    *narrow, widest = place_scopes(room.place, room.guild)
    return [SERVER, widest, *narrow, BudgetScope(BudgetScopeKind.AGENT, given.agent.name)]


def _own(at: BudgetStatus, limits: BudgetLimits) -> Iterator[str]:
    spans = (
        ("You today", at.day_usd, at.day_requests, limits.per_day_usd),
        ("This month", at.month_usd, at.month_requests, limits.per_month_usd),
    )
    for when, usd, requests, limit in spans:
        of = f", {_share(usd, limit)} of your budget" if limit is not None else ""
        yield f"{when}: ${usd:.4f}, {counted(requests, 'request')}{of}."


def _row(scope: BudgetScope, at: BudgetStatus, limits: BudgetLimits) -> list[str]:
    cells = [f"agent {scope.key}" if scope.kind is BudgetScopeKind.AGENT else _NAMES[scope.kind]]
    for usd, limit in ((at.day_usd, limits.per_day_usd), (at.month_usd, limits.per_month_usd)):
        cells += [f"{usd:.4f}", "-" if limit is None else f"{limit:.2f}", _share(usd, limit)]
    return cells


def _share(usd: Decimal, limit: Decimal | None) -> str:
    return f"{round(100 * usd / limit)} %" if limit else "-"


USAGE = Command(CommandSpec("usage", "See what you have spent today and this month."), _usage)

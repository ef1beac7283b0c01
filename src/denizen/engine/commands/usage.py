"""`/usage`: what was spent today and this month (promise 5). One's own is for everybody, the rest for admins."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from denizen.domain.budget import SERVER, Limits, Scope, ScopeKind, Standing
from denizen.engine.budgets import place_scopes
from denizen.engine.commands.scene import Command, Given
from denizen.engine.commands.words import code_block, counted, say, table
from denizen.ports.channel import CommandReply, CommandSpec

_SCOPE_NAMES = {
    ScopeKind.SERVER: "everything",
    ScopeKind.GUILD: "this server",
    ScopeKind.CHANNEL: "this channel",
    ScopeKind.AGENT: "agent",
}


async def _usage(given: Given) -> CommandReply:
    mine = Scope(ScopeKind.USER, given.at.principal.key)
    others = _admin_scopes(given) if given.at.is_admin else []
    now, policy = given.on.services.clock.now(), given.generation.budgets
    async with given.on.services.store.work(write=False) as work:
        standings = await work.spending.read([mine, *others], now=now)
    lines = list(_own_lines(standings[mine], policy.limits_of(mine)))
    if others:
        rows = [_scope_row(scope, standings[scope], policy.limits_of(scope)) for scope in others]
        body = [["USD", "today", "limit", "share", "month", "limit", "share"], *rows]
        room = given.at.manners.message_limit - sum(map(len, lines)) - 10
        lines.append(code_block(table(body), limit=room))
    return say(*lines, "-# Days and months are those of UTC.")


def _admin_scopes(given: Given) -> list[Scope]:
    """What an admin sees here, besides themselves."""
    room = given.command.room
    *narrow, widest = place_scopes(room.place, room.guild)
    return [SERVER, widest, *narrow, Scope(ScopeKind.AGENT, given.agent.name)]


def _own_lines(at: Standing, limits: Limits) -> Iterator[str]:
    spans = (
        ("You today", at.day_usd, at.day_requests, limits.per_day_usd),
        ("This month", at.month_usd, at.month_requests, limits.per_month_usd),
    )
    for when, usd, requests, limit in spans:
        of = f", {_share(usd, limit)} of your budget" if limit is not None else ""
        yield f"{when}: ${usd:.4f}, {counted(requests, 'request')}{of}."


def _scope_row(scope: Scope, at: Standing, limits: Limits) -> list[str]:
    cells = [f"agent {scope.key}" if scope.kind is ScopeKind.AGENT else _SCOPE_NAMES[scope.kind]]
    for usd, limit in ((at.day_usd, limits.per_day_usd), (at.month_usd, limits.per_month_usd)):
        cells += [f"{usd:.4f}", "-" if limit is None else f"{limit:.2f}", _budget_share(usd, limit)]
    return cells


def _budget_share(usd: Decimal, limit: Decimal | None) -> str:
    return f"{round(100 * usd / limit)} %" if limit else "-"


USAGE = Command(CommandSpec("usage", "See what you have spent today and this month."), _usage)

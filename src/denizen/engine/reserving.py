"""Setting money aside before something is paid for: reserved, or refused by a limit, in one unit of work.

Of two that want the last of a budget at the same time, one gets it. Used by `budgets` for turns, and by
`embed_budget` for vectors.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from denizen.domain.budget import BudgetPolicy, Limit, Scope, ScopeKind, Standing, decide_request, utc_day
from denizen.ports.store import Store
from denizen.ports.usage import Reservation

_log = logging.getLogger("denizen.budget")


@dataclass(frozen=True, slots=True)
class Refusal:
    limit: Limit
    standing: Standing
    wanted_usd: Decimal


@dataclass(frozen=True, slots=True)
class Reserved:
    """`near` are the budgets that are nearly used up now, each told once a day."""

    refusal: Refusal | None = None
    near: tuple[Scope, ...] = ()


async def reserve(store: Store, policy: BudgetPolicy, wanted: Reservation, *, now: datetime) -> Reserved:
    """Reserves unless a limit of the reservation's scopes says no."""
    limits = policy.plan_limits(wanted.scopes)
    scopes = list(dict.fromkeys(limit.scope for limit in limits))
    async with store.work() as work:
        await work.spending.lock(scopes)
        standings = dict(await work.spending.read(scopes, now=now, besides=wanted.id))
        ruling = decide_request(limits, standings, wanted.usd, warn_at=policy.warn_at)
        refused = ruling.refused_by
        if refused is not None:
            return Reserved(Refusal(refused, standings[refused.scope], wanted.usd))
        await work.spending.reserve(wanted, now=now)
        near = [scope for scope in ruling.near if await work.spending.note_warning(scope, day=utc_day(now))]
    for scope in near:
        _log.warning("a budget is nearly used up", extra=named(scope))
    return Reserved(near=tuple(near))


def named(scope: Scope) -> dict[str, str]:
    """For the log."""
    return {"scope": scope.kind.value, "key": scope.key}


def whose(scope: Scope) -> str:
    """For people, at the beginning of a sentence."""
    match scope.kind:
        case ScopeKind.SERVER:
            return "My budget"
        case ScopeKind.GUILD:
            return "The budget of this server"
        case ScopeKind.CHANNEL:
            return "The budget of this channel"
        case ScopeKind.USER:
            return "Your budget"
        case ScopeKind.AGENT:
            return f"The budget of {scope.key}"

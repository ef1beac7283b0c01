"""What the store keeps of money: what was spent by whom on which day, and what is reserved. Part of a unit of work.

Whoever reserves locks the scopes, reads how they stand, decides, and reserves, all in one unit of work: of two that do
so at once, the second sees what the first has reserved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from denizen.domain.budget import BudgetScope, BudgetScopeKind, BudgetStatus
from denizen.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money for one request that is under way, counted in all its scopes until it is released or expires.

    At most one scope of each kind; the server is always one.
    """

    id: str
    usd: Decimal
    scopes: tuple[BudgetScope, ...]
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SpendRow:
    """What one scope used on one UTC day."""

    day: str
    scope: BudgetScope
    usage: Usage


class Spending(Protocol):
    async def lock(self, scopes: Collection[BudgetScope]) -> None:
        """Until this unit of work ends, nobody else who locks one of these decides about it."""
        ...

    async def read(
        self, scopes: Collection[BudgetScope], *, now: datetime, besides: str = ""
    ) -> Mapping[BudgetScope, BudgetStatus]:
        """How each of them stands. Reservations that have expired do not count, nor does the one named `besides`."""
        ...

    async def reserve(self, reservation: Reservation, *, now: datetime) -> None:
        """The same id again takes the place of the earlier one."""
        ...

    async def release(self, reservation_id: str) -> None:
        """Nothing happens when it is not there."""
        ...

    async def add(self, scopes: Collection[BudgetScope], usage: Usage, *, at: datetime) -> None:
        """Counts it in each of the scopes, on the UTC day of that time."""
        ...

    async def note_warning(self, scope: BudgetScope, *, day: str) -> bool:
        """False when the scope was warned on that day already."""
        ...

    async def forget_users(self, *users: str, now: datetime) -> None:
        """What these principals spent until now counts for FORGOTTEN as soon as their budgets do not need it any more:
        what is of this month stays theirs until a call in another month, which may name nobody.
        """
        ...

    async def list_spend(self, kind: BudgetScopeKind, *, since: datetime) -> Sequence[SpendRow]:
        """From the UTC day of that time on, the newest day first, by key."""
        ...

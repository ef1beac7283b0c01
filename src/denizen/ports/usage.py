"""What the store keeps of money: what was spent by whom on which day, and what is reserved. Part of a unit of work.

Whoever reserves locks the scopes, reads how they stand, decides, and reserves, all in one unit of work: of two that do
so at once, the second sees what the first has reserved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol

from denizen.domain.budget import Scope, ScopeKind, Standing
from denizen.domain.statistics import By, Chosen, Report, SideRequest, Span, Used
from denizen.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money for one request that is under way, counted in all its scopes until it is released or expires.

    At most one scope of each kind; the server is always one.
    """

    id: str
    usd: Decimal
    scopes: tuple[Scope, ...]
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SpendRow:
    """What one scope used on one UTC day."""

    day: str
    scope: Scope
    usage: Usage


class SpendingRepository(Protocol):
    async def lock(self, scopes: Collection[Scope]) -> None:
        """Until this unit of work ends, nobody else who locks one of these decides about it."""
        ...

    async def read(self, scopes: Collection[Scope], *, now: datetime, besides: str = "") -> Mapping[Scope, Standing]:
        """How each of them stands. Reservations that have expired do not count, nor does the one named `besides`."""
        ...

    async def reserve(self, reservation: Reservation, *, now: datetime) -> None:
        """The same id again takes the place of the earlier one."""
        ...

    async def release(self, reservation_id: str) -> None:
        """Nothing happens when it is not there."""
        ...

    async def add(self, scopes: Collection[Scope], usage: Usage, *, at: datetime) -> None:
        """Counts it in each of the scopes, on the UTC day of that time."""
        ...

    async def note_warning(self, scope: Scope, *, day: str) -> bool:
        """False when the scope was warned on that day already."""
        ...

    async def forget_users(self, *users: str, now: datetime) -> None:
        """What these principals spent until now counts for FORGOTTEN as soon as their budgets do not need it any more:
        what is of this month stays theirs until a call in another month, which may name nobody.
        """
        ...

    async def list_spend(self, kind: ScopeKind, *, since: datetime) -> Sequence[SpendRow]:
        """From the UTC day of that time on, the newest day first, by key."""
        ...


class StatisticsRepository(Protocol):
    async def add_report(self, report: Report) -> bool:
        """Repeating it (same id) changes nothing, and gives False."""
        ...

    async def find_report(self, report_id: str) -> Report | None: ...

    async def count_reports(self, reporter: str, *, since: datetime) -> int: ...

    async def add_side_request(self, request: SideRequest) -> None:
        """Each call adds one; `Ledger` counts it too."""
        ...

    async def compute(self, day: date, *, now: datetime) -> int:
        """Sums up a day of UTC anew, for each user and for everybody, and tells in how many rows."""
        ...

    async def list_due(self, *, before: date) -> Sequence[date]:
        """Days from the first record on that are not computed, oldest first."""
        ...

    async def sum_up(self, span: Span, by: Sequence[By], chosen: Chosen) -> Mapping[tuple[str, ...], Used]:
        """By the given keys, in their order; only what there is. With By.USER of each user, else of the chosen one."""
        ...

    async def sum_hours(self, span: Span, *, source: str = "", model: str = "") -> Mapping[str, Used]:
        """Of everybody, by the hour of the day: `00` to `23`."""
        ...

    async def find_names(self, users: Collection[str]) -> Mapping[str, str]:
        """What the users of these keys were called last, as far as it is known."""
        ...

    async def forget_user(self, user: str) -> None:
        """What they used so far counts for FORGOTTEN; nothing here tells any more that it was theirs."""
        ...

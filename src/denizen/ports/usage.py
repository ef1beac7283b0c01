"""The ports of money and usage: budgets, reservations, rate limits, and statistics. Part of a unit of work.

To reserve money, a unit of work locks the scopes, reads how they stand, decides, and reserves: of two that do so at
once, the second sees what the first has reserved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol

from denizen.domain.budget import BudgetScope, BudgetScopeKind, BudgetStatus
from denizen.domain.rate_limit import RateLimit, RateLimitWait
from denizen.domain.record import record
from denizen.domain.statistics import DayRange, SideRequest, UsageFilter, UsageGrouping, UsageReport, UsageTotals
from denizen.domain.usage import Usage


@record
class Reservation:
    """Money for one running request, counted in all its scopes until it is released or expires.

    There is at most one scope of each kind; the server is always one.
    """

    id: str
    usd: Decimal
    scopes: tuple[BudgetScope, ...]
    expires_at: datetime


@record
class SpendRow:
    """The usage of one scope on one UTC day."""

    day: str
    scope: BudgetScope
    usage: Usage


class RateRepository(Protocol):
    """The uses that rate limits count."""

    async def take(self, key: str, limits: Sequence[RateLimit], *, now: datetime) -> RateLimitWait | None:
        """Counts one use, if all limits (one or more) allow it. Otherwise counts nothing and returns the wait.

        Of several units of work that take the last use of a key at once, one gets it.
        """
        ...

    async def give_back(self, key: str) -> None:
        """Takes the newest use back."""
        ...

    async def list_uses(self, key: str) -> Sequence[float]:
        """Returns the times of the uses that are counted, in seconds since 1970, oldest first."""
        ...


class SpendingRepository(Protocol):
    """The money that was spent, and the reservations."""

    async def lock(self, scopes: Collection[BudgetScope]) -> None:
        """Locks the scopes until this unit of work ends, so that nobody else decides about one of them."""
        ...

    async def read(
        self, scopes: Collection[BudgetScope], *, now: datetime, besides: str = ""
    ) -> Mapping[BudgetScope, BudgetStatus]:
        """Returns how each scope stands, without expired reservations and without the one named `besides`."""
        ...

    async def reserve(self, reservation: Reservation, *, now: datetime) -> None:
        """Adds the reservation. The same id replaces the earlier one."""
        ...

    async def release(self, reservation_id: str) -> None:
        """Removes the reservation. Nothing happens when it is not there."""
        ...

    async def add(self, scopes: Collection[BudgetScope], usage: Usage, *, at: datetime) -> None:
        """Adds the usage to each scope, on the UTC day of that time."""
        ...

    async def note_warning(self, scope: BudgetScope, *, day: str) -> bool:
        """Notes that the scope was warned. False when it was warned on that day already."""
        ...

    async def forget_users(self, *users: str, now: datetime) -> None:
        """Moves the spending of these principals to FORGOTTEN as soon as their budgets no longer need it.

        This month's spending stays theirs until a call in another month, which may name nobody.
        """
        ...

    async def list_spend(self, kind: BudgetScopeKind, *, since: datetime) -> Sequence[SpendRow]:
        """Returns the spending from the UTC day of that time on, newest day first, then by key."""
        ...


class StatisticsRepository(Protocol):
    """Usage reported by other programs, and sums by day, user, source and model.

    Sums of computed days are read from what was computed, those of all other days from the records. So they are right
    whether or not a day was computed; computing makes them cheap. A record that comes late makes its day uncomputed
    again.
    """

    async def add_report(self, report: UsageReport) -> bool:
        """Adds the report. Repeating it (same id) changes nothing and returns False."""
        ...

    async def find_report(self, report_id: str) -> UsageReport | None: ...

    async def add_side_request(self, request: SideRequest) -> None:
        """Adds a request outside of a turn's steps. `UsageLedger` counts it too."""
        ...

    async def compute(self, day: date, *, now: datetime) -> int:
        """Computes the sums of a UTC day anew, for each user and for everybody. Returns the number of rows."""
        ...

    async def list_due(self, *, before: date) -> Sequence[date]:
        """Returns the days from the first record on that are not computed, oldest first."""
        ...

    async def sum_up(
        self, span: DayRange, by: Sequence[UsageGrouping], chosen: UsageFilter
    ) -> Mapping[tuple[str, ...], UsageTotals]:
        """Returns sums by the given keys, in their order; keys without usage are missing.

        With By.USER it returns every user, else only the chosen one.
        """
        ...

    async def sum_hours(self, span: DayRange, *, source: str = "", model: str = "") -> Mapping[str, UsageTotals]:
        """Returns the usage of everybody by the hour of the day, `00` to `23`."""
        ...

    async def find_names(self, users: Collection[str]) -> Mapping[str, str]:
        """Returns the latest known names of users, by their keys."""
        ...

    async def forget_user(self, user: str) -> None:
        """Moves the user's usage to FORGOTTEN; nothing here tells any more that it was theirs."""
        ...

"""What the store knows of usage: reports of other programs, and sums by day, user, source and model. Part of a unit of
work.

Sums of a day that is computed are read from what was computed; those of all other days from the records themselves. So
they are right whether or not a day was computed, and computing makes them cheap. A record that comes late to a day
that is computed makes it one that is not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol

from denizen.domain.statistics import DayRange, SideRequest, UsageFilter, UsageGrouping, UsageReport, UsageTotals


class Statistics(Protocol):
    async def add_report(self, report: UsageReport) -> bool:
        """Repeating it (same id) changes nothing, and gives False."""
        ...

    async def find_report(self, report_id: str) -> UsageReport | None: ...

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

    async def sum_up(
        self, span: DayRange, by: Sequence[UsageGrouping], chosen: UsageFilter
    ) -> Mapping[tuple[str, ...], UsageTotals]:
        """By the given keys, in their order; only what there is. With By.USER of each user, else of the chosen one."""
        ...

    async def sum_hours(self, span: DayRange, *, source: str = "", model: str = "") -> Mapping[str, UsageTotals]:
        """Of everybody, by the hour of the day: `00` to `23`."""
        ...

    async def find_names(self, users: Collection[str]) -> Mapping[str, str]:
        """What the users of these keys were called last, as far as it is known."""
        ...

    async def forget_user(self, user: str) -> None:
        """What they used so far counts for FORGOTTEN; nothing here tells any more that it was theirs."""
        ...

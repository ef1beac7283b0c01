"""Usage reported, and sums of usage, in the memory store."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from denizen.domain.statistics import EVERYBODY, FORGOTTEN, By, Chosen, Report, SideRequest, Span, Used
from denizen.domain.turn import Step
from denizen.testing.memory_unit import Unit, in_utc, through_json


@dataclass(frozen=True, slots=True)
class _Entry:
    """One record, or what was computed of several."""

    day: str
    hour: str
    user: str
    source: str
    model: str
    used: Used

    def key(self, by: Sequence[By]) -> tuple[str, ...]:
        return tuple(getattr(self, each.value) for each in by)


class MemoryStatistics:
    """`denizen.ports.usage.Statistics`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add_report(self, report: Report) -> bool:
        self._unit.check_writes()
        reports = self._unit.tables.reports
        if report.id in reports:
            return False
        kept = through_json(dict(report.metadata))
        self._unit.put(reports, report.id, replace(report, metadata=kept, reported_at=in_utc(report.reported_at)))
        reopen_day(self._unit, report.reported_at)
        return True

    async def find_report(self, report_id: str) -> Report | None:
        return self._unit.tables.reports.get(report_id)

    async def count_reports(self, reporter: str, *, since: datetime) -> int:
        rows = self._unit.tables.reports.values()
        return sum(row.reporter == reporter and row.reported_at >= since for row in rows)

    async def add_side_request(self, request: SideRequest) -> None:
        self._unit.check_writes()
        self._unit.append(self._unit.tables.side_requests, replace(request, asked_at=in_utc(request.asked_at)))
        reopen_day(self._unit, request.asked_at)

    async def compute(self, day: date, *, now: datetime) -> int:
        self._unit.check_writes()
        tables, name = self._unit.tables, day.isoformat()
        for table in (tables.used_days, tables.used_hours):
            self._unit.remove(table, *[key for key in table if key[0] == name])
        for entry in [entry for entry in self._records() if entry.day == name]:
            for user in (entry.user, EVERYBODY):
                self._add((name, user, entry.source, entry.model), entry.used)
            at = (name, entry.hour, entry.source, entry.model)
            self._unit.put(tables.used_hours, at, tables.used_hours.get(at, Used()) + entry.used)
        self._unit.put(tables.computed, name, in_utc(now))
        return sum(key[0] == name for key in tables.used_days)

    async def list_due(self, *, before: date) -> Sequence[date]:
        first = min((entry.day for entry in self._records()), default=before.isoformat())
        span = Span(date.fromisoformat(first), before - timedelta(days=1))
        return [date.fromisoformat(day) for day in span.days if day not in self._unit.tables.computed]

    async def sum_up(self, span: Span, by: Sequence[By], chosen: Chosen) -> Mapping[tuple[str, ...], Used]:
        rows = [
            _Entry(day, "", user, source, model, used)
            for (day, user, source, model), used in self._unit.tables.used_days.items()
        ]
        if By.USER in by or chosen.user:
            entries = [*self._computed(rows), *self._open()]
            entries = [entry for entry in entries if entry.user != EVERYBODY and chosen.user in {"", entry.user}]
        else:
            entries = [*(row for row in self._computed(rows) if row.user == EVERYBODY), *self._open()]
        return _sums(entries, span, by, chosen)

    async def sum_hours(self, span: Span, *, source: str = "", model: str = "") -> Mapping[str, Used]:
        rows = [
            _Entry(day, hour, "", its_source, its_model, used)
            for (day, hour, its_source, its_model), used in self._unit.tables.used_hours.items()
        ]
        chosen, found = Chosen(source=source, model=model), dict[str, Used]()
        for entry in _fitting([*self._computed(rows), *self._open()], span, chosen):
            found[entry.hour] = found.get(entry.hour, Used()) + entry.used
        return found

    async def find_names(self, users: Collection[str]) -> Mapping[str, str]:
        tables = self._unit.tables
        steps = sorted(tables.steps.values(), key=lambda step: step.created_at)
        names = {self._user_of(step): tables.turns[step.turn_id].principal.name for step in steps}
        return {user: name for user, name in names.items() if user in users and user != FORGOTTEN and name}

    async def forget_user(self, user: str) -> None:
        self._unit.check_writes()
        tables = self._unit.tables
        for key, step in list(tables.steps.items()):
            if self._user_of(step) == user:
                self._unit.put(tables.disowned, key, True)  # noqa: FBT003 - a set whose changes can be undone
        for report in list(tables.reports.values()):
            if report.reporter == user:
                self._unit.put(tables.reports, report.id, replace(report, reporter=FORGOTTEN))
        for number, request in enumerate(tables.side_requests):
            if request.user == user:
                self._unit.exchange(tables.side_requests, number, replace(request, user=FORGOTTEN))
        theirs = {key: used for key, used in tables.used_days.items() if key[1] == user != FORGOTTEN}
        self._unit.remove(tables.used_days, *theirs)
        for (day, _, source, model), used in theirs.items():
            self._add((day, FORGOTTEN, source, model), used)

    def _add(self, key: tuple[str, str, str, str], used: Used) -> None:
        table = self._unit.tables.used_days
        self._unit.put(table, key, table.get(key, Used()) + used)

    def _computed(self, rows: Sequence[_Entry]) -> Iterator[_Entry]:
        return (row for row in rows if row.day in self._unit.tables.computed)

    def _open(self) -> Iterator[_Entry]:
        return (entry for entry in self._records() if entry.day not in self._unit.tables.computed)

    def _records(self) -> Iterator[_Entry]:
        tables = self._unit.tables
        firsts = {turn: min(number for its, number in tables.steps if its == turn) for turn, _ in tables.steps}
        for (turn_id, number), step in tables.steps.items():
            platform = tables.conversations[tables.turns[turn_id].conversation_id].place.platform
            used = Used(int(number == firsts[turn_id]), step.usage, step.duration_ms)
            yield _entry(step.created_at, self._user_of(step), platform, step.model, used)
        for request in tables.side_requests:
            yield _entry(request.asked_at, request.user, request.source, request.model, Used(usage=request.usage))
        for report in tables.reports.values():
            used = Used(1, report.usage, report.duration_ms)
            yield _entry(report.reported_at, report.reporter, report.source, report.model, used)

    def _user_of(self, step: Step) -> str:
        return user_of_step(self._unit, step)


def user_of_step(unit: Unit, step: Step) -> str:
    """The key of who asked, or FORGOTTEN."""
    if (step.turn_id, step.number) in unit.tables.disowned:
        return FORGOTTEN
    return unit.tables.turns[step.turn_id].principal.key


def reopen_day(unit: Unit, moment: datetime) -> None:
    """Its sums do not hold any more: a record came late."""
    unit.remove(unit.tables.computed, in_utc(moment).date().isoformat())


def _entry(moment: datetime, user: str, source: str, model: str, used: Used) -> _Entry:
    at = moment.astimezone(UTC)
    return _Entry(at.date().isoformat(), f"{at.hour:02d}", user, source, model, used)


def _fitting(entries: Sequence[_Entry], span: Span, chosen: Chosen) -> Iterator[_Entry]:
    days = set(span.days)
    return (
        entry
        for entry in entries
        if entry.day in days and chosen.source in {"", entry.source} and chosen.model in {"", entry.model}
    )


def _sums(entries: Sequence[_Entry], span: Span, by: Sequence[By], chosen: Chosen) -> dict[tuple[str, ...], Used]:
    found: dict[tuple[str, ...], Used] = {}
    for entry in _fitting(entries, span, chosen):
        key = entry.key(by)
        found[key] = found.get(key, Used()) + entry.used
    return found

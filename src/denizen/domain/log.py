"""Entries of the log: what is searched for in them, and what they say about requests. Pure.

An entry of a request has the fields `method`, `path` (a pattern such as `/api/turns/{turn_id}`), `status` and
`duration_ms`; `stream` where its answer was a stream, whose length says nothing about how fast the server is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from math import ceil

from denizen.domain.json import Json
from denizen.domain.record import record

LEVELS = ("debug", "info", "warning", "error", "critical")
PROBLEMS = frozenset({"warning", "error", "critical"})
TOP_PATHS = 10
MAX_LINE_CHARS = 20_000


@record
class LogEntry:
    """One line of the log. `trace` is a traceback, or empty.

    `name` is the event as the program has it, before values are put in, and `frames` are the places in the code that a
    traceback leads to: both without a word of anybody. They are empty for lines of others.
    """

    at: datetime
    level: str
    event: str
    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])
    trace: str = ""
    name: str = ""
    frames: Sequence[str] = ()


def encode_entry(entry: LogEntry) -> str:
    """Returns the line of an entry. What is too long loses its fields and trace, and then the end of its event."""
    at = entry.at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    head = {"at": at, "level": entry.level, "event": entry.event[:MAX_LINE_CHARS]}
    origin = {"name": entry.name, "frames": list(entry.frames)} if entry.name or entry.frames else {}
    line = json.dumps({**head, "fields": dict(entry.fields), "trace": entry.trace, **origin}, ensure_ascii=False)
    if len(line) <= MAX_LINE_CHARS:
        return line
    room = max(MAX_LINE_CHARS - len(head["event"]) - 200, 0)
    return json.dumps({**head, "fields": {"shortened": True}, "trace": entry.trace[-room:] if room else ""})


def decode_entry(line: str) -> LogEntry | None:
    """Returns the entry of a line; None for what is none, such as the end of a file that a full disk cut off."""
    try:
        row = json.loads(line)
        at, name, frames = datetime.fromisoformat(row["at"]), row.get("name", ""), tuple(row.get("frames", ()))
        return LogEntry(at, row["level"], row["event"], row["fields"], trace=row["trace"], name=name, frames=frames)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


@record(kw_only=True)
class LogFilter:
    """A filter of entries; what is empty or None is any. `status` is a number or a class such as `5xx`, `path` a part
    of one, and `words` stand anywhere in the entry, in whatever case.
    """

    since: datetime | None = None
    before: datetime | None = None
    levels: frozenset[str] = frozenset()
    path: str = ""
    status: str = ""
    method: str = ""
    words: str = ""

    def matches(self, entry: LogEntry) -> bool:
        """Tells whether the entry passes. `words` are compared by who has its text."""
        if (self.since and entry.at < self.since) or (self.before and entry.at >= self.before):
            return False
        if self.levels and entry.level not in self.levels:
            return False
        if self.method and entry.fields.get("method") != self.method:
            return False
        if self.path and self.path not in str(entry.fields.get("path", "")):
            return False
        status = str(entry.fields.get("status", ""))
        return not self.status or self.status in (status, f"{status[:1]}xx" if len(status) == 3 else "")


@record
class PathFigures:
    """The requests of one path: how many, how many of them failed on the server's side, and how long they took."""

    path: str
    requests: int
    errors: int
    p95_ms: int


@record(kw_only=True)
class LogStatistics:
    """`errors` are requests that failed on the server's side (5xx). `classes` counts them by the first digit of their
    status, as `2xx`. Times are those below which 50, 95 and 99 percent of the requests stayed, without streams.
    """

    entries: int
    levels: Mapping[str, int]
    requests: int
    errors: int
    classes: Mapping[str, int]
    p50_ms: int
    p95_ms: int
    p99_ms: int
    slowest: Sequence[PathFigures]
    busiest: Sequence[PathFigures]
    failing: Sequence[PathFigures]

    @property
    def error_rate(self) -> float:
        """From 0 to 1."""
        return self.errors / self.requests if self.requests else 0.0


def sum_up_log(entries: Iterable[LogEntry]) -> LogStatistics:
    levels, classes, requests, errors = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    times: dict[str, list[int]] = {}
    for entry in entries:
        levels[entry.level] += 1
        status, path = entry.fields.get("status"), entry.fields.get("path")
        if not isinstance(status, int) or not isinstance(path, str) or entry.event != "request":
            continue
        classes[f"{status // 100}xx"] += 1
        requests[path] += 1
        errors[path] += status >= 500
        took_ms = entry.fields.get("duration_ms")
        if isinstance(took_ms, int) and not entry.fields.get("stream"):
            times.setdefault(path, []).append(took_ms)
    every = sorted(took_ms for found in times.values() for took_ms in found)
    figures = [
        PathFigures(path, count, errors[path], percentile(sorted(times.get(path, [])), 95))
        for path, count in sorted(requests.items())
    ]
    return LogStatistics(
        entries=levels.total(),
        levels={level: levels[level] for level in LEVELS},
        requests=requests.total(),
        errors=errors.total(),
        classes=dict(sorted(classes.items())),
        p50_ms=percentile(every, 50),
        p95_ms=percentile(every, 95),
        p99_ms=percentile(every, 99),
        slowest=sorted(figures, key=lambda each: -each.p95_ms)[:TOP_PATHS],
        busiest=sorted(figures, key=lambda each: -each.requests)[:TOP_PATHS],
        failing=sorted((each for each in figures if each.errors), key=lambda each: -each.errors)[:TOP_PATHS],
    )


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Returns the smallest of the ordered values that so many percent do not exceed; 0 without values."""
    return ordered[max(ceil(len(ordered) * percent / 100) - 1, 0)] if ordered else 0

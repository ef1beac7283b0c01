"""The log that a server keeps: entries, and what they say about requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from denizen_sdk.records import record


@record
class LogEntryInfo:
    """One line of the log. Entries of requests have the fields `method`, `path`, `status` and `duration_ms`. `trace` is
    a traceback, or empty.
    """

    at: str
    level: str
    event: str
    fields: Mapping[str, Any]
    trace: str = ""


@record
class LogCount:
    """How many entries there are."""

    count: int


@record
class LogPurge:
    """How many entries were deleted."""

    deleted: int


@record
class PathStatistics:
    """The requests of one path: how many, how many of them failed on the server's side, and within how many
    milliseconds 95 percent of them were answered.
    """

    path: str
    requests: int
    errors: int
    p95_ms: int


@record
class ResponseTimes:
    """The times below which 50, 95 and 99 percent of the requests stayed; streams do not count."""

    p50_ms: int
    p95_ms: int
    p99_ms: int


@record
class LogStatisticsInfo:
    """The log of the last `hours`. `error_rate` is the share of requests with a status of 5xx, from 0 to 1; `classes`
    counts requests by the first digit of their status.
    """

    hours: int
    entries: int
    levels: Mapping[str, int]
    requests: int
    errors: int
    error_rate: float
    classes: Mapping[str, int]
    times: ResponseTimes
    slowest: tuple[PathStatistics, ...]
    busiest: tuple[PathStatistics, ...]
    failing: tuple[PathStatistics, ...]

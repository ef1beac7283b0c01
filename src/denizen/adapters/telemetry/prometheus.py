"""Metrics for Prometheus, in its text format.

What happens is counted as it happens; what stands in queues is read when somebody asks (`ServerFigures`). Labels are
names of the configuration and words of the program, never those of people or places; where others can choose a name,
such as that of a model, only the first hundred are told apart.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from denizen.domain.clock import Clock
from denizen.domain.record import record
from denizen.ports.telemetry import CANCELLED, OK, CallSpan, RequestSpan, Span, StoreSpan, TurnSpan

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_NAMES = 100
"""So many names of models are told apart."""
OTHERS = "others"

_TURN_S = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 3600)
_CALL_S = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300)
_STORE_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5)


@record(kw_only=True)
class ServerFigures:
    """How the process stands at one moment. `not_ready` are the parts that are not ready, among `parts`; `accounts`
    counts the accounts of each platform that listen, and those that do not. A number that could not be read is None;
    `is_store_up` tells whether the store told its numbers.
    """

    parts: Sequence[str] = ()
    not_ready: Sequence[str] = ()
    accounts: Mapping[tuple[str, bool], int] = field(default_factory=dict[tuple[str, bool], int])
    turns_running: int = 0
    turns_queued: int = 0
    is_store_up: bool = True
    approvals: int | None = None
    deliveries: int | None = None
    events_waiting: int | None = None
    events_failed: int | None = None
    backup_age_s: float | None = None


class PrometheusTelemetry:
    """Implements `denizen.ports.telemetry.Telemetry` on a registry of its own."""

    def __init__(self, clock: Clock, version: str) -> None:
        self._clock = clock
        self._models: set[str] = set()
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        Gauge("denizen_info", "The program that runs.", ["version"], registry=registry).labels(version).set(1)
        self._turns = Counter("denizen_turns", "Turns that ended.", ["agent", "outcome"], registry=registry)
        self._turn_s = Histogram(
            "denizen_turn_duration_seconds",
            "Turns until their end, with the time in which they waited.",
            ["agent"],
            buckets=_TURN_S,
            registry=registry,
        )
        self._failures = Counter("denizen_turn_failures", "Turns without an answer.", ["code"], registry=registry)
        self._requests = Counter(
            "denizen_model_requests", "Requests to models.", ["model", "outcome"], registry=registry
        )
        self._request_s = Histogram(
            "denizen_model_request_duration_seconds",
            "Requests to models, with retries.",
            ["model"],
            buckets=_TURN_S,
            registry=registry,
        )
        self._tokens = Counter(
            "denizen_model_tokens", "Tokens of models; input includes cached.", ["model", "kind"], registry=registry
        )
        self._cost = Counter("denizen_model_cost_usd", "Known costs of models.", ["model"], registry=registry)
        self._calls = Counter("denizen_tool_calls", "Tool calls.", ["tier", "verdict", "outcome"], registry=registry)
        self._call_s = Histogram(
            "denizen_tool_call_duration_seconds",
            "Tool calls, without the time in which people were waited for.",
            ["tier"],
            buckets=_CALL_S,
            registry=registry,
        )
        self._store_s = Histogram(
            "denizen_store_work_duration_seconds", "Units of work.", ["mode"], buckets=_STORE_S, registry=registry
        )
        self._store_errors = Counter("denizen_store_errors", "Units of work that failed.", ["code"], registry=registry)
        self._logged = Counter("denizen_log_records", "Warnings and errors in the log.", ["level"], registry=registry)
        self._figures = _FiguresCollector()
        registry.register(self._figures)
        for level in ("warning", "error", "critical"):
            self._logged.labels(level)

    @contextmanager
    def measure(self, span: Span) -> Generator[None]:
        began_s = self._clock.monotonic_s()
        try:
            yield
        finally:
            took_s = self._clock.monotonic_s() - began_s
            match span:
                case TurnSpan():
                    self._count_turn(span, took_s)
                case RequestSpan():
                    self._count_request(span, took_s)
                case CallSpan():
                    self._calls.labels(span.tier, span.verdict, span.outcome).inc()
                    self._call_s.labels(span.tier).observe(span.took_s)
                case StoreSpan():
                    self._store_s.labels("write" if span.is_writing else "read").observe(took_s)
                    if span.outcome not in (OK, CANCELLED):
                        self._store_errors.labels(span.outcome).inc()

    def _count_turn(self, span: TurnSpan, took_s: float) -> None:
        self._turns.labels(span.agent, span.outcome).inc()
        self._turn_s.labels(span.agent).observe(took_s)
        if span.failure:
            self._failures.labels(span.failure).inc()

    def _count_request(self, span: RequestSpan, took_s: float) -> None:
        model, usage = self._bound(span.answered_by or span.model), span.usage
        self._requests.labels(model, span.outcome).inc()
        self._request_s.labels(model).observe(took_s)
        for kind, tokens in (
            ("input", usage.input_tokens),
            ("cached_input", usage.cache_read_tokens),
            ("output", usage.output_tokens),
        ):
            self._tokens.labels(model, kind).inc(tokens)
        self._cost.labels(model).inc(float(usage.cost_usd or 0))

    def _bound(self, model: str) -> str:
        if model not in self._models and len(self._models) >= MAX_NAMES:
            return OTHERS
        self._models.add(model)
        return model

    def count_record(self, record: logging.LogRecord) -> None:
        """Counts a line of the log, from WARNING on."""
        if record.levelno >= logging.WARNING:
            self._logged.labels(record.levelname.lower()).inc()

    def render(self, figures: ServerFigures) -> bytes:
        """Returns all metrics in the text format."""
        self._figures.figures = figures
        return generate_latest(self._registry)


class _FiguresCollector(Collector):
    """The gauges of `ServerFigures`. A number that could not be read is left out."""

    figures = ServerFigures()

    def collect(self) -> Iterator[Metric]:
        now = self.figures
        ready = GaugeMetricFamily("denizen_ready", "Whether a part can do its work, as /ready tells.", labels=["part"])
        for part in now.parts:
            ready.add_metric([part], part not in now.not_ready)
        yield ready
        accounts = GaugeMetricFamily("denizen_accounts", "Accounts on platforms.", labels=["platform", "state"])
        for (platform, is_listening), count in now.accounts.items():
            accounts.add_metric([platform, "listening" if is_listening else "silent"], count)
        yield accounts
        for name, about, value in (
            ("store_up", "Whether the store told its numbers in time.", now.is_store_up),
            ("turns_running", "Turns in this process, waiting ones among them.", now.turns_running),
            ("turns_queued", "Turns that wait behind others of their conversation.", now.turns_queued),
            ("approvals_waiting", "Tool calls that wait for people.", now.approvals),
            ("outbox_waiting", "Messages that are owed on platforms.", now.deliveries),
            ("events_waiting", "Events that are due to be delivered to listeners.", now.events_waiting),
            ("events_failed", "Events whose delivery has failed for good.", now.events_failed),
            ("backup_age_seconds", "Age of the last good backup of the schedule.", now.backup_age_s),
        ):
            if value is not None:
                yield GaugeMetricFamily(f"denizen_{name}", about, value=value)
